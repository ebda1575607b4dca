"""`interpose save`: copies an experiment as it is now, while its program runs on."""

from __future__ import annotations

import argparse
import os

from interpose.cli.copies import save
from interpose.cli.experiment_choice import add_experiment_argument, note_damages, open_experiment
from interpose.errors import UsageError
from interpose.experiments.metadata import names

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
