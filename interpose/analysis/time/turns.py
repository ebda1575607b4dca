"""Turns of event loops (asyncio, trio, twisted) that took long, and the calls in them.

The loop waits in its selector once a turn, and runs a task at most once a turn. So between two calls of a task in one
turn nothing else ran. Of a loop whose waits are not recorded, each long call that was never suspended counts as a turn.
"""

from __future__ import annotations

from bisect import bisect_right
from collections import defaultdict
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from itertools import islice
from typing import NamedTuple

from interpose.analysis.consolidation.records import Records
from interpose.experiments.format.records import BlockHead
from interpose.experiments.model.process import Process
from interpose.kinds import NATIVE

# asyncio itself warns from 100 ms on (`slow_callback_duration`). What takes half of it, others notice when it is often.
LONG_NS = 50_000_000
# Reading more would take longer than a user wants to wait for a report; the beginning shows the pattern.
EVENTS_AT_MOST = 500_000
POLL_OF_UVLOOP = "uvloop.Loop.poll"
LOOPS_IN_C = frozenset((POLL_OF_UVLOOP, "gevent.hub.Loop.poll"))
SELECTORS = LOOPS_IN_C | {"select.epoll.poll", "select.poll.poll", "select.select", "select.kqueue.control"}
# Of the C library: these wait for whatever comes first.
NATIVE_SELECTORS = frozenset(
    NATIVE + name for name in ("poll", "__poll_chk", "ppoll", "select", "pselect", "epoll_wait", "epoll_pwait")
)
_LIBRARY_OF_UVLOOP = "loop."  # and what its extension module's file is called further
_LOOPS = ("_run_once", "IOManager.get_events", ".doPoll", ".doSelect")  # of asyncio, trio and twisted
_FRAMES_OF_LOOP = 4
_GREENLETS = ("gevent.", "eventlet.", "greenlet.")


class Call(NamedTuple):
    """The fields that are read of an event, in the order of the file, which is fastest."""

    start_ns: int
    start_cpu_ns: int
    wall_ns: int
    cpu_ns: int
    inner_wall_ns: int
    thread: int
    parent: int
    intrinsic: int
    stack: int
    detail: int
    error: int
    task: int

    @property
    def end_ns(self) -> int:
        """When it ended."""
        return self.start_ns + self.wall_ns

    @property
    def end_cpu_ns(self) -> int:
        """The thread's CPU time then, of a call that was not suspended."""
        return self.start_cpu_ns + self.cpu_ns


_WALL, _THREAD, _INTRINSIC, _STACK = (
    Call._fields.index(name) for name in ("wall_ns", "thread", "intrinsic", "stack")
)
PLACE = slice(_INTRINSIC, _STACK + 1)
Wanted = Callable[[tuple[int, ...]], bool]
Wait = tuple[int, int]  # intrinsic and stack


@dataclass
class Turn:
    """A long turn of a loop: between two of its waits, or one long call. `cpu_ns` is the CPU time of its thread.

    `calls` are those that began or ended in it.
    """

    thread: int
    start_ns: int
    end_ns: int
    cpu_ns: int
    calls: list[Call] = field(default_factory=list)


def long_turns(process: Process, records: Records) -> tuple[list[Turn], list[Call]]:
    """The long turns of the process's loops, each with its calls, and the awaited calls that may have spanned one.

    `records` tell, by stack, which calls are a loop's waits; without events there are no turns.
    """
    if process.log.interval_ns or not has_tasks(process, records):
        return [], []
    waits = waits_of_loops(process, records)
    reading = _Turns(process, waits)
    for call in calls_of(process, reading.is_wanted):
        reading.add(call)
    turns = reading.turns()
    if turns:
        _put_calls(turns, process, waits)
    return turns, reading.long


def waits_of_loops(process: Process, records: Records) -> set[Wait]:
    """The intrinsics and stacks by which loops waited in their selectors."""
    return {each for each in _made(process, records, SELECTORS) if _is_in_loop(process, *each)}


def native_waits_of_loops(process: Process, records: Records) -> set[Wait]:
    """The intrinsics and stacks by which loops of uvloop waited, where their native calls were recorded instead."""
    if not any(each.name == POLL_OF_UVLOOP for each in process.intrinsics):
        return set()
    return {each for each in _made(process, records, NATIVE_SELECTORS) if _is_by_uvloop(process, each[1])}


def _made(process: Process, records: Records, names: frozenset[str]) -> set[Wait]:
    intrinsic, stack = (records.by.index(name) for name in ("intrinsic", "stack"))
    made = {(each.key[intrinsic], each.key[stack]) for each in records.calls()}
    wanted = {number for number in {number for number, _ in made} if process.intrinsic(number).name in names}
    return {each for each in made if each[0] in wanted}


