"""Sources in zip archives, from which Python imports: `shop.zip/orders.py` names a file in `shop.zip`."""

from __future__ import annotations

import errno
import os
from typing import BinaryIO

from interpose.experiments.model.files import open_plain


def open_source(path: str, largest_bytes: int) -> int:
    """A descriptor of the plain file at `path`; of one in an archive, of a copy in memory with the archive's time.

    The copy has at most a byte more than `largest_bytes`. Raises OSError; ValueError if that is no path.
    """
    try:
        return open_plain(path)
    except NotADirectoryError:
        archive = _first_file(path)
        if archive is None:
            raise
    with open(open_plain(archive), "rb") as file:
        found = os.fstat(file.fileno())
        content = _content(file, os.path.relpath(path, archive), largest_bytes)
    return _in_memory(content, found)


def _first_file(path: str) -> str | None:
    """What is above `path` and should be a directory, but is a file; None if nothing is."""
    above = os.path.dirname(path)
    while not os.path.lexists(above):
        above = os.path.dirname(above)
    return above if os.path.isfile(above) else None


def _content(file: BinaryIO, name: str, largest_bytes: int) -> bytes:
    import zipfile  # takes time that readers of plain files need not spend
    import zlib

    try:
        with zipfile.ZipFile(file) as archive, archive.open(name) as source:
            if archive.getinfo(name).compress_type not in (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED):
                raise zipfile.BadZipFile("Python imports from none")
            return source.read(largest_bytes + 1)
    except KeyError:
        raise FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT)) from None
    except (zipfile.BadZipFile, zlib.error, EOFError, RuntimeError, ValueError):
        raise OSError(errno.EINVAL, "not readable in its archive") from None


def _in_memory(content: bytes, of: os.stat_result) -> int:
    copy = os.memfd_create("source")
    try:
        os.pwrite(copy, content, 0)
        os.utime(copy, ns=(of.st_atime_ns, of.st_mtime_ns))
    except OSError:
        os.close(copy)
        raise
    return copy
