"""The first screen: what was run, where its time went, which own lines took most, what to ask next."""

from __future__ import annotations

import math
import time
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from operator import itemgetter

from interpose.analysis.analysis import Analysis
from interpose.analysis.calls.account import OpenCallFound, ProcessAccount
from interpose.analysis.calls.profile import (
    BEFORE,
    CODE,
    OVERHEAD,
    Profile,
    Row,
    by_kind,
    is_uncertain,
    own_lines,
    wait_ns,
)
from interpose.analysis.findings.engine import found_in
from interpose.analysis.findings.survey import Survey
from interpose.analysis.profile.profiled import CONTAINERS, Function, Profiled, profiled, program_waits
from interpose.analysis.recording.children import Children, children_of
from interpose.analysis.recording.lineage import program_of, unfollowed, why_not
from interpose.analysis.recording.unfollowed_cpu import unfollowed_cpu
from interpose.analysis.time.run_queue import Unseen
from interpose.analysis.transactions.estimate import ALL
from interpose.experiments.metadata.control import control_of
from interpose.experiments.metadata.log import FILTERED, LOWERED, WARNING, Log
from interpose.experiments.model.collection import Collection
from interpose.experiments.model.experiment import Experiment
from interpose.reports.formats.colour import Paint
from interpose.reports.formats.short_paths import Places
from interpose.reports.formats.table import Column, clean, columns_of, lines, shortened, wrapped
from interpose.reports.formats.units import (
    Scale,
    count,
    duration,
    margin_of_samples,
    margin_percent,
    percent,
    scale_for,
    size,
)
from interpose.reports.screen.memory import memory_lines, shortages
from interpose.reports.screen.state import command_line, completeness, elapsed_ns, ended_ago, ending_in_words, is_well
from interpose.reports.screen.verdict import verdict

# What there is to ask of what was recorded.
NEXT = {
    "calls": ("interpose events", "interpose report --by site", "interpose report --by detail"),
    "lines": ("interpose lines",),
    "coverage": ("interpose coverage report",),
}
LIST = "interpose list"
BY_FUNCTION = "interpose report --by function"
_OWN_LINES = 3
_FUNCTIONS = 3
# Where a screen is narrower than this, names of functions and comments are so short that no column is left out.
_WIDE = 100
_LONGEST_FUNCTION, _LEAST_COMMENT = 11, 12
_LEAST_SHARE = 0.01  # of the CPU time, or of the thread time: what is less has no line
_CHILDREN = 3
_OPEN_CALLS = 5
_NOTES = 10
_LIBRARIES = 3
_EXPERIMENTS_NAMED = 100
_LOWERED = 3
_FILTERS = 3
_LEAST_COMMAND = 12
_GAP = "   "
_WHEN = {
    "exit": "when it ended",
    "killed": "when killed",
    "exec": "when it became another program",
    "saved": "when saved",
    "detached": "when detached",
}
# The comments of the rows are shorter than in other formats, for 80 columns.
_COMMENTS = {OVERHEAD: "estimated", BEFORE: "overwritten"}


_KIND_COLUMNS = (
    Column("", itemgetter(0), right=False),
    Column("calls", itemgetter(1)),
    Column("self wall", itemgetter(2)),
    Column("self CPU", itemgetter(3), optional=True),
    Column("wait", itemgetter(4), optional=True),
    Column("share", itemgetter(5)),
    Column("", itemgetter(6), right=False, flexible=True, optional=True),
)


@dataclass(frozen=True)
class Screen:
    """What the first screen is made from: a profile by site of what is analysed, the present, the paper, and what
    findings are made from, if they are wanted."""

    profile: Profile
    now_s: float
    width: int
    paint: Paint
    survey: Survey | None = None

    @cached_property
    def profiled(self) -> Profiled:
        """The sampled profile."""
        return self.survey.profiled if self.survey else profiled(self.analysis)

    @property
    def unseen(self) -> Unseen:
        """What the program waited outside of its calls."""
        return program_waits(self.analysis, self.profiled)

    @property
    def analysis(self) -> Analysis:
        return self.profile.analysis

    @property
    def experiment(self) -> Experiment:
        return self.analysis.experiment

    @property
    def log(self) -> Log:
        return self.experiment.founder.log

    @property
    def founder(self) -> ProcessAccount:
        return self.analysis.accounts[0]


