"""The texts of a program's files, from the archive of the experiment or from given directories."""

from __future__ import annotations

import os
from collections.abc import Sequence

from interpose.experiments.model.experiment import Experiment
from interpose.experiments.model.files import open_plain
from interpose.experiments.model.process import Process
from interpose.experiments.model.sources import (
    LARGEST_SOURCE_BYTES,
    Source,
    Sources,
    decoded,
    is_dynamic,
    normal_path_of,
)
from interpose.experiments.model.stacks import Site

EXPERIMENTS = "$expts"  # in a path: what the experiments have of it
_SUFFIXES = (".py", ".pyw", ".pyx", ".pxd", ".pxi")


class SourceFiles:
    """Looks for the text of a file along a path, after the beginnings of names were replaced."""

    def __init__(self, experiments: Sequence[Experiment]) -> None:
        self._of = [(set(each.processes), Sources(each)) for each in experiments]
        self.path: list[str] = [EXPERIMENTS]
        self.replaced: list[tuple[str, str]] = []

    def text_of(self, process: Process, file: str) -> Source | None:
        """The text of a file that `process` names; None if it is nowhere."""
        for directory in self.path:
            found = self._kept(process, file) if directory == EXPERIMENTS else self._below(directory, process, file)
            if found:
                return found
        return self._replaced(process, file)

    def _kept(self, process: Process, file: str) -> Source | None:
        for processes, sources in self._of:
            if process in processes:
                return sources.source_of(process, Site(file, 0, "", True))
        return None

    def _below(self, directory: str, process: Process, file: str) -> Source | None:
        """The file below a given directory that shares the longest end of the path."""
        parts = _parts(process, file)
        for place in range(len(parts)):
            if found := _read(os.path.join(directory, *parts[place:]), process):
                return found
        return None

    def _replaced(self, process: Process, file: str) -> Source | None:
        path = normal_path_of(process, file)
        for before, after in self.replaced:
            start = before.rstrip("/") + "/"
            is_below = path.startswith(start) and not is_dynamic(file)
            if is_below and (found := _read(os.path.join(after, path[len(start) :]), process)):
                return found
        return None


def _parts(process: Process, file: str) -> list[str]:
    """The parts of a file's path, which is normal: none of them leads upward."""
    return [] if is_dynamic(file) else normal_path_of(process, file).strip("/").split("/")


def _read(path: str, process: Process) -> Source | None:
    """The text of a source at `path`, if it is one."""
    if not path.endswith(_SUFFIXES):
        return None
    try:
        descriptor = open_plain(path)
    except (OSError, ValueError):
        return None
    with open(descriptor, "rb") as file:
        changed = os.fstat(descriptor).st_mtime_ns > process.log.time_ns
        data = file.read(LARGEST_SOURCE_BYTES + 1)
    return Source(decoded(data), changed) if len(data) <= LARGEST_SOURCE_BYTES else None
