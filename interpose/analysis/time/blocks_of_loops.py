"""What blocked event loops: the calls of tasks from one line, or the code of one task, in a long turn, and how many
tasks waited meanwhile."""

from __future__ import annotations

import heapq
from bisect import bisect_right
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import groupby
from typing import NamedTuple

from interpose.analysis.consolidation.records import Records
from interpose.analysis.time.turns import LONG_NS, Call, Turn, long_turns
from interpose.analysis.transactions.response_times import plain_name
from interpose.analysis.transactions.tracking import MARK
from interpose.experiments.model.process import Process
from interpose.experiments.model.stacks import Site

# Less of it on the processor was waiting for one, or for the interpreter lock.
COMPUTES_SHARE = 0.5
# Served requests and tasks are not causes themselves; calls inside them can be.
SERVED = "logic"
Named = tuple[str, Site | None]


@dataclass(frozen=True)
class Block:
    """What one task did in one turn of its loop for LONG_NS or more; or, without a `task`, what several tasks did at
    one line, one after another.

    `intrinsic` was called at `site`, once or more often, and `calls` has it and the calls inside, by name and own line.
    Without an intrinsic it was code that followed the call at `site`, or preceded it with `is_before`. `waiting` is the
    number of other tasks that awaited something all the time, or were due in the same turn.

    Code has the `thread` that ran most of it and from when to when, the `transaction` that it was in, if any, and if it
    was sampled, the `line`.
    """

    task: str
    intrinsic: str
    site: Site | None
    wall_ns: int
    waiting: int = 0
    calls: frozenset[Named] = frozenset()
    is_before: bool = False
    thread: int = 0
    code: tuple[int, int] = (0, 0)
    transaction: str = ""
    line: Site | None = None

    @property
    def owner(self) -> str:
        """The transaction, or else the task, that its code is of."""
        return self.transaction or self.task


class _Point(NamedTuple):
    at_ns: int
    call: Call


class _Step(NamedTuple):
    """What is known about a task in a turn: when it ran, and the first and last call, if any."""

    start_ns: int
    end_ns: int
    first: Call | None
    last: Call | None
    task: int


def blocks_of(process: Process, records: Records) -> Iterator[Block]:
    """What blocked the event loops of `process` while other tasks waited; none if its events are not kept."""
    turns, long = long_turns(process, records)
    waiting, serving = _Waiting(long), _Serving(process, long)
    for turn in turns:
        done, alike, steps = _Done(process, turn), _Alike(), list(_steps(turn))
        for place, step in enumerate(steps):
            # In a turn, a loop runs what was ready when the turn began: later tasks wait for this one.
            later = len({each.task for each in steps[place + 1 :]} - {step.task})
            count = max(waiting.during(turn.thread, step), later)
            reading = _Reading(process, done, turn.thread, step, serving)
            if count and step.end_ns - step.start_ns >= LONG_NS:
                yield from (replace(each, waiting=count) for each in reading.blocks())
            else:
                alike.add(reading, count)
        yield from alike.blocks()


def _steps(turn: Turn) -> Iterator[_Step]:
    """The tasks that ran in a turn, one after the other, each from its first to its last call in it.

    Code before the first call of the turn's first task is most likely that task's, and code behind a call is of the
    task that made it where what follows is the end of another task's await, or of the turn.
    """
    ends = [_Point(call.end_ns, call) for call in turn.calls if call.end_ns <= turn.end_ns]
    points = sorted(ends + [_Point(each.start_ns, each) for each in turn.calls if each.start_ns >= turn.start_ns])
    groups = [list(group) for _, group in groupby(points, key=lambda point: point.call.task)]
    for place, group in enumerate(groups):
        first, last = group[0], group[-1]
        if not first.call.task:
            continue
        following = groups[place + 1][0] if place + 1 < len(groups) else None
        is_first = place == 0 and first.at_ns == first.call.start_ns
        is_last = last.at_ns == last.call.end_ns and (not following or following.call.start_ns < turn.start_ns)
        end_ns = following.at_ns if following else turn.end_ns
        yield _Step(
            turn.start_ns if is_first else first.at_ns,
            end_ns if is_last else last.at_ns,
            None if is_first else first.call,
            None if is_last else last.call,
            first.call.task,
        )


class _Waiting:
    """Counts the tasks that awaited something all through a step; steps are asked for in order."""

    def __init__(self, long: Iterable[Call]) -> None:
        self._starting: dict[int, list[Call]] = defaultdict(list)
        for call in sorted(long, key=lambda call: -call.start_ns):
            self._starting[call.thread].append(call)
        self._ends: dict[int, list[tuple[int, int]]] = defaultdict(list)
        self._tasks: dict[int, Counter[int]] = defaultdict(Counter)

    def during(self, thread: int, step: _Step) -> int:
        """How many tasks other than its own began to await something before the step and went on after it."""
        starting, ends, tasks = self._starting[thread], self._ends[thread], self._tasks[thread]
        while starting and starting[-1].start_ns <= step.start_ns:
            call = starting.pop()
            heapq.heappush(ends, (call.end_ns, call.task))
            tasks[call.task] += 1
        while ends and ends[0][0] < step.end_ns:
            _, task = heapq.heappop(ends)
            tasks[task] -= 1
            if not tasks[task]:
                del tasks[task]
        return len(tasks) - (step.task in tasks)


