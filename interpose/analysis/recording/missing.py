"""What was recorded and is gone: forked processes, which have a log before they run anything else, and calls."""

from __future__ import annotations

import errno
import os
from collections.abc import Iterator

from interpose.analysis.calls.account import missing_events, note_missing_thread
from interpose.analysis.recording.ending import ending
from interpose.analysis.recording.lineage import why_not
from interpose.experiments.format.children import FORK, LEFT_NO_EXPERIMENT, Child
from interpose.experiments.metadata import names
from interpose.experiments.model.experiment import Experiment
from interpose.experiments.model.process import Process

# A child that a signal killed may not have begun to record: it was killed or stopped at once. One with so many times
# the page faults of the recorded child with the fewest had begun.
_BEGUN = 1.1


def note_missing(experiment: Experiment) -> None:
    """Note as damage each forked process that ended, and of which nothing can be read."""
    for process in experiment.processes:
        least = min(map(_faults, _recorded_forks(process)), default=None) if process.not_followed else None
        for child in process.not_followed:
            if _was_recorded(child, process, least):
                _note(experiment, f"{process.lineage}_f{child.record.number}{names.SUFFIX}", child.record.pid)


def note_missing_events(experiment: Experiment) -> None:
    """Note as damage recorded calls that are not there, and threads that are not there and have calls.

    The heads of the blocks and the length of the file tell; events are not read. Left out is what runs, overwrites its
    oldest calls, or is consolidated: there, heads do not tell.
    """
    for process in experiment.processes:
        is_told = not process.is_ring and process.stamp_of_consolidated() is None
        if is_told and process.events and ending(process).state != "running":
            found, known = process.events.counts(), {thread.number for thread in process.threads}
            for number in sorted(found.keys() - known):
                note_missing_thread(process, number)
            missing_events(process, found.total())


def _note(experiment: Experiment, name: str, pid: int) -> None:
    place = f"{os.path.basename(experiment.founder_directory)}/{name}"
    directory = os.path.join(experiment.founder_directory, name)
    if not os.path.lexists(directory):
        experiment.damages.add(place, f"is missing: process {pid} was recorded there")
    elif not os.path.lexists(os.path.join(directory, names.LOG)):  # else it was made since we looked
        experiment.damages.add(f"{place}/{names.LOG}", os.strerror(errno.ENOENT))


def _was_recorded(child: Child, starter: Process, least_faults: int | None) -> bool:
    if child.record.how != FORK or not child.has_ended or starter.unrecorded_children:
        return False
    took_long = least_faults is not None and child.is_measured and _faults(child) > _BEGUN * least_faults
    return (child.signal is None or took_long) and why_not(child, starter) == LEFT_NO_EXPERIMENT


def _recorded_forks(starter: Process) -> Iterator[Child]:
    for process in starter.descendants:
        child = process.started_as
        if child and child.record.how == FORK and child.is_measured:
            yield child


def _faults(child: Child) -> int:
    return child.record.minor_faults
