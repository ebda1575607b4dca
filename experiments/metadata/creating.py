"""Adds files and directories to an experiment. They belong to the owner of the experiment, whoever adds them, and
everyone who may read the experiment may read them.

Root may add to the experiment of another user, who can replace a path by a link at any time. So a directory is opened
once, without following links, and all is done by its descriptor. Existing files keep their owner and mode.
"""

from __future__ import annotations

import errno
import os
import pwd
import re
import stat
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import BinaryIO

from interpose.errors import ExperimentError

_NEW = os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
_THERE = os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
_DIRECTORY = os.O_PATH | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
_HELD = re.compile("/proc/self/fd/[0-9]+(?=/|$)")


def without_links(path: str) -> str:
    """The path of a directory that is not a link itself, with the links above it resolved."""
    above, name = os.path.split(os.path.abspath(path))
    return os.path.join(os.path.realpath(above), name)


class Directory:
    """An experiment's directory, open for adding to it. Names are of what is directly in it.

    Raises OSError; ExperimentError if a part of `path` is a link, except one to what this process has open.
    """

    def __init__(self, path: str) -> None:
        self.path = os.path.abspath(path)
        held = _HELD.match(self.path)
        begin = held[0] if held else os.sep
        self._descriptor = os.open(begin, _DIRECTORY & ~os.O_NOFOLLOW)
        for part in filter(None, self.path.removeprefix(begin).split(os.sep)):
            above = self._descriptor
            try:
                self._descriptor = self._opened(part)
            finally:
                os.close(above)
        self.status = os.fstat(self._descriptor)

    def __enter__(self) -> Directory:
        return self

    def __exit__(self, *_: object) -> None:
        os.close(self._descriptor)

    def below(self, name: str) -> Directory:
        """The directory in this one, which is made if it is missing. Raises ExperimentError if it is a link, or root
        would write into what is not the owner's."""
        with suppress(FileExistsError):
            self.create_directory(name)
        found = object.__new__(Directory)
        found.path = os.path.join(self.path, name)
        found._descriptor = self._opened(name)
        found.status = os.fstat(found._descriptor)
        if os.geteuid() == 0 and found.status.st_uid != self.status.st_uid:
            os.close(found._descriptor)
            raise ExperimentError(f"{found.path}: has another owner than the experiment")
        return found

    def create(self, name: str, access: int = os.O_WRONLY) -> int:
        """A descriptor of a new file. Raises OSError (FileExistsError)."""
        descriptor = os.open(name, access | _NEW, 0o600, dir_fd=self._descriptor)
        try:
            _give(descriptor, self.status, 0o600, 0o640)
        except OSError:
            os.close(descriptor)
            self.remove(name)
            raise
        return descriptor

    def open(self, name: str, access: int = os.O_RDONLY) -> int:
        """A descriptor of the plain file that is there. Raises OSError."""
        descriptor = os.open(name, access | _THERE, dir_fd=self._descriptor)
        if not stat.S_ISREG(os.fstat(descriptor).st_mode):
            os.close(descriptor)
            raise OSError(errno.EINVAL, "not a plain file", os.path.join(self.path, name))
        return descriptor

    def open_or_create(self, name: str, access: int) -> int:
        """A descriptor of a file, which is made if it is missing. Raises OSError."""
        while True:
            with suppress(FileNotFoundError):
                return self.open(name, access)
            with suppress(FileExistsError):
                return self.create(name, access)

    @contextmanager
    def replacing(self, name: str) -> Iterator[BinaryIO]:
        """A file that takes the place of the one called `name`, at once for all readers, once it is written. Raises
        OSError."""
        written = f".{name}.{os.getpid()}"
        with suppress(FileNotFoundError):
            self.remove(written)
        descriptor = self.create(written)
        try:
            with open(descriptor, "wb") as file:
                yield file
            self.rename(written, name)
        except BaseException:
            self.remove(written)
            raise

    def rename(self, name: str, into: str) -> None:
        """Call a file otherwise, in the place of one that has that name. Raises OSError."""
        os.rename(name, into, src_dir_fd=self._descriptor, dst_dir_fd=self._descriptor)

    def remove(self, name: str) -> None:
        """Raises OSError."""
        os.unlink(name, dir_fd=self._descriptor)

    def status_of(self, name: str) -> os.stat_result | None:
        """What the file is, which may be a link; None if there is none."""
        with suppress(FileNotFoundError):
            return os.stat(name, dir_fd=self._descriptor, follow_symlinks=False)
        return None

    def link(self, name: str, into: Directory) -> None:
        """Have the file in another directory too. Raises OSError."""
        there = into._descriptor
        os.link(name, name, src_dir_fd=self._descriptor, dst_dir_fd=there, follow_symlinks=False)

    def create_directory(self, name: str) -> None:
        """Make a directory. Raises OSError (FileExistsError)."""
        os.mkdir(name, 0o700, dir_fd=self._descriptor)
        flags = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
        made = os.open(name, flags, dir_fd=self._descriptor)
        try:
            _give(made, self.status, 0o700, 0o2750)
        finally:
            os.close(made)

    def _opened(self, name: str) -> int:
        try:
            return os.open(name, _DIRECTORY, dir_fd=self._descriptor)
        except NotADirectoryError:
            raise ExperimentError(f"{self.path}: {name} is a link or a file, not a directory") from None


@contextmanager
def replacing(path: str) -> Iterator[BinaryIO]:
    """A file that takes the place of the one at `path`, at once for all readers, once it is written. Raises OSError;
    ExperimentError if a directory in `path` is a link."""
    with Directory(os.path.dirname(path)) as directory, directory.replacing(os.path.basename(path)) as file:
        yield file


@contextmanager
def rights_of_owner(owner: os.stat_result) -> Iterator[None]:
    """Open files only with the rights of the owner of the directory with this status. Otherwise a forged experiment
    would get copies of files that only root may read. Raises OSError."""
    if not _is_anothers(owner):
        yield
        return
    group, groups = os.getegid(), os.getgroups()
    try:
        os.setgroups(_groups_of(owner))
        os.setegid(owner.st_gid)
        os.seteuid(owner.st_uid)
        yield
    finally:
        os.seteuid(0)
        os.setegid(group)
        os.setgroups(groups)


def _groups_of(owner: os.stat_result) -> list[int]:
    try:
        return os.getgrouplist(pwd.getpwuid(owner.st_uid).pw_name, owner.st_gid)
    except KeyError:
        return [owner.st_gid]


def _is_anothers(directory: os.stat_result) -> bool:
    return os.geteuid() == 0 != directory.st_uid


def _give(descriptor: int, above: os.stat_result, mode: int, group_mode: int) -> None:
    """Give what was just made to the owner of the directory, and to its group if that reads the experiment."""
    if _is_anothers(above):
        os.fchown(descriptor, above.st_uid, above.st_gid)
    os.fchmod(descriptor, group_mode if above.st_mode & 0o2040 == 0o2040 else mode)
