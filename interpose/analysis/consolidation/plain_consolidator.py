"""The consolidator in Python: the reference for the compiled one."""

from __future__ import annotations

import copy
import heapq
from collections.abc import Mapping, Sequence

from interpose.analysis.consolidation.histogram import bucket_of
from interpose.analysis.consolidation.records import Key
from interpose.analysis.consolidation.sums import (
    DETAILS_AT_MOST,
    FIGURES,
    KEYS_AT_MOST,
    LARGEST,
    LEAST,
    MEASURED,
    MOST,
    RECORDS_AT_MOST,
    WAITING_AT_MOST,
)
from interpose.analysis.transactions.tracking import (
    AFRESH,
    ASKS,
    BEGINS,
    BUSY,
    BY_DETAIL,
    BY_INTRINSIC,
    BY_STACK,
    DECIDES,
    DROPS,
    ENDS,
    IDLE,
    KEYS,
    MARKED,
    NAMES,
    NUMBER,
    READS,
    RELEASES,
    SPAN,
    WAITS,
    Closing,
    Outermost,
    Tracker,
    Unended,
    is_pseudo,
)
from interpose.experiments.format.consolidated import OTHER, Found
from interpose.experiments.format.layout import Bytes, Layout

_OF_TASKS = ASKS | ENDS | AFRESH | DROPS  # what counts of what a call of a task means for transactions
NOTHING = tuple(MOST if name in LEAST else 0 for name in FIGURES)
_LEAST = [place for place, name in enumerate(FIGURES) if name in LEAST]
_LARGEST = [place for place, name in enumerate(FIGURES) if name in LARGEST]
_CALLS, _WALL, _CPU, _LAST = (FIGURES.index(name) for name in ("calls", "wall_ns", "cpu_ns", "last_ns"))
_WALL_MEASURED, _INTRINSIC_MEASURED = MEASURED.index("wall_ns"), MEASURED.index("intrinsic")
_SUMMED = [place for place, name in enumerate(FIGURES) if name not in LEAST | LARGEST]


class _Node:
    """A record, or what holds records: the calls inside of one that has not come, the current transaction."""

    __slots__ = ("before", "cpus", "figures", "inner", "key", "name", "told", "walls")

    def __init__(self, key: Key, name: int, before: tuple[int, int] = (0, 0)) -> None:
        self.before = before  # as many calls and so much wall time may be in OTHER of it
        self.key = key
        self.name = name
        self.inner: dict[tuple[Key, int], _Node] = {}
        self.figures = list(NOTHING)
        self.walls: dict[int, int] = {}
        self.cpus: dict[int, int] = {}
        self.told = [0, 0, 0, 0]  # bits, think wall and CPU time, stack: what the records mean for transactions

    def take_over(self, other: _Node) -> list[tuple[Key, int]]:
        """Have the records that are inside of `other`; returns what those were by that were alike, and so are fewer."""
        waiting, fewer = [(self, other)], list[tuple[Key, int]]()
        while waiting:
            into, given = waiting.pop()
            for likeness, node in given.inner.items():
                mine = into.inner.get(likeness)
                if mine is None:
                    into.inner[likeness] = node
                else:
                    mine.add(node)
                    fewer.append(likeness)
                    waiting.append((mine, node))
        return fewer

    def add(self, other: _Node) -> None:
        """Add the figures of `other`."""
        self.before = min(self.before[0], other.before[0]), min(self.before[1], other.before[1])
        self.put(other.figures)
        for mine, given in ((self.walls, other.walls), (self.cpus, other.cpus)):
            for bucket, number in given.items():
                mine[bucket] = mine.get(bucket, 0) + number

    def put(self, figures: Sequence[int]) -> None:
        """Add these figures."""
        mine = self.figures
        for place in _SUMMED:
            mine[place] = min(mine[place] + figures[place], MOST)
        for place in _LEAST:
            if figures[place] < mine[place]:
                mine[place] = figures[place]
        for place in _LARGEST:
            if figures[place] > mine[place]:
                mine[place] = figures[place]

    def count(self, wall_ns: int, cpu_ns: int) -> None:
        """Count one time more in the histograms."""
        for counts, time_ns in ((self.walls, wall_ns), (self.cpus, cpu_ns)):
            bucket = bucket_of(time_ns)
            counts[bucket] = counts.get(bucket, 0) + 1


