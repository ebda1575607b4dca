"""Processes whose recordings were there and are gone: a forked process has its log before it runs anything else."""

from __future__ import annotations

import errno
import os

from interpose.analysis.recording.lineage import why_not
from interpose.experiments.format.children import FORK, LEFT_NO_EXPERIMENT, Child
from interpose.experiments.metadata import names
from interpose.experiments.model.experiment import Experiment
from interpose.experiments.model.process import Process

_BEGINS_NS = 100_000_000  # one that a signal killed sooner may have had no time to write it


def note_missing(experiment: Experiment) -> None:
    """Note as damage each forked process that ended, and of which nothing can be read."""
    for process in experiment.processes:
        for child in process.not_followed:
            if _was_recorded(child, process):
                _note(experiment, f"{process.lineage}_f{child.record.number}{names.SUFFIX}", child.record.pid)


def _note(experiment: Experiment, name: str, pid: int) -> None:
    place = f"{os.path.basename(experiment.founder_directory)}/{name}"
    if os.path.isdir(os.path.join(experiment.founder_directory, name)):
        experiment.damages.add(f"{place}/{names.LOG}", os.strerror(errno.ENOENT))
    else:
        experiment.damages.add(place, f"is missing: process {pid} was recorded there")


def _was_recorded(child: Child, starter: Process) -> bool:
    if child.record.how != FORK or not child.has_ended or starter.unrecorded_children:
        return False
    took_ns = child.record.end_ns - child.record.start_ns
    had_time = child.signal is None or took_ns > _BEGINS_NS
    return had_time and why_not(child, starter) == LEFT_NO_EXPERIMENT
