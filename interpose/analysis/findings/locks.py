"""Rules about locks that threads wait for when the recording ends, or now: deadlocks, and locks not released."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from interpose.analysis.findings.finding import LARGE, Calls, Finding, found
from interpose.analysis.findings.lock_waits import HELD, is_for_lock
from interpose.analysis.findings.survey import Survey, grouped

WAITING = "waiting thread"
Thread = tuple[int, int]  # number of the process, number of the thread in it


class Wait(NamedTuple):
    """A thread's wait in progress for a lock, its begin, its time so far, and which thread took the lock at which place
    before it; no holder and an empty place if unknown."""

    calls: Calls
    thread: Thread
    begin_ns: int
    wall_ns: int
    holder: Thread | None
    place: str


def deadlocks(survey: Survey) -> Iterator[Finding]:
    """Threads that wait for each other's locks in a circle, or the only thread for a lock that it took itself."""
    by_thread = {each.thread: each for each in _waits(survey)}
    circles = [each for each in _circles(by_thread) if len(each) > 1 or _is_alone(survey, each[0].thread)]
    for _, alike in grouped(circles, lambda circle: frozenset(id(each.calls) for each in circle)):
        waits = [each for circle in alike for each in circle]
        yield found("deadlock", _rows(waits), _in_progress_ns(waits), units=len(waits), unit=WAITING, floor=LARGE)


def unreleased(survey: Survey) -> Iterator[Finding]:
    """Threads that wait for locks taken at one line, if no other thread has got such a lock since the wait began."""
    taken_ns = _taken_last(survey)
    waiting = [each for each in _waits(survey) if each.begin_ns >= taken_ns.get((each.thread[0], each.place), 0)]
    for (place, _), waits in grouped(waiting, lambda each: (each.place, not each.place and each.calls.site)):
        units, bound_ns = len(waits), _in_progress_ns(waits)
        yield found("lock not released", _rows(waits), bound_ns, units=units, unit=WAITING, about=place, floor=LARGE)


def _taken_last(survey: Survey) -> dict[tuple[int, str], int]:
    """By process and place: when a thread last got a lock that another had taken there."""
    taken_ns: dict[tuple[int, str], int] = {}
    for calls in survey.of_kind("sync"):
        if held := HELD.fullmatch(calls.detail):
            for process, last_ns in calls.ended_ns.items():
                at = process, held["place"] or ""
                taken_ns[at] = max(taken_ns.get(at, 0), last_ns)
    return taken_ns


def _rows(waits: list[Wait]) -> list[Calls]:
    return list({id(each.calls): each.calls for each in waits}.values())


def _in_progress_ns(waits: list[Wait]) -> int:
    return sum(each.wall_ns for each in waits)


def _waits(survey: Survey) -> Iterator[Wait]:
    """The waits in progress."""
    for calls in survey.of_kind("sync"):
        if is_for_lock(calls):
            held = HELD.fullmatch(calls.detail)
            place = held["place"] or "" if held else ""
            for thread, (begin_ns, wall_ns) in calls.unended_at.items():
                holder = (thread[0], int(held["thread"])) if held else None
                yield Wait(calls, thread, begin_ns, wall_ns, holder, place)


def _circles(waits: dict[Thread, Wait]) -> Iterator[list[Wait]]:
    """The waits in which each thread waits for the next, and the last for the first; each circle once."""
    seen: set[Thread] = set()
    for first in waits:
        path: list[Thread] = []
        at: Thread | None = first
        while at in waits and at not in seen:
            seen.add(at)
            path.append(at)
            at = waits[at].holder
        if at in path:
            yield [waits[each] for each in path[path.index(at) :]]


def _is_alone(survey: Survey, thread: Thread) -> bool:
    """Whether its process has no other thread, which could release the lock."""
    return len(survey.analysis.accounts[thread[0]].threads) == 1
