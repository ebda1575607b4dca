"""`interpose list`: which experiments there are."""

from __future__ import annotations

import argparse
import errno
import os
import time

from interpose.cli.messages import say
from interpose.cli.output import add_output_arguments, write_table
from interpose.config.precedence import in_force
from interpose.errors import ExperimentError
from interpose.experiments.maintenance.packed import list_archives
from interpose.experiments.metadata import names
from interpose.reports.tables.experiments import experiments_table

NAME = "list"
HELP = "list the experiments in a directory, oldest first"
EXAMPLE = "interpose list"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "directory",
        nargs="?",
        metavar="DIRECTORY",
        help="the directory to list (default: where experiments are made)",
    )
    add_output_arguments(parser)


def run(arguments: argparse.Namespace) -> int:
    directory = arguments.directory or in_force(os.environ).dir
    try:
        found, unreadable = names.list_experiments(directory), names.list_unreadable(directory)
        found += list_archives(directory)
    except OSError as error:
        raise ExperimentError(f"{directory}: {error.strerror}") from error
    for path in unreadable:
        say(f"{path}: {os.strerror(errno.EACCES)}")
    if not found and not unreadable:
        say(f"no experiments in {directory}{names.hint_if_empty(directory)}")
    if found or arguments.format != "text":  # a program is given an empty table, too
        write_table(experiments_table(found, time.time()), arguments)
    return 0
