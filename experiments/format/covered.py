"""What statement coverage saw in one process: code objects that ran, their places and their branches."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import NamedTuple

from interpose.experiments.format.records import BranchRecord, CoveredRecord, PlaceRecord
from interpose.experiments.format.tables import RecordTable
from interpose.experiments.model.process import Process

COVERED_TABLES = ("covered", "places", "branches")
LEFT_OUT = 2  # the kind of what counts code objects for which there was no room
# How much is read; the rest is ignored, and noted.
CODES_AT_MOST = 1_000_000
PLACES_AT_MOST = 10_000_000
BRANCHES_AT_MOST = 10_000_000


@dataclass(frozen=True)
class Code:
    """A code object that ran, in one context (empty if none was given)."""

    record: CoveredRecord
    file: str
    function: str
    module: str
    context: str


class Point(NamedTuple):
    """Where a place of a code object begins: its line, and its column in bytes of UTF-8 from 1, or 0 if unknown."""

    line: int
    column: int


class Jump(NamedTuple):
    """One way out of a condition: from where, to where (None: out of the code), and whether it was taken."""

    origin: Point
    target: Point | None
    was_gone: bool


class Covered:
    """The coverage of a process: `codes` by number; its places and jumps are read as they are asked for.

    `left_out` is how many code objects there was no room for.
    """

    def __init__(self, process: Process) -> None:
        self.process = process
        self.codes: dict[int, Code] = {}
        self.left_out = 0
        table: RecordTable[CoveredRecord] | None = process.raw_table("covered")
        for number, record, _ in table.bounded(CODES_AT_MOST) if table else ():
            if record.kind == LEFT_OUT:
                self.left_out += record.places
            elif record.kind:
                self.codes[number] = _code(process, record)

    def places(self) -> Iterator[tuple[Code, Point, bool]]:
        """Each place, its code, and whether it was executed."""
        for _, record in self._places():
            if code := self.codes.get(record.code):
                yield code, Point(record.line, record.column), bool(record.executed)

    def jumps(self) -> Iterator[tuple[Code, Jump]]:
        """Each way out of each condition. A condition without a known place has none."""
        table: RecordTable[BranchRecord] | None = self.process.raw_table("branches") if self.codes else None
        points: dict[int, Point] = {}
        for _, record, _ in table.bounded(BRANCHES_AT_MOST) if table else ():
            points = points or {number: Point(place.line, place.column) for number, place in self._places()}
            code, origin = self.codes.get(record.code), points.get(record.origin)
            if code is None or origin is None:
                continue
            for target, was_gone in ((record.next, record.went_next), (record.other, record.went_other)):
                if target == 0 or target in points:
                    yield code, Jump(origin, points.get(target), bool(was_gone))

    def _places(self) -> Iterator[tuple[int, PlaceRecord]]:
        table: RecordTable[PlaceRecord] | None = self.process.raw_table("places") if self.codes else None
        for number, record, _ in table.bounded(PLACES_AT_MOST) if table else ():
            if record.code:
                yield number, record


def _code(process: Process, record: CoveredRecord) -> Code:
    names = (record.function, record.module, record.context)
    return Code(record, process.file_name(record.file), *(process.string(number) for number in names))
