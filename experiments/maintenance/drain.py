"""Moves full blocks of events into the compressed file, from a process other than the one that writes them.

A block is appended there before its space is given back here. So if the monitor is killed at any instant, every block
is in one of the files, or in both with the same sequence. One process drains an experiment at a time.
"""

from __future__ import annotations

import errno
import fcntl
import os
import signal
from binascii import crc32
from collections.abc import Iterator
from typing import NamedTuple

import zstandard

from interpose.errors import ExperimentError
from interpose.experiments.format.blocks import BLOCK_MAGIC, FULL
from interpose.experiments.format.columns import fastest_columns
from interpose.experiments.format.compressed import (
    ALIGNED_BYTES,
    BY_COLUMNS,
    MAGIC,
    NAME,
    CompressedFile,
)
from interpose.experiments.format.layout import DataType, Layout, Packer, Unpacker
from interpose.experiments.format.records import BlockHead, CompressedHead
from interpose.experiments.format.sequences import Sequences
from interpose.experiments.maintenance.space import give_back, is_local
from interpose.experiments.metadata.creating import Directory
from interpose.experiments.model.files import Damages, DataFile, OpenFile, open_plain

LEVEL = 1  # of zstandard; level 3 saves 1 % more and takes a fifth longer


class Waiting(NamedTuple):
    """A block in `events` that can be moved."""

    offset: int
    head: BlockHead


