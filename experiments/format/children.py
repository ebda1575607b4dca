"""The processes that a process started or tried to start, and which of them have an experiment of their own."""

from __future__ import annotations

import os
import re
from bisect import bisect_right
from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from interpose.experiments.format.records import ChildRecord

if TYPE_CHECKING:
    from interpose.experiments.model.process import Process

FORK, EXEC, SPAWN, SHELL = 1, 2, 3, 4
OF_THE_CHILD = 1  # the figures of its record are the child's own; else they are a difference
KIB, BLOCK_BYTES = 1024, 512
LEFT_NO_EXPERIMENT = "left no experiment"
EXCLUDED = "excluded by INTERPOSE_FOLLOW"
_NO_PID = 0
_STEP = re.compile(r"(.*)_([a-z])([0-9]+)", re.DOTALL)


@dataclass(frozen=True)
class Child:
    """An attempt to start a process: its record, the program's path, why it cannot be followed (or nothing)."""

    record: ChildRecord
    command: str
    why: str

    @property
    def has_ended(self) -> bool:
        """Whether a process that waited for it saw its end."""
        return bool(self.record.end_ns)

    @property
    def exit_status(self) -> int | None:
        """The exit status of one that ended by itself."""
        return os.WEXITSTATUS(self._status) if self.has_ended and os.WIFEXITED(self._status) else None

    @property
    def signal(self) -> int | None:
        """The signal that killed it."""
        return os.WTERMSIG(self._status) if self.has_ended and os.WIFSIGNALED(self._status) else None

    @property
    def is_measured(self) -> bool:
        """Whether its use of resources is known. Older experiments have only its CPU time."""
        return self.has_ended and bool(self.record.usage or self.record.cpu_ns)

    @property
    def is_exact(self) -> bool:
        """Whether these are the kernel's figures of it alone, not what those of all children grew by."""
        return self.record.usage == OF_THE_CHILD

    @property
    def memory_bytes(self) -> int:
        """Its peak of resident memory, with the children that it waited for; 0 if unknown."""
        return self.record.memory_kib * KIB

    @property
    def is_memory_at_most(self) -> bool:
        """Whether it may have had less: the kernel counts its starter's memory as its own until it runs its program."""
        return 0 < self.record.memory_kib <= self.record.starter_memory_kib

    @property
    def read_bytes(self) -> int:
        """The bytes read from a disk for it."""
        return self.record.in_blocks * BLOCK_BYTES

    @property
    def written_bytes(self) -> int:
        """The bytes that it wrote for a disk."""
        return self.record.out_blocks * BLOCK_BYTES

    @property
    def _status(self) -> int:
        return self.record.status & 0xFFFF  # the end of the records


def split_lineage(lineage: str) -> tuple[str, str, int]:
    """The lineage of who started it, the letter of the last step, and its number; of a founder ("", "", 0)."""
    step = _STEP.fullmatch(lineage)
    return (step[1], step[2], int(step[3][:18])) if step else ("", "", 0)


def assign(children: Sequence[Child], descendants: Iterable[Process]) -> dict[str, Child]:
    """The attempt from which each of the direct `descendants` came, by lineage, if it can be told.

    A fork has its number. A child that was forked to run a function first and a program later (`preexec_fn`) was not
    recorded as a fork, and it existed even if the program could not be run. Others are found by their process number,
    if it is one of the starter's PID namespace, and the last attempt before their beginning. The shell of os.system has
    no known number; what it became is the one that began meanwhile.
    """
    forks: dict[int, Child] = {}
    failed: dict[int, list[Child]] = defaultdict(list)
    others: dict[tuple[bool, int], list[Child]] = defaultdict(list)
    for child in sorted(children, key=_start_ns):
        if child.record.how == FORK:
            forks[child.record.number] = child
        elif child.record.error:
            failed[child.record.pid].append(child)
        else:
            others[child.record.how == EXEC, child.record.pid].append(child)
    found = {}
    for process in descendants:
        above, letter, number = split_lineage(process.lineage)
        is_exec = letter == "x" or (process.starter is not None and process.starter.lineage != above)
        of_number = others[is_exec, process.log.pid] if _shares_numbers(process.starter, process) else []
        if letter == "f" and not of_number and process.log.pid:
            of_number = failed[process.log.pid]
        child_of_number = _last_before(of_number, process.log.start_ns)
        attempt = forks.get(number, child_of_number) if letter == "f" else child_of_number
        if attempt is None and letter == "c" and _is_started_by(process.starter, process):
            attempt = _last_before(others[False, _NO_PID], process.log.start_ns)
        if attempt is not None:
            found[process.lineage] = attempt
    return found


def _is_started_by(starter: Process | None, process: Process) -> bool:
    return starter is not None and process.log.ppid == starter.log.pid and _shares_numbers(starter, process)


def _shares_numbers(starter: Process | None, process: Process) -> bool:
    return starter is None or process.log.has_numbers_of(starter.log)


def _last_before(children: Sequence[Child], start_ns: int) -> Child | None:
    """The last of `children`, in the order of their beginnings, that had begun and not ended at `start_ns`."""
    place = bisect_right(children, start_ns, key=_start_ns)
    child = children[place - 1] if place else None
    return child if child and start_ns <= (child.record.end_ns or start_ns) else None


def _start_ns(child: Child) -> int:
    return child.record.start_ns
