"""From the samples of threads to weights of stacks: how much of its thread's CPU time each stack represents.

The kernel's CPU time is carried from sample to sample. A sample of a thread that runs outside of recorded calls gives
the carried time to its stack; one within a recorded call leaves it to the call. One that waits carries it on. So does
one in a call that only waits: its thread may be ready to run again, but it has not computed. CPU time that such a
call used itself counts for the code after it. So a thread that computes for one millisecond in ten is divided as well
as one that always computes, and after lost samples the next one represents more.

A thread that is ready to run stopped where the kernel took its processor. That is not where it uses its CPU time: the
kernel notices the end of a turn at certain system calls, such as those that ask for CPU time, rather than elsewhere.
So such a sample also carries the time on, to the next one that ran. But a sample says nothing about a phase long before
or after it. So samples that were ready count like those that run in two cases: the thread has used the CPU time of
several samples without being seen to run, or it has used more than that of one and then waits or ends.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, field
from typing import NamedTuple

from interpose.experiments.format.records import SampleRecord
from interpose.experiments.model.sampled import NOT_READ, READY, RECORDS, RUNS, WAITS, Sampled

CALIBRATES = "/interpose/capture/line_switch.py"
OUTSIDE_CALLS = 0  # the pool for time outside calls; other pools have the number of their intrinsic
USUAL_NS = 10_000_000  # between two samples, where a thread has only one
SEEN_AFTER = 10  # intervals of CPU time after which a sample that ran says nothing of those that were ready before


class Place(NamedTuple):
    """Where a sample found its thread: the number of the stack, and of the task's name or 0."""

    stack: int
    task: int = 0


Pool = tuple[int, int]  # the number of a thread, and of the intrinsic that contains its code or OUTSIDE_CALLS
# The pool of a sample of code; None if it has none.
PoolOf = Callable[[SampleRecord], Pool | None]


@dataclass
class Weights:
    """The samples of one pool by place: those that ran, those that waited, and those that were ready to run. `cpu_ns`
    is the weight of those that ran or were ready, in nanoseconds of CPU time, and `squares` the sums of the squared
    weights of single samples. `recording` counts samples in the recorder as a call begins; they count as ready."""

    cpu_ns: dict[Place, float] = field(default_factory=lambda: defaultdict(float))
    ran: dict[Place, int] = field(default_factory=lambda: defaultdict(int))
    waited: dict[Place, int] = field(default_factory=lambda: defaultdict(int))
    ready: dict[Place, int] = field(default_factory=lambda: defaultdict(int))
    squares: dict[Place, float] = field(default_factory=lambda: defaultdict(float))
    recording: int = 0

    def add(self, place: Place, samples: int, cpu_ns: float) -> None:
        """Add the weight of samples of a thread that ran or was ready to."""
        self.cpu_ns[place] += cpu_ns
        self.squares[place] += cpu_ns * cpu_ns / samples

    def add_scaled(self, other: Weights, factor: float, is_counted: bool) -> None:
        """Add another pool with its weights multiplied; or, with `is_counted`, if the kernel counted no CPU time, the
        same weight for each of its samples."""
        weights: Mapping[Place, float] = other.ran if is_counted else other.cpu_ns
        for place, weight in weights.items():
            self.cpu_ns[place] += weight * factor
        for mine, given in ((self.ran, other.ran), (self.waited, other.waited), (self.ready, other.ready)):
            for place, samples in given.items():
                mine[place] += samples
        self.recording += other.recording
        squares: Mapping[Place, float] = other.ran if is_counted else other.squares
        for place, square in squares.items():
            self.squares[place] += square * factor**2

    def count(self, state: int, place: Place, samples: int) -> None:
        """Add samples in a state."""
        if state == RECORDS:
            self.recording += samples
        else:
            {RUNS: self.ran, WAITS: self.waited, READY: self.ready}[state][place] += samples

    @property
    def samples(self) -> int:
        """All of them."""
        return self.recording + sum(sum(each.values()) for each in (self.ran, self.waited, self.ready))

    @property
    def effective(self) -> float:
        """As many samples of the same weight would be as good."""
        whole = sum(self.cpu_ns.values())
        squares = sum(self.squares.values())
        return whole * whole / squares if squares else float(sum(self.ran.values()))


