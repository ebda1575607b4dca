"""`interpose export`: the raw data of an experiment as text."""

from __future__ import annotations

import argparse

from interpose.cli.experiment_choice import add_experiment_argument, note_damages, note_sampled, open_experiment
from interpose.cli.output import opened_output
from interpose.reports.tables.raw import raw

NAME = "export"
HELP = "write the raw data of an experiment as text"
EXAMPLE = "interpose export test.1.er -o raw.txt"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    add_experiment_argument(parser)
    parser.add_argument("-o", "--output", metavar="FILE", help="write to FILE and not to the terminal")


def run(arguments: argparse.Namespace) -> int:
    experiment = open_experiment(arguments.experiment)
    note_sampled(experiment)
    with opened_output(arguments.output) as out:
        for line in raw(experiment):
            out.write(line + "\n")
    return note_damages(experiment)