def summary(screen: Screen) -> Iterator[str]:
    """The lines of the first screen; what somebody noted of the experiment comes first of all."""
    yield from notes(screen)
    yield from first_lines(screen)
    yield from totals(screen)
    yield ""
    if told := answer(screen):
        yield from told
        yield ""
    yield from kinds(screen)
    yield from what_shares_are_of(screen)
    yield ""
    below = [
        *triggers(screen),
        *(() if screen.log.interval else wait_not_seen(screen)),
        *cpu_not_seen(screen),
        *cpu_not_followed(screen),
        *sampled(screen),
        *stacks_not_known(screen),
        *chosen(screen),
        *(() if screen.log.interval else lines_of_ones_own(screen)),
        *children(screen),
        *memory_lines(screen.experiment, screen.log.cwd),
        *calls_in_progress(screen),
        *not_timed(screen),
        *throttled(screen),
        *warnings(screen),
        *filtered(screen),
        *not_interposed(screen),
        *libraries(screen),
        *not_followed(screen),
    ]
    yield from (shortened(line, screen.width) for line in below)
    yield next_commands(screen)


def answer(screen: Screen) -> list[str]:
    """The verdict, where there are findings."""
    if screen.survey is None or not has_findings(screen):
        return []
    return list(verdict(screen.survey, found_in(screen.survey), screen.log.cwd, screen.width))


def has_findings(screen: Screen) -> bool:
    """Whether calls were recorded, and each of them: of samples no wall time is known."""
    return screen.survey is not None and not screen.log.interval and "calls" in screen.log.recorded


def notes(screen: Screen) -> Iterator[str]:
    """The notes, as many as leave room for the rest."""
    found = screen.experiment.notes
    for line in found[:_NOTES]:
        yield shortened(clean(line), screen.width)
    if len(found) > _NOTES:
        yield f"and {count(len(found) - _NOTES, 'more line')}: interpose notes"


