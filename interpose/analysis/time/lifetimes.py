"""From when to when the threads of a process lived."""

from __future__ import annotations

from interpose.analysis.calls.account import latest_instant_ns
from interpose.analysis.recording.ending import ending
from interpose.analysis.recording.last_known import last_cpu_ns, last_events
from interpose.analysis.transactions.tracking import Life
from interpose.experiments.model.process import Process


def lives_of(process: Process) -> dict[int, Life]:
    """The beginning and end of each thread of `process`; the last known instant if nobody saw its end."""
    end = ending(process)
    heads = process.events.heads() if process.events else ()
    until_ns = end.end_ns or max([latest_instant_ns(process, ()), *(head.last_ns for _, head in heads)])
    cpu_ns = last_cpu_ns(process, last_events(process), with_samples=end.state != "running")
    return {
        each.number: Life(
            each.record.start_ns,
            each.record.start_cpu_ns,
            each.record.end_ns or until_ns,
            cpu_ns.get(each.number, each.record.end_cpu_ns),
        )
        for each in process.threads
    }
