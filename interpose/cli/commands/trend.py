"""`interpose trend`: a figure of each run in the order of their time, and since when it has changed."""

from __future__ import annotations

import argparse
from collections.abc import Iterator

from interpose import __version__
from interpose.analysis.comparison.change_points import RUNS_AT_LEAST_IN_ALL
from interpose.analysis.comparison.comparison import named
from interpose.analysis.comparison.figures import ALL, ELAPSED, GROUPED_BY, MEASURES
from interpose.analysis.comparison.likeness import unlike
from interpose.analysis.comparison.trend import Trend
from interpose.cli.experiment_choice import paths_of
from interpose.cli.many.arguments import add_many_arguments
from interpose.cli.messages import say
from interpose.cli.output import add_output_arguments, opened_output, write_table
from interpose.cli.parser import add_by_argument
from interpose.cli.runs import Runs, add_measure_argument
from interpose.cli.suggestions import did_you_mean
from interpose.errors import UsageError
from interpose.reports.formats.units import count
from interpose.reports.page.trend import trend_page
from interpose.reports.tables.trend import change_line, trend_table

NAME = "trend"
HELP = "follow a figure over many runs, and show where it changed"
EXAMPLE = "interpose trend 'nightly.*.er'"
HTML = "html"
_UNLIKE_AT_MOST = 3


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "experiments",
        nargs="+",
        metavar="EXPERIMENT",
        help="the runs, in any order: directories, archives, groups NAME.erg, or patterns 'nightly.*.er'",
    )
    add_by_argument(parser, GROUPED_BY, "intrinsic", "what --name is the name of:")
    parser.add_argument(
        "--name", default=ALL, metavar="NAME", help="the row to follow: an intrinsic, a line … (default: %(default)s)"
    )
    add_measure_argument(parser)
    add_many_arguments(parser)
    add_output_arguments(parser, HTML)


def run(arguments: argparse.Namespace) -> int:
    if arguments.measure == ELAPSED and arguments.name != ALL:
        raise UsageError(f"--name {arguments.name}: leave it out, --measure elapsed measures the whole run")
    needs_calls = MEASURES[arguments.measure].needs_calls
    found = Runs(paths_of(arguments.experiments), arguments.by, needs_calls, arguments)
    found.order_by_time()
    if named(found.runs, arguments.name) is None:
        known = sorted({part for each in found.runs for name in each.rows for part in name.parts})
        meant = did_you_mean(arguments.name, known)
        raise UsageError(f"--name {arguments.name}: no run has such a row (--by {arguments.by}){meant}")
    trend = Trend(found.runs, found.times_ns, arguments.measure, arguments.name)
    told = list(_told(trend))
    if arguments.format == HTML:
        with opened_output(arguments.output) as out:
            out.write(trend_page(trend, told, __version__))
    else:
        write_table(trend_table(trend), arguments)
        for line in told:
            say(line)
    for period, before in zip(trend.periods[1:], trend.periods, strict=False):
        sides = found.circumstances[before.first : before.end], found.circumstances[period.first : period.end]
        for line in unlike(*sides)[:_UNLIKE_AT_MOST]:
            say(f"around run {period.first + 1:,}: {line}")
    return found.code


def _told(trend: Trend) -> Iterator[str]:
    """The conclusion of a trend: where it changed, or that it did not."""
    yield from (change_line(trend, period) for period in trend.periods[1:])
    if len(trend.runs) < RUNS_AT_LEAST_IN_ALL:
        yield f"{count(len(trend.runs), 'run')}: a change shows in {RUNS_AT_LEAST_IN_ALL} or more"
    elif len(trend.periods) == 1:
        yield f"no change found in {count(len(trend.runs), 'run')}"
