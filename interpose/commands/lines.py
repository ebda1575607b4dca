"""`interpose lines`: how often each line ran, and what it took."""

from __future__ import annotations

import argparse
import fnmatch
import os

from interpose.analysis.lines import Trace, line_trace
from interpose.analysis.nodes import nodes
from interpose.commands.choice import add_experiments_argument, note_damages, open_experiments, say
from interpose.commands.output import add_output_arguments, positive, write_table
from interpose.errors import ExperimentError, UsageError
from interpose.experiments.experiment import Experiment
from interpose.reports.keytree import write_nodes
from interpose.reports.lines import SORTS, LineRow, closing_rows, function_rows, line_rows, lines_table

NAME = "lines"
HELP = "tell how often each line ran and what it took, where lines were recorded (INTERPOSE=lines)"
APART = ("process", "thread", "task")


def add_arguments(parser: argparse.ArgumentParser) -> None:
    add_experiments_argument(parser)
    parser.add_argument("--by", choices=("line", "function"), default="line", help="a row for each")
    parser.add_argument(
        "--apart", choices=APART, action="append", default=[], help="not added up over processes, threads or tasks"
    )
    parser.add_argument(
        "--function", metavar="PATTERN", help="only functions whose qualified name matches, with * and ?"
    )
    parser.add_argument("--sort", choices=SORTS, default="cpu", help="what comes first; line: as in the source")
    parser.add_argument("--limit", type=positive, metavar="N", help="at most N rows of lines or functions")
    parser.add_argument(
        "--global",
        dest="stored",
        nargs="?",
        const="",
        metavar="GLOBAL",
        help="store what was counted as GT.M does, in the file of sqlite that -o names: ^lvtr(\"MYTRACE\",$J), or the"
        " globals that the program named; `interpose display zwr` shows it",
    )
    add_output_arguments(parser)


def run(arguments: argparse.Namespace) -> int:
    experiment = open_experiments(arguments.experiments)
    trace = line_trace(experiment, arguments.apart)
    refuse_nothing(experiment, trace)
    if arguments.stored is not None:
        store(experiment, arguments)
        return note_damages(experiment)
    for note in trace.notes:
        say(note)
    table = lines_table(rows(trace, arguments), arguments.apart, experiment.founder.log.cwd)
    write_table(table, arguments)
    return note_damages(experiment)


def store(experiment: Experiment, arguments: argparse.Namespace) -> None:
    """Store what was counted as nodes of globals. Raises InterposeError."""
    if not arguments.output:
        raise UsageError("--global: -o names the file to store it in")
    try:
        found = list(nodes(experiment, arguments.stored))
    except UsageError:
        if os.path.isdir(arguments.stored):
            raise UsageError(f"--global {arguments.stored}: the experiment goes before --global") from None
        raise
    write_nodes(arguments.output, found)


def refuse_nothing(experiment: Experiment, trace: Trace) -> None:
    """Raises ExperimentError where no lines were recorded."""
    if not trace.threads and not trace.lines:
        why = f": {trace.missed[0]}" if trace.missed else "; INTERPOSE=lines or interpose.trace_lines() does"
        raise ExperimentError(f"{experiment.name}: no lines were recorded{why}")


def rows(trace: Trace, arguments: argparse.Namespace) -> list[LineRow]:
    """The rows that are asked for."""
    pattern = arguments.function or "*"
    if arguments.by == "function":
        functions = [each for each in trace.functions if fnmatch.fnmatchcase(each.place.function, pattern)]
        found = function_rows(functions, arguments.sort, arguments.limit)
    else:
        lines = [each for each in trace.lines if fnmatch.fnmatchcase(each.place.function, pattern)]
        found = line_rows(lines, arguments.sort, arguments.limit)
    return found if arguments.function else [*found, *closing_rows(trace)]
