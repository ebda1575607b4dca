"""The child processes of an experiment by program and by the line that started them, recorded or not."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import NamedTuple

from interpose.analysis.recording.command import last_part
from interpose.analysis.recording.ending import ASKED_TO_END, Ending, ending, ending_of_child
from interpose.analysis.recording.installed import package_of
from interpose.analysis.recording.lineage import MULTIPROCESSING_CHILD, main_of, program_of, script_of
from interpose.analysis.recording.used import waited_for
from interpose.experiments.format.children import EXEC, Child
from interpose.experiments.model.experiment import Experiment
from interpose.experiments.model.process import Process
from interpose.experiments.model.stacks import Site


class Life(NamedTuple):
    """When a child of the process at position `parent` lived: until it recorded its own end or, where it did not, until
    its parent had waited for it; `end_ns` is 0 where its end is unknown. `seen_ns` is when its parent had waited for
    it, 0 if it did not."""

    parent: int
    start_ns: int
    end_ns: int
    seen_ns: int = 0


@dataclass
class Children:
    """Child processes of one program, started from one line: how many were waited for, and what these took.

    `unawaited` are others, which are not in `count`: of them no end and no figures are known.
    `cpu_ns` and `memory_bytes` are the kernel's, with what the children waited for themselves. The CPU time is without
    that of their own children that are told apart; the memory is the most that one of them had, 0 if unknown;
    `is_memory_at_most` if it may have been less. `failed` counts those that exited
    with a status other than 0, or that a signal killed. A signal that asks a process to end is no failure: a pool ends
    its workers by SIGTERM.
    """

    program: str
    site: Site | None
    count: int = 0
    unawaited: int = 0
    wall_ns: int = 0
    cpu_ns: int = 0
    memory_bytes: int = 0
    is_memory_at_most: bool = False
    failed: int = 0
    lives: list[Life] = field(default_factory=list)
    packages: set[str] = field(default_factory=set)  # the installed ones that started them
    recorded: list[Process] = field(default_factory=list)  # those that have experiments of their own

    def add(self, child: Child, of_others_ns: int, life: Life) -> None:
        """Add one of them; `of_others_ns` is the CPU time in it of its own children, which are counted separately."""
        record = child.record
        self.lives.append(life)
        if not child.has_ended:
            self.unawaited += 1
            return
        self.count += 1
        self.wall_ns += max(record.end_ns - record.start_ns, 0)
        self.cpu_ns += max(record.cpu_ns - of_others_ns, 0)
        if child.memory_bytes > self.memory_bytes:
            self.memory_bytes, self.is_memory_at_most = child.memory_bytes, child.is_memory_at_most
        ending = ending_of_child(child)
        self.failed += ending is not None and _is_failure(ending)


def _is_failure(ending: Ending) -> bool:
    if ending.state == "killed":
        return ending.signal not in ASKED_TO_END
    return ending.state != "exit" or ending.status != 0


def children_of(experiment: Experiment) -> list[Children]:
    """The child processes of all processes, those with the most wall time first."""
    alike: dict[tuple[str, Site | None], Children] = {}
    read: set[tuple[str, int, int]] = set()
    for number, process in enumerate(experiment.processes):
        for program, child, of_others_ns, end_ns, recorded in _started(process):
            site = process.own_line(child.record.stack) if child.record.stack else None
            life = Life(number, child.record.start_ns, end_ns, child.record.end_ns)
            children = alike.setdefault((program, site), Children(program, site))
            children.add(child, of_others_ns, life)
            children.recorded += recorded
            if (program, number, child.record.stack) not in read:
                read.add((program, number, child.record.stack))
                children.packages |= _packages_on(process, child.record.stack)
    return sorted(alike.values(), key=lambda each: (-each.wall_ns, each.program))


def _packages_on(process: Process, stack: int) -> set[str]:
    """The installed packages of the code on a stack."""
    return {package_of(each.file) for each in process.frames(stack)} - {""}


def _started(process: Process) -> Iterator[tuple[str, Child, int, int, list[Process]]]:
    """What `process` started, each with a name of its program: of one that was recorded, with its script, and with the
    CPU time of the children that it waited for; when it ended, 0 if that is unknown; and its process, if recorded."""
    for each in process.descendants:
        if each.started_as and each.started_as.record.how != EXEC:
            of_others_ns = sum(other.record.cpu_ns for other in waited_for(each))
            end, seen_ns = ending(each), each.started_as.record.end_ns
            end_ns = end.end_ns if end.state == "exit" and end.end_ns else seen_ns
            yield _name(each, each.started_as), each.started_as, of_others_ns, end_ns, [each]
    for child in process.not_followed:
        if child.record.how != EXEC:
            yield program_of(child, process).rpartition("/")[2], child, 0, child.record.end_ns, []


def _name(process: Process, child: Child) -> str:
    """The program that it is or, if it was forked, became by exec; `forked` if it remained what its parent was."""
    if process.parent:
        became = [each for each in process.descendants if each.started_as and each.started_as.record.how == EXEC]
        others = [each for each in process.not_followed if each.record.how == EXEC]
        if became and became[0].started_as:
            return _name(became[0], became[0].started_as)
        return program_of(others[0], process).rpartition("/")[2] if others else "forked"
    script, main = script_of(process), script_of(main_of(process))
    words = script if script == main else f"{last_part(main)}{MULTIPROCESSING_CHILD}"
    return f"{last_part(process.log.executable) or '?'} {words}".rstrip()
