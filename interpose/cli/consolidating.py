"""Putting calls together where no monitor has: by the first who reads the experiment of a program that wanted it."""

from __future__ import annotations

import fcntl
import os

from interpose.analysis.consolidation.kept_records import keep, slowest_wanted
from interpose.analysis.recording.ending import is_running
from interpose.errors import InterposeError
from interpose.experiments.format import compressed
from interpose.experiments.metadata.pauses import pauses_of
from interpose.experiments.model.experiment import Experiment


def consolidate_at_once(experiment: Experiment) -> None:
    """Consolidate as the program's settings say, if it has ended and no monitor is working on it; never an error."""
    founder = experiment.founder
    if founder.log.settings.get("INTERPOSE_CONSOLIDATE") != "1" or experiment.packed or founder.lineage:
        return
    if any(process.is_ring for process in experiment.processes):
        return  # the time before its oldest event follows from the events
    if os.stat(founder.directory).st_uid != os.getuid() or any(map(is_running, experiment.processes)):
        return
    try:
        lock = os.open(founder.directory, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC)
    except OSError:
        return
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        _consolidate(experiment)
    except (OSError, InterposeError):
        pass  # it is read all the same
    finally:
        os.close(lock)


def _consolidate(experiment: Experiment) -> None:
    pauses = pauses_of(experiment)
    damages = experiment.damages.count
    calls = sum(keep(process, pauses, slowest_wanted(process)) for process in experiment.processes)
    if not calls:
        return
    if experiment.damages.count == damages:
        take_events_away(experiment)
    for process in experiment.processes:
        process.forget_consolidated()


def take_events_away(experiment: Experiment) -> None:
    """Have no events any more. Raises OSError."""
    for process in experiment.processes:
        os.truncate(os.path.join(process.directory, "events"), 0)
        path = os.path.join(process.directory, compressed.NAME)
        if os.path.lexists(path):
            os.unlink(path)
