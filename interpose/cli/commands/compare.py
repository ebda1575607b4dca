"""`interpose compare`: what differs between two runs, or between two sets of runs, by more than chance."""

from __future__ import annotations

import argparse

from interpose.analysis.comparison.comparison import compare
from interpose.analysis.comparison.conditions import outcome, parse_condition
from interpose.analysis.comparison.differences import RUNS_AT_LEAST, TOLERANCE
from interpose.analysis.comparison.figures import GROUPED_BY, MEASURES
from interpose.analysis.comparison.likeness import unlike
from interpose.cli.experiment_choice import paths_of
from interpose.cli.many.arguments import add_many_arguments
from interpose.cli.messages import say
from interpose.cli.output import GITHUB, add_output_arguments, opened_output, positive, write_table
from interpose.cli.parser import add_by_argument
from interpose.cli.runs import Runs, add_measure_argument
from interpose.errors import UsageError
from interpose.reports.screen.github import Comment, write_comparison
from interpose.reports.tables.comparison import MODES, comparison_table, outcome_line

NAME = "compare"
HELP = "show what changed between two runs, or between two sets of runs"
EXAMPLE = "interpose compare before.1.er after.1.er"
FAILED = 4  # a condition of --fail-if holds
_WARNINGS_AT_MOST = 10


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "a",
        nargs="+",
        metavar="EXPERIMENT",
        help="two runs; or the runs of the first side, before --with. A group NAME.erg stands for its runs",
    )
    parser.add_argument("--with", dest="b", nargs="+", metavar="EXPERIMENT", help="the runs of the second side")
    add_by_argument(parser, GROUPED_BY, "intrinsic", "one row for each")
    add_measure_argument(parser)
    parser.add_argument(
        "--mode",
        choices=MODES,
        metavar="MODE",
        default="on",
        help="the column B: the second side (on, default), delta or ratio",
    )
    parser.add_argument(
        "--tolerance",
        type=_part,
        default=TOLERANCE,
        metavar="PERCENT",
        help=f"changes within this share are `unchanged` (default: {TOLERANCE:.0%})".replace("%", "%%"),
    )
    parser.add_argument(
        "--fail-if",
        dest="conditions",
        action="append",
        default=[],
        metavar="CONDITION",
        help=f"exit code {FAILED} if it holds: 'p95(checkout) > +10%%', 'mean(all) > 200ms'; repeatable",
    )
    parser.add_argument("--limit", type=positive, metavar="N", help="at most N rows")
    add_many_arguments(parser)
    add_output_arguments(parser, GITHUB)


def _part(text: str) -> float:
    """The part of 1 that a percentage is, for argparse."""
    try:
        found = float(text.removesuffix("%")) / 100
    except ValueError:
        found = 0.0
    if not 0 < found <= 10:
        raise argparse.ArgumentTypeError(f"{text!r} is not a percentage from 0.01% to 1000%")
    return found


def run(arguments: argparse.Namespace) -> int:
    conditions = [parse_condition(text) for text in arguments.conditions]
    with_calls = any(MEASURES[each].needs_calls for each in (arguments.measure, *(c.measure for c in conditions)))
    a, b = (Runs(paths, arguments.by, with_calls, arguments) for paths in _sides(arguments))
    differing = unlike(a.circumstances, b.circumstances)[:_WARNINGS_AT_MOST]
    for line in differing:
        say(line)
    if min(len(a.runs), len(b.runs)) < RUNS_AT_LEAST:
        few = "one run" if max(len(a.runs), len(b.runs)) == 1 else f"fewer than {RUNS_AT_LEAST} runs"
        say(f"{few} a side cannot tell a change from chance; compare {RUNS_AT_LEAST} or more: A1 A2 A3 --with B1 B2 B3")
    found = compare(a.runs, b.runs, arguments.measure, arguments.tolerance)
    outcomes = [outcome(each, a.runs, b.runs) for each in conditions]
    if arguments.format == GITHUB:
        comment = Comment(found, arguments.by, arguments.mode, outcomes, differing, arguments.limit)
        with opened_output(arguments.output) as out:
            write_comparison(comment, out)
    else:
        write_table(comparison_table(found, arguments.by, arguments.mode, arguments.limit), arguments)
    for each in outcomes:
        say(f"--fail-if {outcome_line(each)}")
    return FAILED if any(each.holds for each in outcomes) else max(a.code, b.code)


def _sides(arguments: argparse.Namespace) -> tuple[list[str], list[str]]:
    """The paths of both sides. Raises UsageError."""
    if arguments.b is not None:
        return paths_of(arguments.a), paths_of(arguments.b)
    if len(arguments.a) != 2:
        raise UsageError("use compare A B, or for several runs a side compare A1 A2 A3 --with B1 B2 B3")
    return paths_of(arguments.a[:1]), paths_of(arguments.a[1:])