class PlainConsolidator:
    """Consolidates by the fields `by`, of which there are up to five."""

    def __init__(
        self,
        layout: Layout,
        by: tuple[str, ...],
        histograms: bool = False,
        tracker: Tracker | None = None,
        roles: Mapping[int, int] | None = None,
        waiting_at_most: int = WAITING_AT_MOST,
        records_at_most: int = RECORDS_AT_MOST,
        slowest_at_most: int = 0,
        details_at_most: int = DETAILS_AT_MOST,
    ) -> None:
        if len(by) > KEYS_AT_MOST:
            raise ValueError(f"at most {KEYS_AT_MOST} keys")
        self._pick = layout.unsigned((*MEASURED, *by)).picker((*MEASURED, *by))
        self._of_transaction = tuple(name == "thread" for name in by)
        self._histograms = histograms
        self._tracker = tracker
        self._roles = dict(roles or {})
        self._root = _Node((), 0)
        self._awaited: dict[tuple[int, int], _Node] = {}
        self._held: dict[int, _Node] = {}
        self._held_of_tasks: dict[tuple[int, int], _Node] = {}  # by thread and task: of those in a transaction
        self._left = records_at_most
        self._detailed_left = details_at_most
        self._kept = details_at_most // 4
        self._enough = (0, 0)  # calls, and wall time, with which a record was not kept
        self._ended: _Node | None = None  # what holds the calls inside of the one that is being added
        self._detail = by.index("detail") if "detail" in by else None
        self._waiting_at_most = waiting_at_most
        self._record_bytes = layout.record_bytes
        self._slowest_at_most = slowest_at_most
        self._slowest: list[tuple[int, int, bytes]] = []
        self._count = 0
        self.is_full = False

    def add(self, events: Bytes) -> None:
        """Add each event in `events`, which must be whole records of possible events."""
        measured = len(MEASURED)
        for place, values in enumerate(self._pick.many(events)):
            self._add(values[measured:], *values[:measured])
            if self._slowest_at_most and not self._roles.get(values[_INTRINSIC_MEASURED], 0) & WAITS:
                self._keep_slow(values[_WALL_MEASURED], events, place * self._record_bytes)

    def know(self, roles: Mapping[int, int]) -> None:
        """What the calls of more intrinsics mean for transactions."""
        self._roles.update(roles)

    def copied(self) -> PlainConsolidator:
        """Another one that holds the same, to which nothing is added."""
        return copy.deepcopy(self, {id(self._pick): self._pick})

    def slowest(self) -> list[bytes]:
        """The records of the slowest events that did not wait for new work, the slowest first; of two as slow, the one
        that came first."""
        return [record for _, _, record in sorted(self._slowest, reverse=True)]

    def _keep_slow(self, wall: int, events: Bytes, offset: int) -> None:
        self._count -= 1
        if len(self._slowest) < self._slowest_at_most or wall > self._slowest[0][0]:
            slow = (wall, self._count, bytes(events[offset : offset + self._record_bytes]))
            heapq.heappush(self._slowest, slow)
            if len(self._slowest) > self._slowest_at_most:
                heapq.heappop(self._slowest)

    def records(self) -> list[Found]:
        """The records, each behind the one around it; nothing can be added any more."""
        if self._tracker:
            self._let_tasks_go()
        for unended in self._tracker.unended if self._tracker else ():
            self._add_unended(unended)
        self._let_go()
        if self._tracker:
            for thread, closing in self._tracker.finish():
                self._close(thread, closing)
            for held in self._held.values():
                self._take_over(self._root, held)
            self._held.clear()
        return self._given()

    def _given(self) -> list[Found]:
        found: list[Found] = []
        waiting = [(-1, node) for node in self._root.inner.values()]
        while waiting:
            outer, node = waiting.pop()
            histograms = (node.walls, node.cpus) if self._histograms else (None, None)
            waiting += [(len(found), each) for each in node.inner.values()]
            found.append(Found(outer, node.key, node.name, tuple(node.figures), *histograms))
        return found

    def _add(
        self,
        key: Key,
        start: int,
        wall: int,
        cpu: int,
        inner_wall: int,
        inner_cpu: int,
        moved: int,
        thread: int,
        call: int,
        parent: int,
        intrinsic: int,
        stack: int,
        detail: int,
        error: int,
        task: int,
        start_cpu: int,
    ) -> None:
        awaited = self._awaited.pop((thread, call), None)
        role = self._roles.get(intrinsic, 0)
        if role & ASKS and self._tracker:
            role |= self._tracker.role_of(detail)
            role = role & ~(ENDS | RELEASES) if role & RELEASES else role
        told, name = _told(awaited, role, wall, cpu, stack, detail, intrinsic)
        is_span = bool(role & SPAN)
        think_wall, think_cpu = (min(told[1], wall), min(told[2], cpu)) if is_span else (0, 0)
        after = of_task = None
        if is_span and self._tracker:
            self._serve(thread, start)
        if parent:
            into = self._awaited.get((thread, parent))
            if into is None:
                into = self._awaited[thread, parent] = _Node((), 0)
            _tell(into, told, name)
        elif self._tracker is None:
            into = self._root
        elif task:
            # Tasks take turns: they begin and end transactions of their own, none of the thread.
            self._hold(thread).told[0] |= told[0] & BUSY
            decides = told[0] & _OF_TASKS
            into = self._held_of_tasks.get((thread, task)) or self._hold(thread)
            asks = decides & ASKS and (decides != ASKS or (thread, task) not in self._held_of_tasks)
            if asks and not self._tracker.is_serving(thread):
                outermost = Outermost(start, wall, start_cpu, cpu, decides, 0, 0, told[3], 0)
                into, of_task = self._step_of_task(thread, task, outermost)
        else:
            held = self._held.get(thread)
            if told[0] & DECIDES or is_span or (told[0] & ASKS and not (held and held.told[0] & ASKS)):
                bits = told[0] | role & (SPAN | MARKED)
                outermost = Outermost(start, wall, start_cpu, cpu, bits, told[1], told[2], told[3], name)
                into, after = self._step(thread, outermost)
            else:
                into = self._hold(thread)
            # After a rollback the tracker is asked about the next call, which begins a transaction.
            into.told[0] |= told[0] & (BUSY if told[0] & DROPS else BUSY | ASKS)
        self._ended = awaited
        node = self._node(into, key, name if is_span else 0)
        self._ended = None
        if awaited:
            self._take_over(node, awaited)
        response, response_cpu = wall - think_wall, cpu - think_cpu
        self_wall = wall - inner_wall if wall > inner_wall else 0
        self_cpu = cpu - inner_cpu if cpu > inner_cpu else 0
        figures = [1, int(error != 0), wall, cpu, self_wall, self_cpu, min(moved, MOST), start, start + wall]
        figures += [response, response, response_cpu, response_cpu, think_wall, think_cpu]
        node.put(figures)
        if self._histograms:
            node.count(response, response_cpu)
        if after:
            self._close(thread, after)
        if of_task:
            self._close_of_task(thread, task, of_task)
        if len(self._awaited) > self._waiting_at_most:
            self._let_go()

    def _step(self, thread: int, call: Outermost) -> tuple[_Node, Closing | None]:
        """What an outermost call is put into, and the transaction that ends with it."""
        assert self._tracker is not None
        held = self._held.get(thread)
        step = self._tracker.step(thread, call, bool(held and held.told[0] & BUSY))
        if step.before:
            self._close(thread, step.before)
        return self._root if step.is_its_own else self._hold(thread), step.after

    def _step_of_task(self, thread: int, task: int, call: Outermost) -> tuple[_Node, Closing | None]:
        """What an outermost call of a task is put into, and the task's transaction that ends with it."""
        assert self._tracker is not None
        if (thread, task) not in self._held_of_tasks and len(self._held_of_tasks) >= self._waiting_at_most:
            self._let_tasks_go()
        step = self._tracker.step_of_task(thread, task, call)
        if step.before:  # one begins
            self._let_task_go(thread, task)
            self._held_of_tasks[thread, task] = _Node((), 0)
        return self._held_of_tasks.get((thread, task)) or self._hold(thread), step.after

    def _close_of_task(self, thread: int, task: int, closing: Closing) -> None:
        """Put the held calls of a task under its transaction, which is inside of what its thread is in."""
        held, into = self._held_of_tasks.get((thread, task)), self._hold(thread)
        if held and into is not self._root and not is_pseudo(closing.name):
            node = self._node(into, self._key_of(thread), closing.name)
            cpu_ns = min(sum(each.figures[_CPU] for each in held.inner.values()), closing.wall_ns)
            self._add_closing(node, closing._replace(cpu_ns=cpu_ns))
            self._take_over(node, self._held_of_tasks.pop((thread, task)))
        self._let_task_go(thread, task)

    def _let_task_go(self, thread: int, task: int) -> None:
        """Have the held calls of a task be in no transaction of its own."""
        if held := self._held_of_tasks.pop((thread, task), None):
            self._take_over(self._hold(thread), held)

    def _let_tasks_go(self) -> None:
        assert self._tracker is not None
        self._tracker.forget_tasks()
        for thread, task in sorted(self._held_of_tasks):
            self._let_task_go(thread, task)

    def _serve(self, thread: int, since_ns: int) -> None:
        """Let commits of a thread's tasks end no transactions from `since_ns` on: a call of the thread that is a
        transaction started then."""
        assert self._tracker is not None
        if self._tracker.is_serving(thread):
            return
        self._tracker.serve(thread, since_ns)
        for key in sorted(key for key in self._held_of_tasks if key[0] == thread):
            self._let_task_go(*key)
        held = self._held.get(thread)
        for node in list(held.inner.values()) if held else ():
            if held and node.name & ~NUMBER == BY_STACK and node.figures[_LAST] > since_ns:  # what a task committed
                del held.inner[node.key, node.name]
                self._left += 1
                self._take_over(held, node)

    def _node(self, into: _Node, key: Key, name: int) -> _Node:
        """The record of `key` inside of `into`; the one for all that is too much where there are too many."""
        node = into.inner.get((key, name))
        if node is None and self._is_detailed(key, name):
            if self._detailed_left <= 0:
                self._fold()
            if self._detailed_left > 0 and self._left > 0:
                self._detailed_left -= 1
            else:
                key, name = self._without_detail(key, name)
                node = into.inner.get((key, name))
        if node is None:
            if self._left <= 0:
                self.is_full = True
                into, key, name = self._root, (0,) * len(key), 0
                node = into.inner.get((key, name))
            if node is None:
                self._left -= 1
                node = into.inner[key, name] = _Node(key, name, self._enough)
        return node

    def _fold(self) -> None:
        """Have the records with details that have few calls and little time be OTHER: the deepest first, so that what
        is the same then does not depend on the order."""
        holders = [self._root, *self._awaited.values(), *self._held.values(), *self._held_of_tasks.values()]
        holders += [self._ended] if self._ended else []
        around = list(holders)
        for each in around:  # which grows: each record comes after the one around it
            around += each.inner.values()
        detailed = [each for each in around[len(holders) :] if self._is_detailed(each.key, each.name)]
        if not detailed:
            return
        kept = min(self._kept, len(detailed) - 1)
        calls, walls = zip(*map(_rank, detailed), strict=True)
        self._enough = sorted(calls, reverse=True)[kept], sorted(walls, reverse=True)[kept]
        few = {id(each) for each in detailed if not self._is_more(*_rank(each))}
        for each in reversed(around):
            for inner in [inner for inner in each.inner.values() if id(inner) in few]:
                self._fold_one(each, inner)

    def _is_more(self, calls: int, wall_ns: int) -> bool:
        return calls > self._enough[0] or wall_ns > self._enough[1]

    def _fold_one(self, around: _Node, node: _Node) -> None:
        del around.inner[node.key, node.name]
        self._detailed_left += 1
        key, name = self._without_detail(node.key, node.name)
        into = around.inner.get((key, name))
        if into is None:
            node.key, node.name = key, name
            around.inner[key, name] = node
        else:
            self._left += 1
            into.add(node)
            self._take_over(into, node)

    def _is_detailed(self, key: Key, name: int) -> bool:
        """Whether a record has a detail of its own."""
        of_key = self._detail is not None and key[self._detail] not in (0, OTHER)
        return of_key or _is_own_name(name)

    def _without_detail(self, key: Key, name: int) -> tuple[Key, int]:
        if self._detail is not None and key[self._detail]:
            key = (*key[: self._detail], OTHER, *key[self._detail + 1 :])
        return key, BY_DETAIL | OTHER if _is_own_name(name) else name

    def _take_over(self, into: _Node, given: _Node) -> None:
        fewer = into.take_over(given)
        self._left += len(fewer)
        self._detailed_left += sum(self._is_detailed(*likeness) for likeness in fewer)

    def _hold(self, thread: int) -> _Node:
        """What holds the records of the transaction that `thread` is in."""
        held = self._held.get(thread)
        if held is None:
            if len(self._held) >= self._waiting_at_most:
                return self._root
            held = self._held[thread] = _Node((), 0)
        return held

    def _close(self, thread: int, closing: Closing) -> None:
        """Put the held calls of `thread` under its transaction, which adds one."""
        node = self._node(self._root, self._key_of(thread), closing.name)
        held = self._held.pop(thread, None)
        if held:
            self._take_over(node, held)
        self._add_closing(node, closing)

    def _key_of(self, thread: int) -> Key:
        """The key of the transactions of `thread`."""
        return tuple(thread if is_thread else 0 for is_thread in self._of_transaction)

    def _add_closing(self, node: _Node, closing: Closing) -> None:
        """Add the figures of a transaction."""
        response = closing.wall_ns - closing.think_wall_ns
        response_cpu = closing.cpu_ns - closing.think_cpu_ns
        figures = [closing.times, 0, closing.wall_ns, closing.cpu_ns, 0, 0, 0]
        figures += [closing.start_ns, closing.start_ns + closing.wall_ns]
        spread = [response, response, response_cpu, response_cpu] if closing.times else [MOST, 0, MOST, 0]
        figures += [*spread, closing.think_wall_ns, closing.think_cpu_ns]
        node.put(figures)
        if self._histograms and closing.times:
            node.count(response, response_cpu)

    def _add_unended(self, unended: Unended) -> None:
        """Attach the calls inside a transaction in progress to that transaction, so that they are not outermost."""
        assert self._tracker is not None
        thread = unended.thread
        inside = {call: self._awaited.pop((thread, call), None) for call, _, _ in unended.calls}
        name = unended.name({call: node.name for call, node in inside.items() if node})
        held = self._held.get(thread)
        closings = self._tracker.end_unended(unended, name, bool(held and held.told[0] & BUSY))
        if closings:
            self._close(thread, closings[0])
        for node in inside.values():
            if node:
                self._take_over(self._hold(thread), node)
        if closings:
            self._close(thread, closings[1])

    def _let_go(self) -> None:
        """Have all that still waits for the call around it inside of nothing but the transaction of its thread."""
        for (thread, _), node in sorted(self._awaited.items(), key=lambda item: item[0]):
            into = self._hold(thread) if self._tracker else self._root
            self._take_over(into, node)
        self._awaited.clear()


