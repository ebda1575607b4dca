"""The first screen: what ran, where its time went, which of your lines took most, what to look at next."""

from __future__ import annotations

from collections.abc import Iterator

from interpose.analysis.findings.engine import found_in
from interpose.analysis.recording.elapsed import elapsed_ns
from interpose.experiments.model.collection import Collection
from interpose.reports.formats.table import clean, columns_of, shortened, wrapped
from interpose.reports.formats.units import Scale, count, scale_for
from interpose.reports.screen.kinds_table import kinds, part_that_matters, what_shares_are_of
from interpose.reports.screen.remarks import remarks
from interpose.reports.screen.screen import Screen, has_findings, has_idle
from interpose.reports.screen.state import command_line, completeness, ended_ago, ending_in_words, is_well
from interpose.reports.screen.verdict import verdict

# Commands to run next, by what was recorded.
NEXT = {
    "calls": ("interpose events", "interpose report --by line", "interpose report --by detail"),
    "lines": ("interpose lines",),
    "coverage": ("interpose coverage report",),
}
LIST = "interpose list"
BY_FUNCTION = "interpose report --by function"
_NOTES = 10
_EXPERIMENTS_NAMED = 100
_LEAST_COMMAND = 12
_GAP = "   "
_INDENT = "  "


def summary(screen: Screen) -> Iterator[str]:
    """The lines of the first screen, notes first."""
    yield from notes(screen)
    yield from first_lines(screen)
    yield from totals(screen)
    yield ""
    if told := answer(screen):
        yield from told
        yield ""
    yield from kinds(screen)
    if screen.survey is not None and has_findings(screen):
        yield from what_shares_are_of(screen.survey.times, screen.width)
    yield ""
    yield from remarks(screen)
    yield next_commands(screen)


def answer(screen: Screen) -> list[str]:
    """The verdict, where there are findings."""
    if screen.survey is None or not has_findings(screen):
        return []
    return list(verdict(screen.survey.times, found_in(screen.survey), screen.log.cwd, screen.width, screen.shown))


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
    told = complete if is_well(complete) else screen.paint("warning", complete)
    return [f"{first}{_GAP}{told}"] if on_one else [first, *_completeness_below(screen, complete)]


def _completeness_below(screen: Screen, complete: str) -> list[str]:
    """The same on lines of its own, nothing cut: it may end with a number."""
    lines = wrapped(complete, screen.width, _INDENT)
    return lines if is_well(complete) else [screen.paint("warning", line) for line in lines]


def _lines_of_several(screen: Screen, collection: Collection) -> list[str]:
    """How many experiments there are, which, and whether all are complete."""
    named = clean(", ".join(each.name for each in collection.experiments[:_EXPERIMENTS_NAMED]))
    more = len(collection.experiments) - _EXPERIMENTS_NAMED
    line = f"{collection.name}  {named}{f' and {more:,} more' if more > 0 else ''}"
    complete = completeness(screen.analysis)
    return [shortened(line, screen.width), *_completeness_below(screen, complete)]


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
        f"elapsed {_elapsed(screen, scale)}",
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


def _elapsed(screen: Screen, scale: Scale) -> str:
    if not screen.log.start_ns:
        return "unknown"
    return scale.show(elapsed_ns(screen.analysis)) + (" (estimated)" if screen.log.is_start_estimated else "")


def _not_idle(screen: Screen) -> str:
    """The part of the thread time in which the program did not wait for work, as far as it is known."""
    if screen.survey is None or not has_idle(screen):
        return ""
    return part_that_matters(screen.survey.times, screen.profile.total)


def next_commands(screen: Screen) -> str:
    """Commands to run next, as many as fit; those for lines and coverage first, if recorded."""
    recorded = sorted(screen.log.recorded & NEXT.keys(), reverse=True)
    of_code = [BY_FUNCTION] if screen.profiled.processes else []
    first, *others = [*of_code, *(command for word in recorded for command in NEXT[word]), LIST]
    line = f" next: {first}"
    for command in others:
        if columns_of(f"{line} \u00b7 {command}") <= screen.width:
            line += f" \u00b7 {command}"
    return line
