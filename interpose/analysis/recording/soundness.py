"""Whether all of an experiment can be read: every number that an event names, every file, every archived content."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import chain
from typing import Any

from interpose.analysis.analysis import Analysis
from interpose.experiments.format.covered import Covered
from interpose.experiments.format.traces import read_stretches
from interpose.experiments.maintenance.archives import OBJECT, read_content, read_index
from interpose.experiments.model.experiment import Experiment
from interpose.experiments.model.process import Process
from interpose.experiments.model.sampled import COUNTS, SAMPLES, Sampled
from interpose.experiments.model.sources import LARGEST_SOURCE_BYTES

_LARGEST_OBJECT_BYTES = 1 << 30
# The numbered records that records name besides texts and stacks: by file, the field and the file that it refers to.
_NAMED = {
    "functions": {"trace": "traces"},
    "lines": {"function": "functions"},
    "loops": {"function": "functions", "spot": "lines"},
    "places": {"code": "covered"},
    "branches": {"code": "covered", "origin": "places", "next": "places", "other": "places"},
}
_TEXTS = ("file", "function", "module", "context", "target", "name", "command", "why")
_WITH_TEXTS = ("sites", "functions", "covered", "traces", "tasks", "children")


def read_all(experiment: Experiment) -> tuple[int, int]:
    """Read everything; return the numbers of calls and of archived files. Damage is noted in the experiment."""
    analysis = Analysis(experiment)
    calls = sum(_read_process(analysis, process) for process in experiment.processes)
    for process, found in ((each.process, found) for each in analysis.accounts for found in each.open_calls):
        process.intrinsic(found.call.intrinsic)
        _read_stack(process, found.call.stack)
    assert isinstance(experiment.notes, list)
    return calls, _read_archive(experiment)


def _read_process(analysis: Analysis, process: Process) -> int:
    sums = analysis.records_of_threads(process, ("intrinsic", "stack", "detail", "error")).sums()
    for _, intrinsic, stack, detail, error in sums:
        process.intrinsic(intrinsic)
        process.string(detail)
        process.string(error)
        _read_stack(process, stack)
    process.dynamic_text("")
    read_stretches(process)
    _read_texts(process)
    _read_heap(process)
    _read_sampled(process)
    _check_numbers(process)
    _read_coverage(process)
    for _ in process.dialogue.pieces() if process.dialogue else ():
        pass
    return sum(each.calls for each in sums.values())


def _read_coverage(process: Process) -> None:
    covered = Covered(process)
    for _ in chain(covered.places(), covered.jumps()):
        pass


def _read_texts(process: Process) -> None:
    for name in _WITH_TEXTS:
        for _, record in _records(process, name):
            for field in _TEXTS:
                process.string(getattr(record, field, 0))
    for _ in chain(process.overview, process.counts, process.task_names, process.trace_contexts, process.active_spans):
        pass


def _read_heap(process: Process) -> None:
    for name in ("heap", "heap_sites", "children"):
        for _, record in _records(process, name):
            _read_stack(process, getattr(record, "stack", 0))


def _read_sampled(process: Process) -> None:
    """Every sample, and the stack, the thread and the task that it names."""
    sampled, threads = Sampled(process), {thread.number for thread in process.threads}
    for sample in sampled.samples():
        _check(process, SAMPLES, "thread", sample.thread, threads)
        sampled.task_name(sample.task)
        for _ in sampled.frames(sample.stack):
            pass
    for memory in sampled.memory():
        for _ in sampled.frames(memory.stack):
            pass
    for counted, _ in sampled.counts():
        _check(process, COUNTS, "thread", counted.thread, threads)


def _check_numbers(process: Process) -> None:
    """That the records exist that lines, loops, places and branches name."""
    there = {name: {number for number, _ in _records(process, name)} for name in ("traces", "functions", "covered")}
    there |= {name: {number for number, _ in _records(process, name)} for name in ("lines", "places")}
    for name, fields in _NAMED.items():
        for _, record in _records(process, name):
            for field, of in fields.items():
                _check(process, name, field, getattr(record, field), there[of])


def _check(process: Process, name: str, field: str, number: int, there: set[int]) -> None:
    if number and number not in there:
        process.damages.add(f"{process.place}/{name}", f"{field} {number} is not there")


def _records(process: Process, name: str) -> Iterator[tuple[int, Any]]:
    table = process.raw_table(name)
    for number, record, _ in table.all() if table else ():
        yield number, record


def _read_stack(process: Process, stack: int) -> None:
    for _ in process.frames(stack):
        pass


def _read_archive(experiment: Experiment) -> int:
    founder = experiment.founder_directory
    place = f"{experiment.name}/archives"
    entries = read_index(founder, experiment.name, experiment.damages)
    for entry in entries.values():
        largest_bytes = _LARGEST_OBJECT_BYTES if entry.kind == OBJECT else LARGEST_SOURCE_BYTES
        if read_content(founder, entry, largest_bytes) is None:
            experiment.damages.add(f"{place}/{entry.content}", "is not what was archived")
    return len(entries)
