"""Records arranged for compression: by columns, as differences, byte by byte.

Most numbers in the events of a block are equal, or follow from others: a call has the next number, begins soon after
the previous one ended, and its CPU time is its wall time. The differences of a column are stored as planes, the lowest
bytes first; planes of zeros are left out. Arranged records are

    the first record, unchanged | a bit for each byte of a record: does its plane exist? | the existing planes

A plane has one byte for each record but the first. `transform` 1 of a compressed block is this arrangement.
"""

from __future__ import annotations

from typing import NamedTuple, Protocol

from interpose.errors import Caught
from interpose.experiments.format.layout import Bytes, Layout

# What is stored of a number, modulo the size of the field.
VALUE = 0  # the number
SAME = 1  # the bits that differ from the first record's
NEXT = 2  # how far it is from the number after the last record's, to both sides
AFTER = 3  # the signed distance from the end of the previous record; `other` holds the lengths of records
LESS = 4  # how far it is below the field `other` of the same record
BACK = 5  # the same, but 0 and a value equal to `other` change places, because 0 means none

RULES = {
    "wall_ns": (VALUE, None),
    "inner_wall_ns": (VALUE, None),
    "start_ns": (AFTER, "wall_ns"),
    "start_cpu_ns": (AFTER, "cpu_ns"),
    "cpu_ns": (LESS, "wall_ns"),
    "inner_cpu_ns": (LESS, "inner_wall_ns"),
    "call": (NEXT, None),
    "parent": (BACK, "call"),
}

_TURNS = {LESS: 1, BACK: 1, AFTER: 2}  # how long a record is may itself be less than something


class ArrangementError(Caught):
    """Bytes that are no arranged records."""


class Column(NamedTuple):
    """Bytes of each record that form one number: where they are, how many, and how they are stored.

    `other` is the offset of the field that `kind` needs; its column comes before this one.
    """

    offset: int
    size_bytes: int
    kind: int = SAME
    other: int = 0


def columns_of(layout: Layout) -> list[Column]:
    """The columns that cover every byte of a record: its fields, and the bytes between them."""
    found, end = [], 0
    for field in layout.fields.values():
        found += _gap(end, field.offset)
        kind, other = RULES.get(field.name, (SAME, None))
        needed = layout.fields.get(other) if other else None
        if other and (needed is None or needed.size_bytes != field.size_bytes):
            kind, needed = SAME, None
        found.append(Column(field.offset, field.size_bytes, kind, needed.offset if needed else 0))
        end = field.end
    found += _gap(end, layout.record_bytes)
    return sorted(found, key=lambda column: (_TURNS.get(column.kind, 0), column.offset))


def _gap(begin: int, end: int) -> list[Column]:
    return [Column(place, min(8, end - place)) for place in range(begin, end, 8)]


class Columns(Protocol):
    """Arranges records of one layout, and puts them back."""

    def __init__(self, layout: Layout) -> None: ...

    def arrange(self, records: Bytes) -> bytes:
        """The arrangement of `records`, which must be whole and at least one."""

    def restore(self, arranged: Bytes, count: int, into: bytearray) -> None:
        """Put the `count` records that were arranged, at least one, into the beginning of `into`.

        Raises ArrangementError.
        """


def most_bytes(record_bytes: int, count: int) -> int:
    """How long the arrangement of so many records is at most."""
    return record_bytes * count + (record_bytes + 7) // 8


