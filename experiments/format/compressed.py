"""The compressed events: one block after another, each a head and a zstandard frame.

A head gives the length and the time of its frame, so a reader goes from head to head without reading frames. After a
damaged head it searches for the next sound one.
"""

from __future__ import annotations

from binascii import crc32
from collections.abc import Iterator
from functools import cache
from typing import Any, NamedTuple

from interpose.errors import ExperimentError
from interpose.experiments.format.columns import ArrangementError, fastest_columns, most_bytes
from interpose.experiments.format.layout import Bytes, DataType, Layout, LayoutError, Unpacker
from interpose.experiments.format.records import BlockHead, CompressedHead
from interpose.experiments.model.files import DataFile, OpenFile

NAME = "events.zst"
MAGIC = 0x4B425A49
AS_THEY_ARE, BY_COLUMNS = 0, 1
ALIGNED_BYTES = 8
HEAD_BYTES = 64
_PIECE_BYTES = 256 * 1024


class Found(NamedTuple):
    """A compressed block: the offset of its head, the head, and where the next block may begin."""

    offset: int
    head: CompressedHead
    end: int


class CompressedFile:
    """The compressed events of one process. Raises LayoutError if `data` describes no such file."""

    def __init__(self, file: DataFile, data: DataType, events: Layout) -> None:
        if data.inner is None or data.inner.record_bytes != HEAD_BYTES:
            raise LayoutError("compressed blocks without a head")
        self._file = file
        self._head = Unpacker(data.inner, CompressedHead)
        self._record_bytes = events.record_bytes
        self._most_records = max(data.block_bytes // events.record_bytes, 1)
        self._most_stored = 2 * data.block_bytes + 1024
        self._columns = fastest_columns()(events)
        self._records = bytearray(self._most_records * events.record_bytes)

    def heads(self, begin: int = 0) -> Iterator[Found]:
        """Each whole block from the offset `begin` on, as the file is now."""
        for found, _ in self._walk(begin):
            yield found

    def blocks(self, begin: int = 0) -> Iterator[tuple[Found, memoryview]]:
        """The same with their events. The memory is used again for the next block."""
        for found, frame in self._walk(begin):
            if events := self._events(found, frame):
                yield found, events

    def block(self, found: Found) -> memoryview | None:
        """The events of one block; None if they are damaged, which is noted."""
        frame = self._file.read(found.offset + HEAD_BYTES, found.head.stored_bytes)
        return self._events(found, frame)

    def _walk(self, begin: int) -> Iterator[tuple[Found, memoryview]]:
        with self._file.opened_if_there() as file:
            if file is None:
                return
            size, piece = file.size_bytes(), _Piece(file)
            while begin + HEAD_BYTES <= size:
                found = self._sound_head(begin, piece.read(begin, HEAD_BYTES))
                if found is None:
                    sound = self._next_sound(file, begin + ALIGNED_BYTES, size)
                    self._file.damaged(_what_is_wrong(begin, sound, size))
                    if sound is None:
                        return
                    begin = sound
                    continue
                frame = piece.read(begin + HEAD_BYTES, found.head.stored_bytes)
                if len(frame) < found.head.stored_bytes:
                    return
                yield found, frame
                begin = found.end

    def damaged(self, what: str) -> None:
        """Note that `what` is wrong with this file."""
        self._file.damaged(what)

    def size_bytes(self) -> int:
        """How long the file is now."""
        with self._file.opened_if_there() as file:
            return file.size_bytes() if file else 0

    def torn_at(self, end: int) -> str:
        """What is wrong after the whole blocks, which end at `end`; empty if the file ends there."""
        for found in self.heads(end):
            end = found.end
        size = self.size_bytes()
        return f"cut short at byte {size}, in the block at byte {end}" if size > end else ""

    def _sound_head(self, offset: int, data: Bytes) -> Found | None:
        if len(data) < HEAD_BYTES:
            return None
        head = self._head.one(data)
        if head.magic != MAGIC or head.head_checksum != crc32(data[: HEAD_BYTES - 4]):
            return None
        if not 0 < head.used <= self._most_records or head.raw_bytes != head.used * self._record_bytes:
            return None
        if not 0 < head.stored_bytes <= self._most_stored:
            return None
        end = offset + HEAD_BYTES + head.stored_bytes
        return Found(offset, head, end + -end % ALIGNED_BYTES)

    def _next_sound(self, file: OpenFile, begin: int, size: int) -> int | None:
        """The offset of the first sound head from `begin` on."""
        sign = MAGIC.to_bytes(4, "little")
        while begin < size and (found := file.next_data(begin)) is not None:
            begin = max(begin, found - found % ALIGNED_BYTES)
            data = file.read(begin, _PIECE_BYTES + HEAD_BYTES)
            place = data.find(sign)
            while 0 <= place < _PIECE_BYTES:
                if self._sound_head(begin + place, data[place : place + HEAD_BYTES]):
                    return begin + place
                place = data.find(sign, place + 1)
            begin += _PIECE_BYTES
        return None

    def _events(self, found: Found, frame: Bytes) -> memoryview | None:
        head, zstandard = found.head, zstandard_module(self._file.place)
        try:
            if len(frame) != head.stored_bytes or crc32(frame) != head.checksum:
                raise ArrangementError("its checksum is wrong")
            self._restore(head, frame)
        except (ArrangementError, zstandard.ZstdError) as error:
            self._file.damaged(f"the block at byte {found.offset}: {' '.join(str(error).split())}")
            return None
        return memoryview(self._records)[: head.raw_bytes]

    def _restore(self, head: CompressedHead, frame: Bytes) -> None:
        arranged = decompress(frame, most_bytes(self._record_bytes, head.used))
        if head.transform == BY_COLUMNS:
            self._columns.restore(arranged, head.used, self._records)
        elif head.transform == AS_THEY_ARE and len(arranged) == head.raw_bytes:
            self._records[: head.raw_bytes] = arranged
        else:
            raise ArrangementError(f"transform {head.transform} of {len(arranged)} bytes")


def as_block_head(head: CompressedHead) -> BlockHead:
    """The head that the block had in `events`; the magic number and the state are not kept."""
    return BlockHead(0, 0, head.used, head.thread, head.sequence, head.first_ns, head.last_ns, head.dropped)


class _Piece:
    """A piece of the file that is read once for many small blocks."""

    def __init__(self, file: OpenFile) -> None:
        self._file = file
        self._begin = 0
        self._data = memoryview(b"")

    def read(self, offset: int, count: int) -> memoryview:
        """Up to `count` bytes from `offset`."""
        begin = offset - self._begin
        if begin < 0 or begin + count > len(self._data):
            self._data = memoryview(self._file.read(offset, max(count, _PIECE_BYTES)))
            self._begin, begin = offset, 0
        return self._data[begin : begin + count]


def _what_is_wrong(begin: int, sound: int | None, size: int) -> str:
    if sound is None:
        return f"no sound block from byte {begin} on, of {size}"
    return f"no sound block from byte {begin} to {sound}"


# --- zstandard


def zstandard_module(place: str = "compressed events") -> Any:
    """The module zstandard, imported only when something is compressed, at `place`. Raises ExperimentError."""
    try:
        import zstandard
    except ImportError as error:
        raise ExperimentError(
            f"{place}: needs the package zstandard, which cannot be imported ({error}); pip install zstandard"
        ) from None
    return zstandard


def decompress(frame: Bytes, most: int) -> bytes:
    """The content of the frame, at most `most` bytes. Raises ArrangementError and zstandard's own error.

    The frame must state its size, because the decoder allocates that much, whatever limit it is given.
    """
    zstandard = zstandard_module()
    said = zstandard.get_frame_parameters(frame)
    if not 0 < said.content_size <= most:
        raise ArrangementError(f"a frame that says it holds {said.content_size} bytes, of {most} at most")
    if said.dict_id or said.window_size > max(2 * most, 1 << 17):
        raise ArrangementError(f"a frame with a window of {said.window_size} bytes, dictionary {said.dict_id}")
    held: bytes = _decompressor().decompress(frame)
    return held


@cache
def _decompressor() -> Any:
    """One for all frames: making one costs more than a small frame."""
    return zstandard_module().ZstdDecompressor()
