"""`interpose sql`: questions to experiments, in SQL."""

from __future__ import annotations

import argparse
import tempfile

from interpose.cli.experiment_choice import note_damages, note_sampled, open_experiment, paths_of, refuse_sampled
from interpose.cli.output import add_output_arguments, write_table
from interpose.errors import UsageError
from interpose.exports.queries import Database

NAME = "sql"
HELP = "answer a question in SQL (needs the package duckdb)"
EXAMPLE = "interpose sql 'select intrinsic, sum(wall_ns) from calls group by 1 order by 2 desc limit 5'"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "query", metavar="QUERY", help="`show tables` lists the tables, `describe calls` the columns of one"
    )
    parser.add_argument(
        "experiments",
        nargs="*",
        default=[],  # else argparse says that it is missing when QUERY is
        metavar="EXPERIMENT",
        help="each row names its experiment (default: the newest)",
    )
    add_output_arguments(parser)


def run(arguments: argparse.Namespace) -> int:
    if not arguments.query.strip():
        raise UsageError("QUERY: empty")
    paths = paths_of(arguments.experiments)
    opened = [open_experiment(path) for path in paths] or [open_experiment(None)]
    for experiment in opened:
        refuse_sampled(experiment)
        note_sampled(experiment)
    with tempfile.TemporaryDirectory(prefix="interpose-") as directory:
        write_table(Database(opened, directory).ask(arguments.query), arguments)
    return max(note_damages(each) for each in opened)
