"""Opening an experiment: the founder and its descendants."""

from __future__ import annotations

import os
import re

from interpose.errors import ExperimentError
from interpose.experiments import names
from interpose.experiments.files import Damages
from interpose.experiments.process import Process

_FORKED = re.compile(r"(.*)_f[0-9]+")


class Experiment:
    """An experiment, open for reading: `processes` are the founder (first) and its descendants.

    What turns out to be damaged while one reads is in `damages`. Raises ExperimentError where `directory`
    is not there, is not an experiment, or is one of a version that cannot be read.
    """

    def __init__(self, directory: str) -> None:
        self.directory = os.path.abspath(directory)
        self.name = os.path.basename(self.directory)
        self.damages = Damages()
        _refuse_what_is_none(directory)
        if _is_descendant(self.name):
            self.processes = [self._one_descendant()]
        else:
            founder = Process(self.directory, self.name, "", self.damages)
            self.processes = [founder, *self._descendants(self.directory, self.name)]
            _join_families(self.processes)

    @property
    def founder(self) -> Process:
        """The process that the experiment began with."""
        return self.processes[0]

    def _one_descendant(self) -> Process:
        """The process of a descendant's own directory; its numbers may be those of processes beside it."""
        process = Process(self.directory, self.name, self.name.removesuffix(names.SUFFIX), self.damages)
        above = os.path.dirname(self.directory)
        if os.path.exists(os.path.join(above, names.LOG)):
            founder = Process(above, os.path.basename(above), "", self.damages)
            others = [
                each for each in self._descendants(above, founder.place) if each.lineage != process.lineage
            ]
            _join_families([founder, *others, process])
        return process

    def _descendants(self, directory: str, place: str) -> list[Process]:
        processes = []
        for name in sorted(_descendants_in(directory)):
            try:
                processes.append(
                    Process(
                        os.path.join(directory, name),
                        f"{place}/{name}",
                        name.removesuffix(names.SUFFIX),
                        self.damages,
                    )
                )
            except ExperimentError as error:
                where, _, what = str(error).partition(": ")
                self.damages.add(where, what)
        return processes


def _refuse_what_is_none(directory: str) -> None:
    name = os.path.basename(os.path.abspath(directory))
    if not os.path.lexists(directory):
        raise ExperimentError(f"{directory}: no such experiment")
    if not os.path.isdir(directory):
        raise ExperimentError(f"{directory}: a file; an experiment is a directory")
    try:
        found = os.listdir(directory)
    except OSError as error:
        raise ExperimentError(f"{directory}: {error.strerror}") from error
    if names.LOG not in found:
        raise ExperimentError(
            f"{name}: {'not an experiment' if found else 'empty'}, {names.LOG} is not there"
        )


def _descendants_in(directory: str) -> list[str]:
    with os.scandir(directory) as entries:
        return [
            entry.name
            for entry in entries
            if _is_descendant(entry.name) and entry.is_dir(follow_symlinks=False)
        ]


def _is_descendant(name: str) -> bool:
    lineage = name.removesuffix(names.SUFFIX)
    return bool(lineage) and lineage != name and names.is_lineage(lineage)


def _join_families(processes: list[Process]) -> None:
    """Give each forked process the one that forked it, whose lineage is the beginning of its own."""
    of_lineage = {process.lineage: process for process in processes}
    for process in processes:
        if forked := _FORKED.fullmatch(process.lineage):
            process.parent = of_lineage.get(forked[1])
