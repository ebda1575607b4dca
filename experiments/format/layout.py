"""How records are packed: the fields, their types and offsets, as an experiment describes them itself."""

from __future__ import annotations

import struct
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from operator import itemgetter
from typing import Any, Generic, NamedTuple, TypeVar

from interpose.errors import Caught

Bytes = bytes | bytearray | memoryview

LARGEST_RECORD_BYTES = 64 * 1024
LARGEST_BLOCK_BYTES = 2 * 1024 * 1024


class _Type(NamedTuple):
    code: str
    size_bytes: int
    signed: bool


TYPES = {
    "u32": _Type("I", 4, False),
    "u64": _Type("Q", 8, False),
    "i32": _Type("i", 4, True),
    "i64": _Type("q", 8, True),
}


class LayoutError(Caught):
    """A description that no record can be read by."""


class Field(NamedTuple):
    """One number in a record: a type of `TYPES` and the offset in bytes."""

    name: str
    type: str
    offset: int

    @property
    def size_bytes(self) -> int:
        return TYPES[self.type].size_bytes

    @property
    def end(self) -> int:
        return self.offset + self.size_bytes


class Layout:
    """How one kind of record is packed.

    Raises LayoutError if fields overlap or exceed the record, so code that unpacks by a layout need not check again.
    """

    def __init__(self, fields: Iterable[Field], record_bytes: int) -> None:
        if not 0 < record_bytes <= LARGEST_RECORD_BYTES:
            raise LayoutError(f"a record of {record_bytes} bytes")
        self.record_bytes = record_bytes
        self._pickers: dict[tuple[str, ...], Picker] = {}
        self.fields = {field.name: field for field in sorted(fields, key=lambda field: field.offset)}
        end = 0
        for field in self.fields.values():
            if field.offset < end or field.end > record_bytes:
                raise LayoutError(f"field {field.name} at {field.offset}")
            end = field.end

    def unsigned(self, names: Iterable[str]) -> Layout:
        """The same record with only those of the fields `names` that are unsigned."""
        wanted = set(names)
        kept = [f for f in self.fields.values() if f.name in wanted and not TYPES[f.type].signed]
        return Layout(kept, self.record_bytes)

    def picker(self, names: Sequence[str]) -> Picker:
        """What gives of each record the fields `names`, in that order; 0 for those that it does not have."""
        wanted = tuple(names)
        if wanted not in self._pickers:
            self._pickers[wanted] = Picker(self, wanted)
        return self._pickers[wanted]


class Picker:
    """Unpacks some fields of the records of one layout, in a chosen order."""

    def __init__(self, layout: Layout, names: Sequence[str]) -> None:
        held = [field for field in layout.fields.values() if field.name in names]
        self.record_bytes = layout.record_bytes
        self._struct = struct.Struct(_format(held, layout.record_bytes))
        self._arrange = _arrangement([field.name for field in held], names)

    def one(self, data: Bytes, offset: int = 0) -> tuple[int, ...]:
        """The fields of the record at `offset`, which must be whole in `data`."""
        values = self._struct.unpack_from(data, offset)
        return self._arrange(values) if self._arrange else values

    def many(self, data: Bytes) -> Iterator[tuple[int, ...]]:
        """The fields of each record in `data`, which must be whole records."""
        records = self._struct.iter_unpack(data)
        return map(self._arrange, records) if self._arrange else records


def _format(fields: Sequence[Field], record_bytes: int) -> str:
    parts, end = ["<"], 0
    for field in fields:
        parts.append(f"{field.offset - end}x{TYPES[field.type].code}")
        end = field.end
    parts.append(f"{record_bytes - end}x")
    return "".join(parts)


def _arrangement(
    held: list[str], names: Sequence[str]
) -> Callable[[tuple[Any, ...]], tuple[int, ...]] | None:
    """A function that puts the values of `held` into the order of `names`; None if they are in it."""
    if held == list(names):
        return None
    places = [held.index(name) if name in held else -1 for name in names]
    if len(places) == 1:
        place = places[0]
        return lambda values: ((*values, 0)[place],)
    pick = itemgetter(*places)
    return lambda values: pick((*values, 0))


class Packer:
    """Packs records of one layout from the named tuple `record`, which has all of its fields in any order."""

    def __init__(self, layout: Layout, record: type[NamedTuple]) -> None:
        names = [name for name in layout.fields if name in record._fields]
        self._struct = struct.Struct(_format([layout.fields[name] for name in names], layout.record_bytes))
        self._pick = itemgetter(*(record._fields.index(name) for name in names))

    def one(self, record: tuple[int, ...]) -> bytes:
        """The bytes of a record."""
        return self._struct.pack(*self._pick(record))


Record = TypeVar("Record", bound=NamedTuple)


class Unpacker(Generic[Record]):
    """Unpacks records of one layout into the named tuple `record`, which has the wanted fields."""

    def __init__(self, layout: Layout, record: type[Record]) -> None:
        self._picker = layout.picker(record._fields)
        self.made: Callable[[Iterable[int]], Record] = record._make  # from the fields of a record
        self.record_bytes = layout.record_bytes

    def one(self, data: Bytes, offset: int = 0) -> Record:
        """The record at `offset`, which must be whole in `data`."""
        return self.made(self._picker.one(data, offset))

    def fields(self, data: Bytes) -> Iterator[tuple[int, ...]]:
        """The fields of each record in `data`, which must be whole records; `made` makes a record of them."""
        return self._picker.many(data)

    def many(self, data: Bytes) -> Iterator[Record]:
        """Each record in `data`, which must be whole records."""
        return map(self.made, self._picker.many(data))


@dataclass(frozen=True)
class DataType:
    """A file of data: how its records are packed and where they are.

    `layout` is None if each record has its own length. `inner` is the layout of a block's head (events) or of an entry
    of the table (threads); `inner_offset` and `inner_records` are the position and the length of that table in a
    record.
    """

    name: str
    layout: Layout | None
    head_bytes: int
    block_bytes: int
    inner: Layout | None = None
    inner_offset: int = 0
    inner_records: int = 0

    def __post_init__(self) -> None:
        if not 64 <= self.block_bytes <= LARGEST_BLOCK_BYTES:
            raise LayoutError(f"windows of {self.block_bytes} bytes")
        if self.head_bytes >= self.block_bytes:
            raise LayoutError(f"a head of {self.head_bytes} bytes")
        if self.layout and self.layout.record_bytes > self.block_bytes:
            raise LayoutError(f"a record of {self.layout.record_bytes} bytes")
        if self.inner and self.layout and self.inner_records:
            end = self.inner_offset + self.inner_records * self.inner.record_bytes
            if end > self.layout.record_bytes:
                raise LayoutError(f"a table that ends at {end}")

    def offset_of(self, index: int) -> int:
        """The offset of record `index`, counted from 0; no record crosses a window's end."""
        assert self.layout is not None
        size = self.layout.record_bytes
        in_first = (self.block_bytes - self.head_bytes) // size
        if index < in_first:
            return self.head_bytes + index * size
        window, place = divmod(index - in_first, self.block_bytes // size)
        return (window + 1) * self.block_bytes + place * size
