"""What is known last of threads without an end: of a killed process, or of one that still runs."""

from __future__ import annotations

from collections.abc import Mapping

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
    what its parent learned and, if wanted, its last sample, for which all are read."""
    known = {thread.number: thread for thread in process.threads if not thread.record.end_ns}
    if not known:
        return {}
    samples = Sampled(process).samples() if with_samples else ()
    found = {sample.thread: sample.cpu_ns for sample in samples if sample.thread}
    for number, thread in known.items():
        readings = [call.start_cpu_ns for call in thread.open_calls]
        readings += [event.start_cpu_ns + event.cpu_ns for event in events.get(number, [])]
        readings += [_cpu_by_parent_ns(process, thread)]
        found[number] = max([found.get(number, 0), thread.record.end_cpu_ns, *readings])
    return found


def _cpu_by_parent_ns(process: Process, thread: Thread) -> int:
    """What the thread used, if it was alone in a killed process, as the kernel told who waited for that; 0 if unknown.
    It is at most the thread's wall time: threads of C code may have used more."""
    child, end_ns = process.started_as, ending(process).end_ns
    is_killed = child is not None and child.is_exact and child.signal is not None
    if child is None or not is_killed or end_ns is None or len(process.threads) > 1:
        return 0
    used_ns = child.record.cpu_ns - sum(each.record.cpu_ns for each in process.children if each.is_measured)
    return min(used_ns, thread.record.start_cpu_ns + end_ns - thread.record.start_ns)
