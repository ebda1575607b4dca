"""The file of trace contexts (W3C Trace Context): which requests came from which span of which trace."""

from __future__ import annotations

from typing import NamedTuple

from interpose.experiments.format.records import ContextRecord
from interpose.experiments.format.tables import RecordTable

NAME = "trace_contexts"
CONTEXTS_AT_MOST = 1_000_000


class TraceContext(NamedTuple):
    """Trace and span that a request came from: 32 and 16 hexadecimal digits; `flags` as a number."""

    trace: str
    parent: str
    flags: int

    def as_header(self) -> str:
        """The same as a `traceparent` of version 00."""
        return f"00-{self.trace}-{self.parent}-{self.flags:02x}"


def read_contexts(table: RecordTable[ContextRecord]) -> dict[tuple[int, int], TraceContext]:
    """The contexts by thread and call; records that cannot be one are left out."""
    found = {}
    for _, record, _ in table.bounded(CONTEXTS_AT_MOST):
        if context := context_of(record):
            found[record.thread, record.call] = context
    return found


def context_of(record: ContextRecord) -> TraceContext | None:
    """The context in a record; None if there cannot be one in it."""
    is_valid = (record.trace_high or record.trace_low) and record.parent and record.flags < 256
    if not record.call or not is_valid:
        return None
    return TraceContext(f"{record.trace_high:016x}{record.trace_low:016x}", f"{record.parent:016x}", record.flags)
