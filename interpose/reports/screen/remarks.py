"""The lines below the first screen's table: what took most, what is in progress, and what figures leave out."""

from __future__ import annotations

import math
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator

from interpose.analysis.calls.account import ProcessAccount
from interpose.analysis.calls.in_progress import InProgress, contains_code
from interpose.analysis.calls.rows import own_lines
from interpose.analysis.profile.counts import not_read
from interpose.analysis.recording.children import Children, children_of
from interpose.analysis.recording.ending import recording_stopped
from interpose.analysis.recording.installed import packages_of_script
from interpose.analysis.recording.left_out import kinds_left_out, left_out
from interpose.analysis.recording.lineage import program_of, unfollowed, why_not
from interpose.analysis.recording.unfollowed_cpu import unfollowed_cpu
from interpose.analysis.time.run_queue import Unseen
from interpose.analysis.transactions.busy_threads import servers
from interpose.analysis.transactions.estimate import ALL, Margin, Population
from interpose.experiments.metadata.control import control_of
from interpose.experiments.metadata.log import FILTERED, LOWERED, WARNING
from interpose.experiments.model.process import Process
from interpose.experiments.model.stacks import Site
from interpose.kinds import IDLE
from interpose.reports.formats.short_paths import Places
from interpose.reports.formats.table import clean, shortened, wrapped
from interpose.reports.formats.units import count, duration, margin_percent, percent, size
from interpose.reports.screen.counters import counter_lines
from interpose.reports.screen.memory import memory_lines, shortages
from interpose.reports.screen.screen import Screen, has_findings

_OWN_LINES = 3
_NAMED = 3
_OPEN_CALLS = 5
_LIBRARIES = 3
_ELSEWHERE = "code, or in the surrounding call"  # where the time of calls without events is
_LOWERED = 3
_FILTERS = 3
_START_AND_END_NS = 100_000  # of a Python thread, at most, before it is recorded and after: 30 to 80 us here
_WHEN = {
    "exit": "when it ended",
    "killed": "when killed",
    "exec": "when it became another program",
    "saved": "when saved",
    "detached": "when detached",
}


def remarks(screen: Screen) -> Iterator[str]:
    """All of them, in the order of the screen: prose is wrapped and never cut, columns are cut to its width."""
    for told in (triggers, _waits, _busy, cpu_not_seen, cpu_not_followed, sampled, stacks_not_known, chosen):
        yield from _wrapped(screen, told(screen))
    for shown in (_lines, children, _memory, _counters, calls_in_progress):  # columns
        yield from (shortened(line, screen.width) for line in shown(screen))
    for told in (kinds, not_timed, throttled, warnings, filtered, not_interposed, not_marked, libraries, not_followed):
        yield from _wrapped(screen, told(screen))


def _wrapped(screen: Screen, told: Iterable[str]) -> Iterator[str]:
    """Lines of prose, wrapped and never cut."""
    for line in told:
        yield from wrapped(line, screen.width, "   ")


def _waits(screen: Screen) -> Iterator[str]:
    yield from () if screen.log.interval else wait_not_seen(screen)


def _busy(screen: Screen) -> Iterator[str]:
    """A line if no thread that serves requests or tasks had time to spare."""
    found = servers(screen.analysis) if has_findings(screen) and not screen.analysis.is_part else []
    if found and all(each.is_busy for each in found):
        whole_ns, idle_ns = sum(each.whole_ns for each in found), sum(each.idle_ns for each in found)
        who = f"{count(len(found), 'thread')} that {'serve' if len(found) > 1 else 'serves'} requests or tasks"
        waits = "new work may wait for a free thread, and response times do not include that wait"
        yield f" busy  {percent(whole_ns - idle_ns, whole_ns)} of the time, {who}: {waits}"


def _lines(screen: Screen) -> Iterator[str]:
    yield from () if screen.log.interval else lines_of_ones_own(screen)


def _memory(screen: Screen) -> Iterator[str]:
    yield from memory_lines(screen.experiment, screen.log.cwd, screen.shown)


