"""What led to what across threads and processes, as the two ends of arrows: a call that started a process, and that
process; a call that made a request, and the call of another recorded process that served it (`traceparent`)."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass, field
from itertools import count

from interpose.experiments.model.experiment import Experiment
from interpose.experiments.model.process import Process
from interpose.exports.identities import call_of, seed_of

Ends = defaultdict[tuple[int, int], list[int]]


@dataclass
class Flows:
    """The arrows of one process, by number: from and to its calls, each by thread and call; from calls by thread and
    the time when they began; and to the process itself, 0 if there is none."""

    begin: Ends = field(default_factory=lambda: defaultdict(list))
    begin_at: Ends = field(default_factory=lambda: defaultdict(list))
    end: Ends = field(default_factory=lambda: defaultdict(list))
    started: int = 0


def flows_of(experiment: Experiment) -> dict[Process, Flows]:
    """The arrows between the calls and processes of an experiment."""
    found = {process: Flows() for process in experiment.processes}
    numbers = count(1)
    for process in experiment.processes:
        _starts(process, found, numbers)
    seeds = {process: seed_of(process.log) for process in experiment.processes}
    for process in experiment.processes:
        for served, context in process.trace_contexts.items():
            for caller, call in _callers(int(context.parent, 16), seeds):
                number = next(numbers)
                found[caller].begin[call].append(number)
                found[process].end[served].append(number)
    return found


def _starts(process: Process, found: dict[Process, Flows], numbers: Iterator[int]) -> None:
    child = process.started_as
    if child and process.starter in found:
        found[process].started = next(numbers)
        found[process.starter].begin_at[child.record.thread, child.record.start_ns].append(found[process].started)


def _callers(span: int, seeds: dict[Process, int]) -> Iterator[tuple[Process, tuple[int, int]]]:
    """The process whose call has that span, and the call; nothing if it is of no recorded process."""
    for process, seed in seeds.items():
        thread, call = call_of(seed, span)
        if call and 0 < thread <= len(process.threads):
            yield process, (thread, call)
