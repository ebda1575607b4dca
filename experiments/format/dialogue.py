"""What terminals showed and what was typed, piece by piece, as recorded by one process."""

from __future__ import annotations

import struct
from collections.abc import Iterator
from dataclasses import dataclass

from interpose.experiments.format.layout import DataType, Layout
from interpose.experiments.format.tables import NEXT_WINDOW, read_head
from interpose.experiments.model.files import DataFile

DIALOGUE = "dialogue"
SHOWN, TYPED, UNSEEN, SIZE = 1, 2, 3, 4
ENDS_LINES, REDACTED = 1, 2
LONGEST_PIECE_BYTES = 16 * 1024
_HEAD = struct.Struct("<QIHBB")  # time_ns, thread, descriptor, what, flags (struct piece in cext/core/fields.h)
_SIZE = struct.Struct("<HH")


@dataclass(frozen=True)
class Piece:
    """What one call showed, or read: `what` is SHOWN, TYPED, UNSEEN (typed without echo: nothing is kept) or SIZE.

    `time_ns` is monotonic time, `thread` a number in threads, `flags` of ENDS_LINES and REDACTED.
    """

    time_ns: int
    thread: int
    descriptor: int
    what: int
    flags: int
    data: bytes

    @property
    def size(self) -> tuple[int, int]:
        """Rows and columns of a SIZE; (0, 0) if they are missing."""
        rows, columns = _SIZE.unpack(self.data) if len(self.data) == _SIZE.size else (0, 0)
        return rows, columns


class DialogueFile:
    """The dialogue of one process; `lost` is how many pieces there was no room for."""

    def __init__(self, file: DataFile, data: DataType, head: Layout | None) -> None:
        self._file = file
        self._data = data
        found = read_head(file, data, head)
        self.lost = found.lost if found else 0
        self._is_readable = found is not None
        self._goes_on = True

    def pieces(self) -> Iterator[Piece]:
        """The pieces in the order in which they were recorded, up to the last whole one."""
        if not self._is_readable:
            return
        window_bytes, place = self._data.block_bytes, self._data.head_bytes
        with self._file.opened() as file:
            while file and (data := file.read(place, window_bytes - place % window_bytes)):
                yield from self._of_window(data, place)
                if not self._goes_on:
                    return
                place += window_bytes - place % window_bytes

    def _of_window(self, data: bytes, base: int) -> Iterator[Piece]:
        """The pieces of a window that begins at `base`; then `_goes_on` says whether another one follows."""
        place, self._goes_on = 0, True
        while place + 4 <= len(data):
            length = int.from_bytes(data[place : place + 4], "little")
            if length == NEXT_WINDOW:
                return
            if length == 0:
                break
            end = place + 4 + length
            if not _HEAD.size <= length <= LONGEST_PIECE_BYTES or end > len(data):
                self._file.damaged(f"no piece at byte {base + place}")
                break
            time_ns, thread, descriptor, what, flags = _HEAD.unpack_from(data, place + 4)
            yield Piece(time_ns, thread, descriptor, what, flags, data[place + 4 + _HEAD.size : end])
            place = end + 3 & ~3
        self._goes_on = place + 4 > self._data.block_bytes - base % self._data.block_bytes
