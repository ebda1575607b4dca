"""What is stored for the user outside of experiments: why nothing was recorded, and what had no other place.

Traced programs write it, so nothing here raises or prints, or imports more than they have anyway.
"""

from __future__ import annotations

import os
import time

from interpose.experiments.metadata import names

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping

NOT_RECORDED = "not-recorded"
EXPERIMENTS = "experiments"
KEPT = 100
LARGEST_TEXT_BYTES = 300
LARGEST_FILE_BYTES = 1 << 16


class NotRecorded:
    """A process of which nothing was recorded: when, which program, why, and where its experiment would be."""

    __slots__ = ("directory", "pid", "program", "reason", "time_s")

    def __init__(self, time_s: int, pid: int, program: str, reason: str, directory: str) -> None:
        self.time_s = time_s
        self.pid = pid
        self.program = program
        self.reason = reason
        self.directory = directory

    def __str__(self) -> str:
        then, now = time.localtime(self.time_s), time.localtime()
        clock = time.strftime("%H:%M" if then[:3] == now[:3] else "%Y-%m-%d %H:%M", then)
        return f"{self.program}, process {self.pid}, {clock}: not recorded: {self.reason}"


def directory(environment: Mapping[str, str] = os.environ) -> str | None:
    """The user's state directory, made if necessary; None if it cannot be made, there is no home to make it in, or it
    belongs to somebody else."""
    return _directory(environment.get("XDG_STATE_HOME", ""), ".local/state")


def cache_directory() -> str | None:
    """The same for what can be made again: the user's cache directory."""
    return _directory(os.environ.get("XDG_CACHE_HOME", ""), ".cache")


def _directory(base: str, in_home: str) -> str | None:
    if not base.startswith("/"):  # the XDG specification: relative paths are ignored
        home = os.path.expanduser("~")
        if not home.startswith("/") or not os.path.isdir(home):  # some users have a home that must not exist
            return None
        base = os.path.join(home, in_home)
    return private_directory(os.path.join(base, "interpose"))


def private_directory(path: str) -> str | None:
    """The directory at `path`, made with mode 0700; None if it belongs to somebody else or is a link."""
    try:
        make_levels(path)
        found = os.lstat(path)
    except OSError:
        return None
    own = found.st_uid == os.geteuid() and not os.path.islink(path) and not found.st_mode & 0o022
    return path if own else None


def make_levels(path: str) -> None:
    """Make the directory and its missing parents, each with mode 0700 whatever the umask."""
    if not os.path.isdir(path):
        make_levels(os.path.dirname(path))
        names.make_private(path)


def experiments_directory() -> str | None:
    """Where experiments go when the wanted directory is not writable; None if there is no such place."""
    state = directory()
    return state and private_directory(os.path.join(state, EXPERIMENTS))


def experiments_elsewhere() -> list[str]:
    """The paths of the experiments that had no other place, oldest first."""
    state = directory()
    try:
        return names.list_experiments(os.path.join(state, EXPERIMENTS)) if state else []
    except OSError:
        return []


def note_not_recorded(program: str, pid: int, reason: str, wanted: str) -> None:
    """Keep why nothing was recorded of a process; the directory `wanted` is where its experiment would be. Does nothing
    where nothing can be kept."""
    state = directory()
    if state is None:
        return
    texts = [_one_line(text) for text in (program, reason, wanted)]
    line = "\t".join([str(int(time.time())), str(pid), *texts]) + "\n"
    try:
        _append(os.path.join(state, NOT_RECORDED), line.encode("utf-8", "replace"))
    except OSError:
        pass


def not_recorded(environment: Mapping[str, str] = os.environ) -> list[NotRecorded]:
    """The last processes of which nothing was recorded, oldest first; what cannot be read is left out."""
    state = directory(environment)
    try:
        data = _read(os.path.join(state, NOT_RECORDED)) if state else b""
    except OSError:
        return []
    noted = [_parse(line) for line in data.split(b"\n")]
    return [note for note in noted if note][-KEPT:]


def not_recorded_in(*directories: str) -> list[NotRecorded]:
    """Those whose experiments would be in one of these directories."""
    shown = [_one_line(each) for each in directories]
    return [note for note in not_recorded() if note.directory in shown]


def _one_line(text: str) -> str:
    """The text with everything replaced that could move a cursor, end a line or be cut in the middle."""
    shown = "".join(character if character.isprintable() else "?" for character in text)
    return shown.encode("utf-8", "replace")[:LARGEST_TEXT_BYTES].decode("utf-8", "ignore")


def _parse(line: bytes) -> NotRecorded | None:
    """What one line says, or None if it was not written by us."""
    fields = line.decode("utf-8", "replace").split("\t")
    if len(fields) != 5:
        return None
    time_s, pid, program, reason, directory = fields
    if not (_is_number(time_s) and _is_number(pid)):
        return None
    return NotRecorded(int(time_s), int(pid), *map(_one_line, (program, reason, directory)))


def _is_number(text: str) -> bool:
    return text.isascii() and text.isdecimal() and len(text) <= 11


def _append(path: str, line: bytes) -> None:
    flags = os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_NOFOLLOW | os.O_CLOEXEC | os.O_NONBLOCK
    descriptor = os.open(path, flags, 0o600)
    try:
        os.write(descriptor, line)
        size_bytes = os.fstat(descriptor).st_size
    finally:
        os.close(descriptor)
    if size_bytes > LARGEST_FILE_BYTES:
        _shorten(path)


def _shorten(path: str) -> None:
    """Keep the last lines, in a file that replaces the old one: a reader sees the one or the other."""
    lines = _read(path).splitlines(keepends=True)[-KEPT:]
    shorter = f"{path}.{os.getpid()}"
    flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
    descriptor = os.open(shorter, flags, 0o600)
    try:
        os.write(descriptor, b"".join(lines))
    finally:
        os.close(descriptor)
    os.rename(shorter, path)


def _read(path: str) -> bytes:
    """The end of a file, more than is ever kept."""
    descriptor = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_CLOEXEC | os.O_NONBLOCK)
    try:
        size_bytes = os.fstat(descriptor).st_size
        return os.pread(descriptor, 2 * LARGEST_FILE_BYTES, max(0, size_bytes - 2 * LARGEST_FILE_BYTES))
    finally:
        os.close(descriptor)
