"""The program trace: which calls were made inside of which, like ones together, in the order of the first of each."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from interpose.analysis.analysis import Analysis
from interpose.analysis.consolidation.kept_records import BY
from interpose.analysis.consolidation.records import Record
from interpose.analysis.transactions.tracking import name_of
from interpose.experiments.model.experiment import Experiment
from interpose.experiments.model.process import Process


class Called(NamedTuple):
    """A consolidated record of a process, and how deep it is; `transaction` is the name of one that is no call."""

    process: Process
    record: Record
    depth: int
    transaction: str


def structure(analysis: Analysis) -> Iterator[Called]:
    """The records of every process, those inside of another behind it."""
    for process in analysis.experiment.processes:
        records = analysis.records_by_transaction(process, BY, histograms=True)
        waiting = [(0, record) for record in _latest_first(records.roots)]
        while waiting:
            depth, record = waiting.pop()
            yield Called(process, record, depth, "" if record.is_call else name_of(process, record.name))
            waiting += [(depth + 1, each) for each in _latest_first(record.inner)]


def _latest_first(records: list[Record]) -> list[Record]:
    return sorted(records, key=lambda record: (record.sums.first_ns, record.key), reverse=True)


def is_consolidated_alone(experiment: Experiment) -> bool:
    """Whether consolidated records are all that there is of calls."""
    processes = experiment.processes
    has_events = any(next(each.events.heads(), None) for each in processes if each.events)
    return not has_events and any(each.consolidated for each in processes)
