"""`interpose consolidate`: put like calls together into records that are kept in the experiment."""

from __future__ import annotations

import argparse

from interpose.analysis.ending import is_running
from interpose.analysis.keeping import SLOWEST, keep
from interpose.analysis.structure import is_consolidated_alone
from interpose.commands.choice import note_damages, open_experiment, say
from interpose.commands.consolidating import take_events_away
from interpose.errors import InterposeError, UsageError
from interpose.experiments.pauses import pauses_of
from interpose.reports.units import count

NAME = "consolidate"
HELP = "put like calls together into records that are kept in the experiment"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("experiments", nargs="+", metavar="EXPERIMENT", help="an experiment's directory")
    parser.add_argument("--replace", action="store_true", help="then take the events away; the records are left")
    parser.add_argument(
        "--slowest",
        type=_slowest,
        default=SLOWEST,
        metavar="N",
        help=f"keep so many of the slowest calls whole ({SLOWEST} unless said)",
    )


def run(arguments: argparse.Namespace) -> int:
    return max([_consolidate(path, arguments) for path in arguments.experiments], default=0)


def _consolidate(path: str, arguments: argparse.Namespace) -> int:
    experiment = open_experiment(path)
    experiment.refuse_if_unpacked("records")
    if any(is_running(process) for process in experiment.processes):
        raise UsageError(f"{experiment.name}: still running; it is consolidated when it has ended")
    if is_consolidated_alone(experiment):
        say(f"{experiment.name}: has nothing but records already")
        return note_damages(experiment)
    pauses = pauses_of(experiment)
    try:
        calls = sum(keep(process, pauses, arguments.slowest) for process in experiment.processes)
        code = note_damages(experiment)
        if arguments.replace and code == 0:
            take_events_away(experiment)
    except OSError as error:
        raise InterposeError(f"{experiment.name}: {error.strerror}") from error
    say(f"{experiment.name}: {count(calls, 'call')} put together{_what_became(arguments.replace, code)}")
    return code


def _what_became(replace: bool, code: int) -> str:
    if not replace:
        return ""
    return "; the events are gone" if code == 0 else "; the events are kept, for something is damaged"


def _slowest(text: str) -> int:
    if not (text.isascii() and text.isdigit() and len(text) < 5):
        raise argparse.ArgumentTypeError(f"{text!r} is no number from 0 to 9999")
    return int(text)
