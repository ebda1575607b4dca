"""The events of a process, read block by block into the reader's own memory.

A full block is copied to the end of the file `events` and used again. If the process was killed during the copy, both
exist with the same sequence; the first contains everything that the second does. A monitor can move full blocks to
`events.zst`, in their order, at any moment: it appends the block there before it removes it here. A reader that finds a
block gone looks for the moved ones, so it misses none and sees none twice.
"""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Iterator
from typing import NamedTuple

from interpose.experiments.format.compressed import CompressedFile, Found, as_block_head
from interpose.experiments.format.layout import Bytes, DataType, Layout, Unpacker
from interpose.experiments.format.possible import fastest_judge
from interpose.experiments.format.records import BlockHead, Event
from interpose.experiments.format.sequences import Sequences
from interpose.experiments.model.files import DataFile, OpenFile

BLOCK_MAGIC = 0x4B4C4249
BLOCK_BYTES = 64 * 1024
FULL = 2
HELD_BYTES = 64 * 1024 * 1024
READ_AGAIN_AT_MOST = 20
WRITTEN_WITHIN_S = (0.0, 0.001, 0.002)  # what is missing by then was never written


class Place(NamedTuple):
    """Where a block was found: its byte in `events` or `events.zst`, and its sequence."""

    offset: int
    compressed: bool
    sequence: int


class Block(NamedTuple):
    """A block in use: its place, its head, and the bytes of its whole events, of which `begin` came before.

    The number of events in the head includes impossible events, and events with missing bytes.
    """

    place: Place
    head: BlockHead
    events: memoryview
    begin: int = 0


def until(block: Block, until_ns: int | None, layout: Layout) -> Block:
    """The block with its events up to the last one that had ended at `until_ns`, and their number in its head."""
    used, last_ns = len(block.events) // layout.record_bytes, block.head.last_ns
    if until_ns is not None and last_ns > until_ns:
        times = layout.unsigned(("start_ns", "wall_ns")).picker(("start_ns", "wall_ns")).many(block.events)
        ended = [(place, start + wall) for place, (start, wall) in enumerate(times) if start + wall <= until_ns]
        used, last_ns = ended[-1][0] + 1 if ended else 0, max((end for _, end in ended), default=0)
    head = block.head._replace(used=used, last_ns=last_ns)
    return block._replace(head=head, events=block.events[: used * layout.record_bytes])


