"""The events file: blocks of events, each read whole into memory of one's own.

A full block is copied to the end of the file and used again. Where it was being copied when the process was
killed, both are there, with the same sequence; the first holds all that the second does.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from interpose.experiments.files import DataFile, OpenFile
from interpose.experiments.layout import DataType, Layout, Unpacker
from interpose.experiments.records import BlockHead, Event

BLOCK_MAGIC = 0x4B4C4249


class Block(NamedTuple):
    """A block in use: its place in the file from 0, its head, and the bytes of its whole events."""

    number: int
    head: BlockHead
    events: memoryview


def _is_first(head: BlockHead, seen: set[int]) -> bool:
    if head.sequence in seen:
        return False
    seen.add(head.sequence)
    return True


class EventFile:
    """The events of one process, as they lie in blocks."""

    def __init__(self, file: DataFile, data: DataType) -> None:
        assert data.layout is not None and data.inner is not None
        self.layout: Layout = data.layout
        self._file = file
        self._block_bytes = data.block_bytes
        self._head_bytes = data.inner.record_bytes
        self._head = Unpacker(data.inner, BlockHead)
        self._event = Unpacker(data.layout, Event)

    def blocks(self) -> Iterator[Block]:
        """Each block in use, in the order of the file. Its memory is used again for the next one."""
        buffer = bytearray(self._block_bytes)
        seen: set[int] = set()
        with self._file.opened() as file:
            offset = 0
            while file and (count := file.read_into(buffer, offset)):
                block = self._block(offset, memoryview(buffer)[:count])
                if block and _is_first(block.head, seen) and self._is_still(block.head, file, offset):
                    yield block
                offset = self._after(file, offset, buffer)

    def heads(self) -> Iterator[tuple[int, BlockHead]]:
        """Number and head of each block in use, in the order of the file, without reading the events."""
        seen: set[int] = set()
        with self._file.opened() as file:
            offset = 0
            while file and (data := file.read(offset, self._head_bytes)):
                head = self._head_of(offset, data)
                if head and _is_first(head, seen):
                    yield offset // self._block_bytes, head
                offset = self._after(file, offset, data)

    def block(self, number: int) -> Block | None:
        """The block `number`, or None where it is not in use."""
        offset = number * self._block_bytes
        data = self._file.read(offset, self._block_bytes)
        return self._block(offset, memoryview(data))

    def events(self, block: Block) -> Iterator[Event]:
        """The events of `block`, in the order of their ends."""
        return self._event.many(block.events)

    def _is_still(self, head: BlockHead, file: OpenFile, offset: int) -> bool:
        """Whether the block was not emptied while it was read; if so its copy comes later in the file."""
        data = file.read(offset, self._head_bytes)
        return len(data) < self._head_bytes or self._head.one(data).sequence == head.sequence

    def _block(self, offset: int, data: memoryview) -> Block | None:
        if len(data) < self._block_bytes:
            self._file.damaged(
                f"cut short at byte {offset + len(data)}, in block {offset // self._block_bytes}"
            )
        head = self._head_of(offset, data)
        if head is None:
            return None
        room = (len(data) - self._head_bytes) // self.layout.record_bytes
        whole = (self._block_bytes - self._head_bytes) // self.layout.record_bytes
        if head.used > whole:
            self._file.damaged(f"block {offset // self._block_bytes} says it holds {head.used} events")
        end = self._head_bytes + min(head.used, room) * self.layout.record_bytes
        return Block(offset // self._block_bytes, head, data[self._head_bytes : end])

    def _head_of(self, offset: int, data: memoryview | bytes) -> BlockHead | None:
        """The head of the block in use that `data` begins with, or None where there is none."""
        if len(data) < self._head_bytes:
            return None
        head = self._head.one(data)
        if head.magic != BLOCK_MAGIC:
            if head.magic or head.used:
                self._file.damaged(f"block {offset // self._block_bytes} is not a block")
            return None
        return head

    def _after(self, file: OpenFile, offset: int, data: bytes | bytearray) -> int:
        """Where the block after the one at `offset` begins; holes of the file are passed over."""
        offset += self._block_bytes
        if any(data[: self._head_bytes]):
            return offset
        found = file.next_data(offset)
        if found is None:
            return max(offset, file.size_bytes())
        return max(offset, found // self._block_bytes * self._block_bytes)
