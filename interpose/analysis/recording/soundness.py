"""Whether all of an experiment can be read: every number that an event names, every file, every archived content."""

from __future__ import annotations

from itertools import chain

from interpose.analysis.analysis import Analysis
from interpose.experiments.format.covered import Covered
from interpose.experiments.format.traces import read_stretches
from interpose.experiments.maintenance.archives import OBJECT, read_content, read_index
from interpose.experiments.model.experiment import Experiment
from interpose.experiments.model.process import Process
from interpose.experiments.model.sources import LARGEST_SOURCE_BYTES

_LARGEST_OBJECT_BYTES = 1 << 30


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
    _read_coverage(process)
    for _ in process.dialogue.pieces() if process.dialogue else ():
        pass
    return sum(each.calls for each in sums.values())


def _read_coverage(process: Process) -> None:
    covered = Covered(process)
    for _ in chain(covered.places(), covered.jumps()):
        pass


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
