"""Which child processes a line waited for, and threads that only wait for the end of children that are idle."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterable, Sequence
from dataclasses import replace
from functools import cached_property
from operator import itemgetter

from interpose.analysis.findings.finding import Calls
from interpose.analysis.findings.survey import Survey
from interpose.analysis.recording.children import Children, Life
from interpose.analysis.time.turns import PLACE, calls_of, has_events
from interpose.experiments.model.process import Process
from interpose.experiments.model.stacks import Site

End = tuple[int, Site | None]
IDLE_SHARE = 0.5  # a child that waited for work for more than this share of its time was idle


class Watching:
    """The calls `waits`, which wait for child processes and for nothing else, and the children that they waited for."""

    def __init__(self, survey: Survey, waits: Iterable[Calls]) -> None:
        self._survey = survey
        self._intrinsics = {each.intrinsic for each in waits}

    def awaited_at(self, site: Site | None, living: list[Children]) -> list[Children]:
        """The children that a call from this line waited for: the call ended when the child's end was noted. If there
        are none, the children for which no such line is known; if there are none of these either, all children."""
        sites = [(each, {self._awaited_from(life) for life in each.lives}) for each in living]
        known = [each for each, at in sites if site in at]
        return known or [each for each, at in sites if None in at] or living

    def without_idle(self, rows: list[Calls], children: Sequence[Children]) -> list[Calls]:
        """The waits `rows` for `children`. If only threads other than main ones wait, and all the children were mostly
        idle, only the part of the waits in which the children were not idle."""
        busy = max((self._busy_share(each) for each in children), default=1.0)
        is_idle = busy < 1 - IDLE_SHARE and not _are_of_main_threads(self._survey, rows)
        return [replace(row, wall_ns=round(row.wall_ns * busy)) for row in rows] if is_idle else rows

    def _awaited_from(self, life: Life) -> Site | None:
        """The line of the wait that ended nearest to when the end of a child was noted; None if that is unknown."""
        ends = self._ends.get(life.parent)
        if not ends or not life.seen_ns:
            return None
        at = bisect_left(ends, life.seen_ns, key=itemgetter(0))
        return min(ends[max(at - 1, 0) : at + 1], key=lambda each: abs(each[0] - life.seen_ns))[1]

    @cached_property
    def _ends(self) -> dict[int, list[End]]:
        """The ends of the waits, and their lines, by the positions of processes with events."""
        processes = enumerate(self._survey.analysis.experiment.processes)
        return {number: self._ends_in(each) for number, each in processes if each.children and has_events(each)}

    def _ends_in(self, process: Process) -> list[End]:
        numbers = {number for number, each in process.numbered_intrinsics.items() if each.name in self._intrinsics}
        calls = calls_of(process, lambda values: values[PLACE][0] in numbers)
        return sorted(((each.end_ns, process.own_line(each.stack)) for each in calls), key=itemgetter(0))

    def _busy_share(self, children: Children) -> float:
        """The share of the time in which the least idle thread of these did not wait for work; all if unknown."""
        if len(children.recorded) < len(children.lives):
            return 1.0
        recorded = {id(process) for process in children.recorded}
        accounts = [each for each in self._survey.analysis.accounts if id(each.process) in recorded]
        busy = [
            1 - each.idle_waits_ns.get(thread, 0) / max(share.wall_ns, 1)
            for each in accounts
            for thread, share in each.threads.items()
        ]
        return max(busy, default=1.0)


def waited_by_packages(survey: Survey, each: Calls) -> bool:
    """Whether only threads of packages waited, below no line of the program and in no pool. Such threads watch over
    children for as long as the children live. If the program needs the result of a child, the program waits itself."""
    is_of_package = each.site is not None and not each.site.own and each.work is None
    return is_of_package and not _are_of_main_threads(survey, [each])


def _are_of_main_threads(survey: Survey, rows: Iterable[Calls]) -> bool:
    """Whether main threads made some of these calls."""
    processes = survey.analysis.experiment.processes
    made = {thread for row in rows for thread in row.threads}
    threads = ((number, each) for process, number in made for each in processes[process].threads)
    return any(each.record.main and each.number == number for number, each in threads)
