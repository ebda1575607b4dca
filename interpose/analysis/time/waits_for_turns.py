"""Tasks that waited for their turn: for what a pool, a lock, a semaphore or a queue of asyncio lets only some have,
or a lock of trio."""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field

from interpose.analysis.consolidation.records import Record, Records
from interpose.analysis.recording.installed import packages_above
from interpose.analysis.time.awaited import Span, covered_ns, meanwhile
from interpose.analysis.time.turns import PLACE, Call, Wait, calls_of, has_tasks, waits_of_loops
from interpose.experiments.model.process import Process
from interpose.experiments.model.stacks import Site
from interpose.kinds import IDLE

FOR_A_TURN = frozenset(("asyncio.Lock.acquire", "asyncio.Queue.put", "trio.Lock.acquire"))
# A semaphore may count work, but `async with` gives back what it got.
SEMAPHORE = "asyncio.Semaphore.acquire"
# Tasks mostly wait for these to be told something, or for work; in a pool, for what others have.
STOCK = "asyncio.Queue.get"
IN_A_POOL = frozenset((SEMAPHORE, STOCK, "asyncio.Event.wait", "asyncio.Condition.wait"))
_ASYNCIO = "/asyncio/"
_OF_LOOPS = ("asyncio.", "trio.")
_POOL = re.compile("pool", re.IGNORECASE)
# The same rule as in cext/hooks/callers.c. A pool's worker also waits in its file, but for work.
_TAKEN = re.compile("acquire|borrow|channel|checkout|client|conn|resource|session", re.IGNORECASE | re.ASCII)
_WORK = re.compile("event|item|job|message|request|task|thread|work", re.IGNORECASE | re.ASCII)
_PLAIN = frozenset(("do_get", "get", "take"))


@dataclass
class WaitsAtLine:
    """The waits of a loop's tasks at one line: `spans` cover them, and the loop was `idle` for these parts."""

    intrinsic: str
    site: Site | None
    calls: int = 0
    sum_ns: int = 0
    tasks: set[int] = field(default_factory=set)
    spans: list[Span] = field(default_factory=list)
    idle: list[Span] = field(default_factory=list)

    @property
    def place(self) -> tuple[str, Site | None]:
        """What was called, and where."""
        return self.intrinsic, self.site

    @property
    def wall_ns(self) -> int:
        """For how long at least one task waited."""
        return covered_ns(self.spans)

    def add(self, call: Call) -> None:
        """Add a wait of a task; those of a thread come in the order of their ends."""
        if not call.task:
            return
        start_ns, end_ns = call.start_ns, call.start_ns + call.wall_ns
        self.calls += 1
        self.sum_ns += call.wall_ns
        self.tasks.add(call.task)
        spans = self.spans
        while spans and spans[-1][1] >= start_ns and spans[-1][0] <= end_ns:
            before = spans.pop()
            start_ns, end_ns = min(before[0], start_ns), max(before[1], end_ns)
        spans.append((start_ns, end_ns))


Loop = Sequence[WaitsAtLine]


def waits_for_turns(process: Process, records: Records) -> list[Loop]:
    """The waits of several tasks at one line of the program, for each loop; none if the events were not kept."""
    names = {each.name for each in process.intrinsics}
    if names.isdisjoint(FOR_A_TURN | IN_A_POOL):
        return []
    places = [records.by.index(name) for name in ("intrinsic", "stack")]
    suspended = [each for each in records.calls() if each.suspended_ns]
    made = {(each.key[places[0]], each.key[places[1]]) for each in suspended if _is_for_a_turn(process, each, places)}
    if not made or not has_tasks(process, records):
        return []
    waits = waits_of_loops(process, records)
    loops = {process.own_line(stack) for _, stack in waits}
    wanted = {each for each in made if process.own_line(each[1]) not in loops}
    return list(_of_loops(process, wanted, {each for each in waits if process.intrinsic(each[0]).kind == IDLE}))


