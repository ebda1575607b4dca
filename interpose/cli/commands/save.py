"""`interpose save`: copies an experiment as it is now, while its program runs on."""

from __future__ import annotations

import argparse
import os

from interpose.analysis.recording.ending import is_running
from interpose.cli.experiment_choice import add_experiment_argument, note_damages, open_experiment
from interpose.errors import ExperimentError, InterposeError, UsageError
from interpose.experiments.maintenance import copying, saving
from interpose.experiments.metadata import names
from interpose.experiments.model.experiment import Experiment

NAME = "save"
HELP = "copy an experiment as it is now, while its program runs"
EXAMPLE = "interpose save test.1.er"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    add_experiment_argument(parser)
    parser.add_argument(
        "-o", "--output", metavar="PATH.er", help="the copy (default: NAME.save.N.er beside the experiment)"
    )


def run(arguments: argparse.Namespace) -> int:
    if arguments.output is not None:
        refuse_what_cannot_be(arguments.output)
    experiment = open_experiment(arguments.experiment)
    experiment.refuse_if_unpacked("a copy")
    print(save(experiment, arguments.output))
    return note_damages(experiment)


def refuse_what_cannot_be(path: str) -> None:
    """Raises UsageError if `path` cannot be an experiment's."""
    name = os.path.basename(path)
    if why := names.why_not(name):
        raise UsageError(f"-o {path}: {why}")
    if not name.endswith(names.SUFFIX):
        raise UsageError(f"-o {path}: its name must end with {names.SUFFIX}")


def save(experiment: Experiment, to: str | None = None) -> str:
    """The path of a copy of `experiment` as it is now. Raises InterposeError if none can be made."""
    try:
        return saving.save(experiment, is_running, to)
    except FileExistsError as error:
        raise InterposeError(f"{error.filename}: already exists") from None
    except OSError as error:
        place = error.filename or to or experiment.directory
        raise InterposeError(f"{place}: {error.strerror}; -o names another place") from None


def copy(source: str, target: str) -> None:
    """Copy the experiment at `source` to `target`; where its program runs, as it is at one instant.

    Raises OSError, and InterposeError.
    """
    try:
        experiment = Experiment(source)
    except ExperimentError:
        return copying.copy(source, target)  # what cannot be read can be copied
    if any(is_running(process) for process in experiment.processes):
        os.stat(os.path.dirname(os.path.abspath(target)))  # its directory is not made
        saving.save(experiment, is_running, target)
    else:
        copying.copy(source, target)
