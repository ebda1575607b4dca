"""The files of numbered records: strings, and records of one size (sites, stacks, threads, overview)."""

from __future__ import annotations

from array import array
from collections.abc import Iterator
from typing import Generic

from interpose.experiments.format.layout import DataType, Layout, Record, Unpacker
from interpose.experiments.format.limits import Limits
from interpose.experiments.format.records import FileHead
from interpose.experiments.metadata.log import READS_UP_TO
from interpose.experiments.model.files import DataFile, OpenFile

FILE_MAGIC = 0x45534F5052544E49
LONGEST_STRING_BYTES = 16 * 1024
STRINGS_AT_MOST = 1 << 24
NEXT_WINDOW = 0xFFFFFFFF
_KEPT_STRINGS = 64 * 1024
_NEARBY_BYTES = 16 * 1024
_NEARBY_RECORDS_BYTES = 4 * 1024  # are unpacked at once


def read_head(file: DataFile, data: DataType, head: Layout | None) -> FileHead | None:
    """The head of `file`; None, and noted, if it has none that this version reads."""
    if head is None:
        file.damaged("its head is not described")
        return None
    bytes_read = file.read(0, head.record_bytes)
    if len(bytes_read) < head.record_bytes:
        file.damaged("cut short in its head")
        return None
    found = Unpacker(head, FileHead).one(bytes_read)
    if found.magic != FILE_MAGIC:
        file.damaged("does not begin as a file of an experiment")
        return None
    if found.version > READS_UP_TO:
        file.damaged(f"format {found.version}; this version reads up to {READS_UP_TO}")
        return None
    record_bytes = data.layout.record_bytes if data.layout else 0
    if (found.head_bytes, found.record_bytes, found.window_bytes) != (
        data.head_bytes,
        record_bytes,
        data.block_bytes,
    ):
        file.damaged("its head does not agree with log.xml")
    return found


class _Nearby:
    """Reads parts of a file, and keeps what lies around the last one for the next, which is often close to it."""

    def __init__(self, file: DataFile) -> None:
        self._file = file
        self._start, self._kept = 0, b""

    def read(self, offset: int, size: int) -> bytes:
        """So many bytes; fewer at the end of the file."""
        place = offset - self._start
        if place < 0 or place + size > len(self._kept):
            place = offset % _NEARBY_BYTES
            self._start = offset - place
            self._kept = self._file.read(self._start, max(place + size, _NEARBY_BYTES))
        return self._kept[place : place + size]

    def forget(self) -> None:
        """Read again: the program may have written since."""
        self._kept = b""


