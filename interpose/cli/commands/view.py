"""`interpose view`: an experiment to walk through in the terminal, while its program runs and afterwards."""

from __future__ import annotations

import argparse
import importlib
import os
import sys

from interpose.cli.experiment_choice import add_experiment_argument, note_damages, note_sampled, open_experiment
from interpose.errors import UsageError

NAME = "view"
HELP = "walk through an experiment in the terminal (needs textual)"
EXAMPLE = "interpose view"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    add_experiment_argument(parser)


def run(arguments: argparse.Namespace) -> int:
    try:
        app = importlib.import_module("interpose.view.app")
    except ModuleNotFoundError as error:
        missing = (error.name or "").partition(".")[0]
        if missing == "interpose":
            raise
        raise UsageError(f"view needs the package {missing}: pip install 'interpose[tui]'") from None
    if not (sys.stdin.isatty() and sys.stdout.isatty()) or os.environ.get("TERM") == "dumb":
        raise UsageError("view needs a terminal; interpose report writes to files and pipes")
    experiment = open_experiment(arguments.experiment)
    app.View(experiment).run()
    note_sampled(experiment)
    return note_damages(experiment)
