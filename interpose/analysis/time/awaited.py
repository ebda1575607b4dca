"""Answers of databases and of the network that tasks awaited: how often, in how many tasks, and for how long."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field

from interpose.analysis.consolidation.records import Record, Records
from interpose.analysis.time.turns import Call, calls_of, has_tasks
from interpose.experiments.model.process import Process
from interpose.experiments.model.stacks import Site

KINDS = ("db", "net")
Span = tuple[int, int]
_PLACE = slice(Call._fields.index("intrinsic"), Call._fields.index("stack") + 1)


@dataclass
class Awaited:
    """Calls of one intrinsic that were awaited at one line; of a database also about one statement.

    `spans` are from when to when each was awaited, `tasks` the same of the first and the last call of a task together.
    """

    kind: str
    intrinsic: str
    site: Site | None
    detail: str
    spans: list[Span] = field(default_factory=list)
    tasks: dict[tuple[int, int], Span] = field(default_factory=dict)

    @property
    def wall_ns(self) -> int:
        """Time in which one of them, or more, were awaited."""
        return covered_ns(self.spans)

    @property
    def each_ns(self) -> int:
        """How long one of them was awaited in the mean."""
        return self.sum_ns // max(len(self.spans), 1)

    @property
    def sum_ns(self) -> int:
        """How long they were awaited, one added to the other."""
        return sum(end - start for start, end in self.spans)

    @property
    def tasks_ns(self) -> int:
        """From the first call to the end of the last one, of each task, one added to the other."""
        return sum(end - start for start, end in self.tasks.values())

    def add(self, call: Call) -> None:
        """Add one of the calls."""
        span = (call.start_ns, call.end_ns)
        before = self.tasks.get((call.thread, call.task), span)
        self.tasks[call.thread, call.task] = (min(before[0], span[0]), max(before[1], span[1]))
        self.spans.append(span)


def awaited(process: Process, records: Records) -> list[Awaited]:
    """The outermost awaited calls in the tasks of `process`; none if its events were not kept."""
    names = ("intrinsic", "stack")
    places = [records.by.index(name) for name in names]
    wanted = {
        tuple(each.key[place] for place in places)
        for each in records.calls()
        if each.suspended_ns and _is_outermost(process, each, places[0])
    }
    if not wanted or not has_tasks(process, records):
        return []
    found: dict[tuple[object, ...], Awaited] = {}
    for call in calls_of(process, lambda values: values[_PLACE] in wanted):
        if call.task:
            _group(process, call, found).add(call)
    return list(found.values())


def _is_outermost(process: Process, record: Record, place: int) -> bool:
    around = record.outer_call
    is_inside = around and process.intrinsic(around.key[place]).kind in KINDS
    return not is_inside and process.intrinsic(record.key[place]).kind in KINDS


def _group(process: Process, call: Call, found: dict[tuple[object, ...], Awaited]) -> Awaited:
    intrinsic = process.intrinsic(call.intrinsic)
    detail = process.string(call.detail) if intrinsic.kind == "db" else ""
    key = (intrinsic.name, process.own_line(call.stack), detail)
    if key not in found:
        found[key] = Awaited(intrinsic.kind, *key)
    return found[key]


def covered_ns(spans: Iterable[Span]) -> int:
    """How much time is in one of the spans, or in more."""
    whole_ns, latest_ns = 0, 0
    for start_ns, end_ns in sorted(spans):
        whole_ns += max(end_ns - max(start_ns, latest_ns), 0)
        latest_ns = max(latest_ns, end_ns)
    return whole_ns