class EventFile:
    """The events of one process in its blocks, compressed or not; without those that ended after `until_ns`, if set."""

    until_ns: int | None = None

    def __init__(self, file: DataFile, data: DataType, compressed: CompressedFile | None = None) -> None:
        assert data.layout is not None and data.inner is not None
        self.layout: Layout = data.layout
        self._file = file
        self._compressed = compressed
        self._block_bytes = data.block_bytes
        self._head_bytes = data.inner.record_bytes
        self._head = Unpacker(data.inner, BlockHead)
        self._event = Unpacker(data.layout, Event)
        self._judge = fastest_judge()(data.layout)
        self._left_out = Counter[int]()  # impossible events, by the sequence of their block
        self._judged: dict[int, int] = {}  # up to which event of these blocks

    def blocks(self) -> Iterator[Block]:
        """Each block in use, without impossible events, of which the number is noted as damage; those of a thread in
        the order in which it wrote them. The memory is reused for the next block.
        """
        return map(self._possible, self.blocks_as_written())

    def _possible(self, block: Block) -> Block:
        if self.until_ns is not None and block.head.last_ns > self.until_ns:
            block = until(block, self.until_ns, self.layout)
        places = self._judge.impossible(block.events)
        if not places:
            return block
        self._note_left_out(block, places)
        size, kept, done = self.layout.record_bytes, bytearray(), 0
        for place in places:
            kept += block.events[done * size : place * size]
            done = place + 1
        return block._replace(events=memoryview(kept + block.events[done * size :]))

    def _note_left_out(self, block: Block, places: list[int]) -> None:
        """Note the impossible events at `places` as damage, each once: a block is read several times, or in parts."""
        before, judged = _left_out(self._left_out), self._judged.get(block.place.sequence, 0)
        self._left_out[block.place.sequence] += sum(block.begin + place >= judged for place in places)
        self._judged[block.place.sequence] = max(judged, block.begin + places[-1] + 1)
        self._file.damaged(_left_out(self._left_out), instead_of=before)

    def blocks_as_written(self) -> Iterator[Block]:
        """The blocks with all of their events, in that order.

        In `events`, the block that a thread wrote last precedes its full ones, if it has any. So the first block of
        each thread is held back until a later one of that thread comes, or the end. If there are more threads than room
        for such blocks, the oldest are returned.
        """
        held: dict[int, Block] = {}
        met: set[int] = set()
        room = max(HELD_BYTES // self._block_bytes, 1)
        for block in self._in_order_of_the_files():
            thread = block.head.thread
            if thread not in met and not block.place.compressed:
                met.add(thread)
                held[thread] = block._replace(events=memoryview(bytes(block.events)))
                if len(held) > room:
                    yield held.pop(min(held, key=lambda each: held[each].head.sequence))
                continue
            if thread in held and held[thread].head.sequence <= block.head.sequence:
                yield held.pop(thread)
            yield block
        yield from sorted(held.values(), key=lambda block: block.head.sequence)

    def _in_order_of_the_files(self) -> Iterator[Block]:
        """Each block, or the part of it that was not returned before: a block that is being written can be met again
        when full.

        If blocks are gone, those that were moved meanwhile come before the next one that still exists.
        """
        buffer = bytearray(self._block_bytes)
        moved = _Moved(self._compressed, self.layout.record_bytes)
        with self._file.opened() as file:
            end, offset = moved.bound(file, self._block_bytes), 0
            yield from moved.blocks()
            are_gone = False
            while file and offset < end and (count := file.read_into(buffer, offset)):
                block = self._block_as_it_stands(offset, buffer, count, file)
                if block is None:
                    are_gone = True
                else:
                    if are_gone:
                        yield from moved.blocks()
                    are_gone = False
                    end = end if block.head.state == FULL else moved.bound(file, self._block_bytes)
                    if rest := moved.rest(block):
                        yield rest
                offset = self._after(file, offset, buffer)
            yield from moved.blocks()
            self._note_what_is_torn(moved, file)

    def _block_as_it_stands(self, offset: int, buffer: bytearray, count: int, file: OpenFile) -> Block | None:
        """The block that was read into `buffer`, read again if it was emptied meanwhile; None if it is gone."""
        for _ in range(READ_AGAIN_AT_MOST):
            if not self._grows(file, offset, count):
                data = memoryview(buffer)[:count]
                block = self._block(offset, data, file)
                if block is None or self._is_still(block.head, data, file, offset):
                    return block
            count = file.read_into(buffer, offset)
        return None

    def _grows(self, file: OpenFile, offset: int, count: int) -> bool:
        """Whether more of a block will come after the first `count` bytes: it is being written, page by page."""
        if count == self._block_bytes:
            return False
        for wait_s in WRITTEN_WITHIN_S:
            time.sleep(wait_s)
            if file.size_bytes() > offset + count:
                return True
        return False

    def heads(self) -> Iterator[tuple[Place, BlockHead]]:
        """Place and head of each block with events, in the order of the files, without reading these."""
        moved = _Moved(self._compressed, self.layout.record_bytes)
        with self._file.opened() as file:
            end, offset = moved.bound(file, self._block_bytes), 0
            yield from moved.heads()
            while file and offset < end and (data := file.read(offset, self._head_bytes)):
                head = self._head_of(offset, data)
                if head is None:
                    yield from moved.heads()
                else:
                    end = end if head.state == FULL else moved.bound(file, self._block_bytes)
                    if head.used and moved.is_first(head.sequence):  # emptied, it has its old number for a moment
                        yield Place(offset, False, head.sequence), head
                offset = self._after(file, offset, data)
            yield from moved.heads()

    def counts(self) -> Counter[int]:
        """How many whole events each thread has, by the heads of the blocks and the length of the file."""
        with self._file.opened() as file:
            size_bytes = file.size_bytes() if file else 0
        found = Counter[int]()
        for place, head in self.heads():
            there = head.used if place.compressed else self._room(size_bytes - place.offset)
            found[head.thread] += min(head.used, there)
        return found

    def _room(self, count: int) -> int:
        """How many whole events the first `count` bytes of a block have room for."""
        return (min(count, self._block_bytes) - self._head_bytes) // self.layout.record_bytes

    def block(self, place: Place) -> Block | None:
        """The block that was found at `place`, wherever it is now, without impossible events; None if it is gone."""
        block = self._found_at(place)
        return block and self._possible(block)

    def _found_at(self, place: Place) -> Block | None:
        with self._file.opened() as file:
            block = self._block_at(place.offset, file) if file and not place.compressed else None
            if block is None or block.head.sequence != place.sequence:
                block = self._elsewhere(place, file)
            return block

    def events(self, block: Block) -> Iterator[Event]:
        """The events of `block`, in the order of their ends."""
        return self._event.many(block.events)

    def _block_at(self, offset: int, file: OpenFile) -> Block | None:
        data = file.read(offset, self._block_bytes)
        if self._grows(file, offset, len(data)):
            data = file.read(offset, self._block_bytes)
        block = self._block(offset, memoryview(data), file)
        return block if block and self._is_still(block.head, data, file, offset) else None

    def _elsewhere(self, place: Place, file: OpenFile | None) -> Block | None:
        """A block that was moved: from its later copy, or from the compressed blocks."""
        offset = place.offset + self._block_bytes
        while file and not place.compressed and (data := file.read(offset, self._head_bytes)):
            head = self._head_of(offset, data)
            if head and head.sequence == place.sequence and (block := self._block_at(offset, file)):
                return block
            offset = self._after(file, offset, data)
        begin = place.offset if place.compressed else 0
        for found in self._compressed.heads(begin) if self._compressed else ():
            if self._compressed and found.head.sequence == place.sequence:
                events = self._compressed.block(found)
                return _moved_block(found, events) if events else None
        return None

    def _is_still(self, head: BlockHead, data: Bytes, file: OpenFile, offset: int) -> bool:
        """Whether the block, of which `data` was read, was not emptied or taken away meanwhile."""
        now = file.read(offset, self._head_bytes)
        is_as_read = now == data[: self._head_bytes]
        return is_as_read or (len(now) >= self._head_bytes and self._head.one(now).sequence == head.sequence)

    def _block(self, offset: int, data: memoryview, file: OpenFile) -> Block | None:
        head = self._head_of(offset, data)
        # What is empty was taken away since it was listed.
        is_cut = 0 < len(data) < self._block_bytes and offset + len(data) == file.size_bytes()
        if is_cut and not (head and head.used == 0):  # a thread's first block, of which only the head exists so far
            self._file.damaged(
                f"cut short at byte {offset + len(data)}, in block {offset // self._block_bytes}"
            )
        if head is None:
            return None
        room = self._room(len(data))
        if head.used > self._room(self._block_bytes):
            self._file.damaged(f"block {offset // self._block_bytes} says it holds {head.used} events")
        end = self._head_bytes + min(head.used, room) * self.layout.record_bytes
        return Block(Place(offset, False, head.sequence), head, data[self._head_bytes : end])

    def _head_of(self, offset: int, data: memoryview | bytes) -> BlockHead | None:
        """The head of the block in use at the beginning of `data`; None if there is none."""
        if len(data) < self._head_bytes:
            return None
        head = self._head.one(data)
        if head.magic != BLOCK_MAGIC:
            if head.magic or head.used:
                self._file.damaged(f"block {offset // self._block_bytes} is not a block")
            return None
        return head

    def _after(self, file: OpenFile, offset: int, data: bytes | bytearray) -> int:
        """Where the block after the one at `offset` begins, skipping holes of the file."""
        offset += self._block_bytes
        if any(data[: self._head_bytes]):
            return offset
        found = file.next_data(offset)
        if found is None:
            return max(offset, file.size_bytes())
        return max(offset, found // self._block_bytes * self._block_bytes)

    def _note_what_is_torn(self, moved: _Moved, file: OpenFile | None) -> None:
        """Note a damaged end of the compressed blocks. While `events` has blocks, a partial one is just being moved.

        Check in this order: a monitor empties `events` only after it has moved everything.
        """
        is_emptied = file is None or not file.size_bytes()
        if is_emptied and self._compressed and (torn := moved.torn):
            self._compressed.damaged(torn)


class _Moved:
    """The compressed blocks seen so far, and which blocks were seen at all."""

    def __init__(self, compressed: CompressedFile | None, record_bytes: int) -> None:
        self._compressed = compressed
        self._record_bytes = record_bytes
        self._seen = Sequences()
        self._in_part: dict[int, int] = {}  # how many events were seen of blocks that were being written
        self._end = 0
        self._bound = 0
        self._beyond = 0

    def bound(self, file: OpenFile | None, block_bytes: int) -> int:
        """Set where to stop: at what the files contain now, not at what a running program may still write.

        Returns the end in `events`. Blocks before it may still be moved, so at most that many are read beyond the
        present end of the compressed ones. This is set again when a block is read that is being written, because
        everything that its thread wrote before must be read as well.
        """
        end = file.size_bytes() if file else 0
        self._beyond = end // block_bytes
        self._bound = self._compressed.size_bytes() if self._compressed else 0
        return end

    def _is_beyond(self, found: Found) -> bool:
        if found.offset < self._bound:
            return False
        self._beyond -= 1
        return self._beyond < 0

    def is_first(self, sequence: int) -> bool:
        """Whether a block is seen for the first time; from now on it was seen."""
        return self._seen.add(sequence)

    def rest(self, block: Block) -> Block | None:
        """The block, or its events that were not seen before; None if all were. They count as seen from now on."""
        sequence, count = block.head.sequence, len(block.events) // self._record_bytes
        is_first, seen = self._seen.add(sequence), self._in_part.pop(sequence, count)
        if block.head.state != FULL and not block.place.compressed:
            self._in_part[sequence] = count if is_first else max(count, seen)
        if is_first:
            return block
        if count <= seen:
            return None
        head = block.head._replace(used=count - seen)
        return block._replace(head=head, events=block.events[seen * self._record_bytes :], begin=seen)

    def blocks(self) -> Iterator[Block]:
        """The blocks that have arrived since, without those already seen."""
        for found, events in self._compressed.blocks(self._end) if self._compressed else ():
            if self._is_beyond(found):
                return
            self._end = found.end
            if rest := self.rest(_moved_block(found, events)):
                yield rest

    def heads(self) -> Iterator[tuple[Place, BlockHead]]:
        """The heads of the blocks that have arrived since."""
        for found in self._compressed.heads(self._end) if self._compressed else ():
            if self._is_beyond(found):
                return
            self._end = found.end
            if self.is_first(found.head.sequence):
                yield _moved_place(found), as_block_head(found.head)

    @property
    def torn(self) -> str:
        """What is wrong with the end of the compressed blocks; empty if nothing is."""
        return self._compressed.torn_at(self._end) if self._compressed else ""


def _left_out(events: Counter[int]) -> str:
    count = events.total()
    return f"{count} impossible event{'s' * (count != 1)}, left out"


def _moved_place(found: Found) -> Place:
    return Place(found.offset, True, found.head.sequence)


def _moved_block(found: Found, events: memoryview) -> Block:
    return Block(_moved_place(found), as_block_head(found.head), events)
