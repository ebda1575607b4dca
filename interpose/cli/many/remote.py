"""Experiments elsewhere, named by a URL: `s3://runs/shop.1.er`, `memory://…`, whatever fsspec reads.

What is fetched goes into a private directory, which goes when it was read. Others' listings are hostile input: only
files that an experiment can have are fetched, under names that they can have, and no more than experiments that are one
file may hold.
"""

from __future__ import annotations

import importlib
import os
import re
import shutil
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any, NamedTuple

from interpose.config.state import make_levels
from interpose.errors import ExperimentError, InterposeError, UsageError
from interpose.experiments.maintenance.packed import LARGEST_UNPACKED_BYTES, SUFFIX
from interpose.experiments.maintenance.parts import PARTS_AT_MOST, is_part
from interpose.experiments.metadata import names

_URL = re.compile(r"([a-z][a-z0-9+.-]*)://.*", re.DOTALL)
_USER = re.compile(r"//[^/@]*@")
_ONLY_HERE = ("memory",)  # what no other process has
_CHUNK_BYTES = 1 << 20
# What tells that a file is another one, by the names that file systems give it.
_VERSIONS = ("ETag", "etag", "md5Hash", "versionId", "mtime", "LastModified", "last_modified", "updated", "created")


class _File(NamedTuple):
    """A file of an experiment: its name there, its place, its size if known, and what tells that it is another one."""

    name: str
    place: str
    size: int | None
    version: str


def is_remote(path: str) -> bool:
    """Whether `path` is a URL."""
    return _URL.fullmatch(path) is not None


def is_only_here(path: str) -> bool:
    """Whether only this process can read that URL."""
    found = _URL.fullmatch(path)
    return found is not None and found[1] in _ONLY_HERE


def shown(url: str) -> str:
    """The URL without a user's name and password."""
    return _USER.sub("//", url)


def matching(pattern: str) -> list[str]:
    """The URLs of the experiments that match a URL with `*`, `?` or `[…]`, in order. Raises InterposeError."""
    with _in_words(pattern):
        system, place = _system(pattern)
        found = sorted(str(each) for each in system.glob(place))
        return [system.unstrip_protocol(each) for each in found if each.endswith((names.SUFFIX, SUFFIX))]


@contextmanager
def fetched(url: str) -> Iterator[str]:
    """The path of a copy of the experiment at `url`, which goes afterwards. Raises InterposeError."""
    directory = tempfile.mkdtemp(prefix="interpose-")
    try:
        yield fetch(url, directory)
    finally:
        shutil.rmtree(directory, ignore_errors=True)


def fetch(url: str, directory: str) -> str:
    """Copy the experiment at `url` into `directory`; gives its path there. Raises InterposeError."""
    name = url.rstrip("/").rpartition("/")[2]
    if not name.endswith((names.SUFFIX, SUFFIX)) or name.startswith(".") or not name.isprintable():
        raise ExperimentError(f"{shown(url)}: not an experiment: its name does not end with {names.SUFFIX}")
    path = os.path.join(directory, name)
    with _in_words(url):
        system, place = _system(url)
        left = LARGEST_UNPACKED_BYTES
        for each in _files(system, place, url):
            left -= _fetch_file(system, each, os.path.join(path, each.name) if each.name else path, left)
            if left <= 0:
                raise ExperimentError(f"{shown(url)}: larger than {LARGEST_UNPACKED_BYTES >> 30} GiB")
    return path


def versions(url: str) -> list[tuple[str, bytes]] | None:
    """For each file of the experiment at `url` what tells that it is another one; None if something does not."""
    with _in_words(url):
        system, place = _system(url)
        found = _files(system, place, url)
    if not all(each.version for each in found):
        return None
    return [(each.name, f"{each.size} {each.version}".encode()) for each in found]


def _files(system: Any, place: str, url: str) -> list[_File]:
    said = system.find(place, detail=True)
    top = place.rstrip("/")
    if top in said:  # packed into one file
        return [_file("", top, said[top])]
    named = {path: path.removeprefix(top).lstrip("/") for path in said}
    found = [_file(name, path, said[path]) for path, name in sorted(named.items()) if is_part(name)]
    if not found:
        raise ExperimentError(f"{shown(url)}: no such experiment")
    if len(found) > PARTS_AT_MOST:
        raise ExperimentError(f"{shown(url)}: more than {PARTS_AT_MOST:,} files")
    return found


def _file(name: str, place: str, said: Mapping[str, Any]) -> _File:
    version = next((str(said[each]) for each in _VERSIONS if said.get(each)), "")
    size = said.get("size")
    return _File(name, place, None if size is None else int(size), version)


def _fetch_file(system: Any, file: _File, path: str, at_most: int) -> int:
    """Copy a file, as much as its listing says that it has, and no more than `at_most`; gives how much that is."""
    make_levels(os.path.dirname(path))
    descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600)
    with open(descriptor, "wb") as into, system.open(file.place, "rb") as source:
        left = at_most if file.size is None else min(file.size, at_most)
        while left > 0 and (data := source.read(min(left, _CHUNK_BYTES))):
            into.write(data)
            left -= len(data)
        return into.tell()


def _system(url: str) -> tuple[Any, str]:
    """The file system of a URL, and the place in it."""
    try:
        core = importlib.import_module("fsspec.core")
    except ImportError:
        raise UsageError(f"{shown(url)}: the package fsspec is missing: pip install 'interpose[remote]'") from None
    system, place = core.url_to_fs(url)
    return system, str(place)


@contextmanager
def _in_words(url: str) -> Iterator[None]:
    """Whatever a file system raises is an error of ours, in one line."""
    try:
        yield
    except InterposeError:
        raise
    except ImportError as error:
        raise UsageError(f"{shown(url)}: {error}") from error
    except FileNotFoundError as error:
        raise ExperimentError(f"{shown(url)}: no such experiment") from error
    except Exception as error:  # of many packages, without a common ancestor
        told = shown(str(error)).strip().partition("\n")[0] or "failed"
        raise ExperimentError(f"{shown(url)}: {type(error).__name__}: {told}") from error