def _counters(screen: Screen) -> Iterator[str]:
    yield from counter_lines(screen.experiment, screen.log.cwd, screen.shown)


def stacks_not_known(screen: Screen) -> Iterator[str]:
    """Lines about samples of the program's code that are missing or cut."""
    found = screen.profiled.sampling
    if found.refused:
        yield f" samples of code  a process could not be sampled: {found.refused} (docs/profile.md)"
    told = [
        (found.torn, f"could not be read{_estimated(found.estimated)}"),
        (found.cut, "were too deep to be read whole"),
        (found.unplaced, "were of threads without recorded calls"),
    ]
    parts = [f"{number:,} {what}" for number, what in told if number]
    samples = found.samples + found.unplaced
    if parts and sum(number for number, _ in told) * 100 >= samples:
        yield f" samples of code  {samples:,}, of which {', '.join(parts)} (docs/profile.md)"


def _estimated(samples: int) -> str:
    return f" (callers of {samples:,} estimated)" if samples else ""


def triggers(screen: Screen) -> Iterator[str]:
    """A line if a trigger fired: how often, and when last, since the program began."""
    page = control_of(screen.experiment)
    if page and page.triggers:
        after = duration(max(page.trigger_ns - screen.log.start_ns, 0))
        last = f", last after {after}" if page.triggers > 1 else f" after {after}"
        yield f" a trigger fired {count(page.triggers, 'time')}{last}"


