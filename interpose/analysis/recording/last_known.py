"""What is known last of threads without an end: of a killed process, or of one that still runs."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from interpose.analysis.recording.ending import ending
from interpose.experiments.format.blocks import Place
from interpose.experiments.format.records import Event
from interpose.experiments.model.process import Process
from interpose.experiments.model.sampled import Sampled
from interpose.experiments.model.threads import Thread


def last_events(process: Process) -> dict[int, list[Event]]:
    """The events of the block that each thread wrote last, if it has no end or calls in progress."""
    wanted = {thread.number for thread in process.threads if thread.open_calls or not thread.record.end_ns}
    if process.events is None or not wanted:
        return {}
    last: dict[int, tuple[int, Place]] = {}
    for place, head in process.events.heads():
        if head.thread in wanted and last.get(head.thread, (-1,))[0] < head.sequence:
            last[head.thread] = head.sequence, place
    blocks = {number: process.events.block(place) for number, (_, place) in last.items()}
    return {
        number: [event for event in process.events.events(block) if event.thread == number]
        for number, block in blocks.items()
        if block
    }


def last_cpu_ns(process: Process, events: Mapping[int, list[Event]], with_samples: bool = True) -> dict[int, int]:
    """The latest CPU time that is known of each thread without an end: by its last `events`, its calls in progress,
    its last sample if wanted, for which all are read, and what its parent learned."""
    known = {thread.number: thread for thread in process.threads if not thread.record.end_ns}
    if not known:
        return {}
    samples = Sampled(process).samples() if with_samples else ()
    last = {sample.thread: sample for sample in samples if sample.thread}
    found = {number: sample.cpu_ns for number, sample in last.items()}
    for number, thread in known.items():
        readings = [call.start_cpu_ns for call in thread.open_calls]
        readings += [event.start_cpu_ns + event.cpu_ns for event in events.get(number, [])]
        found[number] = max([found.get(number, 0), thread.record.end_cpu_ns, *readings])
    if killed_ns := _killed_at_ns(process):
        seen_ns = {number: sample.last_ns for number, sample in last.items()}
        unknown_ns = {number: _unknown_ns(each, events, seen_ns, killed_ns) for number, each in known.items()}
        # One that was in a call waited there, unless the others cannot have used so much.
        for in_call in (False, True):
            threads = {number: ns for number, ns in unknown_ns.items() if bool(known[number].open_calls) == in_call}
            for number, cpu_ns in _shared(_unplaced_cpu_ns(process, found), threads):
                found[number] += cpu_ns
    return found


def _killed_at_ns(process: Process) -> int:
    """When the process was killed, if the kernel told who waited for it what it had used; else 0."""
    child = process.started_as
    is_killed = child is not None and child.is_exact and child.signal is not None
    return (ending(process).end_ns or 0) if is_killed else 0


def _unknown_ns(thread: Thread, events: Mapping[int, list[Event]], seen_ns: Mapping[int, int], end_ns: int) -> int:
    """For how long before the end nothing is known of the thread: since its last call or sample."""
    instants = [thread.record.start_ns, thread.record.seen_ns, seen_ns.get(thread.number, 0)]
    instants += [call.start_ns for call in thread.open_calls]
    instants += [event.start_ns + event.wall_ns for event in events.get(thread.number, [])]
    return max(end_ns - max(instants), 0)


def _unplaced_cpu_ns(process: Process, found: Mapping[int, int]) -> int:
    """What the killed process used, by its parent, and none of its threads is known to have used. Threads of C code
    may have used some of it."""
    child = process.started_as
    used_ns = child.record.cpu_ns if child else 0
    used_ns -= sum(each.record.cpu_ns for each in process.children if each.is_measured)
    return used_ns - sum(found.get(each.number, each.record.end_cpu_ns) for each in process.threads)


def _shared(cpu_ns: int, unknown_ns: Mapping[int, int]) -> Iterator[tuple[int, int]]:
    """Divide the CPU time among threads, in proportion to the time in which nothing is known of them, at most that."""
    whole_ns = sum(unknown_ns.values())
    for number, ns in unknown_ns.items():
        if whole_ns and cpu_ns > 0:
            yield number, min(cpu_ns * ns // whole_ns, ns)
