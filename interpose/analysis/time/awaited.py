"""What tasks, and greenlets, awaited: answers of databases and of the network, and timers of requests; how often, in
how many tasks, and for how long."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace

from interpose.analysis.consolidation.records import Record, Records
from interpose.analysis.time.turns import PLACE, Call, calls_of, has_greenlets, waits_of_loops
from interpose.experiments.model.process import Process
from interpose.experiments.model.stacks import Site
from interpose.kinds import IDLE

KINDS = ("db", "net")
TIMER = "sleep"
Span = tuple[int, int]


@dataclass
class Awaited:
    """Calls of one intrinsic that were awaited at one line; of a database also about one statement.

    `spans` are from when to when each was awaited, `owners` the thread, the task and the call around each, and `tasks`
    from when to when the first and the last call of one owner together: a task that serves several requests, as that of
    a connection, counts as one for each. Of timers, `meanwhile` is when their loop waited as well.
    """

    kind: str
    intrinsic: str
    site: Site | None
    detail: str
    spans: list[Span] = field(default_factory=list)
    owners: list[tuple[int, int, int]] = field(default_factory=list)
    tasks: dict[tuple[int, int, int], Span] = field(default_factory=dict)
    meanwhile: list[Span] = field(default_factory=list)

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
        span, owner = (call.start_ns, call.end_ns), (call.thread, call.task, call.parent)
        before = self.tasks.get(owner, span)
        self.tasks[owner] = (min(before[0], span[0]), max(before[1], span[1]))
        self.spans.append(span)
        self.owners.append(owner)

    def in_tasks_with(self, least: int) -> Awaited:
        """Those of tasks that have at least so many of them."""
        calls = Counter(self.owners)
        kept = [(span, owner) for span, owner in zip(self.spans, self.owners, strict=True) if calls[owner] >= least]
        tasks = {owner: span for owner, span in self.tasks.items() if calls[owner] >= least}
        return replace(self, spans=[span for span, _ in kept], owners=[owner for _, owner in kept], tasks=tasks)


def awaited(process: Process, records: Records) -> list[Awaited]:
    """The outermost awaited calls in the tasks of `process`, and in its greenlets, of which the main one is no task;
    none if its events were not kept."""
    names = ("intrinsic", "stack")
    places = [records.by.index(name) for name in names]
    wanted = {
        tuple(each.key[place] for place in places)
        for each in records.calls()
        if _is_outermost(process, each, places[0]) and each.awaited_ns
    }
    if not wanted:
        return []
    found: dict[tuple[object, ...], Awaited] = {}
    with_main = has_greenlets(process, records)
    for call in calls_of(process, lambda values: values[PLACE] in wanted):
        if call.task or with_main:
            grouped_by_line(process, call, found).add(call)
    return list(found.values())


def slept(process: Process, records: Records) -> list[Awaited]:
    """The timers that transactions of `process` awaited while its loops waited for more than work. A timer of a task
    that serves nobody, such as a server's clock, explains no wait."""
    names = ("intrinsic", "stack")
    places = [records.by.index(name) for name in names]
    timers = [each for each in records.calls() if process.intrinsic(each.key[places[0]]).kind == TIMER]
    served = [each for each in timers if each.suspended_ns and _is_served(process, each, places[0])]
    wanted = {tuple(each.key[place] for place in places) for each in served}
    if not wanted:
        return []
    waits = {each for each in waits_of_loops(process, records) if process.intrinsic(each[0]).kind != IDLE}
    found: dict[int, dict[tuple[object, ...], Awaited]] = defaultdict(dict)
    waited: dict[int, list[Span]] = defaultdict(list)
    for call in calls_of(process, lambda values: values[PLACE] in wanted or values[PLACE] in waits):
        if (call.intrinsic, call.stack) in waits:
            waited[call.thread].append((call.start_ns, call.end_ns))
        elif call.task:
            grouped_by_line(process, call, found[call.thread]).add(call)
    for thread, of_thread in found.items():
        for each in of_thread.values():
            each.meanwhile = list(meanwhile(each.spans, sorted(waited[thread])))
    return [each for of_thread in found.values() for each in of_thread.values() if each.meanwhile]


def awaited_at_most_ns(process: Process, records: Records) -> int:
    """For how long tasks awaited answers and the timers of transactions, one added to the other though they may
    overlap: all that is known without events."""
    place = records.by.index("intrinsic")
    return sum(
        each.awaited_ns
        for each in records.calls()
        if _is_outermost(process, each, place)
        or (process.intrinsic(each.key[place]).kind == TIMER and _is_served(process, each, place))
    )


def _is_served(process: Process, record: Record, place: int) -> bool:
    """Whether these calls are inside of one that is a transaction."""
    around = record.outer_call
    while around and process.intrinsic(around.key[place]).transaction != "is":
        around = around.outer_call
    return around is not None


def meanwhile(spans: Iterable[Span], waits: Sequence[Span]) -> Iterator[Span]:
    """The parts of the waits, which follow each other, that are in one of the spans or in more."""
    place = 0
    for start_ns, end_ns in joined(spans):
        while place < len(waits) and waits[place][0] < end_ns:
            if waits[place][1] > start_ns:
                yield max(waits[place][0], start_ns), min(waits[place][1], end_ns)
            if waits[place][1] > end_ns:
                break
            place += 1


def joined(spans: Iterable[Span]) -> Iterator[Span]:
    """Spans that follow each other and cover what these do."""
    latest: Span | None = None
    for start_ns, end_ns in sorted(spans):
        if latest and start_ns <= latest[1]:
            latest = latest[0], max(latest[1], end_ns)
            continue
        if latest:
            yield latest
        latest = start_ns, end_ns
    if latest:
        yield latest


def _is_outermost(process: Process, record: Record, place: int) -> bool:
    around = record.outer_call
    is_inside = around and process.intrinsic(around.key[place]).kind in KINDS
    return not is_inside and process.intrinsic(record.key[place]).kind in KINDS


def grouped_by_line(process: Process, call: Call, found: dict[tuple[object, ...], Awaited]) -> Awaited:
    """The calls in `found` that are like this one, made where they are new."""
    intrinsic = process.intrinsic(call.intrinsic)
    detail = process.string(call.detail) if intrinsic.kind == "db" else ""
    key = (intrinsic.name, process.own_line(call.stack), detail)
    if key not in found:
        found[key] = Awaited(intrinsic.kind, *key)
    return found[key]


def covered_ns(spans: Iterable[Span]) -> int:
    """How much time is in one of the spans, or in more."""
    return sum(end_ns - start_ns for start_ns, end_ns in joined(spans))