class _Serving:
    """Names the transactions of tasks: what was blocked for long is in calls that took long."""

    def __init__(self, process: Process, long: Iterable[Call]) -> None:
        self._process = process
        self._calls: dict[tuple[int, int], list[Call]] = defaultdict(list)
        for call in sorted(long, key=lambda call: -call.wall_ns):
            if process.intrinsic(call.intrinsic).transaction == "is":
                self._calls[call.thread, call.task].append(call)

    def name(self, thread: int, task: int, at_ns: int) -> str:
        """The name of the transaction that the task was in at that instant: of what is marked in it, else of the
        innermost; empty if there is none."""
        inside = [each for each in self._calls.get((thread, task), ()) if each.start_ns <= at_ns < each.end_ns]
        marked = [each for each in inside if self._process.intrinsic(each.intrinsic).name == MARK]
        named = marked[0] if marked else inside[-1] if inside else None
        return self._name(named) if named else ""

    def _name(self, call: Call) -> str:
        detail = self._process.string(call.detail) if call.detail else ""
        return plain_name(detail or self._process.intrinsic(call.intrinsic).name)


class _Done:
    """The calls that are entirely in a turn, by task, and the CPU time outside of all of them."""

    def __init__(self, process: Process, turn: Turn) -> None:
        inside = [each for each in turn.calls if turn.start_ns <= each.start_ns and each.end_ns <= turn.end_ns]
        whole = [each for each in inside if process.intrinsic(each.intrinsic).kind != SERVED]
        self.by_task: dict[int, list[Call]] = defaultdict(list)
        for each in whole:
            self.by_task[each.task].append(each)
        self.code_cpu_ns = turn.cpu_ns - sum(each.cpu_ns for each in _outermost(whole))


class _Alike:
    """Sums the short calls from one line that several tasks made in one turn: the loop was blocked by all of them."""

    def __init__(self) -> None:
        self._blocks: dict[Named, Block] = {}

    def add(self, reading: _Reading, waiting: int) -> None:
        """Add what one task did while `waiting` others waited."""
        for block in reading.calls_by_line():
            named = (block.intrinsic, block.site)
            before = self._blocks.get(named, replace(block, task="", wall_ns=0))
            wall_ns, most = before.wall_ns + block.wall_ns, max(before.waiting, waiting)
            self._blocks[named] = replace(before, wall_ns=wall_ns, waiting=most, calls=before.calls | block.calls)

    def blocks(self) -> Iterator[Block]:
        """Those that are long together."""
        return (each for each in self._blocks.values() if each.wall_ns >= LONG_NS and each.waiting)


class _Reading:
    """Reads what a task did in a step."""

    def __init__(self, process: Process, done: _Done, thread: int, step: _Step, serving: _Serving) -> None:
        self._process = process
        self._thread = thread
        self._step = step
        self._serving = serving
        self._inside = [each for each in done.by_task[step.task] if _is_within(each, step)]
        self._outer = list(_outermost(self._inside))
        self._code_cpu_ns = done.code_cpu_ns

    def blocks(self) -> Iterator[Block]:
        """The calls from one line that took long, and the code between the calls."""
        yield from (each for each in self.calls_by_line() if each.wall_ns >= LONG_NS)
        yield from self._code()

    def calls_by_line(self) -> Iterator[Block]:
        """The calls from each line, however short."""
        for (intrinsic, site), calls in self._by_line().items():
            wall_ns = sum(each.wall_ns for each in calls)
            yield Block(self._task, intrinsic, site, wall_ns, calls=self._names_in(calls))

    @property
    def _task(self) -> str:
        return self._process.task_names.get(self._step.task, f"task {self._step.task}")

    def _named(self, call: Call) -> Named:
        return self._process.intrinsic(call.intrinsic).name, self._process.own_line(call.stack)

    def _names_in(self, outer: Sequence[Call]) -> frozenset[Named]:
        """The calls inside these calls, which follow each other, and these themselves."""
        starts = [each.start_ns for each in outer]
        around = [(each, outer[bisect_right(starts, each.start_ns) - 1]) for each in self._inside]
        return frozenset(self._named(each) for each, call in around if _is_within(each, call))

    def _by_line(self) -> dict[Named, list[Call]]:
        found: dict[Named, list[Call]] = defaultdict(list)
        for call in self._outer:
            found[self._named(call)].append(call)
        return found

    def _code(self) -> Iterator[Block]:
        step, outer = self._step, self._outer
        starts = [*(call.start_ns for call in outer), step.end_ns]
        ends = [step.start_ns, *(call.end_ns for call in outer)]
        code_ns = sum(start - end for start, end in zip(starts, ends, strict=True))
        cpu_ns = min(self._code_cpu_ns, code_ns)
        if cpu_ns < LONG_NS or cpu_ns < COMPUTES_SHARE * code_ns:
            return
        _, place = max((start - end, -place) for place, (start, end) in enumerate(zip(starts, ends, strict=True)))
        before = outer[-place - 1] if place else step.first
        after = outer[-place] if -place < len(outer) else step.last
        call = before or after
        site = self._process.own_line(call.stack) if call else None
        code = ends[-place], starts[-place]
        block = Block(self._task, "", site, cpu_ns, is_before=before is None)
        transaction = self._serving.name(self._thread, step.task, sum(code) // 2)
        yield replace(block, thread=self._thread, code=code, transaction=transaction)


def _is_within(call: Call, around: Call | _Step) -> bool:
    return around.start_ns <= call.start_ns and call.end_ns <= around.end_ns


def _outermost(calls: Sequence[Call]) -> Iterator[Call]:
    """The calls that are in no other; they follow each other."""
    latest_ns = 0
    for call in sorted(calls, key=lambda call: (call.start_ns, -call.wall_ns)):
        if call.start_ns >= latest_ns:
            latest_ns = call.end_ns
            yield call
