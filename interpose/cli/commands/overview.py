"""`interpose overview`: what the processes of an experiment used of the machine, second by second."""

from __future__ import annotations

import argparse

from interpose.analysis.time.usage import usages
from interpose.cli.experiment_choice import add_experiment_argument, note_damages, open_experiment
from interpose.cli.output import add_output_arguments, write_table
from interpose.config.values import parse_interval
from interpose.experiments.model.process import Process
from interpose.reports.tables.overview import overview_table

NAME = "overview"
HELP = "show CPU, memory, page faults and run-queue delay, second by second"
EXAMPLE = "interpose overview"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    add_experiment_argument(parser)
    add_output_arguments(parser)


def run(arguments: argparse.Namespace) -> int:
    experiment = open_experiment(arguments.experiment)
    write_table(overview_table(experiment, usages(experiment, due_ns)), arguments)
    return note_damages(experiment)


def due_ns(process: Process) -> int | None:
    """After what time a sample of `process` was due, as its settings say; None where they do not."""
    try:
        return parse_interval(process.log.settings.get("INTERPOSE_SAMPLE", "off"))
    except ValueError:
        return None
