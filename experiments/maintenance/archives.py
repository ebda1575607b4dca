"""The archive of an experiment: copies of files that it refers to, named by content, and an index of their paths.

    archives/index.jsonl             a line for each path: which content it had
    archives/orders.py_0f3a…         a content: the last part of a path, and the hash of what is in it

A path in the index is only ever compared with one that an experiment names; it is never opened.
"""

from __future__ import annotations

import fcntl
import hashlib
import json
import os
import re
import stat
from collections.abc import Iterator
from contextlib import ExitStack, suppress
from dataclasses import asdict, dataclass
from typing import Any

from interpose.experiments.metadata.creating import Directory
from interpose.experiments.model.files import Damages, open_plain

ARCHIVES = "archives"
INDEX = "index.jsonl"
LOG = "archive.log"
SOURCE, OBJECT = "source", "object"
ENTRIES_AT_MOST = 100_000
LONGEST_LINE_BYTES = 32 * 1024
LARGEST_INDEX_BYTES = 64 << 20
_HASH_LETTERS = 32
_CHUNK_BYTES = 1 << 20
_CONTENT = re.compile(rf"[A-Za-z0-9._-]{{1,64}}_[0-9a-f]{{{_HASH_LETTERS}}}")


@dataclass(frozen=True)
class Entry:
    """What the index says of a path; `changed` where the file was written to after the program had ended."""

    path: str
    content: str
    kind: str
    bytes: int
    mtime_ns: int
    changed: bool


def is_content(name: str) -> bool:
    """Whether a file of the archive can be called `name`."""
    return _CONTENT.fullmatch(name) is not None


def has_archive(founder: str) -> bool:
    """Whether files were archived for this experiment, whatever was found."""
    return os.path.lexists(os.path.join(founder, ARCHIVES, INDEX))


def read_index(founder: str, place: str, damages: Damages) -> dict[str, Entry]:
    """The entries of the index by path, the latest of each; invalid lines are ignored and noted."""
    place = f"{place}/{ARCHIVES}/{INDEX}"
    try:
        descriptor = open_plain(os.path.join(founder, ARCHIVES, INDEX))
    except FileNotFoundError:
        return {}
    except OSError as error:
        damages.add(place, error.strerror or "cannot be read")
        return {}
    entries: dict[str, Entry] = {}
    with open(descriptor, "rb") as file:
        for number in range(ENTRIES_AT_MOST):
            line = file.readline(LONGEST_LINE_BYTES)
            if not line:
                return entries
            if file.tell() > LARGEST_INDEX_BYTES:
                damages.add(place, f"longer than {LARGEST_INDEX_BYTES >> 20} MiB, the rest was not read")
                return entries
            if entry := _parsed(line):
                entries[entry.path] = entry
            else:
                damages.add(place, f"line {number + 1} is not an entry")
                if not line.endswith(b"\n"):
                    return entries
    damages.add(place, f"more than {ENTRIES_AT_MOST:,} lines, the rest was not read")
    return entries


def _parsed(line: bytes) -> Entry | None:
    try:
        found: Any = json.loads(line)
        entry = Entry(**found)
    except (ValueError, TypeError, RecursionError):
        return None
    right = all(type(getattr(entry, name)).__name__ == kind for name, kind in Entry.__annotations__.items())
    return entry if right and is_content(entry.content) else None


def hash_of(data: bytes) -> str:
    """How the name of a content ends: with the first half of its SHA-256."""
    return hashlib.sha256(data).hexdigest()[:_HASH_LETTERS]


def read_content(founder: str, entry: Entry, largest_bytes: int) -> bytes | None:
    """The archived content; None if it is not there, is too long, or is not what the index says."""
    try:
        descriptor = open_plain(os.path.join(founder, ARCHIVES, entry.content))
    except OSError:
        return None
    with open(descriptor, "rb") as file:
        data = file.read(largest_bytes + 1)
    is_it = entry.content.endswith(f"_{hash_of(data)}")
    return data if is_it and len(data) <= largest_bytes else None