def sampled(screen: Screen) -> Iterator[str]:
    """Lines if calls were sampled: how, and the margin of a share of the CPU time, 19 times of 20."""
    if every_ns := screen.log.interval_ns:
        ticks = max(screen.profile.total.cpu_ns // every_ns, 1)
        margin = 98 / math.sqrt(ticks)
        every = f"each {screen.log.interval}: shares are of the CPU time"
        yield f" sampled  {every}, +- {margin:.1f} points ({ticks:,} samples)"
        yield " sampled calls have no counts, wall times or waits (INTERPOSE_INTERVAL)"


def chosen(screen: Screen) -> Iterator[str]:
    """Lines if transactions were sampled: how many were kept, the margin, what is not estimated."""
    found = screen.profile.estimate
    if not found:
        return
    of = found.population
    if not of.seen:
        yield f" sampled  one transaction in {found.one_in:,}: there were none, so everything was recorded"
        return
    yield f" sampled  one transaction in {found.one_in:,}: {of.kept:,} of {of.seen:,} kept (seed {clean(found.seed)})"
    if not of.is_known:
        yield " calls in the other transactions are unknown: their time is in the row `not kept`"
    else:
        calls = sum(row.sums.calls for row in screen.profile.rows)
        margin = found.margins.get(ALL)
        yield f" calls in all of them are estimated: x {of.seen / of.kept:.4g}, {_margin_in_words(margin, calls, of)}"
    left, started = found.started
    if left:
        yield f" {left:,} of {started:,} processes started in transactions were not sampled, and are not estimated"
    if screen.survey and screen.survey.awaited:
        yield " findings about event loops use only what was recorded; they are not estimated"


def _margin_in_words(margin: Margin | None, calls: int, of: Population) -> str:
    """How far the number of calls may be off; what does not differ among those kept gives no margin."""
    if margin is None:
        return "the margin of error is unknown"
    if known := margin_percent(margin.calls, calls):
        return f"{known} of the calls (95 %)"
    return "each sampled one made the same number of calls" if of.kept < of.seen else "all were kept"


def wait_not_seen(screen: Screen) -> Iterator[str]:
    """Lines if the program waited for CPU, or outside of its calls for no known cause; none if calls were not
    recorded, nor of what the table has rows for."""
    least_ns = max(screen.profile.total.wall_ns // 100, 1)
    found = screen.unseen if "calls" in screen.log.recorded else Unseen()
    in_table = bool(screen.profiled.processes)
    code_ns = 0 if in_table else found.processor_ns
    delays = {"in code": code_ns, "in calls": found.in_calls_ns, "while idle": found.idle_ns}
    told = [f"{duration(ns)}  {where}" for where, ns in delays.items() if ns >= least_ns]
    if told:
        yield f" wait for CPU  {', '.join(told)}, estimated: processors were busy"
    if found.unexplained_ns >= least_ns and not in_table:
        missing = left_out(screen.analysis.accounts)
        why = f"maybe in {'; '.join(missing)}" if missing else "no known cause (docs/limits.md)"
        yield clean(f" unexplained wait  {duration(found.unexplained_ns)}  in code: {why}")


def cpu_not_seen(screen: Screen) -> Iterator[str]:
    """A line if processes used CPU time in threads that were never seen."""
    unseen_ns = sum(account.unseen_cpu_ns for account in screen.analysis.accounts)
    if unseen_ns and unseen_ns * 100 >= screen.profile.total.cpu_ns + unseen_ns:
        yield clean(f" CPU of {_not_seen(screen, unseen_ns)}")


def _not_seen(screen: Screen, unseen_ns: int) -> str:
    """Which threads used it, and why it is in no row."""
    accounts, time = screen.analysis.accounts, f"{duration(unseen_ns)}  not in the table"
    begun = sum(max(len(each.process.threads) - 1, 0) for each in accounts)
    least_ns = max(unseen_ns - begun * _START_AND_END_NS, 0)  # of native threads
    if any(recording_stopped(each.process) is not None for each in accounts):
        return f"threads not recorded  {time} (recording stopped){_functions_not_seen(screen)}"
    whose = "native threads"
    if (unseen_ns - least_ns) * 100 >= unseen_ns:
        whose += f", {'and' if least_ns else 'or'} of the start and end of {count(begun, 'thread')}"
    return f"{whose}  {time} (docs/limits.md){_functions_not_seen(screen)}"


def _functions_not_seen(screen: Screen) -> str:
    functions = screen.profiled.unseen_threads()
    named = ", ".join(f"{site.function} {duration(cpu_ns)}" for site, cpu_ns in functions[:_NAMED])
    return f": {named}{', ...' if len(functions) > _NAMED else ''}" if named else ""


def cpu_not_followed(screen: Screen) -> Iterator[str]:
    """A line if children without an experiment used CPU time: how much, and which used most."""
    found = unfollowed_cpu(screen.experiment)
    cpu_ns = sum(each.cpu_ns for each in found)
    if cpu_ns and cpu_ns * 100 >= screen.profile.total.cpu_ns + cpu_ns:
        named = ", ".join(f"{each.program} {duration(each.cpu_ns)}" for each in found[:_NAMED])
        more = ", ..." if len(found) > _NAMED else ""
        estimated = " (estimated)" if any(each.is_estimated for each in found) else ""
        yield clean(f" CPU of children not followed  {duration(cpu_ns)}{estimated}  not in the table: {named}{more}")


def lines_of_ones_own(screen: Screen) -> Iterator[str]:
    """The lines of your own code that took most."""
    rows = own_lines(screen.profile.rows)[:_OWN_LINES]
    packages = "" if rows else packages_of_script(screen.experiment.founder)
    if packages:
        yield f" your lines  none: the script is in {packages}, among libraries"
    places = Places([row.site.file for row in own_lines(screen.profile.rows) if row.site], screen.log.cwd, screen.shown)
    for place, row in enumerate(rows):
        assert row.site is not None
        label = "" if place else "your lines"
        what = f"{row.sums.calls:,} x {row.intrinsic}  {places.named(row.site)}"
        yield f" {label:<10}{duration(row.sums.self_wall_ns):>9}  {clean(what)}"


def children(screen: Screen) -> Iterator[str]:
    """The child processes that took most, by program and by the line that started them."""
    found = [each for each in children_of(screen.experiment) if each.wall_ns]
    places = Places([each.site.file for each in found if each.site], screen.log.cwd, screen.shown)
    for place, each in enumerate(found[:_NAMED]):
        several = f"{each.count:,} x " if each.count > 1 else ""
        where = f"  {places.line(each.site)}" if each.site else ""
        others = f", and {each.unawaited:,} more not waited for" if each.unawaited else ""
        told = [f"{each.failed:,} failed"] if each.failed else []
        told += [f"CPU {duration(each.cpu_ns)}", *_memory_of(each)]
        what = f"{several}{each.program}{others}{where}  {', '.join(told)}"
        yield f" {'' if place else 'children':<10}{duration(each.wall_ns):>9}  {clean(what)}"


def _memory_of(children: Children) -> list[str]:
    if not children.memory_bytes:
        return []
    return [f"memory {'<= ' if children.is_memory_at_most else ''}{size(children.memory_bytes)}"]


def calls_in_progress(screen: Screen) -> Iterator[str]:
    """The calls that were in progress when a process ended, or are."""
    alike: dict[tuple[Site | None, str, str], list[tuple[ProcessAccount, InProgress]]] = defaultdict(list)
    for account in screen.analysis.accounts:
        for each in _outermost(account):
            intrinsic, state = account.process.intrinsic(each.call.intrinsic), account.ending.state
            alike[account.process.own_line(each.call.stack), intrinsic.name, state].append((account, each))
    found = sorted(alike.values(), key=_waits_for_work)
    for calls in found[:_OPEN_CALLS]:
        yield f" {_open_calls(screen, calls)}"
    if left := sum(map(len, found[_OPEN_CALLS:])):
        yield f" and {count(left, 'more call')} in progress"


def _outermost(account: ProcessAccount) -> Iterator[InProgress]:
    """The calls in progress without those that another one makes, with no line of your own between them."""
    around: InProgress | None = None
    for each in account.open_calls:  # of each thread the outermost first
        if around and _is_part_of(account.process, each, around):
            continue
        yield each
        around = None if contains_code(account.process, each.call) else each


def _is_part_of(process: Process, inner: InProgress, outer: InProgress) -> bool:
    line, around = (process.own_line(each.call.stack) for each in (inner, outer))
    return inner.thread == outer.thread and (line is None or not line.own or line == around)


def kinds(screen: Screen) -> Iterator[str]:
    """A line if kinds of calls were off or only counted."""
    found = dict.fromkeys(each for account in screen.analysis.accounts for each in kinds_left_out(account.process))
    for each in found:
        yield clean(f" {each} (INTERPOSE_KINDS); their time is in {_ELSEWHERE}")


def not_timed(screen: Screen) -> Iterator[str]:
    """A line if calls were counted but not timed: which, and where their time is."""
    found: Counter[str] = Counter()
    for process in (each.process for each in screen.analysis.accounts):
        for number, counted in process.counts.items():
            found[process.intrinsic(number).name] += counted
    if found:
        named = ", ".join(f"{name} {counted:,}" for name, counted in found.most_common(_LOWERED))
        more = ", ..." if len(found) > _LOWERED else ""
        said = f"{count(found.total(), 'call')} counted, their time is in {_ELSEWHERE}"
        yield f" not timed  {said}: {clean(named)}{more}"


def throttled(screen: Screen) -> Iterator[str]:
    """A line for each of the first intrinsics that the budget throttled."""
    found = [
        (account.process, event)
        for account in screen.analysis.accounts
        for event in account.process.log.events
        if event.kind == LOWERED and event.intrinsic
    ]
    for process, event in found[:_LOWERED]:
        name = process.intrinsic(event.intrinsic or 0).name
        after = duration(max(event.time_ns - process.log.start_ns, 0))
        yield clean(f" throttled  {name} to {event.level} after {after}: it took {event.share} of the CPU time")
    if len(found) > _LOWERED:
        yield f" and {count(len(found) - _LOWERED, 'more step')} of the budget"


def warnings(screen: Screen) -> Iterator[str]:
    """A line for each thing that could not be done as requested."""
    for event in screen.log.events:
        if event.kind == WARNING:
            yield clean(f" warning  {event.text}")
    yield from (f" warning  {each}" for each in shortages(screen.experiment))
    yield from (f" warning  {each}" for each in not_read(screen.experiment))
    if left_out := sum(account.process.details_left_out for account in screen.analysis.accounts):
        yield f" (other)  {count(left_out, 'detail')}: no room for their texts (docs/limits.md)"


def filtered(screen: Screen) -> Iterator[str]:
    """A line for each of the last filters; the calls that they excluded are in no table."""
    found = [event for event in screen.log.events if event.kind == FILTERED]
    for event in found[-_FILTERS:]:
        after = duration(max(event.time_ns - screen.log.start_ns, 0))
        yield clean(f" filter  {event.text}  after {after}; the time of excluded calls is in {_ELSEWHERE}")


def not_interposed(screen: Screen) -> Iterator[str]:
    """A line if a call of the program could not be interposed."""
    found = {
        name: why for each in screen.analysis.accounts for name, why in each.process.not_interposed.items()
    }
    for name, why in list(found.items())[:1]:
        others = f" (and {len(found) - 1} more: interpose doctor)" if len(found) > 1 else ""
        yield f" not interposed  {clean(f'{name}: {why}')}{others}"


def not_marked(screen: Screen) -> Iterator[str]:
    """A line if functions with @transaction are not recorded as transactions: how many, and why."""
    found: Counter[str] = Counter()
    for account in screen.analysis.accounts:
        found.update(account.process.log.unmarked)
    if found:
        functions = count(found.total(), "function")
        yield clean(f" not marked  {functions} with @transaction: {'; '.join(found)} (docs/limits.md)")


def libraries(screen: Screen) -> Iterator[str]:
    """A line for each library that was not used, and for each failure of a wrapper."""
    processes = [account.process for account in screen.analysis.accounts]
    unused = {each.name: each for process in processes for each in process.libraries if each.why_not}
    failed = {(each.library, each.target, each.why): each for process in processes for each in process.failures}
    found = [f"{each.name} is not used: {each.why_not}{_at(each.place)}" for each in unused.values()]
    found += [f"{each.library}: {each.target}: {each.why}{_at(each.place)}" for each in failed.values()]
    for line in found[:_LIBRARIES]:
        yield f" library  {clean(line)}"
    if len(found) > _LIBRARIES:
        yield f" library  and {len(found) - _LIBRARIES} more: interpose map --experiment"


def _at(place: str) -> str:
    return f" ({place})" if place else ""


def not_followed(screen: Screen) -> Iterator[str]:
    """A line if the program started processes that have no experiment."""
    found = unfollowed(screen.experiment)
    if found:
        programs = Counter((program_of(child, process), why_not(child, process)) for process, child in found)
        named = (f"{number:,} x {program} ({why})" for (program, why), number in programs.most_common())
        yield clean(f" not followed  {count(len(found), 'process', 'processes')}: {', '.join(named)}")


def _waits_for_work(calls: list[tuple[ProcessAccount, InProgress]]) -> bool:
    account, first = calls[0]
    return account.process.intrinsic(first.call.intrinsic).kind == IDLE


def _open_calls(screen: Screen, calls: list[tuple[ProcessAccount, InProgress]]) -> str:
    """Calls in progress that are alike, and the time of the longest."""
    account, longest = min(calls, key=lambda each: each[1].call.start_ns)
    several, lasted = (f"{len(calls):,} x ", ", the longest") if len(calls) > 1 else ("", " for")
    site = account.process.own_line(longest.call.stack)
    where = f" at {Places([site.file], screen.log.cwd, screen.shown).line(site)}" if site else ""
    name = account.process.intrinsic(longest.call.intrinsic).name
    time, when = _how_long(account, longest)
    return clean(f"in progress  {several}{name}{where}{f'{lasted} {time}' if time else ''} {when}")


def _how_long(account: ProcessAccount, found: InProgress) -> tuple[str, str]:
    """How long a call was in progress, and until when; at least so long, if nobody saw the process end."""
    if account.ending.state == "running":
        return duration(max(account.process.threads_read_ns - found.call.start_ns, 0)), "so far"
    known_ns = max(found.until_ns - found.call.start_ns, 0)
    when = _WHEN.get(account.ending.state)
    if not known_ns:
        return "", when or "when last seen"
    least = " or more" if when and account.estimated else ""
    return f"{duration(known_ns)}{least}", when or "until last seen"

