"""Statements as they were recorded: the events that stand for lines."""

from __future__ import annotations

from tracing import Traced, events_of

from interpose.analysis.lines.line_rows import line_trace
from interpose.experiments.format.records import Event
from interpose.experiments.model.experiment import Experiment
from interpose.experiments.model.process import Process
from interpose.legacy.codes import STATEMENT

ON = {"INTERPOSE": "calls,lines", "INTERPOSE_STATEMENTS": "1"}


def statements(process: Process) -> list[Event]:
    """The events that stand for lines, of each thread in the order in which they were recorded."""
    return sorted(events_of(process, STATEMENT), key=lambda event: (event.thread, event.call))


def place(process: Process, event: Event) -> tuple[str, int]:
    (site,) = process.frames(event.stack)
    return site.function, site.line


def dropped(process: Process) -> int:
    return sum(thread.record.dropped for thread in process.threads)


def executed(experiment: Experiment) -> int:
    """How often lines were come to, as they are counted."""
    return sum(row.figures.executed for row in line_trace(experiment).lines)


def lines_of(done: Traced, function: str) -> list[int]:
    founder = done.experiment.founder
    return [line for name, line in (place(founder, event) for event in statements(founder)) if name == function]
