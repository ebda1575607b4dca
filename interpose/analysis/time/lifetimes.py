"""From when to when the threads of a process lived, and what of that they spent in pauses."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping

from interpose.analysis.calls.account import latest_instant_ns, lived_of
from interpose.analysis.calls.in_progress import calls_in_progress
from interpose.analysis.calls.paused import PausedTimes, paused_times
from interpose.analysis.recording.ending import ending
from interpose.analysis.recording.last_known import last_cpu_ns, last_events
from interpose.analysis.recording.ring import Before, before_the_ring
from interpose.analysis.recording.signs_of_life import lived_until_ns
from interpose.analysis.transactions.tracking import Life
from interpose.experiments.format.records import Event, ThreadRecord
from interpose.experiments.metadata.pauses import Pauses
from interpose.experiments.model.process import Process


def lives_of(process: Process) -> dict[int, Life]:
    """The beginning and end of each thread of `process`; the last known instant if nobody saw its end. In a ring it
    begins where its oldest events do."""
    end, before = ending(process), defaultdict(Before, before_the_ring(process))
    events = last_events(process)
    cpu_ns = last_cpu_ns(process, events, with_samples=end.state != "running")
    until_ns = _until_ns(process, events, cpu_ns)
    return {
        each.number: _life(
            each.record,
            before[each.number],
            each.record.end_ns or until_ns,
            cpu_ns.get(each.number, each.record.end_cpu_ns),
        )
        for each in process.threads
    }


def _life(record: ThreadRecord, before: Before, end_ns: int, end_cpu_ns: int) -> Life:
    start_ns = min(record.start_ns + before.wall_ns, max(end_ns, record.start_ns))
    start_cpu_ns = min(record.start_cpu_ns + before.cpu_ns, max(end_cpu_ns, record.start_cpu_ns))
    return Life(start_ns, start_cpu_ns, end_ns, end_cpu_ns)


def paused_outside(process: Process, pauses: Pauses) -> PausedTimes:
    """What the threads of `process` spent in pauses outside of their calls, as in its account."""
    if not pauses:
        return PausedTimes({})
    events = last_events(process)
    known_cpu_ns = last_cpu_ns(process, events)
    until_ns = _until_ns(process, events, known_cpu_ns)
    is_running = ending(process).state == "running"
    open_calls = list(calls_in_progress(process, events, until_ns, known_cpu_ns, is_running))
    ends_ns = {each.thread: each.until_ns for each in open_calls}
    before = defaultdict(Before, before_the_ring(process))
    lived = {
        each.number: lived_of(
            each, ends_ns.get(each.number, until_ns), known_cpu_ns.get(each.number, 0), before[each.number]
        )
        for each in process.threads
    }
    return paused_times(process, pauses, lived, open_calls)


def _until_ns(process: Process, events: Mapping[int, list[Event]], cpu_ns: Mapping[int, int]) -> int:
    """When the process ended, or the last known instant."""
    heads = process.events.heads() if process.events else ()
    latest_ns = max([latest_instant_ns(process, ()), *(head.last_ns for _, head in heads), *_kept_ends_ns(process)])
    if process.events and process.events.until_ns is not None:
        latest_ns = min(latest_ns, process.events.until_ns)
    return lived_until_ns(process, ending(process), latest_ns, events, cpu_ns)


def _kept_ends_ns(process: Process) -> Iterator[int]:
    """When the last call of each consolidated record ended; its events may be gone."""
    said, found = process.consolidated or (None, ())
    if said and "last_ns" in said.figures:
        place = said.figures.index("last_ns")
        yield from (each.figures[place] for each in found)
