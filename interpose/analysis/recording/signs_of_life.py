"""Until when a killed process is known to have lived.

Its parent notes its end when a wait for it returns. That is the moment of its death only if the parent waited already.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from interpose.analysis.recording.ending import Ending
from interpose.experiments.format.records import Event
from interpose.experiments.model.process import Process
from interpose.experiments.model.sampled import Sampled
from interpose.experiments.model.threads import Thread
from interpose.kinds import IDLE

# A wait for a child that has ended already returns sooner, also on a busy machine.
WAITED_NS = 10_000_000
# A wait with a timeout may look only from time to time. The end is noted shortly before or after the wait returns.
NOTED_WITHIN_NS = 10_000_000
# Others note the end before they return.
FOR_MANY = "multiprocessing.connection.wait"  # inside of a call, such as a join, that call waits for the child
NOTED_AFTERWARDS = ("os.", FOR_MANY)


def lived_until_ns(
    process: Process, end: Ending, latest_ns: int, events: Mapping[int, list[Event]], cpu_ns: Mapping[int, int]
) -> int:
    """The end of `process`, or the latest instant at which it is known to have lived, if nobody saw its end or its
    parent looked only later. `latest_ns` is the last instant that its calls and readings tell, `events` are the last
    ones of each thread, `cpu_ns` is its last known CPU time."""
    if end.end_ns is None or not process.starter or not _was_noted_by_its_starter(process, end):
        return latest_ns if end.end_ns is None else end.end_ns
    if any(_was_for(process.starter, each, end.end_ns) for each in _ended_at(process.starter, end.end_ns)):
        return end.end_ns
    samples = [sample.last_ns for sample in Sampled(process).samples()]
    computed = [_computed_until_ns(each, events, cpu_ns.get(each.number, 0)) for each in process.threads]
    return min(max([latest_ns, *samples, *computed]), end.end_ns)


def _computed_until_ns(thread: Thread, events: Mapping[int, list[Event]], cpu_ns: int) -> int:
    """Until when the thread lived at least, if it used CPU time after the last reading of both clocks."""
    readings = [(thread.record.start_ns, thread.record.start_cpu_ns)]
    readings += [(each.start_ns, each.start_cpu_ns) for each in thread.open_calls]
    ended = events.get(thread.number, [])
    readings += [(each.start_ns + each.wall_ns, each.start_cpu_ns + each.cpu_ns) for each in ended]
    last_ns, last_cpu_ns = max(readings)
    return last_ns + max(cpu_ns - last_cpu_ns, 0)


def _was_noted_by_its_starter(process: Process, end: Ending) -> bool:
    child = process.started_as
    return end.state == "killed" and child is not None and child.record.end_ns == end.end_ns


def _was_for(process: Process, event: Event, end_ns: int) -> bool:
    """Did the call wait for the child whose end was noted at `end_ns`? Which one it waited for is not recorded. A wait
    for whichever child ends first sees each end. Any other wait saw this end if no other child ended meanwhile."""
    intrinsic = process.intrinsic(event.intrinsic)
    if event.wall_ns < WAITED_NS or (intrinsic.name == FOR_MANY and event.parent):
        return False
    if intrinsic.kind == IDLE and intrinsic.name.startswith("os.wait"):
        return True
    until_ns = event.start_ns + event.wall_ns
    until_ns += NOTED_WITHIN_NS if intrinsic.name.startswith(NOTED_AFTERWARDS) else 0
    ended = [each for each in process.children if event.start_ns <= each.record.end_ns <= until_ns]
    is_for_child = intrinsic.kind == "process" or intrinsic.name == FOR_MANY
    return is_for_child and len(ended) == 1 and ended[0].record.end_ns == end_ns


def _ended_at(process: Process, instant_ns: int) -> Iterator[Event]:
    """The events that ended at about that instant."""
    events = process.events
    for place, head in events.heads() if events else ():
        is_near = head.first_ns - NOTED_WITHIN_NS <= instant_ns <= head.last_ns + NOTED_WITHIN_NS
        block = events.block(place) if events and is_near else None
        for event in events.events(block) if events and block else ():
            if abs(event.start_ns + event.wall_ns - instant_ns) <= NOTED_WITHIN_NS:
                yield event
