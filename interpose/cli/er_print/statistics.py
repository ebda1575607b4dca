"""`interpose display statistics`: what was recorded and lost, and the use of the pool."""

from __future__ import annotations

import argparse

from interpose.analysis.recording.statistics import statistics
from interpose.cli.experiment_choice import add_experiment_argument, note_damages, note_sampled, open_experiment
from interpose.cli.output import add_output_arguments, write_table
from interpose.reports.tables.statistics import statistics_table

NAME = "statistics"
HELP = "show what was recorded, dropped and waited for, and what is on disk"
EXAMPLE = "interpose display statistics"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    add_experiment_argument(parser)
    add_output_arguments(parser)


def run(arguments: argparse.Namespace) -> int:
    experiment = open_experiment(arguments.experiment)
    note_sampled(experiment)
    write_table(statistics_table(statistics(experiment)), arguments)
    return note_damages(experiment)
