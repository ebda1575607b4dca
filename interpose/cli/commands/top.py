"""`interpose top`: the functions and calls of the last seconds of a program that runs, again and again."""

from __future__ import annotations

import argparse
import sys

from interpose.analysis.profile.recent import last_seconds
from interpose.cli.experiment_choice import note_damages, open_experiments, refuse_sampled
from interpose.cli.following import follow
from interpose.cli.output import only_seconds, positive, width_of, with_links
from interpose.cli.target import experiment_of
from interpose.errors import UsageError
from interpose.experiments.model.collection import Collection
from interpose.experiments.model.experiment import Experiment
from interpose.reports.formats.units import SECOND_NS
from interpose.reports.tables.recent import places_of, recent_lines

NAME = "top"
HELP = "show what a running program does now: its functions and calls"
EXAMPLE = "interpose top"
EVERY_S, LAST_S, ROWS = 2.0, 5.0, 10


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "experiment",
        nargs="?",
        metavar="PID|EXPERIMENT",
        help="a process that is recorded, or an experiment (default: the newest)",
    )
    parser.add_argument(
        "--every",
        type=only_seconds,
        default=EVERY_S,
        metavar="SECONDS",
        help=f"refresh every SECONDS (default: {EVERY_S:g})",
    )
    parser.add_argument(
        "--last",
        type=only_seconds,
        default=LAST_S,
        metavar="SECONDS",
        help=f"show the last SECONDS (default: {LAST_S:g})",
    )
    limit = f"at most N functions and N calls (default: {ROWS})"
    parser.add_argument("--limit", type=positive, default=ROWS, metavar="N", help=limit)
    parser.add_argument("--once", action="store_true", help="show this once, and end")


def run(arguments: argparse.Namespace) -> int:
    given = arguments.experiment
    is_pid = given is not None and given.isascii() and given.isdigit()
    experiment = experiment_of(given) if is_pid else open_experiments([given] if given else [])
    if isinstance(experiment, Collection):
        raise UsageError("top takes a single experiment")
    refuse_sampled(experiment)

    def draw(now: Experiment) -> str:
        found = last_seconds(now, round(arguments.last * SECOND_NS))
        places, width = places_of(found, now.founder.log.cwd), width_of(sys.stdout)
        text = "".join(f"{line}\n" for line in recent_lines(found, places, width, arguments.limit))
        return with_links(text, places.shown, sys.stdout)

    if arguments.once:
        sys.stdout.write(draw(experiment))
    else:
        experiment = follow(experiment, draw, arguments.every, sys.stdout)
    return note_damages(experiment)
