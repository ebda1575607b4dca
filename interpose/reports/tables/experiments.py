"""The table of experiments: what each was of, when, and how it ended."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from interpose.analysis.recording.ending import ending
from interpose.analysis.recording.life import known_until_ns
from interpose.analysis.recording.missing import note_missing_events
from interpose.errors import ExperimentError
from interpose.experiments.maintenance.packed import is_archive
from interpose.experiments.model.experiment import Experiment
from interpose.reports.formats.table import Column, Table, Values, clean
from interpose.reports.formats.units import SECOND_NS, age, scale_for, size
from interpose.reports.screen.state import command_line, ending_in_words

NAMES = ("name", "time_ns", "command", "elapsed_ns", "calls", "state", "size_bytes")


@dataclass(frozen=True)
class Listed:
    """An experiment in one line; where it cannot be read, `state` says why. Of an archive, only the size is known."""

    name: str
    state: str
    time_ns: int | None = None
    command: str = ""
    elapsed_ns: int | None = None
    calls: int | None = None
    size_bytes: int | None = None


def experiments_table(paths: Iterable[str], now_s: float) -> Table:
    """The table of the experiments and archives at `paths`, which are opened one after the other."""
    columns = [
        Column("name", lambda row: clean(row.name), right=False),
        Column("when", lambda row: _when(row, now_s)),
        Column("elapsed", lambda row: _elapsed(row)),
        Column("calls", lambda row: "" if row.calls is None else f"{row.calls:,}"),
        Column("state", lambda row: clean(row.state), right=False, flexible=True),
        Column("command", lambda row: row.command, right=False, flexible=True),
    ]
    return Table(NAMES, _values, columns, _listed(paths))


def _listed(paths: Iterable[str]) -> Iterator[Listed]:
    for path in paths:
        if is_archive(path):
            yield _of_archive(path)
            continue
        try:
            yield _of_experiment(Experiment(path))
        except ExperimentError as error:
            name = os.path.basename(path)
            yield Listed(name, f"cannot be read: {str(error).removeprefix(name + '/')}")


def _of_experiment(experiment: Experiment) -> Listed:
    founder = experiment.founder
    note_missing_events(experiment)
    calls = sum(thread.record.recorded for process in experiment.processes for thread in process.threads)
    state = ending_in_words(ending(founder)) + (", damaged" if experiment.damages.found else "")
    elapsed_ns = max(known_until_ns(experiment) - founder.log.start_ns, 0) if founder.log.start_ns else None
    began_ns = founder.log.time_ns or None
    return Listed(experiment.name, state, began_ns, command_line(founder), elapsed_ns, calls)


def _of_archive(path: str) -> Listed:
    size_bytes = os.stat(path).st_size
    return Listed(os.path.basename(path), f"archive, {size(size_bytes)}", size_bytes=size_bytes)


def _values(row: Listed) -> Values:
    return {name: getattr(row, name) for name in NAMES}


def _when(row: Listed, now_s: float) -> str:
    return "" if row.time_ns is None else age(now_s - row.time_ns / SECOND_NS)


def _elapsed(row: Listed) -> str:
    return "" if row.elapsed_ns is None else scale_for(row.elapsed_ns).show(row.elapsed_ns)
