"""The CPU time of processes that have no experiment of their own, as the kernel counted it."""

from __future__ import annotations

from dataclasses import dataclass

from interpose.analysis.recording.lineage import program_of, tree, walk
from interpose.analysis.recording.used import used_by, whole_of
from interpose.experiments.model.experiment import Experiment


@dataclass
class UnfollowedCpu:
    """The CPU time of the processes of one program that were not followed.

    The kernel's figure of a process includes the children that it waited for. Followed children are subtracted, because
    they have rows of their own; `is_estimated` says that there were some.
    """

    program: str
    cpu_ns: int = 0
    is_estimated: bool = False


def unfollowed_cpu(experiment: Experiment) -> list[UnfollowedCpu]:
    """By program, those that used most first; those of which nothing is known are not among them."""
    found: dict[str, UnfollowedCpu] = {}
    for _, node in walk(tree(experiment)):
        used = used_by(node) if node.child else None
        if node.child and used:
            program = program_of(node.child, node.process).rpartition("/")[2]
            of_program = found.setdefault(program, UnfollowedCpu(program))
            of_program.cpu_ns += used.record.cpu_ns
            of_program.is_estimated |= used is not whole_of(node)
    return sorted((each for each in found.values() if each.cpu_ns), key=lambda each: (-each.cpu_ns, each.program))
