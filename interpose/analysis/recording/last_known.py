"""What is known last of threads without an end: of a killed process, or of one that still runs."""

from __future__ import annotations

from collections.abc import Mapping

from interpose.experiments.format.blocks import Place
from interpose.experiments.format.records import Event
from interpose.experiments.model.process import Process
from interpose.experiments.model.sampled import Sampled


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
    """The latest CPU time that is known of each thread without an end: by its last `events`, its calls in progress and,
    if wanted, its last sample, for which all are read."""
    known = {thread.number: thread for thread in process.threads if not thread.record.end_ns}
    if not known:
        return {}
    samples = Sampled(process).samples() if with_samples else ()
    found = {sample.thread: sample.cpu_ns for sample in samples if sample.thread}
    for number, thread in known.items():
        readings = [call.start_cpu_ns for call in thread.open_calls]
        readings += [event.start_cpu_ns + event.cpu_ns for event in events.get(number, [])]
        found[number] = max([found.get(number, 0), thread.record.end_cpu_ns, *readings])
    return found
