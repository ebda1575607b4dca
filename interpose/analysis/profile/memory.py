"""How a process's resident memory grew up to its peak, and in which lines, as the monitor saw it from outside.

The monitor records changes of a megabyte or more, each with the code of the thread that used the most CPU time since
its previous look. So the growth of a hundredth of a second belongs to one line. If that thread waits there at the look,
the line has hardly made the process grow: lines that ran before it have.
"""

from __future__ import annotations

from collections import defaultdict, deque
from collections.abc import Iterable, Iterator, Sequence
from itertools import pairwise
from typing import NamedTuple

from interpose.analysis.profile.estimated_stacks import NOT_READABLE
from interpose.analysis.profile.profiled import application_line, sampled_frames
from interpose.experiments.format.records import MemoryRecord
from interpose.experiments.model.experiment import Experiment
from interpose.experiments.model.process import Process
from interpose.experiments.model.sampled import NOT_READ, WAITS, Sampled
from interpose.experiments.model.stacks import Site


class Growth(NamedTuple):
    """By how much a process grew (below 0: shrank) while a line ran: the innermost of the program's own. If `waited`,
    the thread waited in that line when the monitor looked, and the process grew before, while other lines ran."""

    site: Site
    grew_bytes: int
    waited: bool = False


class Memory(NamedTuple):
    """The resident memory of a process at the first look and at the peak, with the time of the peak (monotonic), and
    its limit, 0 if unknown. `growth`, largest first, adds up to the difference between the first look and the peak."""

    process: Process
    first_bytes: int
    peak_bytes: int
    peak_ns: int
    limit_bytes: int
    growth: tuple[Growth, ...]

    @property
    def grew_bytes(self) -> int:
        """The difference between the first look and the peak."""
        return self.peak_bytes - self.first_bytes


def memories(experiment: Experiment) -> list[Memory]:
    """The memory of each process that was sampled, the largest peak first."""
    found = [memory for process in experiment.processes if (memory := memory_of(process))]
    return sorted(found, key=lambda each: -each.peak_bytes)


def memory_of(process: Process) -> Memory | None:
    """The memory of a process; None if it was not sampled."""
    sampled = Sampled(process)
    looks = list(sampled.memory())
    if not looks:
        return None
    first, peak = looks[0], max(looks, key=lambda each: each.resident_bytes)
    until_peak = (each for each in looks if each.time_ns <= peak.time_ns)
    growth = sorted(_growth(sampled, until_peak), key=lambda each: -each.grew_bytes)
    limit_bytes = max(each.limit_bytes for each in looks)
    return Memory(process, first.resident_bytes, peak.resident_bytes, peak.time_ns, limit_bytes, tuple(growth))


def _growth(sampled: Sampled, looks: Iterable[MemoryRecord]) -> Iterator[Growth]:
    """The growth between looks, by line; none of programs that are not Python: what ran is known later than a look."""
    grew: dict[tuple[Site, bool], int] = defaultdict(int)
    found = list(looks) if sampled.is_python else []
    waits = _waits(sampled, found)
    for before, look in pairwise(found):
        waited = look.time_ns in waits
        grew[_line_of(sampled, look), waited] += look.resident_bytes - before.resident_bytes
    return (Growth(site, grew_bytes, waited) for (site, waited), grew_bytes in grew.items())


def _waits(sampled: Sampled, looks: Sequence[MemoryRecord]) -> set[int]:
    """The times of those looks at which their thread waited, by its latest sample."""
    by_thread: dict[int, deque[MemoryRecord]] = defaultdict(deque)
    for look in looks:
        by_thread[look.thread].append(look)
    waits: set[int] = set()
    states: dict[int, int] = {}
    for sample in sampled.samples() if looks else ():
        if not sample.thread or sample.thread not in by_thread:
            continue
        waiting = by_thread[sample.thread]
        while waiting and waiting[0].time_ns < sample.time_ns:
            look = waiting.popleft()
            if states.get(sample.thread) == WAITS:
                waits.add(look.time_ns)
        states[sample.thread] = sample.state
    waits.update(look.time_ns for thread, left in by_thread.items() if states.get(thread) == WAITS for look in left)
    return waits


def _line_of(sampled: Sampled, look: MemoryRecord) -> Site:
    return NOT_READABLE if look.stack == NOT_READ else application_line(sampled_frames(sampled, look.stack))
