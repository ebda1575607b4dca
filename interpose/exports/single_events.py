"""The calls of an experiment one by one, for formats that show them along time."""

from __future__ import annotations

from collections.abc import Iterator

from interpose.analysis.calls.account import latest_instant_ns
from interpose.analysis.calls.structure import is_consolidated_alone
from interpose.analysis.calls.trace import open_events
from interpose.analysis.recording.ending import ending
from interpose.analysis.recording.life import ended_ns
from interpose.errors import UsageError
from interpose.experiments.format.blocks import Block
from interpose.experiments.format.records import Event
from interpose.experiments.model.experiment import Experiment
from interpose.experiments.model.process import Process


def refuse_without_events(experiment: Experiment) -> None:
    """Raise UsageError if calls were consolidated, so that single ones are missing."""
    if is_consolidated_alone(experiment):
        raise UsageError(f"{experiment.name}: single calls were not kept (record without INTERPOSE_CONSOLIDATE)")


def blocks_of(process: Process) -> Iterator[Block]:
    """The blocks of events of a process; the memory of one is used again for the next."""
    return process.events.blocks() if process.events else iter(())


def events_of(process: Process) -> Iterator[Event]:
    """The calls of a process that have ended, those of a thread in the order of their ends."""
    for block in blocks_of(process):
        if process.events:
            yield from process.events.events(block)


def end_of(process: Process) -> int:
    """When it ended, as its parent's wait saw it or else as it noted itself, or the last that is known of it. None of
    its calls ends later."""
    return max(ended_ns(process) or 0, _own_end_of(process))


def _own_end_of(process: Process) -> int:
    """When it ended, as it noted itself where it did, or the last that is known of it."""
    calls = [head.last_ns for _, head in process.events.heads()] if process.events else []
    return max([latest_instant_ns(process, ()), ending(process).end_ns or 0, *calls])


def calls_in_progress(process: Process) -> Iterator[Event]:
    """The calls that had not ended, as events until the end of their thread or process; without CPU time, which is not
    known. Of each thread the outermost is first."""
    calls = list(open_events(process))
    if not calls:
        return
    written, until_ns = _last_calls(process), _own_end_of(process)
    ends_ns = {each.number: each.record.end_ns for each in process.threads}
    for call in calls:
        if written.get(call.thread) != call.call:
            yield call._replace(wall_ns=max((ends_ns[call.thread] or until_ns) - call.start_ns, 0))


def _last_calls(process: Process) -> dict[int, int]:
    """The call that each thread wrote last: one that was killed right then has it as a call in progress as well."""
    if process.events is None:
        return {}
    heads = sorted(process.events.heads(), key=lambda each: each[0].sequence)
    newest = {head.thread: place for place, head in heads}
    blocks = filter(None, map(process.events.block, newest.values()))
    return {event.thread: event.call for block in blocks for event in process.events.events(block)}


class LaneNames:
    """What the threads and tasks of a process are called."""

    def __init__(self, process: Process) -> None:
        self._process = process
        self._threads = {each.number: each for each in process.threads}

    def thread(self, number: int) -> str:
        """The name of a thread, as the program gave it, else the main thread's, else its number."""
        known = self._threads.get(number)
        name = self._process.string(known.record.name) if known else ""
        return name or ("MainThread" if known and known.record.main else f"thread {number}")

    def task(self, number: int) -> str:
        """The number of a task, and its name if it has one."""
        return f"task {number} {self._process.task_names.get(number, '')}".rstrip()
