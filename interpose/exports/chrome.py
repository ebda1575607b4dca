"""A trace as chrome://tracing and other viewers of the "Trace Event Format" read it: an object for each call.

Times are microseconds since the start, with three decimals, so nothing of a nanosecond is lost. Tasks have lanes of
their own, above all threads.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any, BinaryIO

from interpose.analysis.analysis import Analysis
from interpose.experiments.format.records import Event
from interpose.experiments.format.trace_contexts import in_words
from interpose.experiments.model.process import Process
from interpose.exports.single_events import LaneNames, events_of, refuse_without_events
from interpose.reports.screen.state import command_line

_TASKS_FROM = 1 << 32  # beyond the kernel's numbers of threads


def write(analysis: Analysis, out: BinaryIO) -> None:
    """Write the trace of an analysis. Raises UsageError if single events were not kept."""
    refuse_without_events(analysis.experiment)
    before = b'{"displayTimeUnit": "ns", "traceEvents": [\n'
    for process in analysis.experiment.processes:
        for event in _Process(process, analysis.experiment.founder.log.start_ns).events():
            out.write(before + json.dumps(event, separators=(",", ":")).encode())
            before = b",\n"
    out.write(b"\n]}\n")


class _Process:
    """Makes the objects of a process."""

    def __init__(self, process: Process, start_ns: int) -> None:
        self._process = process
        self._start_ns = start_ns
        self._names = LaneNames(process)
        self._lanes: dict[tuple[int, int], int] = {}
        self._tids = {each.number: each.record.tid or each.number for each in process.threads}

    def events(self) -> Iterator[dict[str, Any]]:
        """All entries: names, calls, and calls still in progress."""
        yield self._named("process_name", 0, command_line(self._process))
        for event in events_of(self._process):
            yield from self._lane(event.thread, event.task)
            yield self._call(event)
        for thread in self._process.threads:
            for call in thread.open_calls:
                yield from self._lane(thread.number, 0)
                name = self._process.intrinsic(call.intrinsic).name
                yield {"ph": "B", "name": name, **self._at(thread.number, 0), "ts": self._since(call.start_ns)}

    def _named(self, what: str, lane: int, name: str) -> dict[str, Any]:
        return {"ph": "M", "name": what, "pid": self._process.log.pid, "tid": lane, "args": {"name": name}}

    def _lane(self, thread: int, task: int) -> Iterator[dict[str, Any]]:
        """What a lane is called, where it comes for the first time."""
        if (thread, task) in self._lanes:
            return
        name = self._names.thread(thread)
        lane = _TASKS_FROM + len(self._lanes) if task else self._tids.get(thread, thread)
        self._lanes[thread, task] = lane
        yield self._named("thread_name", lane, f"{name}, {self._names.task(task)}" if task else name)

    def _at(self, thread: int, task: int) -> dict[str, int]:
        return {"pid": self._process.log.pid, "tid": self._lanes[thread, task]}

    def _since(self, instant_ns: int) -> float:
        return (instant_ns - self._start_ns) / 1000

    def _call(self, event: Event) -> dict[str, Any]:
        intrinsic = self._process.intrinsic(event.intrinsic)
        made = {"ph": "X", "name": intrinsic.name, "cat": intrinsic.kind, **self._at(event.thread, event.task)}
        made.update(ts=self._since(event.start_ns), dur=event.wall_ns / 1000, args=self._arguments(event))
        return made

    def _arguments(self, event: Event) -> dict[str, Any]:
        site = self._process.own_line(event.stack)
        told = {
            "cpu_ns": event.cpu_ns,
            "bytes": event.bytes,
            "detail": self._process.string(event.detail),
            "error": self._process.string(event.error),
            "site": f"{site.file}:{site.line} {site.function}" if site else "",
            "other_spans": in_words(self._process.active_spans.get((event.thread, event.call), ())),
        }
        return {name: value for name, value in told.items() if value}
