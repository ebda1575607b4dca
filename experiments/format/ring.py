"""The events of a process that keeps only its newest: each new full block replaces the oldest one in the file.

Blocks are in any order, and while the program runs each may be overwritten or moved. So blocks are identified by their
sequence, and searched for if they have moved.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import NamedTuple

from interpose.experiments.format.blocks import HELD_BYTES, Block, EventFile, Place
from interpose.experiments.format.layout import DataType
from interpose.experiments.format.records import BlockHead
from interpose.experiments.model.files import DataFile, OpenFile

BLOCKS_AT_MOST = 1 << 19  # twice the blocks of the largest ring, for those that threads write into
LOOKS_AT_MOST = 3
FULL = 2  # the state of a block that no thread writes to


class _Places(NamedTuple):
    """The offsets of blocks in the file, by sequence, and those that threads write to."""

    of: dict[int, int]
    written_to: set[int]


class RingFile(EventFile):
    """The events of one process, in the blocks of a ring."""

    def __init__(self, file: DataFile, data: DataType) -> None:
        super().__init__(file, data)
        self._known = _Places({}, set())

    def blocks_as_written(self) -> Iterator[Block]:
        """Each block in use with all of its events, in the order in which they were started. The memory is reused for
        the next block.

        These are the blocks in use when the reading began, without those overwritten since. The newest are read first,
        into memory, so that the program cannot overtake the reader there and leave a gap.
        """
        room = max(HELD_BYTES // self._block_bytes, 1)
        with self._file.opened() as file:
            if file is None:
                return
            places = self._places(file)
            order = sorted(places.of)
            newest = [_copied(block) for block in self._each(reversed(order[-room:]), places, file)]
            yield from self._each(order[:-room], places, file)
            yield from reversed(newest)

    def newest_first(self) -> Iterator[Block]:
        """Each block in use with all of its events, the newest first; no thread has a gap between two of them."""
        with self._file.opened() as file:
            if file is not None:
                places = self._places(file)
                yield from self._each(sorted(places.of, reverse=True), places, file)

    def heads(self) -> Iterator[tuple[Place, BlockHead]]:
        """Place and head of each block in use, in the order of the file, without reading the events."""
        with self._file.opened() as file:
            places = self._places(file) if file else _Places({}, set())
            for sequence, offset in list(places.of.items()):
                data = file.read(offset, self._head_bytes) if file else b""
                head = self._head_of(offset, data)
                if file and (head is None or head.sequence != sequence):
                    block = self._find(sequence, places, file, bytearray(self._block_bytes))
                    head = block and block.head
                if head:
                    yield Place(offset, False, sequence), head

    def _found_at(self, place: Place) -> Block | None:
        with self._file.opened() as file:
            if file is None:
                return None
            if place.sequence not in self._known.of:
                self._known = self._places(file)
            return self._find(place.sequence, self._known, file, bytearray(self._block_bytes))

    def _each(self, sequences: Iterable[int], places: _Places, file: OpenFile) -> Iterator[Block]:
        buffer = bytearray(self._block_bytes)
        for sequence in sequences:
            if block := self._find(sequence, places, file, buffer):
                yield block

    def _places(self, file: OpenFile) -> _Places:
        """Where blocks are now. Of two blocks with the same sequence, one is a copy in progress; either is valid.

        A second look finds blocks that were copied to a position that the first had already passed. Blocks begun since
        the first look are left out, because one before them might be missing.
        """
        places, again = self._look(file), self._look(file)
        newest = max(places.of, default=0)
        places.of.update({sequence: offset for sequence, offset in again.of.items() if sequence <= newest})
        places.written_to.update(again.written_to)
        return places

    def _look(self, file: OpenFile) -> _Places:
        places = _Places({}, set())
        offset = 0
        while data := file.read(offset, self._head_bytes):
            head = self._head_of(offset, data)
            if head and len(places.of) >= BLOCKS_AT_MOST:
                self._file.damaged(f"has more than {BLOCKS_AT_MOST} blocks; the others were not read")
                break
            if head:
                places.of.setdefault(head.sequence, offset)
            if head and head.state != FULL:
                places.written_to.add(offset)
            offset = self._after(file, offset, data)
        return places

    def _find(self, sequence: int, places: _Places, file: OpenFile, buffer: bytearray) -> Block | None:
        """The block, from its position, or from its copy if a thread is writing to its position."""
        for _ in range(LOOKS_AT_MOST):
            offset = places.of.get(sequence)
            if offset is None:
                return None
            data = memoryview(buffer)[: file.read_into(buffer, offset)]
            block = self._block(offset, data, file)
            if block and block.head.sequence == sequence and self._is_still(block.head, data, file, offset):
                return block
            if offset not in places.written_to and not (block and block.head.state != FULL):
                return None
            now = self._places(file)
            places.of.pop(sequence)
            places.of.update(now.of)
            places.written_to.update(now.written_to)
        return None


def _copied(block: Block) -> Block:
    return block._replace(events=memoryview(bytes(block.events)))
