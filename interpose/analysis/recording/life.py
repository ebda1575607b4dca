"""When a process began and ended: as its starter saw it, where that is known, otherwise as it recorded itself."""

from __future__ import annotations

import time
from collections.abc import Iterator

from interpose.analysis.calls.account import latest_instant_ns
from interpose.analysis.recording.ending import ending
from interpose.experiments.format.children import EXEC
from interpose.experiments.model.experiment import Experiment
from interpose.experiments.model.process import Process


def links(process: Process) -> Iterator[Process]:
    """The process, and those that it was before it became this one by exec."""
    yield process
    while process.started_as and process.started_as.record.how == EXEC and process.starter:
        process = process.starter
        yield process


def first_link(process: Process) -> Process:
    """The process, or what it was first if it became this one by exec."""
    *_, first = links(process)
    return first


def was_another_unrecorded(process: Process) -> bool:
    """Whether it was a program that was not recorded, such as a shell, right before it became this one by exec."""
    return process.started_as is not None and bool(process.started_as.why)


def is_start_known(process: Process) -> bool:
    """Whether its starter noted its start, or the exec that made it this program."""
    return process.started_as is not None and not was_another_unrecorded(process)


def began_ns(process: Process) -> int:
    """The monotonic instant at which its starter began to start it, or an exec made it this program; if that is not
    known, the beginning of its recording."""
    if process.started_as and is_start_known(process):
        return process.started_as.record.start_ns
    return process.log.start_ns


def ended_ns(process: Process) -> int | None:
    """The monotonic instant of its end: when a wait of its starter saw it, or else as the process itself recorded it;
    when it became another program or was detached; None if unknown."""
    end, child = ending(process), first_link(process).started_as
    if child and child.has_ended and end.state in ("exit", "killed"):
        return child.record.end_ns
    return end.end_ns


def known_until_ns(experiment: Experiment) -> int:
    """The monotonic instant at which the last of its processes ended, or was last known to live if its end is unknown;
    now while one runs. A merged experiment ends after its founder's start by as long as its experiments took together.
    No events are read for it."""
    if merged_ns := experiment.founder.log.elapsed_ns:
        return experiment.founder.log.start_ns + merged_ns
    ends = [(process, ending(process)) for process in experiment.processes]
    if any(end.state == "running" for _, end in ends):
        return time.clock_gettime_ns(time.CLOCK_MONOTONIC)
    return max(end.end_ns or latest_instant_ns(process, ()) for process, end in ends)
