"""The CPU time of processes that have no experiment of their own, as the kernel counted it."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from interpose.analysis.recording.lineage import program_of, tree, walk
from interpose.analysis.recording.used import links, record_of_number
from interpose.experiments.format.children import EXEC
from interpose.experiments.format.records import ChildRecord
from interpose.experiments.model.experiment import Experiment
from interpose.experiments.model.process import Process


@dataclass
class UnfollowedCpu:
    """The CPU time of the processes of one program that were not followed.

    The kernel's figure of a process includes the children that it waited for. Followed children are subtracted, because
    they have rows of their own; `is_estimated` says that there were some.
    """

    program: str
    cpu_ns: int = 0
    is_estimated: bool = False

    def add(self, used: ChildRecord, others: Iterable[int]) -> None:
        """Add a process that used as much, with `others` that are not to be counted: their CPU times."""
        taken = list(others)
        self.cpu_ns += max(used.cpu_ns - sum(taken), 0)
        self.is_estimated |= bool(taken)


def unfollowed_cpu(experiment: Experiment) -> list[UnfollowedCpu]:
    """By program, those that used most first; those of which nothing is known are not among them."""
    found: dict[str, UnfollowedCpu] = {}
    for _, node in walk(tree(experiment)):
        child = node.child
        if child is None:
            continue
        program = program_of(child, node.process).rpartition("/")[2]
        of_program = found.setdefault(program, UnfollowedCpu(program))
        below = [each.process for each in node.below if each.is_followed]
        if child.record.how == EXEC:
            if ended := record_of_number(node.process):
                of_program.add(ended, _with_children([*links(node.process), *below]))
        elif child.is_measured:
            of_program.add(child.record, _with_children(below))
    return sorted((each for each in found.values() if each.cpu_ns), key=lambda each: (-each.cpu_ns, each.program))


def _with_children(processes: Iterable[Process]) -> Iterator[int]:
    """CPU times of followed processes that are one after the other, and of the children they waited for."""
    for process in processes:
        yield from (child.record.cpu_ns for child in process.children if child.is_measured)
        if process.overview and not _became_followed(process):
            yield process.overview[-1].cpu_ns


def _became_followed(process: Process) -> bool:
    """Whether it continued as another followed process, whose figures include its own."""
    return any(each.started_as and each.started_as.record.how == EXEC for each in process.descendants)
