"""The files of an experiment, opened without following links and read in bounded pieces; and the damage found.

Files are read by pread(2) into the reader's memory, never mapped. If a file is cut short meanwhile, a read returns
fewer bytes, where a mapping would raise SIGBUS; and what was checked cannot change before it is used.
"""

from __future__ import annotations

import errno
import os
import stat
from collections.abc import Iterator
from contextlib import contextmanager
from typing import NamedTuple


class Damage(NamedTuple):
    """Something that could not be read: the place (`test.1.er/events`) and what is wrong with it."""

    place: str
    what: str

    def __str__(self) -> str:
        return f"{self.place}: {self.what}"


class Damages:
    """The damage found so far, each thing once: the first `KEPT`, and the count of all, at most `COUNTED`."""

    KEPT = 100
    COUNTED = 200_000

    def __init__(self) -> None:
        self.found: list[Damage] = []
        self.count = 0
        self._seen: set[int] = set()  # hashes: the texts of many would take much room

    def add(self, place: str, what: str, instead_of: str = "") -> None:
        """Note that `what` is wrong at `place`, which is more than `instead_of`, if that was noted there."""
        damage, less = Damage(place, what), Damage(place, instead_of)
        if hash(less) in self._seen and hash(damage) not in self._seen:
            self._seen ^= {hash(less), hash(damage)}
            self.found = [damage if each == less else each for each in self.found]
            return
        if self.count == self.COUNTED or hash(damage) in self._seen:
            return
        self._seen.add(hash(damage))
        self.count += 1
        if len(self.found) < self.KEPT:
            self.found.append(damage)


class DataFile:
    """One file of an experiment; one that is not a plain file reads as empty and is noted."""

    def __init__(self, path: str, place: str, damages: Damages) -> None:
        self.path = path
        self.place = place
        self.damages = damages

    def damaged(self, what: str, instead_of: str = "") -> None:
        """Note that `what` is wrong with this file, which is more than `instead_of`, if that was noted."""
        self.damages.add(self.place, what, instead_of)

    @contextmanager
    def opened(self) -> Iterator[OpenFile | None]:
        """The file open for reading, or None if it cannot be; that is noted."""
        try:
            descriptor = open_plain(self.path)
        except OSError as error:
            self.damaged(_why(error))
            yield None
            return
        try:
            yield OpenFile(descriptor)
        finally:
            os.close(descriptor)

    @contextmanager
    def opened_if_there(self) -> Iterator[OpenFile | None]:
        """The same for a file that need not be there."""
        if os.path.lexists(self.path):
            with self.opened() as file:
                yield file
        else:
            yield None

    def read(self, offset: int, count: int) -> bytes:
        """Up to `count` bytes from `offset`; fewer at the end of the file."""
        with self.opened() as file:
            return file.read(offset, count) if file else b""


class OpenFile:
    """A file open for reading at any place."""

    def __init__(self, descriptor: int) -> None:
        self._descriptor = descriptor

    def size_bytes(self) -> int:
        """How long the file is now."""
        return os.fstat(self._descriptor).st_size

    def read(self, offset: int, count: int) -> bytes:
        """Up to `count` bytes from `offset`."""
        try:
            return os.pread(self._descriptor, count, offset)
        except (OSError, OverflowError):
            return b""

    def read_into(self, buffer: bytearray, offset: int) -> int:
        """Fill `buffer` from `offset`; returns the number of bytes."""
        try:
            return os.preadv(self._descriptor, [buffer], offset)
        except (OSError, OverflowError):
            return 0

    def next_data(self, offset: int) -> int | None:
        """The first offset from `offset` on that is not in a hole; None if there is none."""
        try:
            return os.lseek(self._descriptor, offset, os.SEEK_DATA)
        except OSError as error:
            return None if error.errno == errno.ENXIO else offset


def open_plain(path: str, mode: int = os.O_RDONLY) -> int:
    """A descriptor of the plain file at `path`. Raises OSError for links, devices and pipes."""
    descriptor = os.open(path, mode | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
    if not stat.S_ISREG(os.fstat(descriptor).st_mode):
        os.close(descriptor)
        raise OSError(errno.EINVAL, "not a plain file")
    return descriptor


def _why(error: OSError) -> str:
    if error.errno == errno.ENOENT:
        return "is not there"
    if error.errno == errno.ELOOP:
        return "a link, not followed"
    return error.strerror or str(error)
