"""Which experiment a command is about, and what to say where there is none."""

from __future__ import annotations

import argparse
import os
import sys

from interpose import state
from interpose.errors import ExperimentError
from interpose.experiments import names
from interpose.experiments.experiment import Experiment
from interpose.reports.table import clean
from interpose.settings import in_force

_SHOWN = 1


def add_experiment_argument(parser: argparse.ArgumentParser) -> None:
    """The argument EXPERIMENT, which may be left out."""
    parser.add_argument(
        "experiment",
        nargs="?",
        metavar="EXPERIMENT",
        help="the experiment's directory (the newest when left out)",
    )


def open_experiment(given: str | None) -> Experiment:
    """The experiment `given`, or the newest, and what is newer and not recorded. Raises ExperimentError."""
    if given is not None:
        return Experiment(given)
    directory = in_force(os.environ).dir
    newest = names.newest(directory)
    if newest is None:
        raise ExperimentError(
            "; ".join([f"no experiment in {directory}", *_elsewhere(), *_last_not_recorded()])
        )
    _say_what_was_not_recorded(newest)
    return Experiment(newest)


def note_damages(experiment: Experiment) -> int:
    """Say in one line what of `experiment` is damaged; gives the exit code: 3 where something is."""
    damages = experiment.damages
    if not damages.found:
        return 0
    more = f" (and {damages.count - _SHOWN} more)" if damages.count > _SHOWN else ""
    say(f"{damages.found[0]}{more}")
    return 3


def say(text: str) -> None:
    """A line on stderr."""
    print(f"interpose: {clean(text)}", file=sys.stderr)


def _elsewhere() -> list[str]:
    elsewhere = state.experiments_elsewhere()
    return [f"the newest elsewhere is {elsewhere[-1]}"] if elsewhere else []


def _last_not_recorded() -> list[str]:
    noted = state.not_recorded()
    return [str(noted[-1])] if noted else []


def _say_what_was_not_recorded(experiment: str) -> None:
    """Say why nothing was recorded of a program that ran after `experiment`: it is what the user asks for."""
    noted = state.not_recorded()
    try:
        written_s = os.stat(os.path.join(experiment, names.LOG)).st_mtime
    except OSError:
        return
    if noted and noted[-1].time_s > written_s:
        say(f"newer than {os.path.basename(experiment)}: {noted[-1]}")