def _is_by_uvloop(process: Process, stack: int) -> bool:
    return any(each.is_native and each.file.startswith(_LIBRARY_OF_UVLOOP) for each in islice(process.frames(stack), 1))


def _is_in_loop(process: Process, number: int, stack: int) -> bool:
    if process.intrinsic(number).name in LOOPS_IN_C:
        return True
    return any(frame.function.endswith(_LOOPS) for frame in islice(process.frames(stack), _FRAMES_OF_LOOP))


def has_events(process: Process) -> bool:
    """Whether single events were kept."""
    return process.events is not None and next(process.events.heads(), None) is not None


def has_tasks(process: Process, records: Records) -> bool:
    """Whether coroutines were suspended, and no greenlets, which are tasks as well."""
    return any(each.suspended_ns for each in records.calls()) and not has_greenlets(process, records)


def has_greenlets(process: Process, records: Records) -> bool:
    """Whether greenlets took turns. A loop of theirs may run one several times a turn."""
    place = records.by.index("intrinsic")
    names = {process.intrinsic(number).name for number in {each.key[place] for each in records.calls()}}
    return any(name.startswith(_GREENLETS) for name in names)


def calls_of(process: Process, is_wanted: Wanted, spans: Sequence[Turn] = ()) -> Iterator[Call]:
    """The selected ones of the first EVENTS_AT_MOST events, in the order of their ends, thread by thread.

    With `spans`, in the order of their beginnings, and only those in blocks that overlap a span.
    """
    events = process.events
    if events is None:
        return
    left = EVENTS_AT_MOST
    picker = events.layout.unsigned(Call._fields).picker(Call._fields)
    for block in events.blocks():
        if not spans or _meets(block.head, spans):
            yield from map(Call._make, filter(is_wanted, picker.many(block.events)))
        left -= len(block.events) // events.layout.record_bytes
        if left <= 0:
            return


def _meets(head: BlockHead, spans: Sequence[Turn]) -> bool:
    return any(turn.start_ns <= head.last_ns and head.first_ns <= turn.end_ns for turn in spans)


class _Turns:
    """Finds the long turns among events, and keeps the long calls of tasks."""

    def __init__(self, process: Process, waits: set[Wait]) -> None:
        self._waits = waits
        self._whole = {each.number for each in process.threads if not each.record.dropped}
        self._latest: dict[int, Call] = {}
        self._turns: list[Turn] = []
        self.long: list[Call] = []

    def is_wanted(self, values: tuple[int, ...]) -> bool:
        """Whether an event is a wait of a loop, or long; others are ignored."""
        return values[_WALL] >= LONG_NS or (values[_INTRINSIC], values[_STACK]) in self._waits

    def add(self, call: Call) -> None:
        """Process the next of these events of its thread."""
        if (call.intrinsic, call.stack) in self._waits and not call.task:
            self._add_wait(call)
        elif call.task and call.wall_ns >= LONG_NS and call.thread in self._whole:
            self.long.append(call)

    def _add_wait(self, wait: Call) -> None:
        before = self._latest.get(wait.thread)
        self._latest[wait.thread] = wait
        if not before or before.stack != wait.stack or wait.thread not in self._whole:
            return
        if wait.start_ns - before.end_ns >= LONG_NS:
            cpu_ns = max(wait.start_cpu_ns - before.end_cpu_ns, 0)
            self._turns.append(Turn(wait.thread, before.end_ns, wait.start_ns, cpu_ns))

    def turns(self) -> list[Turn]:
        """The long turns, and of threads without any the long calls that were never suspended."""
        unseen = [each for each in self.long if each.thread not in self._latest and not each.inner_wall_ns]
        alone = [Turn(each.thread, each.start_ns, each.end_ns, each.cpu_ns) for each in unseen]
        return sorted(self._turns + alone, key=lambda turn: (turn.thread, turn.start_ns))


def _put_calls(turns: list[Turn], process: Process, waits: set[Wait]) -> None:
    """Put each call into the turn that it began or ended in."""
    of_thread: dict[int, list[Turn]] = defaultdict(list)
    for turn in turns:
        of_thread[turn.thread].append(turn)
    starts = {thread: [turn.start_ns for turn in mine] for thread, mine in of_thread.items()}

    def is_wanted(values: tuple[int, ...]) -> bool:
        return values[_THREAD] in starts and (values[_INTRINSIC], values[_STACK]) not in waits

    for call in calls_of(process, is_wanted, turns):
        mine = of_thread[call.thread]
        around = [_turn_at(mine, starts[call.thread], at_ns) for at_ns in (call.start_ns, call.end_ns)]
        for found in around[: 1 if around[0] is around[1] else 2]:
            if found:
                found.calls.append(call)


def _turn_at(turns: list[Turn], starts: list[int], at_ns: int) -> Turn | None:
    place = bisect_right(starts, at_ns) - 1
    return turns[place] if place >= 0 and at_ns <= turns[place].end_ns else None
