"""What led to what across threads and processes, as the two ends of arrows: a call that started a process, and that
process; a call that made a request, and the call of another recorded process that served it (`traceparent`)."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass, field
from itertools import count

from interpose.experiments.format.children import EXEC
from interpose.experiments.format.records import Event
from interpose.experiments.model.experiment import Experiment
from interpose.experiments.model.process import Process
from interpose.exports.identities import call_of, seed_of
from interpose.exports.single_events import blocks_of

Ends = defaultdict[tuple[int, int], list[int]]


@dataclass
class Flows:
    """The arrows of one process, by number: from and to its calls, each by thread and call; from calls by thread and
    the time when they began; and to the process itself, 0 if there is none. `is_child` says that another process of the
    experiment started it."""

    begin: Ends = field(default_factory=lambda: defaultdict(list))
    begin_at: Ends = field(default_factory=lambda: defaultdict(list))
    end: Ends = field(default_factory=lambda: defaultdict(list))
    started: int = 0
    is_child: bool = False

    def at(self, call: Event) -> tuple[list[int], list[int]]:
        """The arrows from a call, and to it."""
        begin = self.begin.get((call.thread, call.call), []) + self.begin_at.get((call.thread, call.start_ns), [])
        return begin, self.end.get((call.thread, call.call), [])

    def without_calls(self, process: Process) -> set[int]:
        """The arrows from or to calls of the process that were not kept."""
        calls, starts = {*self.begin, *self.end}, set(self.begin_at)
        for thread, call, start_ns in _calls_of(process) if calls or starts else ():
            calls.discard((thread, call))
            starts.discard((thread, start_ns))
        found = [numbers for key in calls for numbers in (self.begin.get(key, ()), self.end.get(key, ()))]
        found += [self.begin_at[key] for key in starts]
        return {number for numbers in found for number in numbers}

    def remove(self, numbers: set[int]) -> None:
        """Remove these arrows."""
        for ends in (self.begin, self.begin_at, self.end):
            for key, kept in ends.items():
                ends[key] = [number for number in kept if number not in numbers]
        self.started = 0 if self.started in numbers else self.started


def flows_of(experiment: Experiment) -> dict[Process, Flows]:
    """The arrows between the calls and processes of an experiment. Each has both of its ends."""
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
    removed = {number for process, flows in found.items() for number in flows.without_calls(process)}
    for flows in found.values():
        flows.remove(removed)
    return found


def _calls_of(process: Process) -> Iterator[tuple[int, ...]]:
    """Thread, number and start of each call of a process, also of those in progress."""
    for thread in process.threads:
        yield from ((thread.number, call.call, call.start_ns) for call in thread.open_calls)
    if process.events:
        picker = process.events.layout.picker(("thread", "call", "start_ns"))
        for block in blocks_of(process):
            yield from picker.many(block.events)


def _starts(process: Process, found: dict[Process, Flows], numbers: Iterator[int]) -> None:
    child, starter = process.started_as, process.starter
    if child and starter in found:
        found[process].started, found[process].is_child = next(numbers), True
        thread, start_ns = child.record.thread, child.record.start_ns
        if child.record.how == EXEC:
            start_ns = _exec_start_ns(starter, thread, start_ns)
        found[starter].begin_at[thread, start_ns].append(found[process].started)


def _exec_start_ns(process: Process, thread: int, noted_ns: int) -> int:
    """When the call began that replaced the program: it was noted before that, and the call never ends."""
    calls = [call for each in process.threads if each.number == thread for call in each.open_calls]
    return min((call.start_ns for call in calls if call.start_ns >= noted_ns), default=noted_ns)


def _callers(span: int, seeds: dict[Process, int]) -> Iterator[tuple[Process, tuple[int, int]]]:
    """The process whose call has that span, and the call; nothing if it is of no recorded process."""
    for process, seed in seeds.items():
        thread, call = call_of(seed, span)
        if call and 0 < thread <= len(process.threads):
            yield process, (thread, call)