class Drain:
    """Moves the blocks of one process, inside `with drain:`; files are open only there.

    `compressed` and `events` are described as in the process's log.xml. Blocks from an earlier drain are kept; an
    incomplete block at the end of the compressed file is cut off, because the block is still in `events`. `given_bytes`
    is how much of `events` was given back, up to where `full` has looked, by this drain or an earlier one, whose blocks
    are holes. Raises ExperimentError, OSError.
    """

    def __init__(self, directory: str, place: str, events: DataType, compressed: DataType) -> None:
        if events.layout is None or events.inner is None or compressed.inner is None:
            raise ExperimentError(f"{place}/log.xml: events are not described")
        self._directory = directory
        self._layout: Layout = events.layout
        self.block_bytes = events.block_bytes
        self._head = Unpacker(events.inner, BlockHead)
        self._columns = fastest_columns()(events.layout)
        self._compressor = zstandard.ZstdCompressor(level=LEVEL)
        self._packer = Packer(compressed.inner, CompressedHead)
        self._moved = Sequences()
        self._stay: list[int] = []  # offsets of blocks that are not full while the process lives
        self._next = 0
        self._events = self._into = -1
        self.blocks = 0
        self.given_bytes = 0
        path = os.path.join(directory, NAME)
        if os.path.lexists(path):
            file = DataFile(path, f"{place}/{NAME}", Damages())
            self._go_on(CompressedFile(file, compressed, events.layout))

    def _go_on(self, compressed: CompressedFile) -> None:
        end = 0
        for found in compressed.heads():
            self._moved.add(found.head.sequence)
            self.blocks += 1
            end = found.end
        with self:
            self._open()
            os.ftruncate(self._into, end)

    def __enter__(self) -> Drain:
        self._events = os.open(os.path.join(self._directory, "events"), _FLAGS)
        return self

    def __exit__(self, *error: object) -> None:
        for descriptor in (self._events, self._into):
            if descriptor >= 0:
                os.close(descriptor)
        self._events = self._into = -1

    def has_grown(self) -> bool:
        """Whether there are blocks that were not examined yet; the files need not be open."""
        return self.left_bytes() >= self.block_bytes

    def left_bytes(self) -> int:
        """The number of bytes not examined yet; the files need not be open."""
        return max(self._size_bytes() - self._next, 0)

    def _size_bytes(self) -> int:
        return os.stat(os.path.join(self._directory, "events"), follow_symlinks=False).st_size

    def full(self) -> Iterator[Waiting]:
        """The blocks that have become full and were not given before."""
        size, file = os.fstat(self._events).st_size, OpenFile(self._events)
        while self._next + self.block_bytes <= size:
            offset, head = self._next, self._head_at(file, self._next)
            if head is None:
                self.given_bytes += self.block_bytes
            elif head.used and head.state == FULL:
                yield Waiting(offset, head)
            else:
                self._stay.append(offset)
            self._next = offset + self.block_bytes

    def rest(self) -> list[Waiting]:
        """The remaining blocks with content, of a process that has ended, in the order in which they were begun."""
        file = OpenFile(self._events)
        heads = ((offset, self._head_at(file, offset)) for offset in self._stay)
        found = [Waiting(offset, head) for offset, head in heads if head and head.used]
        return sorted(found, key=lambda waiting: waiting.head.sequence)

    def _head_at(self, file: OpenFile, offset: int) -> BlockHead | None:
        """The head of the block there; None if it was given back, for each has one as soon as it is there."""
        data = file.read(offset, self._head.record_bytes)
        head = self._head.one(data) if len(data) == self._head.record_bytes else None
        return head if head and head.magic == BLOCK_MAGIC else None

    def move(self, waiting: Waiting, give: bool = True) -> None:
        """Compress a block, and give its space back unless all will be taken away at once. Raises OSError."""
        if waiting.head.sequence not in self._moved:
            self._append(self._packed(waiting))
            self._moved.add(waiting.head.sequence)
            self.blocks += 1
        if give:
            give_back(self._events, waiting.offset, self.block_bytes)
            self.given_bytes += self.block_bytes
            self._next = max(self._next, waiting.offset + self.block_bytes)  # also where it is the last for now

    def _packed(self, waiting: Waiting) -> bytes:
        whole = (self.block_bytes - self._head.record_bytes) // self._layout.record_bytes
        used = min(waiting.head.used, whole)
        begin = waiting.offset + self._head.record_bytes
        events = os.pread(self._events, used * self._layout.record_bytes, begin)
        frame = self._compressor.compress(self._columns.arrange(events))
        head = CompressedHead(
            magic=MAGIC,
            transform=BY_COLUMNS,
            stored_bytes=len(frame),
            raw_bytes=len(events),
            used=used,
            thread=waiting.head.thread,
            sequence=waiting.head.sequence,
            first_ns=waiting.head.first_ns,
            last_ns=waiting.head.last_ns,
            dropped=waiting.head.dropped,
            checksum=crc32(frame),
            head_checksum=0,
        )
        packed = self._packer.one(head._replace(head_checksum=crc32(self._packer.one(head)[:-4]))) + frame
        return packed + bytes(-len(packed) % ALIGNED_BYTES)

    def _append(self, packed: bytes) -> None:
        if self._into < 0:
            self._open()
        end = os.fstat(self._into).st_size
        try:
            if os.pwrite(self._into, packed, end) < len(packed):
                raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        except OSError as error:
            os.ftruncate(self._into, end)
            raise OSError(error.errno, error.strerror, os.path.join(self._directory, NAME)) from None

    def _open(self) -> None:
        with Directory(self._directory) as directory:
            self._into = directory.open_or_create(NAME, os.O_RDWR)

    def empty(self) -> None:
        """Truncate `events` once everything was moved and the process has ended."""
        os.ftruncate(self._events, 0)

    def is_written(self) -> bool | None:
        """Whether any process can still write events: it has that file mapped or, if there are no events yet, that of
        the threads. None if the kernel does not say. Do not call it inside `with drain:`."""
        file = "events" if self._size_bytes() else "threads"
        before = signal.signal(signal.SIGIO, signal.SIG_IGN)  # for who opens it in between
        try:
            reading = open_plain(os.path.join(self._directory, file))
            try:
                return _is_written(reading)
            finally:
                os.close(reading)
        except OSError:
            return None
        finally:
            signal.signal(signal.SIGIO, before)


def _is_written(descriptor: int) -> bool | None:
    """Whether a file is open for writing, or mapped for writing, by any process.

    The kernel grants a lease for reading only if it is not; the lease is returned at once. A layered file system may
    not see what happens in the layer below.
    """
    try:
        fcntl.fcntl(descriptor, fcntl.F_SETLEASE, fcntl.F_RDLCK)
        fcntl.fcntl(descriptor, fcntl.F_SETLEASE, fcntl.F_UNLCK)
    except BlockingIOError:
        return True
    return False if is_local(descriptor) else None


_FLAGS = os.O_RDWR | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
