"""Which events are possible. Damage makes events that are not; every reader leaves them out, and the count is noted."""

from __future__ import annotations

from typing import Protocol

from interpose.experiments.format.layout import Bytes, Layout

LONGEST_NS = 2**56  # two years: no call is longer
LATEST_NS = 2**62
MOST_THREADS = 2**31  # threads are numbered from 1
MOST_BYTES = 2**63 - 1  # what the results of system calls and the sizes of objects have room for
JUDGED = ("start_ns", "wall_ns", "cpu_ns", "thread", "bytes")


class Judge(Protocol):
    """Tells which of the records of one layout are impossible events."""

    def __init__(self, layout: Layout) -> None: ...

    def impossible(self, events: Bytes) -> list[int]:
        """The positions of the impossible ones among `events`, which must be whole records."""


class PlainJudge:
    """The judge in Python: the reference for the compiled one."""

    def __init__(self, layout: Layout) -> None:
        self._pick = layout.unsigned(JUDGED).picker(JUDGED)

    def impossible(self, events: Bytes) -> list[int]:
        """The positions of events in the far future, years long, with more CPU than wall time, with a number that no
        thread has, or that moved more than can be moved."""
        return [
            place
            for place, (start_ns, wall_ns, cpu_ns, thread, moved) in enumerate(self._pick.many(events))
            if wall_ns > LONGEST_NS
            or cpu_ns > wall_ns
            or start_ns > LATEST_NS
            or thread > MOST_THREADS
            or moved > MOST_BYTES
        ]


def fastest_judge() -> type[Judge]:
    """The compiled judge, or the plain one if nothing is compiled."""
    try:
        from interpose.experiments.format.compiled_judge import CompiledJudge
    except ImportError:
        return PlainJudge
    return CompiledJudge
