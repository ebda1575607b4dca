"""The part of waits in which child processes lived, as far as it is proved."""

from __future__ import annotations

from bisect import bisect_right
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from functools import cache
from itertools import accumulate

from interpose.analysis.findings.finding import Calls
from interpose.analysis.findings.survey import grouped, total_of
from interpose.analysis.recording.children import Life
from interpose.analysis.time.awaited import Span, joined
from interpose.analysis.time.turns import PLACE, calls_of, has_events
from interpose.experiments.model.experiment import Experiment
from interpose.experiments.model.process import Process


class Lived:
    """When at least one child of a process lived."""

    def __init__(self, lives: Iterable[Span]) -> None:
        self._spans = list(joined(lives))
        self._starts = [start_ns for start_ns, _ in self._spans]
        self._before = [0, *accumulate(end_ns - start_ns for start_ns, end_ns in self._spans)]

    def within(self, start_ns: int, end_ns: int) -> int:
        """How much of this time one lived."""
        return self._until(end_ns) - self._until(start_ns)

    def _until(self, at_ns: int) -> int:
        number = bisect_right(self._starts, at_ns)
        if not number:
            return 0
        start_ns, end_ns = self._spans[number - 1]
        return self._before[number - 1] + min(at_ns, end_ns) - start_ns


def while_one_lived(experiment: Experiment, rows: Sequence[Calls], lives: Iterable[Life]) -> list[Calls]:
    """The calls of `rows`, all from one line, with the part of their time in which a child of the process that made
    them is known to have lived: by their events, or if there are none by what does not fit between the lives."""
    lived = {
        parent: Lived((each.start_ns, each.end_ns) for each in of_parent)
        for parent, of_parent in grouped(lives, lambda each: each.parent)
    }
    _, wall_ns = total_of(rows)
    proved_ns = sum(max(row.wall_ns - _between_lives_ns(row, lived), 0) for row in rows)
    if lived and proved_ns < wall_ns:
        proved_ns = max(proved_ns, _in_events_ns(experiment, rows, lived))
    return [replace(row, wall_ns=row.wall_ns * proved_ns // max(wall_ns, 1)) for row in rows]


def _between_lives_ns(row: Calls, lived: dict[int, Lived]) -> int:
    """How long no child lived from the first to the last of these calls, in all threads: so long they can have waited
    for others."""
    threads = Counter(process for process, _ in row.threads)
    return sum(
        threads[process] * (end_ns - start_ns - _within(lived, process, start_ns, end_ns))
        for process, (start_ns, end_ns) in row.seen_ns.items()
    )


def _within(lived: dict[int, Lived], process: int, start_ns: int, end_ns: int) -> int:
    return lived[process].within(start_ns, end_ns) if process in lived else 0


def _in_events_ns(experiment: Experiment, rows: Sequence[Calls], lived: dict[int, Lived]) -> int:
    """At least how much of the waits was while a child lived, by the events that were kept and the calls in progress.

    Some of these events may belong to other rows: what they took beyond these rows is subtracted, as if a child had
    lived then. Events of sampled transactions stand for all calls."""
    _, wall_ns = total_of(rows)
    known_ns = while_ns = 0
    for number, start_ns, end_ns in _spans(experiment, rows):
        known_ns += end_ns - start_ns
        while_ns += _within(lived, number, start_ns, end_ns)
    if any(row.is_estimated for row in rows):
        return while_ns * wall_ns // max(known_ns, 1)
    return min(while_ns - max(known_ns - wall_ns, 0), wall_ns)


def _spans(experiment: Experiment, rows: Sequence[Calls]) -> Iterator[tuple[int, int, int]]:
    """The positions of processes, and from when to when each of these calls was."""
    for number in {number for row in rows for number in row.seen_ns}:
        process = experiment.processes[number]
        for start_ns, end_ns in _calls(process, rows) if has_events(process) else ():
            yield number, start_ns, end_ns
    for row in rows:
        for (number, _), (start_ns, wall_ns) in row.unended_at.items():
            yield number, start_ns, start_ns + wall_ns


def _calls(process: Process, rows: Sequence[Calls]) -> Iterator[Span]:
    made = {(row.kind, row.intrinsic, row.site) for row in rows}

    @cache
    def is_one(number: int, stack: int) -> bool:
        intrinsic = process.intrinsic(number)
        return (intrinsic.kind, intrinsic.name, process.own_line(stack)) in made

    for call in calls_of(process, lambda values: is_one(*values[PLACE])):
        yield call.start_ns, call.end_ns