def _of_loops(process: Process, wanted: set[Wait], idle: set[Wait]) -> Iterator[Loop]:
    lines: defaultdict[int, dict[object, WaitsAtLine]] = defaultdict(dict)
    by_stack: dict[tuple[int, Wait], WaitsAtLine] = {}
    idle_spans: defaultdict[int, list[Span]] = defaultdict(list)
    read = wanted | idle
    for call in calls_of(process, lambda values: values[PLACE] in read):
        wait = call.intrinsic, call.stack
        key = call.thread, wait
        if waits := by_stack.get(key):
            waits.add(call)
        elif wait in idle:
            idle_spans[call.thread].append((call.start_ns, call.start_ns + call.wall_ns))
        elif call.task:
            new = WaitsAtLine(process.intrinsic(call.intrinsic).name, process.own_line(call.stack))
            by_stack[key] = lines[call.thread].setdefault(new.place, new)
            by_stack[key].add(call)
    for thread, mine in lines.items():
        several = [each for each in mine.values() if len(each.tasks) > 1]
        waited = sorted(idle_spans[thread])
        for each in several:
            each.idle = list(meanwhile(each.spans, waited))
        yield several


def large(
    loops: Sequence[Loop], not_idle_ns: int, least_ns: Callable[[int], float]
) -> tuple[list[WaitsAtLine], int]:
    """The waits at the lines that took as much as `least_ns` says for the time that matters, and for how long the loops
    were idle during all of these waits. The time that matters is what is not idle, and this."""
    walls_ns: Counter[object] = Counter()
    for each in (each for loop in loops for each in loop):
        walls_ns[each.place] += each.wall_ns
    told, told_idle_ns, places = list[WaitsAtLine](), 0, set[object]()
    for place, wall_ns in walls_ns.most_common():
        places.add(place)
        with_these = [[each for each in loop if each.place in places] for loop in loops]
        idle_ns = sum(_idle_ns(loop) for loop in with_these)
        matters_ns = not_idle_ns + idle_ns
        if min(wall_ns, matters_ns) < least_ns(matters_ns):  # what began before a ring is longer than what matters
            break
        told, told_idle_ns = [each for loop in with_these for each in loop], idle_ns
    return told, told_idle_ns


def _idle_ns(loop: Loop) -> int:
    """For how long a loop was idle during these waits; the spans of a line do not overlap."""
    if len(loop) == 1:
        return sum(end_ns - start_ns for start_ns, end_ns in loop[0].idle)
    return covered_ns(span for each in loop for span in each.idle)


def _is_for_a_turn(process: Process, record: Record, places: list[int]) -> bool:
    """Whether others had what these outermost calls waited for."""
    intrinsic, stack = (record.key[place] for place in places)
    name, around = process.intrinsic(intrinsic).name, record.outer_call
    is_inner = around is not None and process.intrinsic(around.key[places[0]]).name.startswith(_OF_LOOPS)
    if is_inner or name not in FOR_A_TURN | IN_A_POOL:
        return False
    site = process.own_line(stack)
    return bool(site and site.own) and (name in FOR_A_TURN or _is_taken(name, list(process.frames(stack))))


def _is_taken(name: str, frames: Sequence[Site]) -> bool:
    """Whether `async with` waits for a semaphore, or a pool of an installed package for what its caller takes."""
    if name == SEMAPHORE and frames and _ASYNCIO in frames[0].file and frames[0].function.endswith("__aenter__"):
        return True
    for frame in frames:
        if packages_above(frame.file):
            if takes_from_pool(frame) or (name == STOCK and _is_for_greenlets(frame)):
                return True
        elif _ASYNCIO not in frame.file:
            return False
    return False


def takes_from_pool(frame: Site) -> bool:
    """Whether a function is one by which a pool gives what others may have."""
    place, name = f"{frame.file.rpartition('/')[2]} {frame.function}", frame.function.rpartition(".")[2]
    if not _POOL.search(place) or _WORK.search(name):
        return False
    return bool(_TAKEN.search(name)) or (name.lstrip("_") in _PLAIN and not _WORK.search(place))


def _is_for_greenlets(frame: Site) -> bool:
    """Whether SQLAlchemy awaits there what its pools need in greenlets, of which no frames are on the stack."""
    return "/sqlalchemy/" in frame.file and frame.function.endswith("greenlet_spawn")