class Seen(NamedTuple):
    """The last sample of a thread: when it was, in monotonic nanoseconds, and the CPU time that the thread had used by
    then; and the usual time between two of its samples."""

    last_ns: int
    cpu_ns: int
    usual_ns: float


@dataclass
class Walked:
    """The samples of one process. `seen` is the last one of each thread. `delays_ns` is how long each thread waited for
    CPU between its first sample and its last one, `ready` in how many of them; `unplaced` are samples of threads that
    had recorded nothing yet, `unplaced_ns` the CPU time of these, by stack. `after_python_ns` is the CPU time of each
    thread from the last sample with Python code on."""

    pools: dict[Pool, Weights] = field(default_factory=lambda: defaultdict(Weights))
    seen: dict[int, Seen] = field(default_factory=dict)
    delays_ns: dict[int, int] = field(default_factory=dict)
    ready: dict[int, int] = field(default_factory=dict)
    samples: int = 0
    torn: int = 0
    unplaced: int = 0
    unplaced_ns: Counter[int] = field(default_factory=Counter)
    after_python_ns: dict[int, int] = field(default_factory=dict)


class _Share(NamedTuple):
    """CPU time for the stack of a sample; no pool: it belongs to a call."""

    pool: Weights | None
    place: Place
    samples: int
    cpu_ns: float

    def give(self) -> None:
        if self.pool is not None:
            self.pool.add(self.place, self.samples, self.cpu_ns)


@dataclass
class _Thread:
    """Where the walk through the samples of a thread is; `opening` is its first sample that ran or was ready to,
    `carried` are those that were ready since it was last seen to run: by `ran`, when it had used `ran_ns`."""

    counted_ns: int
    first_ns: int
    delayed_before_ns: int
    delay_ns: int = 0
    last_ns: int = 0
    last_cpu_ns: int = 0
    samples: int = 0
    ready: int = 0
    ran_ns: int = 0
    python_ns: int = 0  # the CPU time that it had used at the last sample with Python code
    ran: _Share | None = None
    opening: _Share | None = None
    carried: list[_Share] = field(default_factory=list)

    @property
    def usual_ns(self) -> float:
        return (self.last_ns - self.first_ns) / (self.samples - 1) if self.samples > 1 else USUAL_NS

    @property
    def carried_ns(self) -> float:
        return sum(each.cpu_ns for each in self.carried)

    def give_carried(self, to: _Share | None) -> None:
        """To the sample that ran, with its own time; without one, to each where it was ready."""
        for share in self.carried if to is None else [to._replace(cpu_ns=to.cpu_ns + self.carried_ns)]:
            share.give()
        self.carried = []

    def wait(self) -> None:
        """It waits: what runs afterwards may be something else."""
        if self.carried_ns > self.usual_ns:
            self.give_carried(None)
        self.ran = None


def walk(
    sampled: Sampled,
    started_cpu_ns: Mapping[int, int],
    containers: Collection[int],
    waits: Collection[int],
    pool_of: PoolOf | None = None,
    since_ns: int = 0,
) -> Walked:
    """The weights of all samples of a process from `since_ns` on, with the CPU time that its threads had used when
    first seen, or then.

    `containers` are the numbers of the intrinsics that contain the program's own Python code: they are pools, unless
    `pool_of` returns the pool of a sample of code. `waits` are those of calls that only wait.
    """
    put_into = pool_of or (lambda sample: (sample.thread, sample.intrinsic))
    made, calibrates = Walked(), _calibration_of(sampled)
    threads: dict[int, _Thread] = {}
    unplaced: dict[int, int] = {}
    for sample in sampled.samples(since_ns):
        if sample.state not in (RUNS, WAITS, READY, RECORDS):
            continue
        if sample.thread not in started_cpu_ns:
            _put_aside(made, unplaced, sample)
            continue
        thread = threads.get(sample.thread)
        if thread is None:
            started_ns = started_cpu_ns[sample.thread]
            thread = threads[sample.thread] = _Thread(started_ns, sample.time_ns, sample.run_delay_ns)
        only_waits = sample.state in (WAITS, RECORDS) or sample.intrinsic in waits
        is_programs = is_code(sample, containers) and not calibrates(sample.stack)
        _take(made, thread, sample, put_into if is_programs else None, only_waits)
    for number, thread in threads.items():
        _settle(thread)
        made.seen[number] = Seen(thread.last_ns, thread.last_cpu_ns, thread.usual_ns)
        made.after_python_ns[number] = thread.last_cpu_ns - thread.python_ns if thread.python_ns else 0
    made.delays_ns.update({number: thread.delay_ns for number, thread in threads.items()})
    made.ready.update({number: thread.ready for number, thread in threads.items()})
    return made


