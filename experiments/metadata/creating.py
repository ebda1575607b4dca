"""Adds files and directories to an experiment. They belong to the owner of the experiment, whoever adds them, and
everyone who may read the experiment may read them.

Root may add to the experiment of another user, who can replace a path by a link at any time. So everything is done
with descriptors, and existing files keep their owner and mode.
"""

from __future__ import annotations

import os
import pwd
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import BinaryIO

_NEW = os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
_THERE = os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC


def create(path: str, access: int = os.O_WRONLY) -> int:
    """A descriptor of a new file in an experiment's directory. Raises OSError (FileExistsError)."""
    with _opened_directory(os.path.dirname(path)) as above:
        name = os.path.basename(path)
        descriptor = os.open(name, access | _NEW, 0o600, dir_fd=above)
        try:
            _give(descriptor, os.fstat(above), 0o600, 0o640)
        except OSError:
            os.close(descriptor)
            os.unlink(name, dir_fd=above)
            raise
    return descriptor


def open_or_create(path: str, access: int) -> int:
    """A descriptor of a file in an experiment's directory, which is made if it is missing. Raises OSError."""
    while True:
        with suppress(FileNotFoundError):
            return os.open(path, access | _THERE)
        with suppress(FileExistsError):
            return create(path, access)


@contextmanager
def replacing(path: str) -> Iterator[BinaryIO]:
    """A file that takes the place of the one at `path`, at once for all readers, once it is written. Raises OSError."""
    directory, name = os.path.split(path)
    written = os.path.join(directory, f".{name}.{os.getpid()}")
    with suppress(FileNotFoundError):
        os.unlink(written)
    descriptor = create(written)
    try:
        with open(descriptor, "wb") as file:
            yield file
        os.rename(written, path)
    except BaseException:
        os.unlink(written)
        raise


def create_directory(path: str) -> None:
    """Make a directory in an experiment's. Raises OSError (FileExistsError)."""
    with _opened_directory(os.path.dirname(path)) as above:
        name = os.path.basename(path)
        os.mkdir(name, 0o700, dir_fd=above)
        made = os.open(name, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC, dir_fd=above)
        try:
            _give(made, os.fstat(above), 0o700, 0o2750)
        finally:
            os.close(made)


@contextmanager
def rights_of_owner(directory: str) -> Iterator[None]:
    """Open files only with the rights of the directory's owner. Otherwise a forged experiment would get copies of files
    that only root may read. Raises OSError."""
    owner = os.stat(directory)
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


@contextmanager
def _opened_directory(path: str) -> Iterator[int]:
    descriptor = os.open(path or os.curdir, os.O_PATH | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        yield descriptor
    finally:
        os.close(descriptor)


def _is_anothers(directory: os.stat_result) -> bool:
    return os.geteuid() == 0 != directory.st_uid


def _give(descriptor: int, above: os.stat_result, mode: int, group_mode: int) -> None:
    """Give what was just made to the owner of the directory, and to its group if that reads the experiment."""
    if _is_anothers(above):
        os.fchown(descriptor, above.st_uid, above.st_gid)
    os.fchmod(descriptor, group_mode if above.st_mode & 0o2040 == 0o2040 else mode)
