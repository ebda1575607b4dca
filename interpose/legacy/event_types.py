"""The trace as the Natural Profiler (Software AG) has it: events before and after each call, and the session's own.

What has no event type there (files, locks, sleeping) has an event without a code; and so has what a call of a code
is made of: the sends and receives of a request, closing a terminal.
"""

from __future__ import annotations

import heapq
from collections.abc import Iterable, Iterator
from itertools import count
from typing import NamedTuple

from interpose.analysis.calls.trace import ENDED, Traced
from interpose.analysis.recording.ending import ending
from interpose.experiments.metadata.pauses import NO_END_NS, PAUSE, RESUME
from interpose.experiments.model.experiment import Experiment
from interpose.experiments.model.process import Process
from interpose.legacy.codes import BY_CODE, STATEMENT, USER_EVENT

AROUND = {"db": ("DB", "DA"), "screen": ("IB", "IA"), "process": ("CB", "CA"), "net": ("RO", ""), "import": ("PL", "")}
MARKED = "interpose.transaction"
LOGIC = "logic"
INSTANTS = {USER_EVENT: "U", STATEMENT: "NS"}
# The sources of event types, by kind, and exceptions that have the code all the same.
MEANS = {
    "net": (("socket", "ssl", "select"), ("connect",)),
    "screen": (("os", "io", "termios"), ("read", "readv", "readinto", "readall", "write", "writev")),
}
ANSWERS = ("http.client.HTTPConnection.getresponse", "aiohttp.ClientResponse.read")  # of a request that was made before
FOLLOWED_AT_MOST = 10_000
Call = tuple[str, int, int]


class EventType(NamedTuple):
    """An event of a process at an instant: its code, or none, its name today, and its call, if any."""

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
    return tuple(filter(None, AROUND.get(kind, ()))) if not name or _is_a_whole(kind, name) else ()


def _is_a_whole(kind: str, name: str) -> bool:
    """Whether calls of the intrinsic are what the kind's code means, and not what such are made of."""
    places, wholes = MEANS.get(kind, ((), ()))
    is_means = name.partition(".")[0] in places and name.rpartition(".")[2] not in wholes
    return not is_means and name not in ANSWERS


class _Requests:
    """Follows outbound requests, because requests inside another one do not count."""

    def __init__(self) -> None:
        self._until_ns: dict[Call, int] = {}

    def holds(self, row: Traced) -> bool:
        """Whether the call was made inside of an outbound one, by however many calls; it is one itself from now on."""
        event, place = row.event, row.process.place
        is_inside = (place, event.thread, event.parent) in self._until_ns
        if is_inside or row.process.intrinsic(event.intrinsic).kind == "net":
            if len(self._until_ns) >= FOLLOWED_AT_MOST:
                self._forget_until(event.start_ns)
            until_ns = event.start_ns + event.wall_ns if row.state == ENDED else NO_END_NS
            self._until_ns[place, event.thread, event.call] = until_ns
        return is_inside

    def _forget_until(self, now_ns: int) -> None:
        self._until_ns = {call: until_ns for call, until_ns in self._until_ns.items() if until_ns >= now_ns}


def event_types(experiment: Experiment, rows: Iterable[Traced]) -> Iterator[EventType]:
    """The events that `rows`, calls in the order of their beginnings, stand for, and the session's own, in order."""
    order = count()
    waiting = [(each.time_ns, next(order), each) for each in _of_sessions(experiment)]
    heapq.heapify(waiting)
    requests = _Requests()
    for row in rows:
        while waiting and waiting[0][0] <= row.event.start_ns:
            yield heapq.heappop(waiting)[2]
        yield from _before(row, requests.holds(row))
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


def _before(row: Traced, is_within_request: bool) -> Iterator[EventType]:
    intrinsic = row.process.intrinsic(row.event.intrinsic)
    codes = [code for code in codes_of(intrinsic.kind, intrinsic.name) if code not in ("DA", "IA", "CA", "PT")]
    codes = [code for code in codes if not (code == "RO" and is_within_request)]
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
