"""From events to sums by key: the plain reducer, which is the reference, or the compiled one."""

from __future__ import annotations

from typing import Protocol

from interpose.analysis.sums import KEYS_AT_MOST, LATEST_NS, LONGEST_NS, MEASURED, MOST, Sums
from interpose.experiments.layout import Bytes, Layout
from interpose.experiments.process import Process

Key = tuple[int, ...]


class Reducer(Protocol):
    """Adds up events by key, in memory bounded by the number of distinct keys."""

    def __init__(self, layout: Layout, by: tuple[str, ...]) -> None: ...

    @property
    def impossible(self) -> int:
        """Events left out because they cannot be: more CPU than wall time, years long, in the far future."""

    def add(self, events: Bytes) -> None:
        """Add each event in `events`, which must be whole records."""

    def sums(self) -> dict[Key, tuple[int, ...]]:
        """The sums of each key: the numbers of `Sums`, in its order."""


class PlainReducer:
    """Sums of events by the fields `by`, of which there are up to four."""

    def __init__(self, layout: Layout, by: tuple[str, ...]) -> None:
        if len(by) > KEYS_AT_MOST:
            raise ValueError(f"at most {KEYS_AT_MOST} keys")
        self._pick = layout.unsigned((*MEASURED, *by)).picker((*MEASURED, *by))
        self._sums: dict[Key, list[int]] = {}
        self.impossible = 0

    def add(self, events: Bytes) -> None:
        """Add each event in `events`, which must be whole records."""
        of_key = self._sums
        measured = len(MEASURED)
        for values in self._pick.many(events):
            start, wall, cpu, inner_wall, inner_cpu, moved, parent, error = values[:measured]
            if wall > LONGEST_NS or cpu > wall or start > LATEST_NS:
                self.impossible += 1
                continue
            sums = of_key.get(values[measured:])
            if sums is None:
                sums = of_key[values[measured:]] = [0, 0, 0, 0, 0, 0, 0, 0, start, 0]
            sums[0] += 1
            sums[2] += wall
            sums[3] += cpu
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
        return {key: tuple(min(number, MOST) for number in numbers) for key, numbers in self._sums.items()}


def fastest_reducer() -> type[Reducer]:
    """The compiled reducer, or the plain one where nothing is compiled."""
    try:
        from interpose.analysis.reducer import CompiledReducer
    except ImportError:
        return PlainReducer
    return CompiledReducer


def reduce_events(
    process: Process, by: tuple[str, ...], reducer: type[Reducer] | None = None
) -> dict[Key, Sums]:
    """The sums of the events of `process` by the fields `by`; what cannot be is left out and noted."""
    if process.events is None:
        return {}
    reducing = (reducer or fastest_reducer())(process.events.layout, by)
    for block in process.events.blocks():
        reducing.add(block.events)
    if reducing.impossible:
        process.damages.add(f"{process.place}/events", f"{reducing.impossible} events that cannot be")
    return {key: Sums(*numbers) for key, numbers in reducing.sums().items()}
