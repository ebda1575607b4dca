"""`interpose events`: the calls one after the other, in the order in which they began."""

from __future__ import annotations

import argparse
from collections import deque
from collections.abc import Iterable, Iterator, Sequence
from itertools import islice

from interpose.analysis.analysis import Analysis
from interpose.analysis.calls.clipping import clips
from interpose.analysis.calls.structure import is_consolidated_alone, structure
from interpose.analysis.calls.trace import ENDED, Traced, last, slowest, trace, with_one_start
from interpose.analysis.expressions.filters import Filter
from interpose.analysis.recording.missing import note_missing_events
from interpose.cli.experiment_choice import (
    add_experiment_argument,
    add_label_argument,
    labelled,
    note_clipped,
    note_damages,
    note_sampled,
    open_experiment,
)
from interpose.cli.messages import say
from interpose.cli.output import add_output_arguments, positive, write_table
from interpose.cli.times import monotonic_ns
from interpose.errors import UsageError
from interpose.experiments.metadata.labels import Window, is_in
from interpose.experiments.model.experiment import Experiment
from interpose.legacy.code_tables import NATURAL, event_types_table
from interpose.legacy.event_types import event_types
from interpose.reports.tables.events import events_table
from interpose.reports.tables.structure import structure_table
from interpose.reports.tables.tokens import tokens_table

NAME = "events"
HELP = "list the calls in the order in which they began"
EXAMPLE = "interpose events --last 20"
HELP_WANTED = "help"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    add_experiment_argument(parser)
    parser.add_argument("--last", type=positive, metavar="N", help="only the last N calls")
    parser.add_argument(
        "--since",
        metavar="WHEN",
        help="only calls from then on: since the start (500ms, 2.5s, 3m), or a time (10:02)",
    )
    parser.add_argument("--slowest", action="store_true", help="the slowest calls, if the experiment is consolidated")
    add_label_argument(parser)
    parser.add_argument(
        "--filter",
        metavar="EXPRESSION",
        help="only calls that match: \"KIND == 'db' && WALL > 5ms\"; --filter help explains it",
    )
    parser.add_argument("--startup", action="store_true", help="list each call at Python's start, not one row for all")
    parser.add_argument("--limit", type=positive, metavar="N", help="at most N rows")
    add_output_arguments(parser)
    advanced = parser.add_argument_group("advanced")
    advanced.add_argument(
        "--codes", choices=(NATURAL,), metavar=NATURAL, help="show event types with the codes of the Natural Profiler"
    )


def run(arguments: argparse.Namespace) -> int:
    if (arguments.filter or "").strip().lower() == HELP_WANTED:
        write_table(tokens_table(), arguments)
        return 0
    experiment = open_experiment(arguments.experiment)
    note_sampled(experiment)
    chosen = Filter(arguments.filter, experiment) if arguments.filter is not None else None
    since_ns = monotonic_ns(arguments.since, experiment.founder) if arguments.since else 0
    label = labelled(experiment, arguments.label)
    if arguments.slowest:
        return _show_slowest(experiment, arguments)
    if is_consolidated_alone(experiment):
        return _show_records(experiment, arguments)
    rows = _rows(experiment, arguments.last, since_ns, label, chosen)
    if arguments.codes:
        write_table(event_types_table(experiment, islice(event_types(experiment, rows), arguments.limit)), arguments)
    else:
        rows = rows if arguments.startup or arguments.format != "text" else with_one_start(rows)
        write_table(events_table(experiment, islice(rows, arguments.limit)), arguments)
    note_missing_events(experiment)
    return note_damages(experiment)


def _show_slowest(experiment: Experiment, arguments: argparse.Namespace) -> int:
    """Show the events that were kept whole when calls were consolidated, slowest first."""
    if arguments.last or arguments.since or arguments.label or arguments.filter:
        raise UsageError("--slowest covers all calls: it excludes options that choose calls")
    kept = sorted(slowest(experiment), key=lambda row: -row.event.wall_ns)
    if not kept:
        raise UsageError(f"{experiment.name}: no slowest calls were kept (interpose consolidate keeps some)")
    write_table(events_table(experiment, kept[: arguments.limit]), arguments)
    return note_damages(experiment)


def _show_records(experiment: Experiment, arguments: argparse.Namespace) -> int:
    """Show the consolidated records, where that is all there is."""
    if arguments.last or arguments.since or arguments.label or arguments.filter:
        raise UsageError(f"{experiment.name}: single events were not recorded (record without INTERPOSE_CONSOLIDATE)")
    say(f"{experiment.name}: the trace of its consolidated records; single events were not kept")
    write_table(structure_table(experiment, islice(structure(Analysis(experiment)), arguments.limit)), arguments)
    return note_damages(experiment)


def _rows(
    experiment: Experiment,
    number: int | None,
    since_ns: int,
    label: Sequence[Window] | None,
    chosen: Filter | None,
) -> Iterator[Traced]:
    if label is None and chosen is None:
        return trace(experiment, since_ns) if number is None else last(experiment, number, since_ns)
    if label is not None:  # calls are clipped before they are chosen
        rows = _within(experiment, trace(experiment, since_ns), label)
    else:
        rows = trace(experiment, since_ns, chosen.has_kept if chosen else None)
    if chosen is not None:
        rows = (row for row in rows if chosen.keeps(row.process, row.event, row.depth, row.state))
    return rows if number is None else iter(deque(rows, number))


def _within(experiment: Experiment, rows: Iterable[Traced], label: Sequence[Window]) -> Iterator[Traced]:
    """The rows in the windows of a label; of those that reach beyond, the part inside."""
    found = {process: clips(process, label) for process in experiment.processes}
    note_clipped(any(found.values()))
    for row in rows:
        clip = found[row.process].get((row.event.thread, row.event.call)) if row.state == ENDED else None
        if clip:
            yield row._replace(event=row.event._replace(**clip._asdict()))
        elif is_in(label, row.event.start_ns):
            yield row
