"""`interpose processes`: who started whom, and how each ended."""

from __future__ import annotations

import argparse

from interpose.analysis.recording.lineage import tree, walk
from interpose.cli.experiment_choice import add_experiment_argument, note_damages, open_experiment
from interpose.cli.output import add_output_arguments, write_table
from interpose.reports.tables.processes import processes_table

NAME = "processes"
HELP = "show the tree of child processes, also those not recorded"
EXAMPLE = "interpose processes"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    add_experiment_argument(parser)
    add_output_arguments(parser)


def run(arguments: argparse.Namespace) -> int:
    experiment = open_experiment(arguments.experiment)
    write_table(processes_table(walk(tree(experiment)), experiment.founder), arguments)
    return note_damages(experiment)