def _rank(node: _Node) -> tuple[int, int]:
    """How many calls a record may have had, and how much wall time."""
    calls, wall_ns = node.figures[_CALLS] + node.before[0], node.figures[_WALL] + node.before[1]
    return min(calls, MOST), min(wall_ns, MOST)


def _is_own_name(name: int) -> bool:
    """Whether the name of a transaction is a detail."""
    return name & ~OTHER == BY_DETAIL and name != BY_DETAIL | OTHER


def _told(
    awaited: _Node | None, role: int, wall: int, cpu: int, stack: int, detail: int, intrinsic: int
) -> tuple[list[int], int]:
    """What a call and those inside of it mean for transactions, and what name they would give one."""
    told, name = (list(awaited.told), awaited.name) if awaited else ([0, 0, 0, 0], 0)
    if role & SPAN:
        if role & MARKED or name in (0, IDLE):
            name = BY_DETAIL | detail if detail else BY_INTRINSIC | intrinsic
        return [told[0] & BUSY | BUSY, told[1], told[2], told[3]], name
    if role & READS:
        return [role & (READS | KEYS), wall, cpu, stack], name
    if role & NAMES:
        return [told[0] | NAMES, *told[1:]], BY_DETAIL | detail if detail else IDLE
    told[0] |= role & (BEGINS | ENDS | BUSY | ASKS | AFRESH | DROPS)
    if role & (BEGINS | ENDS):
        told[3] = stack
    return told, name


def _tell(into: _Node, told: list[int], name: int) -> None:
    """Add what a call means for transactions to what those beside it do."""
    into.told[0] |= told[0]
    into.told[1] = min(into.told[1] + told[1], MOST)
    into.told[2] = min(into.told[2] + told[2], MOST)
    into.told[3] = told[3] or into.told[3]
    into.name = name or into.name
