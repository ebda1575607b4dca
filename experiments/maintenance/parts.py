"""The parts of an experiment: which files are its own, and in which order they are copied while it is written."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from typing import NamedTuple

from interpose.experiments.maintenance.archives import ARCHIVES, is_content
from interpose.experiments.metadata import names

PARTS_AT_MOST = 20_000  # making that many files takes seconds
FILES_OF_A_PROCESS = 100
_FILE = re.compile(r"[a-z][a-z0-9_.-]{0,63}")
_RANK = re.compile(r"M_r[0-9]{1,9}\.er")
# Files that refer to others are copied before these, so every number in a copy refers to something.
_FIRST = ("threads", "children", "dyntext", "events", "stacks", "sites", "strings", "map.xml")


class Part(NamedTuple):
    """A file of an experiment: its path from the founder's directory on, and from the root on."""

    name: str
    path: str


def is_part(name: str) -> bool:
    """Whether a file of an experiment can have that path from the founder's directory on."""
    directory, slash, file = name.rpartition("/")
    if not slash:
        return name == ".gitignore" or _FILE.fullmatch(name) is not None
    if directory == ARCHIVES:
        return is_content(file) or _FILE.fullmatch(file) is not None
    return is_subdirectory(directory) and (file == ".gitignore" or _FILE.fullmatch(file) is not None)


def is_subdirectory(name: str) -> bool:
    """Whether a founder's directory can hold a directory of that name."""
    lineage = name.removesuffix(names.SUFFIX)
    is_descendant = bool(lineage) and lineage != name and names.is_lineage(lineage)
    return name == ARCHIVES or is_descendant or _RANK.fullmatch(name) is not None


def parts(founder: str) -> Iterator[Part]:
    """The files of the experiment, in the order in which to copy them, without links and foreign files.

    Raises OSError if the founder's directory cannot be read.
    """
    files, directories = _listed(founder)
    for directory in ["", *sorted(directories)]:
        above = os.path.join(founder, directory)
        try:
            found = files if not directory else _listed(above)[0]
        except OSError:
            continue
        for file in sorted(found, key=_place):
            name = f"{directory}/{file}" if directory else file
            if is_part(name):
                yield Part(name, os.path.join(above, file))


def strangers(founder: str) -> list[str]:
    """Files in and below the founder's directory that are not part of an experiment."""
    found, subdirectories = [], []
    with os.scandir(founder) as entries:
        for entry in entries:
            if entry.is_dir(follow_symlinks=False) and is_subdirectory(entry.name):
                subdirectories.append(entry.name)
            elif not _is_taken_name(entry) and not (entry.is_file(follow_symlinks=False) and is_part(entry.name)):
                found.append(entry.name)
    for directory in subdirectories:
        with os.scandir(os.path.join(founder, directory)) as entries:
            for entry in entries:
                name = f"{directory}/{entry.name}"
                if not (entry.is_file(follow_symlinks=False) and is_part(name)):
                    found.append(name)
    return sorted(found)


def _is_taken_name(entry: os.DirEntry[str]) -> bool:
    """Whether it is an empty file that stands for a descendant excluded from recording."""
    return (
        is_subdirectory(entry.name)
        and entry.is_file(follow_symlinks=False)
        and entry.stat(follow_symlinks=False).st_size == 0
    )


def _listed(directory: str) -> tuple[list[str], list[str]]:
    """The names of the plain files and of the experiment's own directories in `directory`."""
    files, directories = [], []
    with os.scandir(directory) as entries:
        for entry in entries:
            if entry.is_file(follow_symlinks=False):
                files.append(entry.name)
            elif entry.is_dir(follow_symlinks=False) and is_subdirectory(entry.name):
                directories.append(entry.name)
    return files, directories


def _place(file: str) -> tuple[int, str]:
    known = file.partition(".")[0] if file.startswith("events") else file
    return (_FIRST.index(known) if known in _FIRST else len(_FIRST)), file
