"""Tasks that waited for their turn: for what a pool, a lock, a semaphore or a queue of asyncio lets only some have."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterable, Iterator
from typing import NamedTuple

from interpose.analysis.consolidation.records import Record, Records
from interpose.analysis.time.awaited import Awaited, Span, covered_ns, grouped_by_line, meanwhile
from interpose.analysis.time.turns import PLACE, calls_of, has_tasks, waits_of_loops
from interpose.experiments.model.process import Process
from interpose.experiments.model.stacks import Site
from interpose.kinds import IDLE

FOR_A_TURN = frozenset(("asyncio.Semaphore.acquire", "asyncio.Lock.acquire", "asyncio.Queue.put"))
# Tasks mostly wait for these to be told something, or for work; in a pool, for what others have.
IN_A_POOL = frozenset(("asyncio.Queue.get", "asyncio.Event.wait", "asyncio.Condition.wait"))
_PACKAGES = re.compile(r"/(?:site|dist)-packages/")
_POOL = re.compile("pool", re.IGNORECASE)


class WaitsForTurns(NamedTuple):
    """The waits of tasks, by line, and for how long their loops were idle meanwhile."""

    awaited: list[Awaited]
    idle_ns: int = 0


NONE = WaitsForTurns([])


def waits_for_turns(process: Process, records: Records) -> WaitsForTurns:
    """The waits for turns of several tasks at one line of the program; none if the events were not kept."""
    places = [records.by.index(name) for name in ("intrinsic", "stack")]
    suspended = [each for each in records.calls() if each.suspended_ns]
    wanted = {tuple(each.key[place] for place in places) for each in suspended if _is_for_a_turn(process, each, places)}
    if not wanted or not has_tasks(process, records):
        return NONE
    waits = waits_of_loops(process, records)
    loops = {process.own_line(stack) for _, stack in waits}
    idle = {each for each in waits if process.intrinsic(each[0]).kind == IDLE}
    found: defaultdict[int, dict[tuple[object, ...], Awaited]] = defaultdict(dict)
    idle_spans: defaultdict[int, list[Span]] = defaultdict(list)
    for call in calls_of(process, lambda values: values[PLACE] in wanted or values[PLACE] in idle):
        if (call.intrinsic, call.stack) in idle:
            idle_spans[call.thread].append((call.start_ns, call.end_ns))
        elif call.task and process.own_line(call.stack) not in loops:
            grouped_by_line(process, call, found[call.thread]).add(call)
    several = {thread: [each for each in mine.values() if len(each.tasks) > 1] for thread, mine in found.items()}
    idle_ns = sum(covered_ns(meanwhile(_spans(mine), sorted(idle_spans[thread]))) for thread, mine in several.items())
    return WaitsForTurns([each for mine in several.values() for each in mine], idle_ns)


def _spans(waits: Iterable[Awaited]) -> Iterator[Span]:
    return (span for each in waits for span in each.spans)


def _is_for_a_turn(process: Process, record: Record, places: list[int]) -> bool:
    """Whether others had what these outermost calls waited for."""
    intrinsic, stack = (record.key[place] for place in places)
    name, around = process.intrinsic(intrinsic).name, record.outer_call
    is_inner = around is not None and process.intrinsic(around.key[places[0]]).name.startswith("asyncio.")
    if is_inner or name not in FOR_A_TURN | IN_A_POOL:
        return False
    site = process.own_line(stack)
    return bool(site and site.own) and (name in FOR_A_TURN or _is_in_pool(process.frames(stack)))


def _is_in_pool(frames: Iterable[Site]) -> bool:
    """Whether a pool of an installed package is between the program and the wait."""
    for frame in frames:
        if frame.own:
            return False
        if _PACKAGES.search(frame.file) and _POOL.search(f"{frame.file.rpartition('/')[2]} {frame.function}"):
            return True
    return False
