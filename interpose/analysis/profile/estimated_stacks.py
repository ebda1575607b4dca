"""Samples with unreadable stacks: which outer frames they probably had.

If a thread was in the same functions before and after such a sample, it probably was in them at the sample, too. So the
sample gets these outer frames, and `stack not readable` below them. What it executed there is unknown, so self times
stay as they are; inclusive times are estimates. Several samples before and after must agree, so functions that take
turns between two samples are seldom confused.
"""

from __future__ import annotations

from collections import defaultdict, deque
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from itertools import takewhile

from interpose.experiments.format.records import SampleRecord
from interpose.experiments.model.sampled import NOT_READ, Sampled
from interpose.experiments.model.stacks import Site

NOT_READABLE = Site("", 0, "stack not readable", False)
AGREE_AT_MOST, AGREE_AT_LEAST = 5, 2  # samples on each side that must have the same functions
NEAR = 10  # intervals between two samples of one run
FIRST_INTERVAL_NS = 10_000_000  # before a thread has two samples

Path = tuple[tuple[str, str], ...]  # functions with their files, from the outermost inward


@dataclass
class _Unread:
    """A sample with an unreadable stack, and the stacks of the samples around it."""

    key: tuple[int, int, int]
    time_ns: int
    samples: int
    before: list[int]
    after: list[int] = field(default_factory=list)


@dataclass
class _Run:
    """The latest samples of a thread, which follow each other without a gap."""

    first_ns: int
    last_ns: int = 0
    samples: int = 0
    read_ns: int = 0  # when the last stack was read
    before: deque[int] = field(default_factory=lambda: deque(maxlen=AGREE_AT_MOST))
    waiting: list[_Unread] = field(default_factory=list)

    def is_near(self, since_ns: int, until_ns: int) -> bool:
        """Whether so much time is no gap."""
        usual_ns = (self.last_ns - self.first_ns) / (self.samples - 1) if self.samples > 1 else FIRST_INTERVAL_NS
        return until_ns - since_ns <= NEAR * usual_ns

    def take(self, sample: SampleRecord) -> Iterator[_Unread]:
        """Add a sample; yields those with unreadable stacks that have enough samples around them."""
        if self.last_ns and not self.is_near(self.last_ns, sample.time_ns):
            yield from self.end()
        if sample.stack == NOT_READ:
            if self.is_near(self.read_ns, sample.time_ns):
                key = sample.thread, sample.tid, sample.time_ns
                self.waiting.append(_Unread(key, sample.time_ns, max(sample.samples, 1), list(self.before)))
        elif sample.stack:
            self.waiting = [each for each in self.waiting if each.after or self.is_near(each.time_ns, sample.time_ns)]
            for each in self.waiting:
                each.after.append(sample.stack)
            yield from (each for each in self.waiting if len(each.after) == AGREE_AT_MOST)
            self.waiting = [each for each in self.waiting if len(each.after) < AGREE_AT_MOST]
            self.before.append(sample.stack)
            self.read_ns = sample.last_ns
        self.last_ns = sample.last_ns
        self.samples += max(sample.samples, 1)

    def end(self) -> Iterator[_Unread]:
        """End it: nothing before this is near what comes."""
        yield from self.waiting
        self.waiting = []
        self.before.clear()


class EstimatedStacks(Sampled):
    """The samples of a process; those with unreadable stacks have the outer frames that the samples around them share,
    as stacks with numbers above all that were recorded."""

    def samples(self, since_ns: int = 0) -> Iterator[SampleRecord]:
        """The samples from `since_ns` on, as `Sampled.samples`, with estimated stacks."""
        numbers = self._numbers
        for each in super().samples(since_ns):
            known = numbers.get((each.thread, each.tid, each.time_ns)) if each.stack == NOT_READ else None
            yield each._replace(stack=known[0]) if known else each

    def frames(self, stack: int) -> Iterator[Site]:
        """The sites of a stack, from the innermost outward; those of an estimated one begin with `NOT_READABLE`."""
        if not self.is_estimated(stack):
            return super().frames(stack)
        return iter((NOT_READABLE, *self._estimated[stack - NOT_READ - 1]))

    def is_cut(self, stack: int) -> bool:
        """Whether the stack was deeper than could be read; estimated ones were not."""
        return not self.is_estimated(stack) and super().is_cut(stack)

    def is_estimated(self, stack: int) -> bool:
        """Whether a number is that of an estimated stack."""
        return stack > NOT_READ

    def below(self, stack: int) -> Collection[int]:
        """The stacks that were read which have all outer frames of an estimated one."""
        return self._below.get(_path_of(self._estimated[stack - NOT_READ - 1]), ())

    @cached_property
    def estimated(self) -> int:
        """How many samples have an estimated stack."""
        return sum(samples for _, samples in self._numbers.values())

    @cached_property
    def _numbers(self) -> dict[tuple[int, int, int], tuple[int, int]]:
        """The number of the estimated stack of each record of samples that has one, and of how many samples it is, by
        thread and time."""
        known: dict[tuple[Site, ...], int] = {}
        found: dict[tuple[int, int, int], tuple[int, int]] = {}
        for each in self._unread():
            if shared := self._shared(each):
                found[each.key] = known.setdefault(shared, NOT_READ + 1 + len(known)), each.samples
        self._estimated = list(known)
        return found

    def _unread(self) -> Iterator[_Unread]:
        if all(sample.stack != NOT_READ for sample in super().samples()):
            return
        runs: dict[tuple[int, int], _Run] = {}
        for sample in super().samples():
            run = runs.setdefault((sample.thread, sample.tid), _Run(sample.time_ns))
            yield from run.take(sample)
        for run in runs.values():
            yield from run.end()

    def _shared(self, unread: _Unread) -> tuple[Site, ...]:
        """The outer frames of the samples around it that are of the same functions, from the innermost outward, each
        with the line that it had before; empty if there are too few samples."""
        stacks = [*reversed(unread.before), *unread.after]
        if min(len(unread.before), len(unread.after)) < AGREE_AT_LEAST or any(map(self.is_cut, stacks)):
            return ()
        paths = {self._path(stack) for stack in stacks}
        alike = len(list(takewhile(lambda at: len(set(at)) == 1, zip(*paths, strict=False))))
        frames = list(super().frames(stacks[0]))
        return tuple(frames[len(frames) - alike :])

    def _path(self, stack: int) -> Path:
        if stack not in self._paths:
            self._paths[stack] = _path_of(list(super().frames(stack)))
        return self._paths[stack]

    @cached_property
    def _paths(self) -> dict[int, Path]:
        """The functions of the stacks that were read around unreadable ones."""
        return {}

    @cached_property
    def _below(self) -> dict[Path, set[int]]:
        """The stacks that were read below each estimated one."""
        estimated = set(map(_path_of, self._estimated))
        lengths = sorted(set(map(len, estimated)))
        found: dict[Path, set[int]] = defaultdict(set)
        samples = super().samples()
        for stack in {each.stack for each in samples if each.stack not in (0, NOT_READ)}:
            path = self._path(stack)
            for length in lengths:
                if path[:length] in estimated:
                    found[path[:length]].add(stack)
        return found


def _path_of(frames: Sequence[Site]) -> Path:
    return tuple((each.function, each.file) for each in reversed(frames))
