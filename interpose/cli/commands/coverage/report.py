"""`interpose coverage report`: a table of modules, lines or contexts; or annotations of GitHub's."""

from __future__ import annotations

import argparse
import os

from interpose.analysis.coverage.coverage import Coverage
from interpose.cli.commands.coverage.arguments import (
    add_asked_arguments,
    add_branch_argument,
    add_threshold_argument,
    ended,
    opened,
)
from interpose.cli.commands.coverage.subcommand import Subcommand
from interpose.cli.output import GITHUB, add_output_arguments, opened_output, write_table
from interpose.reports.coverage import github
from interpose.reports.coverage.tables import SORTS, contexts_table, lines_table, module_rows, modules_table
from interpose.reports.formats.table import Table

BY = ("module", "line", "context")


def add_arguments(parser: argparse.ArgumentParser) -> None:
    add_asked_arguments(parser)
    parser.add_argument(
        "--by",
        choices=BY,
        metavar="WHAT",
        default="module",
        help="one row for each module, line (covered, missed or partly) or context",
    )
    parser.add_argument("--show-missing", action="store_true", help="show the lines that were missed")
    add_branch_argument(parser)
    parser.add_argument("--skip-covered", action="store_true", help="leave out modules with full coverage")
    parser.add_argument(
        "--sort", choices=SORTS, metavar="COLUMN", default="file", help=f"sort modules by {', '.join(SORTS)}"
    )
    add_threshold_argument(parser)
    add_output_arguments(parser, GITHUB)


def run(arguments: argparse.Namespace) -> int:
    experiment, found = opened(arguments)
    if arguments.format == GITHUB:
        with opened_output(arguments.output) as out:
            github.write(found, os.getcwd(), out)
    else:
        write_table(_table(found, arguments), arguments)
    return ended(experiment, found, arguments)


def _table(found: Coverage, arguments: argparse.Namespace) -> Table:
    place = os.getcwd()
    if arguments.by == "line":
        return lines_table(found, place, with_contexts=any(found.contexts))
    if arguments.by == "context":
        return contexts_table(found)
    rows = module_rows(found, place, arguments.sort, arguments.skip_covered)
    return modules_table(rows, arguments.branch, arguments.show_missing)


SUBCOMMANDS = (
    Subcommand(
        "report",
        "print a table of modules, lines or contexts",
        "interpose coverage report --by line",
        add_arguments,
        run,
    ),
)