class Archive:
    """The archive in the founder's directory, open for adding; `common` is a directory of shared contents.

    Raises OSError, ExperimentError; BlockingIOError if another process is adding to it and `wait` is false.
    """

    def __init__(self, founder: str, *, common: str | None = None, wait: bool = True) -> None:
        with ExitStack() as opened:
            self.founder = opened.enter_context(Directory(founder))
            self._directory = opened.enter_context(self.founder.below(ARCHIVES))
            self._place = opened.enter_context(Directory(common)) if common else self._directory
            self._index = _open_to_append(self._directory, INDEX)
            opened.callback(os.close, self._index)
            fcntl.flock(self._index, fcntl.LOCK_EX | (0 if wait else fcntl.LOCK_NB))
            self._log = _open_to_append(self.founder, LOG)
            opened.callback(os.close, self._log)
            self.entries = read_index(founder, founder, Damages())
            self._opened = opened.pop_all()

    def __enter__(self) -> Archive:
        return self

    def __exit__(self, *_: object) -> None:
        self._opened.close()

    def note(self, line: str) -> None:
        """Write a line into archive.log."""
        shown = "".join(letter if letter.isprintable() else "?" for letter in line)
        os.write(self._log, shown.encode("utf-8", "replace") + b"\n")

    def add(self, path: str, kind: str, descriptor: int, changed: bool) -> Entry:
        """Keep what `descriptor` reads as the content of `path`. Raises OSError; ValueError if it changes."""
        before = os.fstat(descriptor)
        written, name, size_bytes = self._copy(descriptor, os.path.basename(path))
        after = os.fstat(descriptor)
        if (before.st_mtime_ns, before.st_size) != (after.st_mtime_ns, after.st_size):
            self._place.remove(written)
            raise ValueError("it was changed while it was copied")
        if _is_whole(self._place.status_of(name), size_bytes):
            self._place.remove(written)
        else:
            self._place.rename(written, name)
        if self._place is not self._directory:
            self._share(name)
        entry = Entry(path, name, kind, size_bytes, before.st_mtime_ns, changed)
        os.write(self._index, json.dumps(asdict(entry)).encode() + b"\n")
        self.entries[path] = entry
        return entry

    def _copy(self, source: int, called: str) -> tuple[str, str, int]:
        """Copy into a new file; returns its name, the one that it shall have, and its size."""
        written = f".new.{os.getpid()}"
        hashed, size_bytes = hashlib.sha256(), 0
        with open(self._place.create(written), "wb") as file:
            try:
                for chunk in _chunks(source):
                    hashed.update(chunk)
                    size_bytes += file.write(chunk)
            except OSError:
                self._place.remove(written)
                raise
        last_part = re.sub(r"[^A-Za-z0-9._-]", "_", called)[-64:] or "_"
        return written, f"{last_part}_{hashed.hexdigest()[:_HASH_LETTERS]}", size_bytes

    def _share(self, name: str) -> None:
        """Have the common content in the experiment too: the same file where links can be, else a copy."""
        if self._directory.status_of(name):
            return
        common = self._place.status_of(name)
        if common and common.st_uid == self._directory.status.st_uid:
            with suppress(OSError):
                return self._place.link(name, self._directory)
        with open(self._place.open(name), "rb") as content, open(self._directory.create(name), "wb") as file:
            for chunk in _chunks(content.fileno()):
                file.write(chunk)


def _chunks(descriptor: int) -> Iterator[bytes]:
    place = 0
    while chunk := os.pread(descriptor, _CHUNK_BYTES, place):
        yield chunk
        place += len(chunk)


def _is_whole(found: os.stat_result | None, size_bytes: int) -> bool:
    """Whether the content is there already; links to it share it."""
    return found is not None and stat.S_ISREG(found.st_mode) and found.st_size == size_bytes


def _open_to_append(directory: Directory, name: str) -> int:
    return directory.open_or_create(name, os.O_WRONLY | os.O_APPEND)
