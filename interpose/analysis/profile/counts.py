"""What was counted besides time (INTERPOSE_COUNTERS): by thread, and by the code that the thread was seen running.

The kernel counts, and the monitor reads its counters with each sample of a thread. What was counted since the sample
before belongs to what the thread does at the sample. So a thread's figures are exact from its first sample on, and only
their division among code is by samples. For page faults and switches the kernel also has the figures of the whole
process; what they have more is of no sample: of threads never seen, and of the time before a thread's first one.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Hashable, Iterator
from dataclasses import dataclass, field
from typing import NamedTuple, TypeVar

from interpose.analysis.analysis import Analysis
from interpose.analysis.profile.margin import Count, margin
from interpose.analysis.profile.profiled import NOT_SAMPLED, Frames, sampled_frames
from interpose.counters import COUNTERS, counters_of, why_not
from interpose.experiments.model.experiment import Experiment
from interpose.experiments.model.process import Process
from interpose.experiments.model.sampled import COUNTED_IN_USER_MODE, NOT_COUNTED, Sampled

Group = TypeVar("Group", bound=Hashable)
_NO_SAMPLE = -1


class Seen(NamedTuple):
    """Where a thread was seen: its number (0 without one) and the kernel's, its stack, and the call in progress."""

    thread: int
    tid: int
    stack: int
    intrinsic: int


@dataclass
class Counted:
    """What one counter has counted in a process. `threads` are all in which anything was counted, by their number (0
    without one) and the kernel's; `squares` is the sum of the squared counts of single samples; `error` is the error
    number if it could not be read in some thread."""

    process: Process
    name: str
    threads: set[tuple[int, int]]
    by_place: dict[Seen, int] = field(default_factory=lambda: defaultdict(int))
    squares: float = 0.0
    error: int = 0
    in_user_mode: bool = False

    @property
    def why_not(self) -> str:
        """Why it was not read in some thread; empty if it was in all."""
        return why_not(self.error) if self.error else ""

    @property
    def is_read(self) -> bool:
        """Whether it was read in any thread."""
        return not self.error or bool(self.by_place)

    @property
    def sampled(self) -> int:
        """How much was counted in the threads that were sampled."""
        return sum(self.by_place.values())

    @property
    def not_sampled(self) -> int | None:
        """How much more the kernel counted in the whole process; None if it does not say."""
        usage = COUNTERS[self.name].usage
        records = [each for each in self.process.overview if each.time_ns]
        if not usage or not records:
            return None
        first, last = ([getattr(each, name) for name in usage] for each in (records[0], records[-1]))
        more: int = sum(last) - sum(first) - self.sampled
        return max(more, 0)

    @property
    def total(self) -> int:
        """All that is known to have been counted."""
        return self.sampled + (self.not_sampled or 0)

    def by_thread(self) -> dict[tuple[int, int], int]:
        """How much each thread has, by its number and the kernel's; where it was not read in all, only those that have
        any."""
        found = dict.fromkeys(() if self.error else sorted(self.threads), 0)
        for seen, count in self.by_place.items():
            key = seen.thread, seen.tid
            found[key] = found.get(key, 0) + count
        return found

    def divided(self, group_of: Callable[[Frames, Seen], Group], unsampled: Group) -> dict[Group, Count]:
        """How much each group of stacks has; what belongs to no sample has the group `unsampled`."""
        sampled = Sampled(self.process)
        found: dict[Group, Count] = defaultdict(Count)
        for seen, count in self.by_place.items():
            found[group_of(_frames(sampled, seen.stack), seen)].count += count
        whole = self.sampled
        for group, each in found.items():
            if group != unsampled and whole:
                each.margin = margin(each.count / whole, whole**2 / self.squares) * whole
        if self.not_sampled:
            found[unsampled].count += self.not_sampled
        return dict(found)


def counted(analysis: Analysis) -> list[Counted]:
    """What each counter has counted in each process; nothing of parts of experiments."""
    return [] if analysis.is_part else list(counted_in(analysis.experiment))


def counted_in(experiment: Experiment) -> Iterator[Counted]:
    """What each counter has counted in each process of an experiment that was sampled."""
    for process in experiment.processes:
        names = counters_of(process.log.settings)
        if names and Sampled(process).is_there:
            threads: set[tuple[int, int]] = set()
            yield from _of_process(process, [Counted(process, name, threads) for name in names])


def along_time(process: Process) -> dict[str, list[tuple[int, int]]]:
    """What each counter had counted in the sampled threads of a process, at the time of each sample, in their order."""
    names = counters_of(process.log.settings)
    counts: dict[str, list[tuple[int, int]]] = defaultdict(list)
    for record, sample in Sampled(process).counts() if names else ():
        if sample and record.counter < len(names) and record.kind not in (0, NOT_COUNTED):
            counts[names[record.counter]].append((sample.last_ns, record.counted))
    return {name: [*_sums(sorted(found))] for name, found in counts.items()}


def _sums(counts: list[tuple[int, int]]) -> Iterator[tuple[int, int]]:
    so_far = 0
    for time_ns, count in counts:
        so_far += count
        yield time_ns, so_far


def counters_in(experiment: Experiment) -> tuple[str, ...]:
    """The counters that were read, by name."""
    return tuple(dict.fromkeys(each.name for each in counted_in(experiment) if each.is_read))


def _of_process(process: Process, made: list[Counted]) -> list[Counted]:
    numbers = {thread.record.tid: thread.number for thread in process.threads}
    for record, sample in Sampled(process).counts():
        if record.counter >= len(made) or not record.kind:
            continue
        each = made[record.counter]
        if record.kind == NOT_COUNTED:
            each.error = record.counted
            continue
        each.in_user_mode |= record.kind == COUNTED_IN_USER_MODE
        stack, intrinsic = (sample.stack, sample.intrinsic) if sample else (_NO_SAMPLE, 0)
        thread = record.thread or numbers.get(record.tid, 0)
        each.by_place[Seen(thread, record.tid, stack, intrinsic)] += record.counted
        each.threads.add((thread, record.tid))
        each.squares += record.counted**2 / (max(sample.samples, 1) if sample else 1)
    return made


def _frames(sampled: Sampled, stack: int) -> Frames:
    return (NOT_SAMPLED,) if stack == _NO_SAMPLE else sampled_frames(sampled, stack)


def not_read(experiment: Experiment) -> Iterator[str]:
    """A line for each reason why counters were not read, or not wholly, with their names."""
    requested = counters_of(experiment.founder.log.settings)
    if requested and not any(Sampled(process).is_there for process in experiment.processes):
        yield f"{', '.join(requested)}: not counted: no sample was taken; the program may have been too short"
    names: dict[str, dict[str, None]] = defaultdict(dict)
    for each in counted_in(experiment):
        if each.error:
            where = " in some threads" if each.by_place else ""
            names[f"not counted{where}: {each.why_not}"][each.name] = None
        if each.in_user_mode:
            names["counted in user mode only (kernel.perf_event_paranoid)"][each.name] = None
    for reason, found in names.items():
        yield f"{', '.join(found)}: {reason}"
