"""A trace as chrome://tracing and other viewers of the "Trace Event Format" read it: an object for each call.

It has what the trace for Perfetto has: a slice for each child process, flows (`s` and `f`), and counters (`C`).
Times are microseconds since the start, with three decimals, so nothing of a nanosecond is lost. Tasks have lanes of
their own, above all threads. Names come first, then everything in the order of time, what contains others before them.
"""

from __future__ import annotations

import json
import math
import tempfile
from collections.abc import Iterator, Sequence
from typing import IO, Any, BinaryIO

from interpose.analysis.analysis import Analysis
from interpose.analysis.time.usage import Usage
from interpose.experiments.format.records import Event
from interpose.experiments.format.trace_contexts import in_words
from interpose.experiments.model.process import Process
from interpose.exports.counter_tracks import counter_tracks, usages_by_process
from interpose.exports.flows import Flows, flows_of
from interpose.exports.single_events import LaneNames, calls_in_progress, end_of, events_of, refuse_without_events
from interpose.reports.screen.state import command_line

Entry = dict[str, Any]
_OF_PROCESS = 0  # no thread's number
_TASKS_FROM = 1 << 32  # beyond the kernel's numbers of threads
_FLOW_BEGIN = {"ph": "s", "name": "flow", "cat": "flow"}
_FLOW_END = {"ph": "f", "bp": "e", "name": "flow", "cat": "flow"}  # to the slice around it, not to the next one


def write(analysis: Analysis, out: BinaryIO) -> None:
    """Write the trace of an analysis. Raises UsageError if single events were not kept."""
    experiment = analysis.experiment
    refuse_without_events(experiment)
    used, flows, start_ns = usages_by_process(experiment), flows_of(experiment), experiment.founder.log.start_ns
    before = b'{"displayTimeUnit": "ns", "traceEvents": [\n'
    with tempfile.TemporaryFile() as unsorted:
        entries = _Sorted(unsorted)
        for process in experiment.processes:
            for entry in _Process(process, start_ns, flows[process]).entries(used[process]):
                entries.add(entry)
        for line in entries.lines():
            out.write(before + line)
            before = b",\n"
    out.write(b"\n]}\n")


class _Sorted:
    """Lines in the order of time. They wait in a file: calls come in the order of their ends, as many as there are."""

    def __init__(self, file: IO[bytes]) -> None:
        self._file = file
        self._order: list[tuple[float, float, int]] = []
        self._size_bytes = 0

    def add(self, entry: Entry) -> None:
        """Add an entry."""
        self._order.append((entry.get("ts", -math.inf), -entry.get("dur", 0), self._size_bytes))
        self._size_bytes += self._file.write(json.dumps(entry, separators=(",", ":")).encode() + b"\n")

    def lines(self) -> Iterator[bytes]:
        """All lines, without their ends."""
        for *_, offset in sorted(self._order):
            self._file.seek(offset)
            yield self._file.readline().removesuffix(b"\n")


class _Process:
    """Makes the entries of a process."""

    def __init__(self, process: Process, start_ns: int, flows: Flows) -> None:
        self._process = process
        self._start_ns = start_ns
        self._flows = flows
        self._names = LaneNames(process)
        self._lanes: dict[tuple[int, int], int] = {}
        self._tids = {each.number: each.record.tid or each.number for each in process.threads}

    def entries(self, used: Sequence[Usage]) -> Iterator[Entry]:
        """All entries: names, the process, calls, calls still in progress, flows, and counters."""
        yield self._named("process_name", _OF_PROCESS, command_line(self._process))
        if self._flows.is_child:
            yield from self._whole()
        for event in events_of(self._process):
            yield from self._lane(event.thread, event.task)
            yield self._call(event)
            yield from self._flows_of(event)
        yield from self._in_progress()
        yield from self._counters(used)

    def _whole(self) -> Iterator[Entry]:
        """A slice from the process's start to its end, to which the call that started it leads."""
        start_ns = self._process.log.start_ns
        at = {"pid": self._process.log.pid, "tid": _OF_PROCESS, "ts": self._since(start_ns)}
        yield self._named("thread_name", _OF_PROCESS, "process")
        dur = (end_of(self._process) - start_ns) / 1000
        yield {"ph": "X", "name": command_line(self._process), **at, "dur": dur}
        if self._flows.started:
            yield {**_FLOW_END, "id": self._flows.started, **at}

    def _flows_of(self, call: Event) -> Iterator[Entry]:
        """The flows that lead from a call, and to it."""
        at = {**self._at(call.thread, call.task), "ts": self._since(call.start_ns)}
        begin, end = self._flows.at(call)
        for number in begin:
            yield {**_FLOW_BEGIN, "id": number, **at}
        for number in end:
            yield {**_FLOW_END, "id": number, **at}

    def _counters(self, used: Sequence[Usage]) -> Iterator[Entry]:
        for each in counter_tracks(self._process, used):
            for time_ns, value in each.values:
                at = {"pid": self._process.log.pid, "ts": self._since(time_ns)}
                yield {"ph": "C", "name": each.name, **at, "args": {each.unit.value: value}}

    def _in_progress(self) -> Iterator[Entry]:
        for call in calls_in_progress(self._process):
            yield from self._lane(call.thread, call.task)
            name = self._process.intrinsic(call.intrinsic).name
            yield {"ph": "B", "name": name, **self._at(call.thread, call.task), "ts": self._since(call.start_ns)}
            yield from self._flows_of(call)

    def _named(self, what: str, lane: int, name: str) -> Entry:
        return {"ph": "M", "name": what, "pid": self._process.log.pid, "tid": lane, "args": {"name": name}}

    def _lane(self, thread: int, task: int) -> Iterator[Entry]:
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

    def _call(self, event: Event) -> Entry:
        intrinsic = self._process.intrinsic(event.intrinsic)
        made = {"ph": "X", "name": intrinsic.name, "cat": intrinsic.kind, **self._at(event.thread, event.task)}
        made.update(ts=self._since(event.start_ns), dur=event.wall_ns / 1000, args=self._arguments(event))
        return made

    def _arguments(self, event: Event) -> Entry:
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