class PlainColumns:
    """The reference, used if nothing is compiled."""

    def __init__(self, layout: Layout) -> None:
        self._columns = columns_of(layout)
        self._record_bytes = layout.record_bytes
        self._mask_bytes = (layout.record_bytes + 7) // 8

    def arrange(self, records: Bytes) -> bytes:
        """The arrangement of `records`, which must be whole and at least one."""
        size = self._record_bytes
        data = bytes(records)
        mask = bytearray(self._mask_bytes)
        planes: dict[int, bytes] = {}
        for column in self._columns:
            numbers = _said_anew(column, data, size)
            for place in range(column.size_bytes):
                plane = bytes((number >> 8 * place) & 255 for number in numbers)
                if any(plane):
                    planes[column.offset + place] = plane
                    mask[(column.offset + place) >> 3] |= 1 << ((column.offset + place) & 7)
        return b"".join([data[:size], mask, *(planes[place] for place in sorted(planes))])

    def restore(self, arranged: Bytes, count: int, into: bytearray) -> None:
        """Put the `count` records that were arranged, at least one, into the beginning of `into`.

        Raises ArrangementError.
        """
        size, data = self._record_bytes, bytes(arranged)
        planes = self._planes(data, count)
        if len(into) // size < count:
            raise ArrangementError(f"no room for {count} records")
        records = bytearray(size * count)
        records[:size] = data[:size]
        nothing = bytes(count - 1)
        for column in self._columns:
            bytes_of = [planes.get(column.offset + place, nothing) for place in range(column.size_bytes)]
            numbers = [int.from_bytes(each, "little") for each in zip(*bytes_of, strict=True)]
            _put_back(column, numbers, records, size)
        into[: len(records)] = records

    def _planes(self, data: bytes, count: int) -> dict[int, bytes]:
        """The existing planes, by their byte of the record."""
        size = self._record_bytes
        mask = int.from_bytes(data[size : size + self._mask_bytes], "little")
        there = [place for place in range(self._mask_bytes * 8) if mask >> place & 1]
        begin = size + self._mask_bytes
        if count < 1 or len(data) != begin + len(there) * (count - 1) or (there and there[-1] >= size):
            raise ArrangementError(f"{len(data)} bytes are not {count} arranged records")
        found = {}
        for place in there:
            found[place] = data[begin : begin + count - 1]
            begin += count - 1
        return found


def _numbers(data: Bytes, offset: int, size_bytes: int, record_bytes: int) -> list[int]:
    return [
        int.from_bytes(data[place : place + size_bytes], "little")
        for place in range(offset, len(data), record_bytes)
    ]


def _said_anew(column: Column, data: bytes, record_bytes: int) -> list[int]:
    """The stored values of the column, for each record but the first."""
    numbers = _numbers(data, column.offset, column.size_bytes, record_bytes)
    others = _numbers(data, column.other, column.size_bytes, record_bytes)
    most = (1 << 8 * column.size_bytes) - 1
    pairs = range(1, len(numbers))
    if column.kind == VALUE:
        return numbers[1:]
    if column.kind == NEXT:
        return [_to_both_sides(numbers[i] - numbers[i - 1] - 1, most) for i in pairs]
    if column.kind == AFTER:
        return [_to_both_sides(numbers[i] - numbers[i - 1] - others[i - 1], most) for i in pairs]
    if column.kind == LESS:
        return [others[i] - numbers[i] & most for i in pairs]
    if column.kind == BACK:
        return [_back(numbers[i], others[i], most) for i in pairs]
    return [number ^ numbers[0] for number in numbers[1:]]


def _put_back(column: Column, stored: list[int], records: bytearray, record_bytes: int) -> None:
    size = column.size_bytes
    most = (1 << 8 * size) - 1
    others = _numbers(records, column.other, size, record_bytes)
    first = last = int.from_bytes(records[column.offset : column.offset + size], "little")
    for i, number in enumerate(stored, 1):
        if column.kind == NEXT:
            number = last + 1 + _from_both_sides(number) & most
        elif column.kind == AFTER:
            number = last + others[i - 1] + _from_both_sides(number) & most
        elif column.kind == LESS:
            number = others[i] - number & most
        elif column.kind == BACK:
            number = _back(number, others[i], most)
        elif column.kind == SAME:
            number ^= first
        place = i * record_bytes + column.offset
        records[place : place + size] = number.to_bytes(size, "little")
        last = number


def _back(number: int, other: int, most: int) -> int:
    """Convert between numbers and their stored values."""
    return number if number in (0, other) else other - number & most


def _to_both_sides(difference: int, most: int) -> int:
    """0, -1, 1, -2 … as 0, 1, 2, 3 …"""
    difference &= most
    return (difference << 1 & most) ^ (most if difference > most >> 1 else 0)


def _from_both_sides(number: int) -> int:
    return (number >> 1) ^ -(number & 1)


def fastest_columns() -> type[Columns]:
    """The compiled arrangement, or the plain one if nothing is compiled."""
    try:
        from interpose.experiments.format.compiled_columns import CompiledColumns
    except ImportError:
        return PlainColumns
    return CompiledColumns
