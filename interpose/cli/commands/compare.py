"""`interpose compare`: what differs between two runs, or between two sets of runs, by more than chance."""

from __future__ import annotations

import argparse

from interpose.analysis.analysis import Analysis
from interpose.analysis.comparison.comparison import compare
from interpose.analysis.comparison.conditions import outcome, parse_condition
from interpose.analysis.comparison.differences import RUNS_AT_LEAST, TOLERANCE
from interpose.analysis.comparison.figures import GROUPED_BY, MEASURES, Run, run_of
from interpose.analysis.comparison.likeness import Circumstances, circumstances, unlike
from interpose.cli.experiment_choice import note_damages, note_sampled, open_experiment, paths_of, refuse_sampled
from interpose.cli.messages import say
from interpose.cli.output import add_output_arguments, positive, write_table
from interpose.errors import ExperimentError, UsageError
from interpose.experiments.model.files import Damages
from interpose.reports.tables.comparison import MODES, comparison_table, outcome_line

NAME = "compare"
HELP = "show what changed between runs, and whether it is more than chance"
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
    parser.add_argument(
        "--by",
        choices=GROUPED_BY,
        metavar="WHAT",
        default="intrinsic",
        help=f"one row for each {', '.join(GROUPED_BY)} (default: %(default)s)",
    )
    parser.add_argument(
        "--measure",
        choices=tuple(MEASURES),
        metavar="MEASURE",
        default="total",
        help="; ".join(f"{name}: {measure.meaning}" for name, measure in MEASURES.items()).replace("%", "%%"),
    )
    parser.add_argument(
        "--mode",
        choices=MODES,
        metavar="MODE",
        default="on",
        help="show the second side as it is (on), as delta or as ratio",
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
        help=f"exit with {FAILED} if it holds: 'p95(checkout) > +10%%', 'mean(all) > 200ms'; repeatable",
    )
    parser.add_argument("--limit", type=positive, metavar="N", help="at most N rows")
    add_output_arguments(parser)


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
    a, b = (_Side(paths, arguments.by, with_calls) for paths in _sides(arguments))
    for line in unlike(a.circumstances, b.circumstances)[:_WARNINGS_AT_MOST]:
        say(line)
    if min(len(a.runs), len(b.runs)) < RUNS_AT_LEAST:
        few = "one run" if max(len(a.runs), len(b.runs)) == 1 else f"fewer than {RUNS_AT_LEAST} runs"
        say(f"{few} a side cannot tell a change from chance; compare {RUNS_AT_LEAST} or more: A1 A2 A3 --with B1 B2 B3")
    found = compare(a.runs, b.runs, arguments.measure, arguments.tolerance)
    outcomes = [outcome(each, a.runs, b.runs) for each in conditions]
    write_table(comparison_table(found, arguments.by, arguments.mode, arguments.limit), arguments)
    for each in outcomes:
        say(f"--fail-if {outcome_line(each)}")
    return FAILED if any(each.holds for each in outcomes) else max(a.code, b.code)


def _sides(arguments: argparse.Namespace) -> tuple[list[str], list[str]]:
    """The paths of both sides. Raises UsageError."""
    if arguments.b is not None:
        return paths_of(arguments.a), paths_of(arguments.b)
    if len(arguments.a) != 2:
        raise UsageError("compare A B, or, of several runs, compare A1 A2 A3 --with B1 B2 B3")
    return paths_of(arguments.a[:1]), paths_of(arguments.a[1:])


class _Side:
    """The runs at some paths, read one after the other; what cannot be read is said, and left out."""

    def __init__(self, paths: list[str], by: str, with_calls: bool) -> None:
        self.runs: list[Run] = []
        self.circumstances: list[Circumstances] = []
        self.code = 0
        refused = Damages()
        for path in paths:
            try:
                self._read(path, by, with_calls)
            except ExperimentError as error:
                place, _, what = str(error).rpartition(": ")
                refused.add(place, what)
        if not self.runs:
            raise ExperimentError(str(refused.found[0]))
        for damage in refused.found:
            say(f"{damage}; left out")
            self.code = 3

    def _read(self, path: str, by: str, with_calls: bool) -> None:
        experiment = open_experiment(path)
        refuse_sampled(experiment)
        note_sampled(experiment, "counts and times are estimates, whose margins are not in the comparison")
        analysis = Analysis(experiment)
        self.runs.append(run_of(analysis, by, with_calls))
        self.circumstances.append(circumstances(analysis))
        self.code = max(self.code, note_damages(experiment))

