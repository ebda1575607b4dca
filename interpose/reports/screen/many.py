"""The first screen of many experiments: what all of them took together, from their partial results.

First the candidates of all experiments are merged; then those that are large enough are reported.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field, replace
from typing import Any

from interpose.analysis.analysis import Analysis
from interpose.analysis.calls.parts import Part
from interpose.analysis.calls.parts import merged as merged_rows
from interpose.analysis.calls.profile import Profile, by_kind, finished, reduced
from interpose.analysis.findings.engine import LEAST_SHARE, candidates, found_in_all
from interpose.analysis.findings.finding import Finding
from interpose.analysis.findings.finding import merged as merged_findings
from interpose.analysis.findings.merging import with_like_rows_together
from interpose.analysis.findings.survey import Survey, Times
from interpose.analysis.partial.partial import Head, Question, Reduction
from interpose.analysis.recording.calendar import span_of
from interpose.analysis.recording.elapsed import calendar_span
from interpose.experiments.metadata.log import Log
from interpose.experiments.model.files import Damages
from interpose.reports.formats.colour import Paint
from interpose.reports.formats.table import clean, columns_of, shortened, wrapped
from interpose.reports.formats.units import count, scale_for
from interpose.reports.screen.kinds_table import kinds_of, part_that_matters, what_shares_are_of
from interpose.reports.screen.state import events_lost, is_well, what_is_missing
from interpose.reports.screen.verdict import verdict
from interpose.reports.tables.findings import findings_table
from interpose.reports.tables.rows import profile_table

NAMED = 100
CANDIDATE_SHARE = LEAST_SHARE / 10  # of the time of an experiment: what it adds to findings of all is not less
NEXT = ("interpose report --by line", "interpose report --by experiment", "interpose trend", "interpose list")
NO_TIMES, NO_PAINT = Times(), Paint(False)
_GAP = "   "


@dataclass
class ScreenPart:
    """What the first screen says of one experiment, or of several.

    `names` are the first `NAMED`. `begins_ns` and `ends_ns` are on the calendar. `missing` says why an experiment is
    incomplete, for the first one with that; `incomplete` is how many are. `findings` are candidates, also small ones.
    """

    rows: Part = field(default_factory=Part)
    findings: list[Finding] = field(default_factory=list)
    times: Times = NO_TIMES
    names: list[str] = field(default_factory=list)
    begins_ns: int = 0
    ends_ns: int = 0
    processes: int = 0
    threads: int = 0
    is_estimated: bool = False
    lost: int = 0
    incomplete: int = 0
    missing: str = ""
    calls_recorded: bool = False


def screen_part(analysis: Analysis, question: Question) -> ScreenPart:
    """The part of the first screen that an experiment has."""
    experiment, survey = analysis.experiment, Survey(analysis, is_scaled=question.is_scaled)
    recorded = experiment.founder.log.recorded
    has_findings = "calls" in recorded and not experiment.founder.log.interval
    rows, accounts = reduced(analysis, "site", question.is_scaled), analysis.accounts
    lost = events_lost(accounts)
    least_ns = CANDIDATE_SHARE * survey.matters_ns
    found = [each for each in candidates(survey) if each.bound_ns >= least_ns] if has_findings else []
    why = what_is_missing(experiment) or (f"{count(lost, 'event')} lost" if lost else "")
    return ScreenPart(
        rows,
        found,
        survey.times,
        [experiment.name],
        *calendar_span(accounts),
        len(accounts),
        sum(len(each.threads) for each in accounts),
        any(each.estimated for each in accounts),
        lost,
        int(bool(why)),
        f"{experiment.name}: {why}" if why else "",
        "calls" in recorded,
    )


def merged_parts(parts: Iterable[ScreenPart]) -> ScreenPart:
    """The first screen of all; those given do not change."""
    given = list(parts)
    findings = merged_findings((finding for each in given for finding in each.findings), is_apart=True)
    return ScreenPart(
        merged_rows(each.rows for each in given),
        with_like_rows_together(findings),
        sum((each.times for each in given), NO_TIMES),
        [name for each in given for name in each.names][:NAMED],
        *span_of((each.begins_ns, each.ends_ns) for each in given),
        sum(each.processes for each in given),
        sum(each.threads for each in given),
        any(each.is_estimated for each in given),
        sum(each.lost for each in given),
        sum(each.incomplete for each in given),
        next((each.missing for each in given if each.missing), ""),
        any(each.calls_recorded for each in given),
    )


SCREEN = Reduction(ScreenPart, screen_part, merged_parts)


@dataclass(frozen=True)
class ManyScreen:
    """What the first screen of many experiments is made from. `failed` are those that could not be read."""

    head: Head
    part: ScreenPart
    failed: Damages
    width: int = 80
    paint: Paint = NO_PAINT

    @property
    def log(self) -> Log:
        """How the earliest was recorded."""
        return self.head.recorded.log

    @property
    def profile(self) -> Profile:
        """The profile by site."""
        return finished(self.part.rows, "site")

    @property
    def findings(self) -> list[Finding]:
        """The findings, largest possible savings first."""
        return found_in_all(self.part.findings, self.part.times.matters_ns)

    @property
    def completeness(self) -> str:
        """`complete`, or how many are not or were not read, and why the first is not."""
        if self.failed.count:
            unread = f"incomplete: {count(self.failed.count, 'experiment')} not read"
            return f"{unread}; {clean(str(self.failed.found[0]))}"
        if not self.part.incomplete:
            return "complete so far" if self.head.is_running else "complete"
        of = f"{self.part.incomplete:,} of {self.head.experiments:,}"
        return f"incomplete: {of}; {clean(self.part.missing)}"

    @property
    def elapsed_ns(self) -> int:
        """From the first beginning to the last end, on the calendar."""
        return max(self.part.ends_ns - self.part.begins_ns, 0)


def summary_of_many(screen: ManyScreen) -> Iterator[str]:
    """The lines of the first screen of many experiments."""
    yield from _first_lines(screen)
    yield from _totals(screen)
    yield ""
    if screen.part.calls_recorded and not screen.log.interval:
        yield from verdict(screen.part.times, screen.findings, screen.log.cwd, screen.width)
        yield ""
    yield from kinds_of(screen.profile, screen.log, screen.width)
    if screen.part.calls_recorded and not screen.log.interval:
        yield from what_shares_are_of(screen.part.times, screen.width)
    yield ""
    yield _next(screen.width)


def _first_lines(screen: ManyScreen) -> list[str]:
    """How many experiments there are, which, and whether all are complete."""
    more = screen.head.experiments - len(screen.part.names)
    named = clean(", ".join(screen.part.names))
    line = f"{count(screen.head.experiments, 'experiment')}  {named}{f' and {more:,} more' if more > 0 else ''}"
    told = wrapped(screen.completeness, screen.width, "  ")
    painted = told if is_well(screen.completeness) else [screen.paint("warning", each) for each in told]
    return [shortened(line, screen.width), *painted]


def _totals(screen: ManyScreen) -> list[str]:
    whole, part, made = screen.profile.total, screen.part, screen.profile
    calls = sum(row.sums.calls for row in made.rows)
    told = f"{calls:,} sampled" if screen.log.interval else count(calls, "call")
    told += " (estimated)" if made.estimate and made.estimate.is_estimated else ""
    scale = scale_for(max(whole.wall_ns, screen.elapsed_ns))
    estimated = " (estimated)" if part.is_estimated else ""
    parts = [
        f"elapsed {scale.show(screen.elapsed_ns)}",
        f"thread time {scale.show(whole.wall_ns)}{estimated}"
        + (part_that_matters(part.times, whole) if part.calls_recorded else ""),
        f"CPU {scale.show(whole.cpu_ns)}",
        told if part.calls_recorded else "calls not recorded",
        count(part.processes, "process", "processes"),
        *([count(part.threads, "thread")] if part.threads > 1 else []),
    ]
    line = _GAP.join(parts)
    return [line] if columns_of(line) <= screen.width else [_GAP.join(parts[:2]), _GAP.join(parts[2:])]


def _next(width: int) -> str:
    first, *others = NEXT
    line = f" next: {first}"
    for command in others:
        if columns_of(f"{line} \u00b7 {command}") <= width:
            line += f" \u00b7 {command}"
    return line


def whole_report_of_many(screen: ManyScreen) -> dict[str, Any]:
    """The same as one object, for machines: times are in nanoseconds."""
    made = screen.profile
    kinds = profile_table(replace(made, rows=by_kind(made)), "kind", screen.log)
    findings = findings_table(screen.findings, screen.part.times.matters_ns, screen.log.cwd)
    warnings = [] if not screen.part.incomplete else [screen.completeness]
    return {
        "experiments": screen.head.experiments,
        "elapsed_ns": screen.elapsed_ns,
        "thread_ns": made.total.wall_ns,
        "cpu_ns": made.total.cpu_ns,
        "complete": is_well(screen.completeness),
        "rows": [dict(kinds.values(row)) for row in kinds.rows],
        "findings": [dict(findings.values(each)) for each in findings.rows],
        "warnings": [*warnings, *(f"not read: {each}" for each in screen.failed.found)],
    }
