"""From events to sums by key: the plain reducer, which is the reference, or the compiled one."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Protocol

from interpose.analysis.sums import (
    KEYS_AT_MOST,
    LATEST_NS,
    LONGEST_NS,
    MEASURED,
    MOST,
    UNSETTLED_AT_MOST,
    Sums,
)
from interpose.experiments.blocks import Block
from interpose.experiments.labels import Window, is_in
from interpose.experiments.layout import Bytes, Layout
from interpose.experiments.process import Process

Key = tuple[int, ...]
GroupOf = Callable[[Key], int]


class Reducer(Protocol):
    """Adds up events by key, in memory bounded by the number of distinct keys.

    Keys for which `group_of` gives the same number are one group; without it each is its own. A call adds to
    the inclusive times of its key unless it was made inside another call of its group. That is known when the
    outermost call has come: a thread's events must come in the order of their ends. Where its outer call
    never comes (it is in progress, or was lost), a call counts as an outermost one; so do all that still wait
    when more than `UNSETTLED_AT_MOST` keys do, as they do in no program.
    """

    def __init__(self, layout: Layout, by: tuple[str, ...], group_of: GroupOf | None = None) -> None: ...

    @property
    def impossible(self) -> int:
        """Events left out because they cannot be: more CPU than wall time, years long, in the far future."""

    def add(self, events: Bytes) -> None:
        """Add each event in `events`, which must be whole records."""

    def sums(self) -> dict[Key, tuple[int, ...]]:
        """The sums of each key: the numbers of `Sums`, in its order."""


class PlainReducer:
    """Sums of events by the fields `by`, of which there are up to four."""

    def __init__(
        self,
        layout: Layout,
        by: tuple[str, ...],
        group_of: GroupOf | None = None,
        unsettled_at_most: int = UNSETTLED_AT_MOST,
    ) -> None:
        if len(by) > KEYS_AT_MOST:
            raise ValueError(f"at most {KEYS_AT_MOST} keys")
        self._pick = layout.unsigned((*MEASURED, *by)).picker((*MEASURED, *by))
        self._sums: dict[Key, list[int]] = {}
        self._group_of = group_of
        self._groups: dict[Key, int | Key] = {}
        # By thread and number of a call that has not come: what the calls inside it took, by key.
        self._unsettled: dict[tuple[int, int], dict[Key, list[int]]] = {}
        self._unsettled_keys = 0
        self._unsettled_at_most = unsettled_at_most
        self.impossible = 0

    def add(self, events: Bytes) -> None:
        """Add each event in `events`, which must be whole records."""
        of_key = self._sums
        measured = len(MEASURED)
        for values in self._pick.many(events):
            start, wall, cpu, inner_wall, inner_cpu, moved, parent, error, call, thread = values[:measured]
            if wall > LONGEST_NS or cpu > wall or start > LATEST_NS:
                self.impossible += 1
                continue
            key = values[measured:]
            sums = of_key.get(key)
            if sums is None:
                sums = of_key[key] = [0, 0, 0, 0, 0, 0, 0, 0, start, 0]
                self._groups[key] = self._group_of(key) if self._group_of else key
            if parent or self._unsettled:
                self._put_inside((thread, call), (thread, parent), key, wall, cpu)
            else:
                sums[2] += wall
                sums[3] += cpu
            sums[0] += 1
            sums[4] += wall - inner_wall if wall > inner_wall else 0
            sums[5] += cpu - inner_cpu if cpu > inner_cpu else 0
            sums[6] += moved
            if error:
                sums[1] += 1
            if not parent:
                sums[7] += cpu
            if start < sums[8]:
                sums[8] = start
            if start + wall > sums[9]:
                sums[9] = start + wall

    def sums(self) -> dict[Key, tuple[int, ...]]:
        """The sums of each key: the numbers of `Sums`, in its order."""
        self._settle()
        return {key: tuple(min(number, MOST) for number in numbers) for key, numbers in self._sums.items()}

    def _put_inside(
        self, call: tuple[int, int], outer: tuple[int, int], key: Key, wall: int, cpu: int
    ) -> None:
        """Put `call` and what was inside it into `outer`, without what was of its own group."""
        inside = self._unsettled.pop(call, {})
        self._unsettled_keys -= len(inside)
        group = self._groups[key]
        left = {each: times for each, times in inside.items() if self._groups[each] != group}
        left[key] = [wall, cpu]
        if outer[1]:
            into = self._unsettled.setdefault(outer, {})
            before = len(into)
            for each, times in left.items():
                _add_times(into.setdefault(each, [0, 0]), times)
            self._unsettled_keys += len(into) - before
        else:
            self._count(left)
        if self._unsettled_keys > self._unsettled_at_most:
            self._settle()

    def _settle(self) -> None:
        """Count all that still waits for its outer call."""
        for inside in self._unsettled.values():
            self._count(inside)
        self._unsettled.clear()
        self._unsettled_keys = 0

    def _count(self, outermost: dict[Key, list[int]]) -> None:
        for key, (wall, cpu) in outermost.items():
            self._sums[key][2] += wall
            self._sums[key][3] += cpu


def _add_times(into: list[int], times: list[int]) -> None:
    into[0] += times[0]
    into[1] += times[1]


def _begun_in(label: Sequence[Window], block: Block, layout: Layout) -> Bytes:
    """Those events of `block` that began in one of the windows."""
    first_ns, last_ns = block.head.first_ns, block.head.last_ns
    if any(window.start_ns <= first_ns and last_ns < window.stop_ns for window in label):
        return block.events
    if not any(window.start_ns <= last_ns and first_ns < window.stop_ns for window in label):
        return b""
    size = layout.record_bytes
    starts = layout.picker(("start_ns",)).many(block.events)
    wanted = [number for number, (start_ns,) in enumerate(starts) if is_in(label, start_ns)]
    return b"".join(bytes(block.events[number * size : (number + 1) * size]) for number in wanted)


def fastest_reducer() -> type[Reducer]:
    """The compiled reducer, or the plain one where nothing is compiled."""
    try:
        from interpose.analysis.reducer import CompiledReducer
    except ImportError:
        return PlainReducer
    return CompiledReducer


def reduce_events(
    process: Process,
    by: tuple[str, ...],
    reducer: type[Reducer] | None = None,
    group_of: GroupOf | None = None,
    label: Sequence[Window] | None = None,
) -> dict[Key, Sums]:
    """The sums of the events of `process` by the fields `by`, of a label those that began in it.

    What cannot be is left out and noted.
    """
    if process.events is None:
        return {}
    reducing = (reducer or fastest_reducer())(process.events.layout, by, group_of)
    for block in process.events.blocks():
        reducing.add(block.events if label is None else _begun_in(label, block, process.events.layout))
    if reducing.impossible:
        process.damages.add(f"{process.place}/events", f"{reducing.impossible} events that cannot be")
    return {key: Sums(*numbers) for key, numbers in reducing.sums().items()}
