"""Opening an experiment: the founder and its descendants."""

from __future__ import annotations

import os
import time
from collections import defaultdict
from collections.abc import Sequence
from functools import cached_property

from interpose.errors import ExperimentError, UsageError
from interpose.experiments.format.blocks import BLOCK_BYTES
from interpose.experiments.format.children import split_lineage
from interpose.experiments.format.compressed import NAME as COMPRESSED_EVENTS
from interpose.experiments.metadata import names
from interpose.experiments.metadata.known_damage import note_known
from interpose.experiments.metadata.labels import Mark, read_marks
from interpose.experiments.metadata.notes import read_notes
from interpose.experiments.model.files import Damages
from interpose.experiments.model.process import Process

PROCESSES_AT_MOST = 20_000  # each takes a tenth of a megabyte


class Experiment:
    """An experiment, open for reading: `processes` are the founder (first) and its descendants, as they were at
    `opened_ns` on the clock of its events.

    What turns out to be damaged while one reads is in `damages`; `packed` is the file that it was unpacked
    from, if it was. Raises ExperimentError if `directory` is not there, is not an experiment, or is one of
    a version that cannot be read.
    """

    def __init__(self, directory: str, damages: Damages | None = None) -> None:
        self.directory = os.path.realpath(directory)  # once: what leads there may change
        self.name = os.path.basename(os.path.abspath(directory))
        self.damages = Damages() if damages is None else damages
        self.packed: str | None = None
        _refuse_what_is_none(directory)
        note_known(self.directory, self.damages)
        self.opened_ns = time.clock_gettime_ns(time.CLOCK_MONOTONIC)
        if _is_descendant(self.name):
            self.processes = [self._one_descendant()]
        else:
            self.processes = [] if _is_of_ranks(self.directory) else [self._founder()]
            self.processes += self._descendants(self.directory, self.name)
            self.processes = self.processes or [self._founder()]
            _join_families(self.processes)

    @property
    def experiments(self) -> Sequence[Experiment]:
        """Those that are read as one: itself alone."""
        return [self]

    @property
    def founder(self) -> Process:
        """The process that the experiment began with; of ranks of MPI alone the first."""
        return self.processes[0]

    @property
    def founder_directory(self) -> str:
        """The founder's directory, also for a descendant: it has the notes, labels and archives."""
        above = os.path.dirname(self.directory)
        return above if _is_descendant(self.name) and above.endswith(names.SUFFIX) else self.directory

    @cached_property
    def notes(self) -> list[str]:
        """The lines that were noted of the experiment."""
        return read_notes(self.founder_directory, os.path.basename(self.founder_directory), self.damages)

    @cached_property
    def marks(self) -> list[Mark]:
        """The marks of the labels."""
        return read_marks(self.founder_directory, os.path.basename(self.founder_directory), self.damages)

    def refuse_if_unpacked(self, what: str) -> None:
        """Raises UsageError if the experiment is one file: `what` is not written into that."""
        if self.packed:
            raise UsageError(f"{self.packed}: {what} cannot be written into a packed experiment")

    def _founder(self) -> Process:
        return Process(self.directory, self.name, "", self.damages)

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
        for count, name in enumerate(sorted(_descendants_in(directory))):
            if count == PROCESSES_AT_MOST:
                self.damages.add(place, f"more than {PROCESSES_AT_MOST:,} processes, the others were not read")
                break
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


def with_forebears(founder: str, lineage: str, damages: Damages) -> Process:
    """The process of a lineage, and those that forked it, because it continues their numbers. Raises ExperimentError.
    """
    name = f"{lineage}{names.SUFFIX}" if lineage else ""
    place = os.path.join(os.path.basename(founder), name).rstrip("/")
    process = Process(os.path.join(founder, name), place, lineage, damages)
    above, how, _ = split_lineage(lineage)
    if how == "f":
        process.parent = process.starter = with_forebears(founder, above, damages)
    return process


def _became(forked: Process, process: Process) -> bool:
    """Whether `process`, of the same number, is what the child became by exec."""
    was, log = forked.became, process.log
    return was is not None and was.record.start_ns <= log.start_ns and log.has_numbers_of(forked.log)


def _is_of_ranks(directory: str) -> bool:
    """Whether no process but ranks of MPI, and what they started, was recorded: the founder's log is empty."""
    try:
        return os.stat(os.path.join(directory, names.LOG)).st_size == 0 and names.is_recorded(directory)
    except OSError:
        return False


def _refuse_what_is_none(directory: str) -> None:
    name = os.path.basename(os.path.abspath(directory))
    if not os.path.lexists(directory):
        named = directory or "''"
        raise ExperimentError(f"{named}: no such experiment", directory, experiments_beside(directory))
    if not os.path.exists(directory):
        raise ExperimentError(f"{directory}: is a link that leads nowhere")
    if not os.path.isdir(directory):
        raise ExperimentError(f"{directory}: is a file; an experiment is a directory")
    try:
        found = os.listdir(directory)
    except OSError as error:
        raise ExperimentError(f"{directory}: {error.strerror}") from error
    if names.LOG not in found:
        lists = any(each.endswith(names.SUFFIX) for each in found)
        hint = f"; interpose list {directory} lists the experiments in it" if lists else ""
        if not name.endswith(names.SUFFIX):
            hint = hint or names.hint_if_empty(directory)
        raise ExperimentError(f"{name}: not an experiment: {names.LOG} is missing{hint}")


def experiments_beside(directory: str) -> list[str]:
    """The paths of the experiments where `directory` would be, as it is written."""
    above = os.path.dirname(directory)
    try:
        found = names.list_experiments(above or ".")
    except OSError:
        return []
    return [os.path.join(above, os.path.basename(path)) for path in found]


def _descendants_in(directory: str) -> list[str]:
    with os.scandir(directory) as entries:
        return [
            entry.name
            for entry in entries
            if _is_descendant(entry.name) and entry.is_dir(follow_symlinks=False) and _has_begun(entry.path)
        ]


def _has_begun(directory: str) -> bool:
    """Whether a descendant has recorded anything. One that was killed before that, or is just beginning, has no log
    yet, and at most the block of events for calibration, which nobody has compressed."""
    return (
        _size_bytes(directory, names.LOG) > 0
        or _size_bytes(directory, "events") > BLOCK_BYTES
        or _size_bytes(directory, COMPRESSED_EVENTS) > 0
    )


def _size_bytes(directory: str, name: str) -> int:
    try:
        return os.stat(os.path.join(directory, name), follow_symlinks=False).st_size
    except OSError:
        return 0


def _is_descendant(name: str) -> bool:
    lineage = name.removesuffix(names.SUFFIX)
    return bool(lineage) and lineage != name and names.is_lineage(lineage)


def _join_families(processes: list[Process]) -> None:
    """Give each process those that came from it, and the one that it came from: its lineage is the beginning
    of its own. What a forked child became with variables that were made before the fork has its parent's, and came
    from the child."""
    of_lineage = {process.lineage: process for process in processes}
    forked: dict[tuple[str, int], list[Process]] = defaultdict(list)
    for process in processes:
        lineage, how, _ = split_lineage(process.lineage)
        if how == "f":
            process.parent = of_lineage.get(lineage)
            forked[lineage, process.log.pid].append(process)
    for process in processes:
        lineage, how, _ = split_lineage(process.lineage)
        starter = of_lineage.get(lineage) if how else None
        if how == "c":
            starter = next((each for each in forked[lineage, process.log.pid] if _became(each, process)), starter)
        if starter is not None:
            process.starter = starter
            starter.descendants.append(process)
