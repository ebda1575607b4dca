"""Partial results that are kept, so that the next report reads only what is new.

A result has two names, which are links to one file. The first is made of what the system says of the experiment's files
(device, inode, size, times of change); it takes no reading, and serves as long as nobody touches the experiment. The
second is made of their sizes, their times of modification and samples of their content, for copies: a copy that kept
these times is not read again, and one that did not is merely read. Both also contain the question, the experiment's
name, and the state of our own code. What is read back is checked like an experiment; whatever is wrong with it, the
experiment is read instead.
"""

from __future__ import annotations

import contextlib
import hashlib
import os
from collections.abc import Callable, Iterable, Iterator
from functools import cache

from interpose import __version__
from interpose.analysis.partial.coding import packed
from interpose.analysis.partial.partial import Question
from interpose.cli.many.remote import is_remote, versions
from interpose.config import state
from interpose.errors import Caught, ExperimentError
from interpose.experiments.format.compressed import decompress, zstandard_module
from interpose.experiments.maintenance.archives import is_content
from interpose.experiments.maintenance.parts import parts
from interpose.experiments.model.files import open_plain

FORMAT = b"interpose partial result 1\n"
DIRECTORY = "partial"
LARGEST_BYTES = 32 << 20  # of one result, compressed
LARGEST_TEXT_BYTES = 256 << 20
AT_MOST_BYTES = 512 << 20  # of all; the oldest go first
_SAMPLED_EACH_BYTES, _SAMPLE_BYTES = 1 << 16, 256
_CODE = ("analysis", "experiments", "legacy", "reports", "kinds.py")
_LEVEL = 3

TellsOf = Callable[[str], bytes]  # of the file at a path


def kept_directory() -> str | None:
    """Where results are kept: `partial` in the user's cache directory; None if that cannot be used."""
    above = state.cache_directory()
    return above and state.private_directory(os.path.join(above, DIRECTORY))


