"""`interpose lines`: how often each line ran, and how long it took."""

from __future__ import annotations

import argparse
import fnmatch
import os

from interpose.analysis.lines.line_rows import Trace, line_trace
from interpose.analysis.lines.line_sources import line_files
from interpose.cli.experiment_choice import add_experiments_argument, note_damages, open_experiments
from interpose.cli.installed_script import hint
from interpose.cli.messages import say
from interpose.cli.output import add_output_arguments, opened_output, positive, write_table
from interpose.cli.parser import add_by_line_argument
from interpose.errors import ExperimentError, UsageError
from interpose.experiments.model.experiment import Experiment
from interpose.legacy.keytree import write_nodes
from interpose.legacy.nodes import nodes
from interpose.reports.screen.display import HTML, TEXT, write
from interpose.reports.screen.source_view import HOT_PERCENT
from interpose.reports.tables.line_sources import source_tables, write_page
from interpose.reports.tables.lines import SORTS, LineRow, closing_rows, function_rows, line_rows, lines_table

NAME = "lines"
HELP = "show the count and time of each line (needs INTERPOSE=lines)"
EXAMPLE = "interpose lines --annotate"
APART = ("process", "thread", "task")
WITHOUT_MARKS = ("json", "csv")  # formats of figures alone


def add_arguments(parser: argparse.ArgumentParser) -> None:
    add_experiments_argument(parser)
    add_by_line_argument(parser)
    parser.add_argument(
        "--apart",
        choices=APART,
        action="append",
        default=[],
        metavar="WHAT",
        help="separate rows for each process, thread or task",
    )
    parser.add_argument(
        "--function", metavar="PATTERN", help="only functions whose qualified name matches, with * and ?"
    )
    parser.add_argument(
        "--sort",
        choices=SORTS,
        default="cpu",
        metavar="COLUMN",
        help=f"sort rows by {', '.join(SORTS)} (default: %(default)s)",
    )
    parser.add_argument("--limit", type=positive, metavar="N", help="at most N rows")
    parser.add_argument(
        "--annotate",
        action="store_true",
        help="show sources, with figures beside each line, and ## beside hot ones",
    )
    parser.add_argument(
        "--hot",
        type=_percent,
        default=HOT_PERCENT,
        metavar="PERCENT",
        help=f"a line is hot from this share of its file's largest time on (default: {HOT_PERCENT})",
    )
    parser.add_argument(
        "--global",
        dest="stored",
        nargs="?",
        const="",
        metavar="GLOBAL",
        help="store the counts as GT.M does, in the SQLite file -o (interpose display zwr shows it)",
    )
    add_output_arguments(parser, HTML)


def run(arguments: argparse.Namespace) -> int:
    experiment = open_experiments(arguments.experiments)
    trace = line_trace(experiment, arguments.apart)
    if not has_any(trace) and experiment.damages.found:
        return note_damages(experiment)
    refuse_nothing(experiment, trace)
    if arguments.stored is not None:
        store(experiment, arguments)
        return note_damages(experiment)
    for note in trace.notes:
        say(note)
    if not trace.lines:
        wanted = experiment.founder.log.settings.get("INTERPOSE_LINES", "own")
        why = hint(experiment.founder, "INTERPOSE_LINES", wanted)
        say(f"no function that ran matches INTERPOSE_LINES={wanted}{why}")
    elif not any(fnmatch.fnmatchcase(each.place.function, arguments.function or "*") for each in trace.lines):
        told = f"no function that was traced matches --function {arguments.function}"
        raise UsageError(f"{told}; interpose lines --by function lists them")
    if trace.is_estimated:
        times = "times" if arguments.format in WITHOUT_MARKS else "times marked ~"
        say(f"recording took {trace.recorded_percent} % of the CPU time: {times} are estimates")
    if arguments.annotate or arguments.format == HTML:
        write_sources(experiment, trace, arguments)
        return note_damages(experiment)
    table = lines_table(rows(trace, arguments), arguments.apart, experiment.founder.log.cwd, trace.is_estimated)
    write_table(table, arguments)
    return note_damages(experiment)


def write_sources(experiment: Experiment, trace: Trace, arguments: argparse.Namespace) -> None:
    """Write the sources with their figures, longest times first. Raises InterposeError."""
    if arguments.format not in (TEXT, HTML):
        raise UsageError(f"--annotate: as text or {HTML}, not {arguments.format}")
    pattern = arguments.function or "*"
    lines = [each for each in trace.lines if fnmatch.fnmatchcase(each.place.function, pattern)]
    files, cwd = line_files(experiment, lines)[: arguments.limit], experiment.founder.log.cwd
    with opened_output(arguments.output) as out:
        if arguments.format == HTML:
            write_page(files, experiment.name, cwd, arguments.hot, out, trace.is_estimated)
            return
        for place, table in enumerate(source_tables(files, cwd, arguments.hot, trace.is_estimated)):
            out.write("\n" * bool(place))
            write(table, out)


def _percent(text: str) -> int:
    """The whole number from 1 to 100 that `text` is, for argparse."""
    if not (text.isascii() and text.isdigit() and len(text) < 4 and 1 <= int(text) <= 100):
        raise argparse.ArgumentTypeError(f"{text!r} is not a number from 1 to 100")
    return int(text)


def store(experiment: Experiment, arguments: argparse.Namespace) -> None:
    """Store the counts as nodes of globals. Raises InterposeError."""
    if not arguments.output:
        raise UsageError("--global: -o names the file to store it in")
    try:
        found = list(nodes(experiment, arguments.stored))
    except UsageError:
        if os.path.isdir(arguments.stored):
            raise UsageError(f"--global {arguments.stored}: the experiment goes before --global") from None
        raise
    write_nodes(arguments.output, found)


def has_any(trace: Trace) -> bool:
    """Whether lines were recorded."""
    return bool(trace.threads or trace.lines)


def refuse_nothing(experiment: Experiment, trace: Trace) -> None:
    """Raises ExperimentError if no lines were recorded."""
    if not has_any(trace):
        remedy = "use interpose run --lines own, INTERPOSE=lines or interpose.trace_lines()"
        why = f": {trace.missed[0] if trace.missed else remedy}"
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
