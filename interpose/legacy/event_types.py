"""The trace as the Natural Profiler (Software AG) has it: events before and after each call, and the session's own.

What has no event type there (files, locks, sleeping) has an event without a code.
"""

from __future__ import annotations

import heapq
from collections.abc import Iterable, Iterator
from itertools import count
from typing import NamedTuple

from interpose.analysis.calls.trace import ENDED, Traced
from interpose.analysis.recording.ending import ending
from interpose.experiments.metadata.pauses import PAUSE, RESUME
from interpose.experiments.model.experiment import Experiment
from interpose.experiments.model.process import Process
from interpose.legacy.codes import BY_CODE, STATEMENT, USER_EVENT

AROUND = {"db": ("DB", "DA"), "screen": ("IB", "IA"), "process": ("CB", "CA"), "net": ("RO", ""), "import": ("PL", "")}
MARKED = "interpose.transaction"
LOGIC = "logic"
INSTANTS = {USER_EVENT: "U", STATEMENT: "NS"}


class EventType(NamedTuple):
    """An event of a process at an instant: its code, or none, its name of today, and the call that it is of, if any."""

    time_ns: int
    process: Process
    code: str
    name: str
    call: Traced | None = None
    text: str = ""


def codes_of(kind: str, name: str) -> tuple[str, ...]:
    """The codes of the events that a call of the intrinsic `name`, of `kind`, stands for; without a name, of all."""
    if kind == LOGIC and not name:
        return ("PS", "PT", "RI", "RS", "U", "NS")
    if name in INSTANTS:
        return (INSTANTS[name],)
    if kind == LOGIC:
        return ("PS", "PT") if name == MARKED else ("RI", "RS", "PT")
    return tuple(filter(None, AROUND.get(kind, ())))


def event_types(experiment: Experiment, rows: Iterable[Traced]) -> Iterator[EventType]:
    """The events that `rows`, calls in the order of their beginnings, stand for, and the session's own, in order."""
    order = count()
    waiting = [(each.time_ns, next(order), each) for each in _of_sessions(experiment)]
    heapq.heapify(waiting)
    for row in rows:
        while waiting and waiting[0][0] <= row.event.start_ns:
            yield heapq.heappop(waiting)[2]
        yield from _before(row)
        if row.state == ENDED:
            for after in _after(row):
                heapq.heappush(waiting, (after.time_ns, next(order), after))
    while waiting:
        yield heapq.heappop(waiting)[2]


def _of_sessions(experiment: Experiment) -> Iterator[EventType]:
    for process in experiment.processes:
        yield _named(process.log.start_ns, process, "SI")
        for event in process.log.events:
            if event.kind == PAUSE:
                yield _named(event.time_ns, process, "MP")
            elif event.kind in (RESUME, "sample", "filter", "warning"):
                yield EventType(event.time_ns, process, "", event.kind, text=event.text)
        if (end_ns := ending(process).end_ns) is not None:
            yield _named(end_ns, process, "ST")


def _named(time_ns: int, process: Process, code: str, call: Traced | None = None, text: str = "") -> EventType:
    return EventType(time_ns, process, code, BY_CODE[code].name, call, text)


def _before(row: Traced) -> Iterator[EventType]:
    intrinsic = row.process.intrinsic(row.event.intrinsic)
    codes = [code for code in codes_of(intrinsic.kind, intrinsic.name) if code not in ("DA", "IA", "CA", "PT")]
    for code in codes:
        yield _named(row.event.start_ns, row.process, code, row)
    if not codes:
        yield EventType(row.event.start_ns, row.process, "", f"{intrinsic.kind} call", row)


def _after(row: Traced) -> Iterator[EventType]:
    intrinsic = row.process.intrinsic(row.event.intrinsic)
    end_ns = row.event.start_ns + row.event.wall_ns
    if row.event.error:
        yield _named(end_ns, row.process, "E", row, row.process.string(row.event.error))
    for code in codes_of(intrinsic.kind, intrinsic.name):
        if code in ("DA", "IA", "CA", "PT"):
            yield _named(end_ns, row.process, code, row)
    if intrinsic.kind == LOGIC and row.event.parent and intrinsic.name not in INSTANTS:
        yield _named(end_ns, row.process, "PR", row)
