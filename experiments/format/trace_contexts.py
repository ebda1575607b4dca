"""The file of trace contexts (W3C Trace Context): which requests came from which span of which trace, and which spans
other tracers in the program had active in transactions."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from interpose.experiments.format.records import ContextRecord
from interpose.experiments.format.tables import RecordTable

NAME = "trace_contexts"
CONTEXTS_AT_MOST = 1_000_000
_TRACERS = {256: "opentelemetry", 512: "ddtrace"}  # by the flag of their spans


class TraceContext(NamedTuple):
    """Trace and span that a request came from: 32 and 16 hexadecimal digits; `flags` as a number."""

    trace: str
    parent: str
    flags: int

    def as_header(self) -> str:
        """The same as a `traceparent` of version 00."""
        return f"00-{self.trace}-{self.parent}-{self.flags:02x}"


class ActiveSpan(NamedTuple):
    """A span of another tracer: 32 and 16 hexadecimal digits."""

    tracer: str
    trace: str
    span: str


def in_words(spans: Sequence[ActiveSpan]) -> str:
    """Spans of other tracers as one text: tracer, trace and span of each."""
    return ", ".join(" ".join(each) for each in spans)


def read_active_spans(table: RecordTable[ContextRecord]) -> dict[tuple[int, int], list[ActiveSpan]]:
    """The spans that other tracers had active, by thread and call of the transaction."""
    found: dict[tuple[int, int], list[ActiveSpan]] = {}
    for _, record, _ in table.bounded(CONTEXTS_AT_MOST):
        if span := active_span_of(record):
            found.setdefault((record.thread, record.call), []).append(span)
    return found


def read_contexts(table: RecordTable[ContextRecord]) -> dict[tuple[int, int], TraceContext]:
    """The contexts by thread and call; records that cannot be one are left out."""
    found = {}
    for _, record, _ in table.bounded(CONTEXTS_AT_MOST):
        if context := context_of(record):
            found[record.thread, record.call] = context
    return found


def context_of(record: ContextRecord) -> TraceContext | None:
    """The context in a record; None if there cannot be one in it, or if it is a span of another tracer."""
    return TraceContext(*_identities(record), record.flags) if _is_whole(record) and record.flags < 256 else None


def active_span_of(record: ContextRecord) -> ActiveSpan | None:
    """The span of another tracer in a record; None if there is none in it."""
    tracer = _TRACERS.get(record.flags)
    return ActiveSpan(tracer, *_identities(record)) if tracer and _is_whole(record) else None


def _is_whole(record: ContextRecord) -> bool:
    return bool(record.call and (record.trace_high or record.trace_low) and record.parent)


def _identities(record: ContextRecord) -> tuple[str, str]:
    return f"{record.trace_high:016x}{record.trace_low:016x}", f"{record.parent:016x}"
