"""Processes whose recordings were there and are gone: a forked process has its log before it runs anything else."""

from __future__ import annotations

import errno
import os

from interpose.analysis.recording.lineage import why_not
from interpose.experiments.format.children import FORK, LEFT_NO_EXPERIMENT, Child
from interpose.experiments.metadata import names
from interpose.experiments.model.experiment import Experiment
from interpose.experiments.model.process import Process

# A child that a signal killed may not have begun to record. Beginning to record takes twice as many page faults.
_BEGUN_FAULTS = 100


def note_missing(experiment: Experiment) -> None:
    """Note as damage each forked process that ended, and of which nothing can be read."""
    for process in experiment.processes:
        for child in process.not_followed:
            if _was_recorded(child, process):
                _note(experiment, f"{process.lineage}_f{child.record.number}{names.SUFFIX}", child.record.pid)


def _note(experiment: Experiment, name: str, pid: int) -> None:
    place = f"{os.path.basename(experiment.founder_directory)}/{name}"
    directory = os.path.join(experiment.founder_directory, name)
    if not os.path.lexists(directory):
        experiment.damages.add(place, f"is missing: process {pid} was recorded there")
    elif not os.path.lexists(os.path.join(directory, names.LOG)):  # else it was made since we looked
        experiment.damages.add(f"{place}/{names.LOG}", os.strerror(errno.ENOENT))


def _was_recorded(child: Child, starter: Process) -> bool:
    if child.record.how != FORK or not child.has_ended or starter.unrecorded_children:
        return False
    has_begun = child.signal is None or child.record.minor_faults > _BEGUN_FAULTS
    return has_begun and why_not(child, starter) == LEFT_NO_EXPERIMENT
