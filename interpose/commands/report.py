"""`interpose report`: where the time went."""

from __future__ import annotations

import argparse

from interpose.analysis.profile import GROUPINGS, profile
from interpose.commands.choice import add_experiment_argument, note_damages, open_experiment
from interpose.commands.output import (
    add_output_arguments,
    opened_output,
    positive,
    screen_for,
    write_table,
)
from interpose.experiments.experiment import Experiment
from interpose.reports.rows import SORTS, arranged, profile_table
from interpose.reports.summary import summary

NAME = "report"
HELP = "tell where the time of an experiment went"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    add_experiment_argument(parser)
    parser.add_argument(
        "--by", choices=tuple(GROUPINGS), help="a table with a row for each; else the first screen"
    )
    parser.add_argument("--sort", choices=SORTS, metavar="COLUMN", help=f"sort rows by {', '.join(SORTS)}")
    parser.add_argument("--limit", type=positive, metavar="N", help="at most N rows of calls")
    add_output_arguments(parser)


def run(arguments: argparse.Namespace) -> int:
    experiment = open_experiment(arguments.experiment)
    by = arguments.by or _by_when_not_said(arguments)
    if by is None:
        _write_summary(experiment, arguments.output)
    else:
        made = profile(experiment, by)
        made.rows = arranged(made.rows, arguments.sort, arguments.limit)
        write_table(profile_table(made, by, experiment.founder.log), arguments)
    return note_damages(experiment)


def _by_when_not_said(arguments: argparse.Namespace) -> str | None:
    """The grouping for formats that have no first screen, and where rows are to be sorted."""
    if arguments.format == "markdown":
        return "kind"
    return "intrinsic" if arguments.format != "text" or arguments.sort or arguments.limit else None


def _write_summary(experiment: Experiment, path: str | None) -> None:
    with opened_output(path) as out:
        for line in summary(screen_for(out, experiment)):
            out.write(line + "\n")
