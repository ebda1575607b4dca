"""Which time of calls was solo: no other thread of the process was in a call that did something at the same time."""

from __future__ import annotations

import heapq
from collections import Counter
from collections.abc import Iterator

from interpose.analysis.calls.rows import START_UP
from interpose.analysis.calls.trace import trace
from interpose.analysis.time.slices import has_all_events
from interpose.experiments.format.records import Event
from interpose.experiments.model.experiment import Experiment
from interpose.experiments.model.process import Process

CALLS_AT_MOST = 300_000  # each is examined by itself; more would take too long for a report
RESTING = frozenset(("sleep", "idle", "sync", "gil"))  # who is in such a call leaves the machine to others
Resource = tuple[str, str]  # a kind, and a file, an address, a statement, or START_UP
_Key = tuple[Process, int]


def solo_times(experiment: Experiment) -> dict[Resource, int] | None:
    """Solo time by kind and detail, of self time; None if there are too many calls to look at each."""
    recorded = sum(thread.record.recorded for process in experiment.processes for thread in process.threads)
    if recorded > CALLS_AT_MOST or not all(map(has_all_events, experiment.processes)):
        return None
    found: Counter[Resource] = Counter()
    for process, events in _by_process(experiment).items():
        for resource, time_ns in _solo(process, events):
            found[resource] += time_ns
    return dict(found)


def resource_of(process: Process, intrinsic: int, stack: int, detail: int) -> Resource:
    """What a call was about; calls of the interpreter's start are about one thing."""
    is_start_up = process.is_start_up(stack)
    return process.intrinsic(intrinsic).kind, START_UP if is_start_up else process.string(detail)


def _by_process(experiment: Experiment) -> dict[Process, list[Event]]:
    found: dict[Process, list[Event]] = {}
    for process, event, _, state, _ in trace(experiment):
        if state == "ended":
            found.setdefault(process, []).append(event)
    return found


def _solo(process: Process, events: list[Event]) -> Iterator[tuple[Resource, int]]:
    """What was solo between two consecutive instants at which a call began or ended; events in the order of their
    beginnings."""
    ends: list[tuple[int, int, int]] = []
    inside: dict[int, list[Event]] = {}
    now_ns = 0

    def until(instant_ns: int) -> Iterator[tuple[Resource, int]]:
        tops = [calls[-1] for calls in inside.values() if calls]
        busy = [top for top in tops if process.intrinsic(top.intrinsic).kind not in RESTING]
        for top in tops:
            if all(other is top for other in busy) and instant_ns > now_ns:
                yield resource_of(process, top.intrinsic, top.stack, top.detail), instant_ns - now_ns

    def end() -> None:
        _, thread, call = heapq.heappop(ends)
        inside[thread] = [each for each in inside[thread] if each.call != call]

    for event in events:
        while ends and ends[0][0] <= event.start_ns:
            yield from until(ends[0][0])
            now_ns = ends[0][0]
            end()
        yield from until(event.start_ns)
        now_ns = event.start_ns
        inside.setdefault(event.thread, []).append(event)
        heapq.heappush(ends, (event.start_ns + event.wall_ns, event.thread, event.call))
    while ends:
        yield from until(ends[0][0])
        now_ns = ends[0][0]
        end()