def first_lines(screen: Screen) -> list[str]:
    """The experiment, its command, how and when it ended, whether it is complete: one line or two."""
    if isinstance(screen.experiment, Collection):
        return _lines_of_several(screen, screen.experiment)
    name = shortened(clean(screen.experiment.name), screen.width // 4, keep="end")
    state = ending_in_words(screen.founder.ending)
    ago = ended_ago(screen.founder, screen.now_s)
    complete = completeness(screen.analysis)
    fixed = sum(map(columns_of, (name, state, ago, complete))) + 2 + 3 * len(_GAP)
    on_one = fixed + min(_LEAST_COMMAND, columns_of(command_line(screen.experiment.founder))) <= screen.width
    left = screen.width - fixed + (0 if on_one else columns_of(complete) + len(_GAP))
    command = shortened(command_line(screen.experiment.founder), max(left, _LEAST_COMMAND))
    first = _GAP.join([f"{screen.paint('bold', name)}  {command}", state, ago])
    line = shortened(complete, screen.width)
    told = line if is_well(complete) else screen.paint("warning", line)
    return [f"{first}{_GAP}{told}"] if on_one else [first, told]


def _lines_of_several(screen: Screen, collection: Collection) -> list[str]:
    """How many experiments there are, which, and whether all are complete."""
    named = clean(", ".join(each.name for each in collection.experiments[:_EXPERIMENTS_NAMED]))
    more = len(collection.experiments) - _EXPERIMENTS_NAMED
    line = f"{collection.name}  {named}{f' and {more:,} more' if more > 0 else ''}"
    complete = completeness(screen.analysis)
    return [shortened(line, screen.width), shortened(complete, screen.width)]


def totals(screen: Screen) -> list[str]:
    """Elapsed time, thread time, CPU time, calls; processes and threads where there are several."""
    whole = screen.profile.total
    accounts = screen.analysis.accounts
    calls = sum(row.sums.calls for row in screen.profile.rows)
    told = f"{calls:,} sampled" if screen.log.interval else count(calls, "call")
    told += " (estimated)" if screen.profile.estimate and screen.profile.estimate.is_estimated else ""
    threads = sum(len(account.threads) for account in accounts)
    scale = scale_for(max(whole.wall_ns, elapsed_ns(screen.analysis)))
    estimated = " (estimated)" if any(account.estimated for account in accounts) else ""
    parts = [
        f"elapsed {scale.show(elapsed_ns(screen.analysis))}",
        f"thread time {scale.show(whole.wall_ns)}{estimated}{_not_idle(screen)}",
        f"CPU {scale.show(whole.cpu_ns)}",
        told if "calls" in screen.log.recorded else "calls not recorded",
    ]
    if len(accounts) > 1:
        parts.append(f"{len(accounts):,} processes")
    if threads > 1:
        parts.append(count(threads, "thread"))
    line = _GAP.join(parts)
    return [line] if columns_of(line) <= screen.width else [_GAP.join(parts[:2]), _GAP.join(parts[2:])]


def _not_idle(screen: Screen) -> str:
    """The part of the thread time that findings are shares of, where it is less."""
    return f" ({duration(screen.survey.matters_ns)} not idle)" if screen.survey and _has_idle(screen) else ""


def _has_idle(screen: Screen) -> bool:
    """Whether findings are shares of clearly less than the thread time."""
    if screen.survey is None or not has_findings(screen):
        return False
    return screen.survey.matters_ns < 0.99 * screen.profile.total.wall_ns


def what_shares_are_of(screen: Screen) -> list[str]:
    """Lines below the table where its shares are of more time than the verdict compares with."""
    if screen.survey is None or not _has_idle(screen):
        return []
    whole_ns = screen.profile.total.wall_ns
    of_table = f"shares are of all thread time, {scale_for(whole_ns).show(whole_ns)}"
    return wrapped(f" {of_table}; sentences compare with {duration(screen.survey.matters_ns)}", screen.width, "  ")


def kinds(screen: Screen) -> list[str]:
    """The table of the kinds; its column of wall times adds up to the thread time."""
    whole = screen.profile.total
    scale = scale_for(whole.wall_ns)
    rows = by_kind(screen.profile)
    if screen.log.interval:
        cells = [_sampled_cells(row, scale, whole.cpu_ns) for row in rows]
    else:
        cells = [
            line
            for row in rows
            for line in (_kind_cells(row, scale, screen.log, whole.wall_ns), *code_cells(screen, row, scale))
        ]
        if screen.profiled.processes and screen.width < _WIDE:
            cells = _with_room(cells, screen.width - 1)
    return [f" {line}" for line in lines(_KIND_COLUMNS, cells, screen.width - 1)]


def code_cells(screen: Screen, row: Row, scale: Scale) -> Iterator[list[str]]:
    """Below a row of code: the functions with the most CPU time in it; below that of the program also what it waited
    for."""
    kind = row.kind or ""
    if not screen.profiled.processes or kind not in (CODE, *CONTAINERS) or row.is_of_calls != (kind != CODE):
        return
    functions = [each for each in screen.profiled.by_function(kind) if each.is_known]
    places = Places([each.site.file for each in functions], screen.log.cwd)
    for each in functions[:_FUNCTIONS]:
        if each.code.cpu_ns >= max(_LEAST_SHARE * screen.profile.total.cpu_ns, 1):
            yield _function_cells(each, scale, places, row.sums.self_cpu_ns, screen.width >= _WIDE)
    if kind == CODE:
        yield from _wait_cells(screen, scale)


def _function_cells(each: Function, scale: Scale, places: Places, whole_ns: int, is_wide: bool) -> list[str]:
    name, told = clean(each.site.function), places.line(each.site)
    if not is_wide and columns_of(name) > _LONGEST_FUNCTION:
        name = shortened(name.rpartition(".")[2], _LONGEST_FUNCTION)
    if is_wide:
        margin = margin_of_samples(each.code.margin_ns, each.code.cpu_ns)
        told += f"  {percent(each.code.cpu_ns, whole_ns)} of CPU {margin}".rstrip()
    mark = "~" if each.code.margin_ns > each.code.cpu_ns else ""
    return [f"  {name}", "", "", mark + scale.show(each.code.cpu_ns), "", "", clean(told)]


def _wait_cells(screen: Screen, scale: Scale) -> Iterator[list[str]]:
    """What the program waited for outside of its calls; the wait for the interpreter lock is a kind of its own."""
    waits = screen.unseen
    whole_ns = screen.profile.total.wall_ns
    told = {"wait for CPU": (waits.processor_ns, "processors busy"),
            "unexplained": (waits.unexplained_ns, "no known cause")}  # fmt: skip
    for name, (ns, comment) in told.items():
        if ns >= max(_LEAST_SHARE * whole_ns, 1):
            yield [f"  {name}", "", "", "", scale.show(ns), "", comment]


def stacks_not_known(screen: Screen) -> Iterator[str]:
    """Lines where samples of the program's code are missing or not whole."""
    found = screen.profiled.sampling
    if found.refused:
        yield f" samples of code  a process could not be read: {found.refused} (docs/profile.md)"
    told = [
        (found.torn, "could not be read"),
        (found.cut, "were too deep to be read whole"),
        (found.unplaced, "were of threads without recorded calls"),
    ]
    parts = [f"{number:,} {what}" for number, what in told if number]
    if parts and sum(number for number, _ in told) * 100 >= found.samples:
        yield f" samples of code  {found.samples:,}, of which {', '.join(parts)} (docs/profile.md)"


def _with_room(cells: list[list[str]], width: int) -> list[list[str]]:
    """The cells, comments so short that no column is left out."""
    heads = [column.title for column in _KIND_COLUMNS[:-1]]
    taken = sum(max(map(columns_of, column)) for column in zip(heads, *(line[:-1] for line in cells), strict=True))
    room = max(width - taken - 2 * len(heads), _LEAST_COMMENT)
    return [[*others, shortened(comment, room)] for *others, comment in cells]


def triggers(screen: Screen) -> Iterator[str]:
    """A line where a trigger fired: how often, and when last, since the program began."""
    page = control_of(screen.experiment)
    if page and page.triggers:
        after = duration(max(page.trigger_ns - screen.log.start_ns, 0))
        last = f", last after {after}" if page.triggers > 1 else f" after {after}"
        yield f" a trigger fired {count(page.triggers, 'time')}{last}"


def sampled(screen: Screen) -> Iterator[str]:
    """A line where calls were sampled: how, and how far off a share of the CPU time may be, 19 times of 20."""
    if every_ns := screen.log.interval_ns:
        ticks = max(screen.profile.total.cpu_ns // every_ns, 1)
        margin = 98 / math.sqrt(ticks)
        every = f"each {screen.log.interval}: shares are of the CPU time"
        yield f" sampled  {every}, +- {margin:.1f} points ({ticks:,} samples)"
        yield " counts, wall times and waits are not known of samples (INTERPOSE_INTERVAL)"


def chosen(screen: Screen) -> Iterator[str]:
    """Lines where transactions were sampled: how many were kept, how far off figures may be, what is not estimated."""
    found = screen.profile.estimate
    if not found:
        return
    of = found.population
    if not of.seen:
        yield f" sampled  one transaction in {found.one_in:,}: there were none, and all was recorded"
        return
    yield f" sampled  one transaction in {found.one_in:,}: {of.kept:,} of {of.seen:,} kept (seed {clean(found.seed)})"
    if not of.is_known:
        yield " what the others called is not known: their time is in the row `not kept`"
    else:
        calls = sum(row.sums.calls for row in screen.profile.rows)
        margin = found.margins.get(ALL)
        known = (margin_percent(margin.calls, calls) or "exact") if margin else ""
        told = f"{known} of the calls (95 %)" if known else "no margin of error is known"
        yield f" what they called is estimated for all: x {of.seen / of.kept:.4g}, {told}"
    left, started = found.started
    if left:
        yield f" of {started:,} processes started within them {left:,} were passed over, which is not estimated"
    if screen.survey:
        yield " findings are of what is recorded, not estimated"


def wait_not_seen(screen: Screen) -> Iterator[str]:
    """Lines where the program waited outside of its calls, for a processor or for what nobody saw; nothing where calls
    were not recorded, and where the table says it."""
    least_ns = max(screen.profile.total.wall_ns // 100, 1)
    found = screen.unseen if "calls" in screen.log.recorded else Unseen()
    in_table = bool(screen.profiled.processes)
    delays = {"in code": 0 if in_table else found.processor_ns, "in calls": found.in_calls_ns}
    told = [f"{duration(ns)}  {where}" for where, ns in delays.items() if ns >= least_ns]
    if told:
        yield f" waiting for a processor  {', '.join(told)}, estimated: processors were busy"
    if found.unexplained_ns >= least_ns and not in_table:
        yield f" unexplained wait  {duration(found.unexplained_ns)}  in code: no known cause (docs/limits.md)"


def cpu_not_seen(screen: Screen) -> Iterator[str]:
    """A line where processes used CPU time in threads that were never seen."""
    unseen_ns = sum(account.unseen_cpu_ns for account in screen.analysis.accounts)
    if unseen_ns and unseen_ns * 100 >= screen.profile.total.cpu_ns + unseen_ns:
        yield f" CPU of native threads  {duration(unseen_ns)}  not in the table (docs/limits.md)"


def cpu_not_followed(screen: Screen) -> Iterator[str]:
    """A line where children without an experiment used CPU time: how much, and which used most of it."""
    found = unfollowed_cpu(screen.experiment)
    cpu_ns = sum(each.cpu_ns for each in found)
    if cpu_ns and cpu_ns * 100 >= screen.profile.total.cpu_ns + cpu_ns:
        named = ", ".join(f"{each.program} {duration(each.cpu_ns)}" for each in found[:_CHILDREN])
        more = ", ..." if len(found) > _CHILDREN else ""
        estimated = " (estimated)" if any(each.is_estimated for each in found) else ""
        yield clean(f" CPU of children not followed  {duration(cpu_ns)}{estimated}  not in the table: {named}{more}")


def lines_of_ones_own(screen: Screen) -> Iterator[str]:
    """The lines of the program's own code that took most."""
    rows = own_lines(screen.profile.rows)[:_OWN_LINES]
    places = Places([row.site.file for row in own_lines(screen.profile.rows) if row.site], screen.log.cwd)
    for place, row in enumerate(rows):
        assert row.site is not None
        label = "" if place else "your lines"
        what = f"{row.sums.calls:,} x {row.intrinsic}  {places.line(row.site)} {row.site.function}"
        yield f" {label:<10}{duration(row.sums.self_wall_ns):>9}  {clean(what)}"


def children(screen: Screen) -> Iterator[str]:
    """The child processes that took most, by program and by the line that started them."""
    found = [each for each in children_of(screen.experiment) if each.wall_ns]
    places = Places([each.site.file for each in found if each.site], screen.log.cwd)
    for place, each in enumerate(found[:_CHILDREN]):
        several = f"{each.count:,} x " if each.count > 1 else ""
        where = f"  {places.line(each.site)}" if each.site else ""
        told = [f"CPU {duration(each.cpu_ns)}", *_memory_of(each)]
        told += [f"{each.failed:,} failed"] if each.failed else []
        what = f"{several}{each.program}{where}  {', '.join(told)}"
        yield f" {'' if place else 'children':<10}{duration(each.wall_ns):>9}  {clean(what)}"


def _memory_of(children: Children) -> list[str]:
    if not children.memory_bytes:
        return []
    return [f"{'at most ' if children.is_memory_at_most else ''}{size(children.memory_bytes)}"]


def calls_in_progress(screen: Screen) -> Iterator[str]:
    """The calls that were in progress when a process ended, or are."""
    found = [(account, call) for account in screen.analysis.accounts for call in account.open_calls]
    for account, call in found[:_OPEN_CALLS]:
        yield f" {_open_call(screen, account, call)}"
    if len(found) > _OPEN_CALLS:
        yield f" and {count(len(found) - _OPEN_CALLS, 'more call')} in progress"


def not_timed(screen: Screen) -> Iterator[str]:
    """A line where calls were counted and not timed: whose, and where their time is."""
    found: Counter[str] = Counter()
    for process in (each.process for each in screen.analysis.accounts):
        for number, counted in process.counts.items():
            found[process.intrinsic(number).name] += counted
    if found:
        named = ", ".join(f"{name} {counted:,}" for name, counted in found.most_common(_LOWERED))
        more = ", ..." if len(found) > _LOWERED else ""
        yield f" not timed  {count(found.total(), 'call')} counted, their time is in code: {clean(named)}{more}"


def throttled(screen: Screen) -> Iterator[str]:
    """A line for each of the first intrinsics that the governor lowered."""
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
    """A line for each of what could not be done as asked."""
    for event in screen.log.events:
        if event.kind == WARNING:
            yield clean(f" warning  {event.text}")
    yield from (f" warning  {each}" for each in shortages(screen.experiment))
    if left_out := sum(account.process.details_left_out for account in screen.analysis.accounts):
        yield f" (other)  {count(left_out, 'detail')}: no room for their texts (docs/limits.md)"


def filtered(screen: Screen) -> Iterator[str]:
    """A line for each of the last filters that held, or hold: what they left out is in no table."""
    found = [event for event in screen.log.events if event.kind == FILTERED]
    for event in found[-_FILTERS:]:
        after = duration(max(event.time_ns - screen.log.start_ns, 0))
        yield clean(f" filter  {event.text}  after {after}; the time of what it leaves out is in code")


def not_interposed(screen: Screen) -> Iterator[str]:
    """A line where something could not be interposed that the program has."""
    found = {
        name: why for each in screen.analysis.accounts for name, why in each.process.not_interposed.items()
    }
    for name, why in list(found.items())[:1]:
        others = f" (and {len(found) - 1} more: interpose doctor)" if len(found) > 1 else ""
        yield f" not interposed  {clean(f'{name}: {why}')}{others}"


def libraries(screen: Screen) -> Iterator[str]:
    """A line for what was wrong with libraries: those not used, and what failed in their wrappers."""
    processes = [account.process for account in screen.analysis.accounts]
    unused = {each.name: each for process in processes for each in process.libraries if each.why_not}
    failed = {(each.library, each.target, each.why): each for process in processes for each in process.failures}
    found = [f"{each.name} is not used: {each.why_not}  {each.place}" for each in unused.values()]
    found += [f"{each.library}: {each.target}: {each.why}  {each.place}" for each in failed.values()]
    for line in found[:_LIBRARIES]:
        yield f" library  {clean(line)}"
    if len(found) > _LIBRARIES:
        yield f" library  and {len(found) - _LIBRARIES} more: interpose map --experiment"


def not_followed(screen: Screen) -> Iterator[str]:
    """A line where processes were started that have no experiment of their own."""
    found = unfollowed(screen.experiment)
    if found:
        programs = Counter((program_of(child, process), why_not(child, process)) for process, child in found)
        named = (f"{program} ({why}) {number:,}" for (program, why), number in programs.most_common())
        yield clean(f" not followed  {count(len(found), 'process', 'processes')}: {', '.join(named)}")


def next_commands(screen: Screen) -> str:
    """What to ask next, as many commands as fit; lines and coverage first where they were recorded."""
    recorded = sorted(screen.log.recorded & NEXT.keys(), reverse=True)
    of_code = [BY_FUNCTION] if screen.profiled.processes else []
    first, *others = [*of_code, *(command for word in recorded for command in NEXT[word]), LIST]
    line = f" next: {first}"
    for command in others:
        if columns_of(f"{line} \u00b7 {command}") <= screen.width:
            line += f" \u00b7 {command}"
    return line


def _open_call(screen: Screen, account: ProcessAccount, found: OpenCallFound) -> str:
    process = account.process
    site = process.own_line(found.call.stack)
    where = f" at {Places([site.file], screen.log.cwd).line(site)}" if site else ""
    how_long = _how_long(account, found)
    return clean(f"in progress  {process.intrinsic(found.call.intrinsic).name}{where}{how_long}")


def _how_long(account: ProcessAccount, found: OpenCallFound) -> str:
    """How long a call was in progress; where nobody saw the process end, as long as is known at least."""
    if account.ending.state == "running":
        return f" for {duration(max(_now_ns() - found.call.start_ns, 0))} so far"
    known_ns = max(found.until_ns - found.call.start_ns, 0)
    when = _WHEN.get(account.ending.state)
    if not known_ns:
        return f" {when or 'when last seen'}"
    least = " or more" if when and account.ending.end_ns is None else ""
    return f" for {duration(known_ns)}{least} {when or 'until last seen'}"


def _now_ns() -> int:
    return time.clock_gettime_ns(time.CLOCK_MONOTONIC)


def _kind_cells(row: Row, scale: Scale, log: Log, whole_ns: int) -> list[str]:
    margins = ""
    if row.margin:
        calls = margin_percent(row.margin.calls, row.sums.calls)
        wall = margin_percent(row.margin.self_wall_ns, row.sums.self_wall_ns)
        margins = ", ".join([f"{what} {text}" for text, what in ((calls, "calls"), (wall, "wall")) if text])
        margins = margins.replace(" %", "%")  # for 80 columns

    def shown(ns: int) -> str:
        mark = "~" if is_uncertain(ns, row.sums.calls, log.inside_ns, log.resolution_ns) else ""
        return mark + scale.show(ns)

    return [
        clean(row.kind or "?"),
        f"{row.sums.calls:,}" if row.is_of_calls else "",
        shown(row.sums.self_wall_ns),
        shown(row.sums.self_cpu_ns),
        shown(wait_ns(row)),
        percent(row.sums.self_wall_ns, whole_ns),
        row.comment or margins if row.is_of_calls else _COMMENTS.get(row.kind or "", row.comment),
    ]


def _sampled_cells(row: Row, scale: Scale, whole_cpu_ns: int) -> list[str]:
    """Of calls that were sampled CPU times alone are known; `share` is that of the CPU time."""
    share = percent(row.sums.self_cpu_ns, whole_cpu_ns)
    comment = "" if row.is_of_calls else row.comment
    return [clean(row.kind or "?"), "", "", scale.show(row.sums.self_cpu_ns), "", share, comment]