class RecordTable(Generic[Record]):
    """A file of records of one size, by number; a number that is not there gives None."""

    def __init__(self, file: DataFile, data: DataType, head: Layout | None, record: type[Record]) -> None:
        assert data.layout is not None
        self._file = file
        self._data = data
        self._unpacker: Unpacker[Record] = Unpacker(data.layout, record)
        self._limits = Limits(data.layout, record)
        found = read_head(file, data, head)
        self.head = found
        self.readable = found is not None
        self.first = max(found.first, 1) if found else 1
        self._near_first = 0
        self._near: list[tuple[int, ...]] = []
        self._near_records = 0
        self._unused = self._unpacker.one(bytes(data.layout.record_bytes))
        self._note_a_broken_end()

    def get(self, number: int) -> Record | None:
        """The record `number`."""
        if number < self.first or not self.readable:
            return None
        place = number - self._near_first
        if not 0 <= place < len(self._near) or not any(self._near[place]):  # it may have been written since
            self._look_near(number)
            place = number - self._near_first
        if place < len(self._near):
            return self._unpacker.made(self._near[place])
        return self._unused if place < self._near_records else None

    def _look_near(self, number: int) -> None:
        """Unpack the records around that one, which are often asked for next, up to the last that is used."""
        index, size = number - self.first, self._unpacker.record_bytes
        in_first, in_each = (self._data.block_bytes - self._data.head_bytes) // size, self._data.block_bytes // size
        start, room = 0, in_first
        if index >= in_first:
            start, room = index - (index - in_first) % in_each, in_each
        near = max(_NEARBY_RECORDS_BYTES // size, 1)
        begin = index - (index - start) % near
        data = self._file.read(self._data.offset_of(begin), min(near, start + room - begin) * size)
        self._near_first = self.first + begin
        self._near_records = len(data) // size
        used = min(-(-len(data.rstrip(b"\0")) // size), self._near_records)
        self._near = list(self._unpacker.fields(data[: used * size]))

    def all(self) -> Iterator[tuple[int, Record, bytes]]:
        """Each record that is not all zeros: its number, the record, and its bytes; impossible ones are left out, and
        counted as damage."""
        if not self.readable:
            return
        with self._file.opened() as file:
            yield from self._records(self._possible_windows(file)) if file else ()

    def as_written(self) -> Iterator[tuple[int, Record, bytes]]:
        """The same with the impossible ones."""
        if not self.readable:
            return
        with self._file.opened() as file:
            yield from self._records(self._windows(file)) if file else ()

    def bounded(self, at_most: int) -> Iterator[tuple[int, Record, bytes]]:
        """The same for callers that keep the records: a limited number, with a note if there are more."""
        for count, found in enumerate(self.all()):
            if count == at_most:
                self._file.damaged(f"more than {at_most:,} records, the rest was not read")
                return
            yield found

    def plain(self) -> Iterator[Record]:
        """All records in their order, those that are all zeros too, as are impossible ones; faster than `all`."""
        if not self.readable:
            return
        with self._file.opened() as file:
            for _, data in self._possible_windows(file) if file else ():
                yield from self._unpacker.many(data)

    def fields(self) -> Iterator[tuple[int, tuple[int, ...]]]:
        """The number of each record and what is in it, in their order, those that are all zeros too; faster still."""
        if not self.readable:
            return
        with self._file.opened() as file:
            for number, data in self._windows(file) if file else ():
                yield from enumerate(self._unpacker.fields(data), number)

    def _records(self, windows: Iterator[tuple[int, bytes]]) -> Iterator[tuple[int, Record, bytes]]:
        size = self._unpacker.record_bytes
        for number, data in windows:
            for place in range(0, len(data.rstrip(b"\0")), size):
                record = data[place : place + size]
                if record.count(0) < size:
                    yield number + place // size, self._unpacker.one(record), record

    def _windows(self, file: OpenFile) -> Iterator[tuple[int, bytes]]:
        """The whole records of each window, and the number of the first; no windows that are holes."""
        size, number = self._unpacker.record_bytes, self.first
        in_first = (self._data.block_bytes - self._data.head_bytes) // size
        start, room = self._data.head_bytes, in_first
        while data := file.read(start, room * size):
            yield number, data[: len(data) // size * size]
            window = start // self._data.block_bytes + 1
            if data.count(0) == len(data):
                window = _window_with_data(file, window, self._data.block_bytes)
            room = self._data.block_bytes // size
            start = window * self._data.block_bytes
            number = self.first + in_first + (window - 1) * room

    def _possible_windows(self, file: OpenFile) -> Iterator[tuple[int, bytes]]:
        """The same, with zeros in place of impossible records, which are counted as damage."""
        size, left_out = self._unpacker.record_bytes, 0
        for number, data in self._windows(file):
            places = self._limits.impossible(data)
            if places:
                left_out += len(places)
                whole = bytearray(data)
                for place in places:
                    whole[place * size : (place + 1) * size] = bytes(size)
                data = bytes(whole)
            yield number, data
        if left_out:
            self._file.damaged(f"{left_out:,} impossible {'record' if left_out == 1 else 'records'}, left out")

    def _note_a_broken_end(self) -> None:
        if not self.readable:
            return
        with self._file.opened() as file:
            size_bytes = file.size_bytes() if file else 0
        into_window = size_bytes % self._data.block_bytes
        head = self._data.head_bytes if size_bytes < self._data.block_bytes else 0
        whole = into_window >= head and (into_window - head) % self._unpacker.record_bytes == 0
        if into_window and not whole:
            self._file.damaged(f"cut short at byte {size_bytes}")


def _window_with_data(file: OpenFile, window: int, window_bytes: int) -> int:
    """`window`, or the first one after it that is not a hole; beyond the end if there is none."""
    found = file.next_data(window * window_bytes)
    return max(window, file.size_bytes() // window_bytes + 1 if found is None else found // window_bytes)


class StringTable:
    """The strings of a file, by number; a number that is not there gives None."""

    def __init__(self, file: DataFile, data: DataType, head: Layout | None) -> None:
        self._file = file
        self._window_bytes = data.block_bytes
        found = read_head(file, data, head)
        self.readable = found is not None
        self.first = max(found.first, 1) if found else 1
        self.left_out = found.lost if found else 0
        self._offsets: array[int] = array("Q")
        self._lengths: array[int] = array("H" if LONGEST_STRING_BYTES < 1 << 16 else "I")
        self._next = data.head_bytes
        self._kept: dict[int, str] = {}
        self._nearby = _Nearby(file)

    def get(self, number: int) -> str | None:
        """The string `number`; bytes that are no UTF-8 are replaced."""
        if (known := self._kept.get(number)) is not None:
            return known
        index = number - self.first
        if index < 0 or not self.readable:
            return None
        if index >= len(self._offsets):
            self._go_on()
        if index >= len(self._offsets):
            return None
        if len(self._kept) >= _KEPT_STRINGS:
            self._kept.clear()
        data = self._nearby.read(self._offsets[index], self._lengths[index])
        self._kept[number] = text = data.decode("utf-8", "replace")
        return text

    def all(self) -> Iterator[tuple[int, str]]:
        """Number and text of each string."""
        number = self.first
        while (text := self.get(number)) is not None:
            yield number, text
            number += 1

    def _go_on(self) -> None:
        """Find the strings that were written since this was last done."""
        self._nearby.forget()
        with self._file.opened() as file:
            while file and self._scan_window(file):
                pass

    def _scan_window(self, file: OpenFile) -> bool:
        """Find the strings from `_next` to the end of its window; True if the next window may have more."""
        base = self._next
        end = (base // self._window_bytes + 1) * self._window_bytes
        data = file.read(base, end - base)
        place = self._take_strings(data, base)
        self._next = base + place
        if place + 4 > len(data):
            is_torn = place < len(data) and self._next < end
            return self._stop(f"cut short in string {self._following()}") if is_torn else end - self._next < 4
        length = int.from_bytes(data[place : place + 4], "little")
        if length == 0:
            return False
        if length == NEXT_WINDOW:
            self._next = end
            return True
        if length > LONGEST_STRING_BYTES or self._next + 4 + length > end:
            return self._stop(f"string {self._following()} is {length} bytes long")
        if place + 4 + length > len(data):
            return self._stop(f"cut short in string {self._following()}")
        return self._stop(f"more than {STRINGS_AT_MOST:,} strings, the rest was not read")

    def _take_strings(self, data: bytes, base: int) -> int:
        """Note the whole strings at the beginning of `data`, which was read at `base`; returns where they end."""
        words = memoryview(data + bytes(-len(data) % 4)).cast("I")
        place, end, found = 0, len(words), list[int]()
        most_bytes = len(data) - 4
        while place < end:
            length = words[place]
            if not 0 < length <= LONGEST_STRING_BYTES or 4 * place + length > most_bytes:
                break
            found.append(place)
            place += 1 + (length + 3 >> 2)
        room = STRINGS_AT_MOST - len(self._offsets)
        if len(found) > room:
            place, found = found[room], found[:room]
        self._offsets.extend([base + 4 * each + 4 for each in found])
        self._lengths.extend([words[each] for each in found])
        return 4 * place

    def _following(self) -> int:
        return self.first + len(self._offsets)

    def _stop(self, what: str) -> bool:
        self._file.damaged(what)
        return False


def table_or_none(
    file: DataFile, data: DataType | None, head: Layout | None, record: type[Record]
) -> RecordTable[Record] | None:
    """The table in `file`; None, and noted, if log.xml does not describe one."""
    if data is None or data.layout is None:
        file.damaged("not described in log.xml")
        return None
    return RecordTable(file, data, head, record)
