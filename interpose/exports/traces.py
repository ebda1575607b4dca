"""Which trace a call is in: that of the outermost transaction around it, as the numbers of the calls around it say.

A call has the trace of its parent, so that a span and its parent are never in two traces. The task of a call does not
count: the interpreter lock is waited for in no task, and `asyncio.run` within a transaction begins tasks of its own.
Work that another thread does for a transaction came with a span of the process itself: it has the trace of that one.
"""

from __future__ import annotations

from array import array
from collections.abc import Callable, Container, Iterable, Mapping
from functools import lru_cache

from interpose.experiments.format.trace_contexts import TraceContext

_BITS = 10  # of a call's number: the calls whose parents are kept together
_KEPT = 1 << 16
_INSIDE = 4  # a server, and the layers of a framework


class Traces:
    """The transactions of a process, and the calls inside them; False if there are none."""

    def __init__(self) -> None:
        self._parents: dict[tuple[int, int], array[int]] = {}
        self._transactions: dict[tuple[int, int], tuple[int, int]] = {}
        self._inside: dict[tuple[int, int], tuple[tuple[int, int], ...]] = {}
        self._came_in: dict[tuple[int, int], TraceContext] = {}
        self._works_for: dict[tuple[int, int], tuple[int, int]] = {}
        self._outermost_at = lru_cache(_KEPT)(self._find_outermost)

    def __bool__(self) -> bool:
        return bool(self._transactions)

    def add(self, calls: Iterable[tuple[int, ...]], transactions: Container[int]) -> None:
        """Add calls (intrinsic, thread, call, parent, detail). Those of `transactions` are transactions."""
        for intrinsic, thread, call, parent, detail in calls:
            if intrinsic in transactions:
                self._transactions[thread, call] = intrinsic, detail
            if parent:
                place = thread, call >> _BITS
                if place not in self._parents:
                    self._parents[place] = array("I", bytes(4 << _BITS))
                self._parents[place][call & (1 << _BITS) - 1] = parent

    def settle(
        self, contexts: Mapping[tuple[int, int], TraceContext], call_of: Callable[[str], tuple[int, int]]
    ) -> None:
        """After all calls were added, add what came with requests; `call_of` finds thread and call of a span. What came
        with a call inside counts for the outermost transaction around it, if nothing came with that one."""
        for thread, call in sorted(self._transactions):
            outermost = thread, self._outermost_at(thread, call)
            if (thread, call) in contexts:
                self._add_context(outermost, contexts[thread, call], call_of)
            before = self._inside.get(outermost, ())
            if outermost[1] != call and len(before) < _INSIDE:
                self._inside[outermost] = (*before, self._transactions[thread, call])

    def _add_context(
        self, outermost: tuple[int, int], context: TraceContext, call_of: Callable[[str], tuple[int, int]]
    ) -> None:
        thread, call = call_of(context.parent)
        around = thread, self._outermost_at(thread, call)
        if outermost in self._came_in or around == outermost:
            return
        self._came_in[outermost] = context
        if around[1]:
            self._works_for[outermost] = around

    def inside(self, thread: int, transaction: int) -> tuple[tuple[int, int], ...]:
        """Intrinsic and detail of the first few transactions in an outermost one."""
        return self._inside.get((thread, transaction), ())

    def outermost(self, thread: int, call: int, parent: int) -> int:
        """The number of the outermost transaction that a call is, or is in; 0 if there is none."""
        around = self._outermost_at(thread, parent) if parent else 0
        return around or (call if (thread, call) in self._transactions else 0)

    def first(self, thread: int, transaction: int) -> tuple[int, int]:
        """Thread and call of the transaction whose trace an outermost transaction has: its own, or that of the one it
        does work for, perhaps in several steps."""
        found = thread, transaction
        seen = set()
        while found in self._works_for and found not in seen:
            seen.add(found)
            found = self._works_for[found]
        return found

    def came_in(self, thread: int, transaction: int) -> TraceContext | None:
        """What came with an outermost transaction's request."""
        return self._came_in.get((thread, transaction))

    def _find_outermost(self, thread: int, call: int) -> int:
        found = 0
        while call:
            found = call if (thread, call) in self._transactions else found
            parents = self._parents.get((thread, call >> _BITS))
            parent = parents[call & (1 << _BITS) - 1] if parents else 0
            call = parent if parent < call else 0  # a parent began earlier; numbers of damaged events are in no order
        return found
