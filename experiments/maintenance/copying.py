"""Copying and removing experiments: their own files only, links never followed, strangers never touched."""

from __future__ import annotations

import errno
import os
import shutil
import stat

from interpose.errors import ExperimentError
from interpose.experiments.maintenance.parts import parts
from interpose.experiments.metadata import names
from interpose.experiments.model.experiment import experiments_beside
from interpose.experiments.model.files import open_plain

_CHUNK_BYTES = 64 * 1024


def refuse_what_is_none(path: str) -> None:
    """Raises ExperimentError if `path` is not a founder's directory, by its name and its content."""
    given, path = path, os.path.abspath(path)
    name, above = os.path.basename(path), os.path.dirname(path)
    try:
        found = os.lstat(path)
    except FileNotFoundError:
        raise ExperimentError(f"{given}: no such experiment", given, experiments_beside(given)) from None
    except OSError as error:
        raise ExperimentError(f"{path}: {error.strerror}") from error
    if stat.S_ISLNK(found.st_mode):
        raise ExperimentError(f"{path}: is a link; name the experiment itself")
    if not stat.S_ISDIR(found.st_mode) or not name.endswith(names.SUFFIX) or not _has_log(path):
        raise ExperimentError(f"{path}: not an experiment")
    if names.is_lineage(name.removesuffix(names.SUFFIX)) and above.endswith(names.SUFFIX):
        raise ExperimentError(f"{path}: a child process's part of {os.path.basename(above)}")


def _has_log(path: str) -> bool:
    """Whether the log begins as one does; it is empty if nothing could be recorded. Raises ExperimentError if it may
    not be read."""
    try:
        with open(open_plain(os.path.join(path, names.LOG)), "rb") as file:
            begin = file.read(4096)
    except PermissionError as error:
        raise ExperimentError(f"{path}: {error.strerror}") from error
    except OSError:
        return False
    return not begin or b"<experiment" in begin


def copy(source: str, target: str) -> None:
    """Copy the experiment at `source` to `target`, which must not exist. If it is being written, copy what is whole.

    Raises OSError (FileExistsError); nothing is then left at `target`.
    """
    names.make_private(target)
    try:
        for part in parts(source):
            above = os.path.join(target, os.path.dirname(part.name))
            if not os.path.isdir(above):
                names.make_private(above)
            _copy_file(part.path, os.path.join(target, part.name))
    except BaseException:
        remove(target)
        raise


def _copy_file(source: str, target: str) -> None:
    """To the end that the file has when it is reached: a full block is appended before its place is used again."""
    flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
    with open(open_plain(source), "rb", buffering=0) as file, open(os.open(target, flags, 0o600), "wb") as out:
        while chunk := file.read(_CHUNK_BYTES):
            if chunk.count(0) == len(chunk):
                out.seek(len(chunk), os.SEEK_CUR)
            else:
                out.write(chunk)
        out.truncate(out.tell())
        found = os.fstat(file.fileno())
        os.utime(out.fileno(), ns=(found.st_atime_ns, found.st_mtime_ns))


def move(source: str, target: str) -> None:
    """Move the experiment at `source` to `target`, which must not be there. Raises OSError."""
    if os.path.lexists(target):
        raise FileExistsError(errno.EEXIST, os.strerror(errno.EEXIST), target)
    try:
        os.rename(source, target)
    except OSError as error:
        if error.errno != errno.EXDEV:
            raise
        _refuse_what_would_stay(source)
        copy(source, target)
        remove(source)


def remove(path: str) -> None:
    """Remove the directory with all that is in it; what links in it lead to stays.

    Raises OSError, where a directory may not be changed before anything is removed.
    """
    _refuse_what_would_stay(path)
    shutil.rmtree(path)


def _refuse_what_would_stay(path: str) -> None:
    """Raises PermissionError if a part of the directory could not be removed, and the rest would be damaged."""
    above = os.path.dirname(os.path.abspath(path))
    for directory in [above, *(place for place, below, files in os.walk(path) if below or files)]:
        if not os.access(directory, os.W_OK | os.X_OK):
            raise PermissionError(errno.EACCES, os.strerror(errno.EACCES), directory)
