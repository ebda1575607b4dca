"""What no field of a record exceeds. Damage makes values that do: readers leave such records out, and note the count.

Records have no checksum, as they are changed in place while the program runs: a wrong value that is possible is not
recognised.
"""

from __future__ import annotations

from collections.abc import Iterator
from operator import gt
from typing import Generic, NamedTuple

from interpose.experiments.format.layout import Field, Layout, Record
from interpose.experiments.format.possible import LATEST_NS, LONGEST_NS, MOST_BYTES, MOST_THREADS
from interpose.experiments.format.records import (
    BranchRecord,
    ChildRecord,
    CountRecord,
    CoveredRecord,
    FunctionRecord,
    HeapRecord,
    HeapSiteRecord,
    LineRecord,
    LoopRecord,
    MemoryRecord,
    Overview,
    PlaceRecord,
    SampledCountRecord,
    SampleRecord,
    TaskRecord,
    TraceRecord,
)

COUNTED_AT_MOST = 1 << 50  # nothing is counted one by one so often in years
_FLAG, _TICKS = 1, 2**62

LIMITS: dict[type[NamedTuple], dict[str, int]] = {
    BranchRecord: {"went_next": _FLAG, "went_other": _FLAG},
    ChildRecord: {"start_ns": LATEST_NS, "end_ns": LATEST_NS, "how": 4, "usage": 2, "cpu_ns": LONGEST_NS},
    CountRecord: {"counted": COUNTED_AT_MOST},
    CoveredRecord: {"kind": 2, "own": _FLAG, "has_columns": _FLAG, "start_ns": LATEST_NS},
    FunctionRecord: {"kind": 2, "own": _FLAG, "thread": MOST_THREADS, "calls": COUNTED_AT_MOST, "ticks": _TICKS},
    HeapRecord: {"start_ns": LATEST_NS, "end_ns": LATEST_NS, "peak_ns": LATEST_NS, "peaks": COUNTED_AT_MOST}
    | {"every_bytes": MOST_BYTES, "live_bytes": MOST_BYTES, "peak_bytes": MOST_BYTES},
    HeapSiteRecord: {"used": 2, "bytes": MOST_BYTES, "freed_bytes": MOST_BYTES, "peak_bytes": MOST_BYTES}
    | {"allocations": COUNTED_AT_MOST, "frees": COUNTED_AT_MOST, "last_ns": LATEST_NS},
    LineRecord: {"executed": COUNTED_AT_MOST, "back": COUNTED_AT_MOST, "ticks": _TICKS, "system_ns": LONGEST_NS},
    LoopRecord: {"passes": COUNTED_AT_MOST, "by_back": _FLAG},
    MemoryRecord: {"time_ns": LATEST_NS, "resident_bytes": MOST_BYTES, "thread": MOST_THREADS},
    Overview: {"time_ns": LATEST_NS, "kind": 4, "cpu_ns": LONGEST_NS, "run_delay_ns": LONGEST_NS}
    | {"max_rss_bytes": MOST_BYTES},
    PlaceRecord: {"executed": _FLAG},
    SampledCountRecord: {"kind": 3, "counted": MOST_BYTES, "thread": MOST_THREADS},
    SampleRecord: {"time_ns": LATEST_NS, "last_ns": LATEST_NS, "cpu_ns": LONGEST_NS, "run_delay_ns": LONGEST_NS}
    | {"thread": MOST_THREADS, "state": 4},
    TaskRecord: {"thread": MOST_THREADS},
    TraceRecord: {"start_ns": LATEST_NS, "end_ns": LATEST_NS, "last_ns": LATEST_NS, "system": _FLAG}
    | {"on_ns": LONGEST_NS, "user_ns": LONGEST_NS, "system_ns": LONGEST_NS},
}


class Limits(Generic[Record]):
    """Finds the impossible ones among records of one kind, packed by a layout."""

    def __init__(self, layout: Layout, record: type[Record]) -> None:
        limits = {name: most for name, most in LIMITS.get(record, {}).items() if name in layout.fields}
        self._record_bytes = layout.record_bytes
        self._picker, self._most = layout.picker(tuple(limits)), tuple(limits.values())
        self._surely = [each for name, most in limits.items() for each in _surely_possible(layout.fields[name], most)]

    def impossible(self, data: bytes) -> list[int]:
        """The positions of the impossible ones in `data`, which must be whole records."""
        if self._are_all_possible(data):
            return []
        return [place for place, values in enumerate(self._picker.many(data)) if any(map(gt, values, self._most))]

    def _are_all_possible(self, data: bytes) -> bool:
        """Whether none can exceed a limit, told from the highest bytes of all records at once: most data is like that,
        and to look at each record would take as long as to read it."""
        zeros = bytes(len(data) // self._record_bytes)
        for place, possible in self._surely:
            column = data[place :: self._record_bytes]
            if column != zeros and column.translate(None, possible):
                return False
        return True


def _surely_possible(field: Field, most: int) -> Iterator[tuple[int, bytes]]:
    """Places of bytes in a record, and what they may be: if all are, the field does not exceed `most`."""
    if most >> 8 * field.size_bytes:
        return
    for place in reversed(range(field.size_bytes)):
        highest, rest = divmod(most & (256 << 8 * place) - 1, 1 << 8 * place)
        yield field.offset + place, bytes(range(max(highest + (rest == (1 << 8 * place) - 1), 1)))
        if highest:
            return