class Kept:
    """The results in a directory that belongs to the user alone. Nothing here raises: what cannot be kept is not."""

    def __init__(self, directory: str) -> None:
        self.directory = directory
        self._contents: dict[str, str] = {}  # the second names that have been made, by the first

    def stamp(self, path: str, question: Question) -> str | None:
        """The first name of the answer of the experiment at `path`; None if that cannot be read."""
        return _name("stamp", path, question, _stamps)

    def find(self, stamp: str) -> bytes | None:
        """The answer with that first name, if it is kept."""
        return self._read(stamp)

    def find_copy(self, path: str, question: Question, stamp: str) -> bytes | None:
        """The answer of a copy of the experiment at `path`; then it is found by its first name, too."""
        content = _name("content", path, question, _samples)
        if content is None:
            return None
        self._contents[stamp] = content
        found = self._read(content)
        if found is not None:
            self._link(content, stamp)
        return found

    def keep(self, path: str, question: Question, stamp: str, text: bytes) -> bool:
        """Keep an answer, and say so, unless the experiment has changed since it had that first name."""
        content = self._contents.get(stamp) or _name("content", path, question, _samples)
        if content is None or self.stamp(path, question) != stamp:
            return False
        with contextlib.suppress(OSError):
            self._write(content, text)
            self._link(content, stamp)
        return True

    def keep_whole(self, name: str, text: bytes) -> None:
        """Keep the merged answer of several experiments, whose own are kept, under a name made of theirs."""
        with contextlib.suppress(OSError):
            self._write(name, text)

    def tidy(self, at_most_bytes: int = AT_MOST_BYTES) -> None:
        """Remove the oldest results until a quarter of the room is free, if there are more than have room."""
        found = []
        with contextlib.suppress(OSError), os.scandir(self.directory) as entries:
            for entry in entries:
                said = entry.stat(follow_symlinks=False)
                found.append((said.st_mtime_ns, entry.path, said.st_size // max(said.st_nlink, 1)))
        left = sum(size for _, _, size in found)
        if left <= at_most_bytes:
            return
        for _, path, size in sorted(found):
            if left <= at_most_bytes * 3 // 4:
                break
            with contextlib.suppress(OSError):
                os.unlink(path)
            left -= size

    def _read(self, name: str) -> bytes | None:
        try:
            with open(open_plain(os.path.join(self.directory, name)), "rb") as file:
                said = os.fstat(file.fileno())
                if said.st_uid != os.geteuid() or said.st_mode & 0o077 or said.st_size > LARGEST_BYTES:
                    return None
                data = file.read(LARGEST_BYTES)
                return _text(data)
        except (OSError, _NotKept, MemoryError):
            return None

    def _write(self, name: str, text: bytes) -> None:
        data = _file(text)
        if len(data) > LARGEST_BYTES or len(text) > LARGEST_TEXT_BYTES:
            return
        written = os.path.join(self.directory, f".{os.getpid()}.{name}")
        flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
        with open(os.open(written, flags, 0o600), "wb") as file:
            os.fchmod(file.fileno(), 0o600)
            file.write(data)
        os.replace(written, os.path.join(self.directory, name))

    def _link(self, name: str, other: str) -> None:
        target = os.path.join(self.directory, other)
        with contextlib.suppress(OSError):
            if os.path.lexists(target):
                os.unlink(target)
            os.link(os.path.join(self.directory, name), target)


class _NotKept(Caught):
    """A file is not one that was written here."""


def _file(text: bytes) -> bytes:
    compressed: bytes = zstandard_module().ZstdCompressor(level=_LEVEL).compress(text)
    return FORMAT + hashlib.sha256(text).digest() + compressed


def _text(data: bytes) -> bytes:
    if not data.startswith(FORMAT):
        raise _NotKept("of another format")
    end = len(FORMAT) + hashlib.sha256().digest_size
    try:
        text = decompress(data[end:], LARGEST_TEXT_BYTES)
    except (zstandard_module().ZstdError, Caught, ValueError) as error:
        raise _NotKept(str(error)) from error
    if hashlib.sha256(text).digest() != data[len(FORMAT) : end]:
        raise _NotKept("of another content")
    return text


def _name(of: str, path: str, question: Question, told_of: TellsOf) -> str | None:
    """The name of an answer, by what a function tells of each file of the experiment."""
    made = hashlib.sha256(f"{of} {os.path.basename(os.path.abspath(path))}\n".encode("utf-8", "surrogateescape"))
    made.update(packed(question, Question) + _code())
    try:
        for name, told in _told_of_remote(path) if is_remote(path) else _told(path, told_of):
            made.update(f"\n{name}\0".encode("utf-8", "surrogateescape") + told)
    except (OSError, ExperimentError):
        return None
    return made.hexdigest()


def _told_of_remote(url: str) -> Iterable[tuple[str, bytes]]:
    found = versions(url)
    if found is None:
        raise ExperimentError(f"{url}: nothing tells whether its files have changed")
    return found


def _told(path: str, told_of: TellsOf) -> Iterable[tuple[str, bytes]]:
    return ((name, told_of(file)) for name, file in _files(path))


def _files(path: str) -> Iterator[tuple[str, str]]:
    """The files of an experiment, or the one that it is packed into."""
    if os.path.isdir(path):
        yield from parts(path)
    else:
        yield "", path


def _stamps(path: str) -> bytes:
    """What the system says of a file; no program can set the time of its last change."""
    said = os.lstat(path)
    return b"%d %d %d %d %d" % (said.st_dev, said.st_ino, said.st_size, said.st_mtime_ns, said.st_ctime_ns)


def _samples(path: str) -> bytes:
    """The size of a file, when it was modified, and some bytes of every block; none of a file named by its content."""
    if is_content(os.path.basename(path)):
        said = os.lstat(path)
        return b"%d %d" % (said.st_size, said.st_mtime_ns)
    descriptor = open_plain(path)
    try:
        said = os.fstat(descriptor)
        offsets = range(0, said.st_size, _SAMPLED_EACH_BYTES)
        sampled = [os.pread(descriptor, _SAMPLE_BYTES, offset) for offset in offsets]
    finally:
        os.close(descriptor)
    return b"".join((b"%d %d " % (said.st_size, said.st_mtime_ns), *sampled))


@cache
def _code() -> bytes:
    """The version of interpose, and when its analysis was last modified."""
    top = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
    made = hashlib.sha256(__version__.encode())
    for place in _CODE:
        for path in sorted(_modules(os.path.join(top, place))):
            said = os.stat(path)
            made.update(f"{path.removeprefix(top)} {said.st_size} {said.st_mtime_ns}\n".encode())
    return made.digest()


def _modules(path: str) -> Iterator[str]:
    if os.path.isfile(path):
        yield path
    for directory, _, files in os.walk(path):
        yield from (os.path.join(directory, each) for each in files if each.endswith((".py", ".so")))
