"""`interpose events`: the calls one after the other, in the order in which they began."""

from __future__ import annotations

import argparse
import re
from collections.abc import Iterator
from datetime import datetime
from itertools import islice

from interpose.analysis.trace import Traced, last, trace
from interpose.commands.choice import add_experiment_argument, note_damages, open_experiment
from interpose.commands.output import add_output_arguments, positive, write_table
from interpose.errors import UsageError
from interpose.experiments.experiment import Experiment
from interpose.experiments.process import Process
from interpose.reports.events import events_table

NAME = "events"
HELP = "list the calls of an experiment in the order in which they began"

_UNITS_NS = {"ns": 1, "us": 10**3, "ms": 10**6, "s": 10**9, "m": 60 * 10**9, "h": 3600 * 10**9}
_DURATION = re.compile(r"([0-9]{1,12}(?:\.[0-9]{1,9})?)(ns|us|ms|s|m|h)")


def add_arguments(parser: argparse.ArgumentParser) -> None:
    add_experiment_argument(parser)
    parser.add_argument("--last", type=positive, metavar="N", help="only the last N")
    parser.add_argument(
        "--since",
        metavar="WHEN",
        help="only those since then: so long after the start (500ms, 2.5s, 3m), or a time (10:02)",
    )
    parser.add_argument("--limit", type=positive, metavar="N", help="at most N")
    add_output_arguments(parser)


def run(arguments: argparse.Namespace) -> int:
    experiment = open_experiment(arguments.experiment)
    since_ns = monotonic_ns(arguments.since, experiment.founder) if arguments.since else 0
    rows = _rows(experiment, arguments.last, since_ns)
    write_table(events_table(experiment, islice(rows, arguments.limit)), arguments)
    return note_damages(experiment)


def _rows(experiment: Experiment, number: int | None, since_ns: int) -> Iterator[Traced]:
    return trace(experiment, since_ns) if number is None else last(experiment, number, since_ns)


def monotonic_ns(when: str, process: Process) -> int:
    """The instant that `when` means on the clock of `process`. Raises UsageError.

    A duration counts from the beginning of the recording; a time of day is that of the day of the
    beginning, or of the next where it would lie before it.
    """
    if duration := _DURATION.fullmatch(when):
        return process.log.start_ns + round(float(duration[1]) * _UNITS_NS[duration[2]])
    began = datetime.fromtimestamp(process.log.time_ns / 1e9)
    try:
        if re.fullmatch(r"[0-9]{1,2}:[0-9]{2}(:[0-9]{2}(\.[0-9]+)?)?", when):
            then = datetime.combine(began.date(), datetime.strptime(_to_seconds(when), "%H:%M:%S").time())
            after_s = (then - began).total_seconds()
            after_s += 86_400 if after_s < -60 else 0
        else:
            after_s = datetime.fromisoformat(when).timestamp() - process.log.time_ns / 1e9
    except (ValueError, OverflowError) as error:
        raise UsageError(f"--since {when}: neither a duration like 2.5s nor a time like 10:02") from error
    return process.log.start_ns + round(after_s * 1e9)


def _to_seconds(clock: str) -> str:
    parts = clock.partition(".")[0].split(":")
    return ":".join([*parts, "00"][:3])
