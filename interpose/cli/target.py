"""The experiment of a running program, which is named by its process's number or by the experiment itself."""

from __future__ import annotations

import os

from interpose.analysis.recording.ending import is_running
from interpose.attach.rights import why_no_right
from interpose.capture import descent
from interpose.cli.experiment_choice import open_experiment
from interpose.errors import ExperimentError
from interpose.experiments.model.experiment import Experiment
from interpose.experiments.model.process_numbers import number_here


def experiment_of(target: str | None) -> Experiment:
    """The experiment `target`, or that of the process with that number; the newest for None.

    Raises ExperimentError if there is none.
    """
    if target is None or not (target.isascii() and target.isdigit()):
        return open_experiment(target, archive=False)
    founder = _founder_of(int(target[:10]))
    return open_experiment(founder, archive=False)


def _founder_of(pid: int) -> str:
    try:
        with open(f"/proc/{pid}/maps", "rb") as file:
            file.read(1)
    except PermissionError:
        raise ExperimentError(f"process {pid}: you may not look into it: {why_no_right(pid)}") from None
    except OSError:
        raise ExperimentError(f"process {pid} does not exist") from None
    if not (founder := founder_of(pid)):
        raise ExperimentError(f"process {pid} is not recorded")
    return founder


def founder_of(pid: int) -> str:
    """The founder's directory of the process `pid`, if it is this user's, or anybody's to root; empty if it is not
    recorded."""
    try:
        user = os.stat(f"/proc/{pid}").st_uid if os.geteuid() == 0 else None
    except OSError:
        return ""
    for directory in descent.mapped_experiments(pid, user):
        experiment = Experiment(directory)
        if number_here(experiment.founder.log) == pid:
            return experiment.founder_directory
    return ""


def running_experiment_of(target: str | None) -> Experiment:
    """The same, of which a process runs. Raises ExperimentError."""
    experiment = experiment_of(target)
    if not any(is_running(process) for process in experiment.processes):
        raise ExperimentError(f"{experiment.name}: none of its processes runs on this machine")
    if not os.access(experiment.founder_directory, os.W_OK):
        raise ExperimentError(f"{experiment.name}: its process belongs to another user")
    return experiment
