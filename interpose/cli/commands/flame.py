"""`interpose flame`: where the time went, as frames below those that called them."""

from __future__ import annotations

import argparse
from typing import TextIO

from interpose.analysis.analysis import Analysis
from interpose.analysis.calls.calltree import Calls, calls_of
from interpose.analysis.profile.flame import CPU, WALL, flame
from interpose.cli.commands.report import private_file, show_page
from interpose.cli.experiment_choice import note_damages, note_sampled, open_experiments, refuse_sampled
from interpose.cli.output import add_output_argument, opened_output
from interpose.errors import UsageError
from interpose.experiments.model.experiment import Experiment
from interpose.reports.flame import drawing, page

NAME = "flame"
HELP = "show functions and calls as a flame graph"
EXAMPLE = "interpose flame -o flame.html"
HTML, SVG = "html", "svg"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "experiments",
        nargs="*",
        metavar="EXPERIMENT",
        help="one (default: the newest), or two: the second is shown, coloured by what differs from the first",
    )
    times = parser.add_mutually_exclusive_group()
    for option, metric, told in (("--cpu", CPU, "CPU time (default)"), ("--wall", WALL, "wall time")):
        wide = f"a frame is as wide as its {told}"
        times.add_argument(option, dest="metric", action="store_const", const=metric, help=wide)
    parser.set_defaults(metric=CPU)
    parser.add_argument(
        "--tasks", action="store_true", help="put a frame for each asyncio task and greenlet around what it ran"
    )
    parser.add_argument(
        "--format",
        choices=(HTML, SVG),
        metavar="FORMAT",
        default=HTML,
        help="html (a page with zoom and search), svg",
    )
    add_output_argument(parser)
    parser.add_argument("--open", action="store_true", help="open the page in the browser; -o FILE keeps it")


def run(arguments: argparse.Namespace) -> int:
    if len(arguments.experiments) > 2:
        raise UsageError(f"flame takes one experiment, or two to compare, not {len(arguments.experiments)}")
    if arguments.open and arguments.format != HTML:
        raise UsageError(f"--open: opens the HTML page, not --format {arguments.format}")
    names = [[name] for name in arguments.experiments] or [[]]
    opened = [open_experiments(each) for each in names]
    for experiment in opened:
        refuse_sampled(experiment)
        note_sampled(experiment)
    calls = [calls_of(Analysis(each), arguments.tasks) for each in opened]
    path = private_file() if arguments.open and not arguments.output else arguments.output
    with opened_output(path) as out:
        _write(arguments, opened[-1], calls, out)
    if arguments.open:
        show_page(path)
    return max([note_damages(each) for each in opened])


def _write(arguments: argparse.Namespace, experiment: Experiment, calls: list[Calls], out: TextIO) -> None:
    made = flame(calls[-1], arguments.metric, calls[0] if len(calls) > 1 else None)
    module = page if arguments.format == HTML else drawing
    module.write(made, experiment.name, experiment.founder.log.cwd, out)
