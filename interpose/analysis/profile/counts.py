"""What was counted besides time (INTERPOSE_COUNTERS): by thread, and by the code that the thread was seen running.

The kernel counts, and the monitor reads its counters with each sample of a thread. So a thread's figures are exact from
its first sample on, and only their division among code is by samples. What was counted since a thread was last seen
outside of a wait is divided between the places where it was and is (rates.py). Only switches belong to where the sample
finds the thread, because they come as it waits. For page faults and switches the kernel also has the figures of the
whole process. What these exceed the samples by belongs to threads never seen, or to the time before a first sample.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable, Hashable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple, TypeVar

from interpose.analysis.analysis import Analysis
from interpose.analysis.profile.margin import Count, margin
from interpose.analysis.profile.profiled import NOT_SAMPLED, ONLY_WAITING, Frames, numbers_of, sampled_frames
from interpose.analysis.profile.rates import Passage, divided
from interpose.counters import COUNTERS, counters_of, why_not
from interpose.experiments.format.records import SampleRecord
from interpose.experiments.model.experiment import Experiment
from interpose.experiments.model.process import Process
from interpose.experiments.model.sampled import COUNTED_IN_USER_MODE, NOT_COUNTED, WAITS, Sampled

Group = TypeVar("Group", bound=Hashable)
OF_WAITS = frozenset(("switches", "voluntary_switches", "involuntary_switches", "migrations"))
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
    sampled = Sampled(process)
    numbers = {thread.record.tid: thread.number for thread in process.threads}
    up_to: dict[int, Counter[int]] = defaultdict(Counter)
    for record, sample in sampled.counts():
        if record.counter >= len(made) or not record.kind:
            continue
        each = made[record.counter]
        if record.kind == NOT_COUNTED:
            each.error = record.counted
            continue
        each.in_user_mode |= record.kind == COUNTED_IN_USER_MODE
        thread = record.thread or numbers.get(record.tid, 0)
        each.threads.add((thread, record.tid))
        each.squares += record.counted**2 / (max(sample.samples, 1) if sample else 1)
        if sample:
            up_to[record.sample][record.counter] += record.counted
        else:
            each.by_place[Seen(thread, record.tid, _NO_SAMPLE, 0)] += record.counted
    if up_to:
        _divide(process, numbers, up_to, made)
    return made


def _divide(
    process: Process, numbers: Mapping[int, int], up_to: Mapping[int, Counter[int]], made: Sequence[Counted]
) -> None:
    """Give what was counted up to each sample to the places where its thread was."""
    threads: dict[int, _Thread] = defaultdict(_Thread)
    passages: dict[tuple[Seen, Seen], Passage] = defaultdict(Passage)
    at_samples: dict[Seen, Counter[int]] = defaultdict(Counter)
    waits = numbers_of(process, ONLY_WAITING)
    for number, sample in Sampled(process).numbered():
        here = Seen(sample.thread or numbers.get(sample.tid, 0), sample.tid, sample.stack, sample.intrinsic)
        counts = up_to.get(number, Counter())
        at_samples[here].update(counts)
        only_waits = sample.state == WAITS and sample.intrinsic in waits
        threads[sample.tid].come_to(here, sample, only_waits, counts, passages)
    carried = [found for thread in threads.values() for found in thread.carried.items()]
    for counter, each in enumerate(made):
        if each.name in OF_WAITS:
            found = {seen: counts[counter] for seen, counts in at_samples.items()}
        else:
            found = divided(passages, counter)
            for seen, counts in carried:
                found[seen] = found.get(seen, 0) + counts[counter]
        each.by_place.update({seen: each.by_place.get(seen, 0) + count for seen, count in found.items() if count})


@dataclass
class _Thread:
    """Where a thread was last seen outside of a wait, and the CPU time that it had used then; what was counted since,
    by the places in which it was seen waiting."""

    left: Seen | None = None
    used_ns: int = 0
    carried: dict[Seen, Counter[int]] = field(default_factory=dict)

    def come_to(
        self,
        here: Seen,
        sample: SampleRecord,
        only_waits: bool,
        counts: Counter[int],
        passages: dict[tuple[Seen, Seen], Passage],
    ) -> None:
        if only_waits:
            if counts:
                self.carried.setdefault(here, Counter()).update(counts)
            return
        passage = passages[self.left or here, here]
        used_ns = max(sample.cpu_ns - self.used_ns, 0)
        half_ns = used_ns / max(sample.samples, 1) / 2
        passage.left_ns += half_ns
        passage.entered_ns += used_ns - half_ns
        for each in (counts, *self.carried.values()):
            passage.counted.update(each)
        self.left, self.used_ns, self.carried = here, sample.cpu_ns, {}


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
