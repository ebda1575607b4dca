"""`interpose overview`: what the processes of an experiment used of the machine, second by second."""

from __future__ import annotations

import argparse

from interpose.analysis.time.usage import usages
from interpose.cli.experiment_choice import add_experiment_argument, note_damages, open_experiment
from interpose.cli.output import add_output_arguments, write_table
from interpose.reports.tables.overview import overview_table

NAME = "overview"
HELP = "show CPU, memory, page faults, waits for CPU by second"
EXAMPLE = "interpose overview"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    add_experiment_argument(parser)
    add_output_arguments(parser)


def run(arguments: argparse.Namespace) -> int:
    experiment = open_experiment(arguments.experiment)
    write_table(overview_table(experiment, usages(experiment)), arguments)
    return note_damages(experiment)