def _calibration_of(sampled: Sampled) -> Callable[[int], bool]:
    """A predicate of stacks: whether line trace calibrates there, which is overhead."""
    known: dict[int, bool] = {}

    def calibrates(stack: int) -> bool:
        if stack not in known:
            known[stack] = any(site.file.endswith(CALIBRATES) for site in sampled.frames(stack))
        return known[stack]

    return calibrates


def is_code(sample: SampleRecord, containers: Collection[int]) -> bool:
    """Whether a sample is of the program's own code: in no call, or in one that contains such."""
    return sample.intrinsic in containers if sample.intrinsic else not sample.call


def _take(made: Walked, thread: _Thread, sample: SampleRecord, pool_of: PoolOf | None, only_waits: bool) -> None:
    samples = max(sample.samples, 1)
    made.samples += samples
    thread.samples += samples
    thread.last_ns, thread.last_cpu_ns = sample.last_ns, max(sample.cpu_ns, thread.last_cpu_ns)
    thread.delay_ns = max(sample.run_delay_ns - thread.delayed_before_ns, 0)
    thread.python_ns = thread.last_cpu_ns if sample.stack else thread.python_ns
    place = Place(sample.stack, sample.task)
    made.torn += samples if sample.stack == NOT_READ else 0
    key = pool_of(sample) if pool_of else None
    pool = made.pools[key] if key is not None else None
    thread.ready += samples if sample.state in (READY, RECORDS) else 0
    if pool is not None:
        pool.count(sample.state, place, samples)
    if only_waits:
        if sample.state != RECORDS:
            thread.wait()
        return
    share = _Share(pool, place, samples, max(sample.cpu_ns - thread.counted_ns, 0))
    thread.counted_ns = sample.cpu_ns
    is_first, is_seen = thread.opening is None, sample.cpu_ns - thread.ran_ns < SEEN_AFTER * thread.usual_ns
    if is_first:
        thread.opening = share
    elif is_seen and sample.state == READY:
        thread.carried.append(share)
    elif is_seen:
        thread.give_carried(share)
    else:
        thread.carried.append(share)
        thread.give_carried(None)
    if is_first or sample.state == RUNS:
        thread.ran_ns = sample.cpu_ns
    if sample.state == RUNS:
        thread.ran = share


def _put_aside(made: Walked, counted_ns: dict[int, int], sample: SampleRecord) -> None:
    made.unplaced += sample.samples
    if sample.state != WAITS:
        before_ns = counted_ns.get(sample.tid, max(sample.cpu_ns - USUAL_NS, 0))
        made.unplaced_ns[sample.stack] += max(sample.cpu_ns - before_ns, 0)
        counted_ns[sample.tid] = sample.cpu_ns


def _settle(thread: _Thread) -> None:
    """Give the first sample its weight, at most one interval, because the time before it is unknown; and what little
    was carried to the end to the last one that ran, if there was no wait in between."""
    if thread.opening is not None:
        share = thread.opening
        share._replace(cpu_ns=min(share.cpu_ns, thread.usual_ns * share.samples)).give()
    is_little = thread.ran is not None and thread.carried_ns <= thread.usual_ns
    thread.give_carried(thread.ran._replace(cpu_ns=0) if thread.ran and is_little else None)
