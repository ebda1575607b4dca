"""`interpose top`: the functions and calls of the last seconds of a program that runs, again and again."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterator

from interpose.analysis.profile.recent import last_seconds
from interpose.cli.experiment_choice import note_damages, open_experiments, refuse_sampled
from interpose.cli.following import follow
from interpose.cli.output import only_seconds, positive, width_of, with_links
from interpose.cli.target import experiment_of
from interpose.config.filters import OFF
from interpose.errors import UsageError
from interpose.experiments.metadata.log import FILTERED
from interpose.experiments.model.collection import Collection
from interpose.experiments.model.experiment import Experiment
from interpose.reports.formats.table import clean
from interpose.reports.formats.units import SECOND_NS, count
from interpose.reports.screen.state import what_is_missing
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
        text = "".join(f"{line}\n" for line in recent_lines(found, places, width, arguments.limit, _remarks(now)))
        return with_links(text, places.shown, sys.stdout)

    if arguments.once:
        sys.stdout.write(draw(experiment))
    else:
        experiment = follow(experiment, draw, arguments.every, sys.stdout)
    return note_damages(experiment)


def _remarks(experiment: Experiment) -> Iterator[str]:
    """What the table does not show: calls that were lost or excluded, whose time is in code."""
    lost = sum(process.lost_calls + sum(thread.record.dropped for thread in process.threads)
               for process in experiment.processes)  # fmt: skip
    why = [what_is_missing(experiment), f"{count(lost, 'event')} lost" if lost else ""]
    if any(why):
        yield f" incomplete  {'; '.join(filter(None, why))}; the time of calls that are not recorded is in code"
    filters = [event.text for event in experiment.founder.log.events if event.kind == FILTERED]
    if filters and filters[-1] != OFF:
        yield clean(f" filter  {filters[-1]}; the time of excluded calls is in code")
