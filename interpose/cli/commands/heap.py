"""`interpose heap`: which lines allocated the memory that was in use."""

from __future__ import annotations

import argparse

from interpose.analysis.heap import heaps
from interpose.cli.experiment_choice import add_experiments_argument, note_damages, open_experiments
from interpose.cli.messages import say
from interpose.cli.output import add_output_arguments, positive, write_table
from interpose.cli.parser import add_by_line_argument
from interpose.errors import ExperimentError
from interpose.reports.tables.heap import SORTS, heap_rows, heap_table, summary

NAME = "heap"
HELP = "show which lines allocated memory (needs INTERPOSE=heap)"
EXAMPLE = "interpose heap --sort end"
_ROWS = 20


def add_arguments(parser: argparse.ArgumentParser) -> None:
    add_experiments_argument(parser)
    add_by_line_argument(parser)
    parser.add_argument(
        "--sort",
        choices=tuple(SORTS),
        default="peak",
        metavar="COLUMN",
        help="sort rows by memory in use at the peak (default), at the end, or allocated in all",
    )
    parser.add_argument(
        "--limit", type=positive, metavar="N", help=f"at most N rows of each process (default of text: {_ROWS})"
    )
    add_output_arguments(parser)


def run(arguments: argparse.Namespace) -> int:
    experiment = open_experiments(arguments.experiments)
    found = heaps(experiment, arguments.by == "function")
    if not found:
        missed = experiment.founder.log.missed("heap")
        why = f": {missed[0]}" if missed else "; INTERPOSE=calls,heap records it"
        raise ExperimentError(f"{experiment.name}: the heap was not recorded{why}")
    limit = arguments.limit or (_ROWS if arguments.format == "text" else None)
    rows = heap_rows(found, arguments.sort, limit)
    for heap in found if arguments.format == "text" else ():
        say(summary(heap))
    write_table(heap_table(rows, experiment.founder.log.cwd), arguments)
    return note_damages(experiment)
