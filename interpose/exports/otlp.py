"""Recorded calls as spans of OpenTelemetry: lines of JSON, each a request for a collector (OTLP/JSON, 1.x).

A transaction with all calls in it is a trace of its own, or belongs to the trace that its request came from
(`traceparent`). Other calls belong to the trace of the experiment, in which each process is a span below the one that
started it. If the program was started within another trace (TRACEPARENT), the experiment belongs to that trace, and its
founder's span is below the span that started it. Attributes have the names of the semantic conventions; others begin
with `interpose.`. A span of OpenTelemetry or ddtrace that was active in a transaction is a link.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import lru_cache
from itertools import chain
from operator import attrgetter
from typing import Any, BinaryIO

from interpose import __version__
from interpose.analysis.analysis import Analysis
from interpose.analysis.calls.statements import with_statements
from interpose.analysis.recording.ending import ending
from interpose.experiments.format.records import Event
from interpose.experiments.format.trace_contexts import ActiveSpan, TraceContext
from interpose.experiments.model.experiment import Experiment
from interpose.experiments.model.process import Process
from interpose.exports import conventions
from interpose.exports.identities import call_of, seed_of, span_of, trace_of
from interpose.exports.single_events import LaneNames, blocks_of, calls_in_progress, end_of, refuse_without_events
from interpose.exports.traces import Traces
from interpose.reports.formats.table import clean
from interpose.reports.screen.state import command_line

SPANS_IN_A_REQUEST = 1_000
KEPT = 1 << 16  # of each type of value that many spans share


def write(analysis: Analysis, out: BinaryIO) -> None:
    """Write the requests, a line each. Raises UsageError if single events were not kept."""
    for request, _ in requests(analysis.experiment):
        out.write(request + b"\n")


def requests(experiment: Experiment) -> Iterator[tuple[bytes, int]]:
    """The requests, each with the number of its spans. Raises UsageError if single events were not kept."""
    refuse_without_events(experiment)
    for process in experiment.processes:
        made = ProcessSpans(experiment, process)
        waiting = [made.whole()]
        for span in made.spans():
            if len(waiting) >= SPANS_IN_A_REQUEST:
                yield made.request(waiting), len(waiting)
                waiting = []
            waiting.append(span)
        yield made.request(waiting), len(waiting)


_Told = tuple[int, ...]  # what _TOLD names
_TOLD = ("intrinsic", "thread", "call", "parent", "detail")
_told_of_one: Callable[[Event], _Told] = attrgetter(*_TOLD)


class ProcessSpans:
    """Makes the spans of a process."""

    def __init__(
        self,
        experiment: Experiment,
        process: Process,
        contexts: Mapping[tuple[int, int], TraceContext] | None = None,
        active: Mapping[tuple[int, int], Sequence[ActiveSpan]] | None = None,
    ) -> None:
        self._process = process
        self._started_in = experiment.founder.log.trace_parent
        self._whole = self._started_in[0] if self._started_in else trace_id(experiment)
        self._seed = seed_of(process.log)
        self._starter = process.starter if process.starter in experiment.processes else None
        self._calendar_ns = process.log.time_ns - process.log.start_ns
        self._names = LaneNames(process)
        self._contexts = process.trace_contexts if contexts is None else contexts
        self._active = process.active_spans if active is None else active
        self._with_statements = with_statements(process)
        self._traces = Traces()
        self._of_process = span_of(self._seed, 0, 0)
        kept = lru_cache(KEPT)
        self._of_site, self._of_thread, self._of_all = kept(self._site), kept(self._lane), kept(self._attributes)
        self._of_call, self._of_request = kept(self._call), kept(self._request)

    def request(self, spans: Sequence[str]) -> bytes:
        """The bytes of a request that has these spans."""
        log = self._process.log
        resource = _attributes(
            {
                "service.name": command_line(self._process),
                "process.pid": log.pid,
                "host.name": log.system.get("host", ""),
                "telemetry.sdk.name": "interpose",
                "telemetry.sdk.version": __version__,
            }
        )
        scope = json.dumps({"name": "interpose", "version": __version__})
        spans_of_scope = f'{{"scope":{scope},"spans":[{",".join(spans)}]}}'
        spans_of_resource = f'{{"resource":{{"attributes":[{resource}]}},"scopeSpans":[{spans_of_scope}]}}'
        return f'{{"resourceSpans":[{spans_of_resource}]}}'.encode()

    def whole(self) -> str:
        """The span of the process itself."""
        process, log = self._process, self._process.log
        end_ns = end_of(process) + self._calendar_ns
        outer = self._started_in[1] if self._started_in else ""
        parent = outer if self._starter is None else span_of(seed_of(self._starter.log), 0, 0)
        return (
            f'{{"traceId":"{self._whole}","spanId":"{self._of_process}",{_around(parent)}'
            f'"name":{json.dumps(command_line(process))},"kind":{conventions.INTERNAL},'
            f'"startTimeUnixNano":"{log.time_ns}","endTimeUnixNano":"{end_ns}"}}'
        )

    def spans(self) -> Iterator[str]:
        """The spans of its calls, those of a thread in the order of their ends, then of its calls in progress."""
        in_progress = list(calls_in_progress(self._process))
        self._traces = self._find_traces(chain(self._told_of_all(), map(_told_of_one, in_progress)))
        for block in blocks_of(self._process):
            assert self._process.events is not None
            for event in self._process.events.events(block):
                yield self._span(event)
        yield from self._spans_in_progress(in_progress)

    def spans_of(self, events: Sequence[Event], in_progress: Sequence[Event] = ()) -> list[str]:
        """The spans of calls that are inside no others but these."""
        self._traces = self._find_traces(map(_told_of_one, (*events, *in_progress)))
        return [*map(self._span, events), *self._spans_in_progress(in_progress)]

    def traces_of(self, events: Iterable[Event]) -> dict[tuple[int, int], str]:
        """The traces of these calls, by thread and call; their spans were made last."""
        return {(event.thread, event.call): self._trace_of(event) for event in events}

    def came_from(self, events: Iterable[Event]) -> dict[tuple[int, int], tuple[int, int]]:
        """Of these calls those that came with the span of another call of this process, and which; by thread and call.
        """
        inside = {(event.thread, event.call) for event in events}
        found = {call: self._call_of(self._contexts[call].parent) for call in inside if call in self._contexts}
        threads = {thread.number for thread in self._process.threads} if found else ()
        return {call: origin for call, origin in found.items() if origin[0] in threads and origin not in inside}

    def _spans_in_progress(self, calls: Sequence[Event]) -> Iterator[str]:
        """The spans of calls that had not ended; they say how the process ended."""
        state = _attributes({"interpose.state": ending(self._process).state}) if calls else ""
        return (self._span(call, state) for call in calls)

    def _span(self, event: Event, state: str = "") -> str:
        trace, parent, (name, about) = self._placed(event)
        begin_ns = event.start_ns + self._calendar_ns
        moved = f',{{"key":"interpose.bytes","value":{{"intValue":"{event.bytes}"}}}}' if event.bytes else ""
        error = self._failed(event.error) if event.error else ""
        links = self._links(event) if self._active else ""
        known = state or f'{{"key":"interpose.cpu_ns","value":{{"intValue":"{event.cpu_ns}"}}}}'
        return (
            f'{{"traceId":"{trace}","spanId":"{span_of(self._seed, event.thread, event.call)}",{_around(parent)}'
            f'{name},"startTimeUnixNano":"{begin_ns}",'
            f'"endTimeUnixNano":"{begin_ns + event.wall_ns}","attributes":[{known}{moved}'
            f'{about}{self._of_all(event.stack, event.thread)}]{links}{error}}}'
        )

    def _placed(self, event: Event) -> tuple[str, str, tuple[str, str]]:
        """The trace of a call, the span in it that is around the call, if any, and what the call is described by."""
        outermost = self._traces.outermost(event.thread, event.call, event.parent)
        if not outermost:
            return self._whole, self._parent(event), self._of_call(event.intrinsic, event.detail)
        trace = self._trace(*self._traces.first(event.thread, outermost))
        if outermost != event.call:
            return trace, self._parent(event), self._of_call(event.intrinsic, event.detail)
        came_in = self._traces.came_in(event.thread, outermost)
        inside = self._traces.inside(event.thread, event.call)
        described = self._of_request(event.intrinsic, event.detail, inside)
        return trace, came_in.parent if came_in else "", described

    def _parent(self, event: Event) -> str:
        return span_of(self._seed, event.thread, event.parent) if event.parent else self._of_process

    def _told_of_all(self) -> Iterator[_Told]:
        """Of each of its calls what says which transaction it is, if it is one."""
        if self._process.events:
            pick = self._process.events.layout.picker(_TOLD)
            for block in blocks_of(self._process):
                yield from pick.many(block.events)

    def _find_traces(self, calls: Iterable[_Told]) -> Traces:
        """Which calls are in which transactions, and what came with their requests."""
        intrinsics = self._process.numbered_intrinsics
        numbers = {number for number, each in intrinsics.items() if each.is_transaction}
        found = Traces()
        if numbers:
            found.add(calls, numbers)
            found.settle(self._contexts, self._call_of)
        return found

    def _trace_of(self, event: Event) -> str:
        outermost = self._traces.outermost(event.thread, event.call, event.parent)
        return self._trace(*self._traces.first(event.thread, outermost)) if outermost else self._whole

    def _trace(self, thread: int, call: int) -> str:
        """The trace of an outermost transaction: what it came with, or its own."""
        came_in = self._traces.came_in(thread, call)
        return came_in.trace if came_in else self._whole[:16] + span_of(self._seed, thread, call)

    def _call_of(self, span: str) -> tuple[int, int]:
        return call_of(self._seed, int(span, 16))

    def _links(self, event: Event) -> str:
        found = self._active.get((event.thread, event.call), ())
        links = ",".join(
            f'{{"traceId":"{each.trace}","spanId":"{each.span}","attributes":[{_attributes({"tracer": each.tracer})}]}}'
            for each in found
        )
        return f',"links":[{links}]' if links else ""

    # Values that many calls share are made once.

    def _attributes(self, stack: int, thread: int) -> str:
        return f"{self._of_site(stack)}{self._of_thread(thread)}"

    def _call(self, number: int, detail: int) -> tuple[str, str]:
        intrinsic = self._process.intrinsic(number)
        has_statement = intrinsic.name in self._with_statements
        return _described(conventions.call(intrinsic.name, intrinsic.kind, self._text(detail), has_statement))

    def _request(self, number: int, detail: int, inside: tuple[tuple[int, int], ...]) -> tuple[str, str]:
        intrinsic = self._process.intrinsic(number)
        if intrinsic.transaction != "is":  # the work of another thread for it
            return self._of_call(number, detail)
        told = [(self._process.intrinsic(each).name, self._text(text)) for each, text in inside]
        return _described(conventions.request(intrinsic.name, intrinsic.kind, self._text(detail), told))

    def _text(self, detail: int) -> str:
        return self._process.string(detail) if detail else ""

    def _site(self, stack: int) -> str:
        site = self._process.own_line(stack)
        if site is None:
            return ""
        where = {"code.function.name": site.function, "code.file.path": site.file, "code.line.number": site.line}
        return f",{_attributes(where)}"

    def _lane(self, thread: int) -> str:
        return f",{_attributes({'thread.name': self._names.thread(thread), 'thread.id': thread})}"

    def _failed(self, number: int) -> str:
        text = json.dumps(clean(self._process.string(number)))
        return f',"status":{{"code":2,"message":{text}}}'


def trace_id(experiment: Experiment) -> str:
    """The identity of the trace of an experiment: 32 hexadecimal digits, always the same of one experiment."""
    return trace_of(seed_of(experiment.founder.log))


def _described(found: conventions.Described) -> tuple[str, str]:
    """Name and kind of a span, and its attributes, as JSON."""
    return f'"name":{json.dumps(clean(found.name))},"kind":{found.kind}', f",{_attributes(found.attributes)}"


def _around(parent: str) -> str:
    return f'"parentSpanId":"{parent}",' if parent else ""


def _attributes(values: dict[str, Any]) -> str:
    """Attributes as JSON; numbers of 64 bits are texts there."""
    found = []
    for key, value in values.items():
        told = {"intValue": str(value)} if isinstance(value, int) else {"stringValue": clean(value)}
        found.append(json.dumps({"key": key, "value": told}, separators=(",", ":")))
    return ",".join(found)
