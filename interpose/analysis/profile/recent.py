"""What functions, calls and the rest of a running program took in the last seconds, from its files and the kernel.

Only blocks of events from these seconds are read, and the last one of each thread before. A thread's CPU time in these
seconds is known from the readings of its clock: at its calls, in its samples, and now. It is divided without remainder:

    CPU time = calls that ended or are in progress + overhead + code + paused

Samples divide the CPU time of code among functions, as in the profile of the whole run
(`interpose.analysis.profile.weights`). Of a call that is only partly within these seconds, its time counts in
proportion. What the process used in no recorded thread is `not recorded`.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterator
from dataclasses import dataclass, field

from interpose.analysis.calls.account import number_of_statements, recording_ns
from interpose.analysis.calls.in_progress import calls_in_progress
from interpose.analysis.calls.rows import CODE, OVERHEAD, PAUSED
from interpose.analysis.profile.balance import Code, Spent, divided
from interpose.analysis.profile.profiled import (
    NOT_SAMPLED,
    ONLY_WAITING,
    Groups,
    function_of,
    functions_from,
    innermost,
    numbers_of,
    sampled_frames,
)
from interpose.analysis.profile.weights import OUTSIDE_CALLS, Pool, Walked, Weights, walk
from interpose.analysis.recording.ending import ending
from interpose.analysis.recording.life import known_until_ns
from interpose.analysis.recording.ring import held_since_ns
from interpose.analysis.time.cpu_readings import Readings, add_process_now, add_thread_now
from interpose.experiments.format.blocks import Place as PlaceOfBlock
from interpose.experiments.format.records import Event, OpenCall, ThreadRecord
from interpose.experiments.metadata.pauses import Pauses, pauses_of
from interpose.experiments.model.experiment import Experiment
from interpose.experiments.model.process import Process
from interpose.experiments.model.sampled import WAITS, Sampled
from interpose.experiments.model.stacks import Site
from interpose.kinds import CONTAINERS

NOT_RECORDED = "not recorded"  # CPU time
LEAST_PART = 2000  # less of these seconds than this part of them is within the accuracy of the clocks


@dataclass
class Recent:
    """A sampled function, calls from one line, or what is in neither: their time within the last seconds."""

    kind: str
    name: str
    site: Site | None
    calls: int = 0
    wall_ns: int = 0
    cpu_ns: int = 0
    samples: int = 0

    @property
    def is_function(self) -> bool:
        """Whether it is a sampled function."""
        return self.kind == CODE and self.site is not None

    @property
    def is_of_calls(self) -> bool:
        """Whether it has calls."""
        return self.kind not in (CODE, OVERHEAD, PAUSED, NOT_RECORDED)


@dataclass
class Seconds:
    """What was found in `length_ns` until `until_ns` on the monotonic clock, largest first; functions only where the
    program `is_profiled`. `before_ring_ns` is how much longer they would be if the ring still had the calls."""

    until_ns: int
    length_ns: int
    rows: list[Recent] = field(default_factory=list)
    threads: int = 0
    is_profiled: bool = True
    before_ring_ns: int = 0

    @property
    def since_ns(self) -> int:
        """Where they begin."""
        return self.until_ns - self.length_ns

    def within(self, start_ns: int, stop_ns: int) -> int:
        """How much of a stretch of time is in these seconds."""
        return max(min(stop_ns, self.until_ns) - max(start_ns, self.since_ns), 0)


def last_seconds(experiment: Experiment, length_ns: int) -> Seconds:
    """What each function and each line's calls took in the last seconds that were recorded; of a program that has
    ended, its own last; with a ring, as many of them as it has whole."""
    until_ns = known_until_ns(experiment)
    recorded_ns = until_ns - min(process.log.start_ns for process in experiment.processes)
    wanted_ns = min(length_ns, max(recorded_ns, 0))
    made = Seconds(until_ns, wanted_ns)
    pauses = pauses_of(experiment)
    found: dict[tuple[str, str, Site | None], Recent] = {}
    made.is_profiled = any(Sampled(process).is_there for process in experiment.processes)
    recents = [_RecentOfProcess(process, made, pauses) for process in experiment.processes]
    held_ns = max(until_ns - max(map(held_since_ns, experiment.processes)), 0)  # after what a ring had was read
    made.length_ns, made.before_ring_ns = min(wanted_ns, held_ns), max(wanted_ns - held_ns, 0)
    for recent in recents:
        for each in recent.rows():
            row = found.setdefault((each.kind, each.name, each.site), Recent(each.kind, each.name, each.site))
            row.calls += each.calls
            row.wall_ns += each.wall_ns
            row.cpu_ns += each.cpu_ns
            row.samples += each.samples
        made.threads += len(recent.active)
    made.rows = sorted(found.values(), key=lambda each: (-max(each.cpu_ns, each.wall_ns), each.kind, each.name))
    return made


class _RecentOfProcess:
    """The last seconds of one process. `active` are its threads that computed or were in calls, by number; those
    without a number, by the kernel's, negative."""

    def __init__(self, process: Process, seconds: Seconds, pauses: Pauses) -> None:
        self.active: set[int] = set()
        self._is_profiled = seconds.is_profiled  # the experiment, perhaps not this process: then it ended too soon
        self._process = process
        self._seconds = seconds
        self._pauses = pauses
        self._is_running = ending(process).state == "running"
        self._sampled = Sampled(process)
        self._of_ring = list(self._events()) if process.overwritten else None
        self._containers = numbers_of(process, CONTAINERS) if self._sampled.is_there else set()
        self._statement = number_of_statements(process)
        self._clocks: dict[int, Readings] = {thread.number: Readings() for thread in process.threads}
        self._calls: dict[int, Recent] = defaultdict(lambda: Recent("", "", None))  # the sums by thread
        self._overhead_ns: Counter[int] = Counter()
        self._code_ns: Counter[Pool] = Counter()  # CPU time

    def rows(self) -> Iterator[Recent]:
        """The rows, which share the CPU time of the process."""
        whole = self._clock_of_process()
        self._read_clocks()
        yield from self._ended_and_in_progress()
        unplaced = self._read_samples()
        for thread in self._process.threads:
            yield from self._beside_calls(thread.number, thread.record)
        walked = self._walked()
        if self._sampled.is_there:
            yield from self._functions(walked, unplaced)
        yield from self._not_recorded(whole, sum(walked.unplaced_ns.values()))

    def _clock_of_process(self) -> Readings:
        found = Readings()
        for sample in self._process.overview:
            found.add(sample.time_ns, sample.cpu_ns)
        if self._is_running:
            add_process_now(found, self._process.log)
        return found

    def _read_clocks(self) -> None:
        for thread in self._process.threads:
            record, clock = thread.record, self._clocks[thread.number]
            clock.add(record.start_ns, record.start_cpu_ns)
            if record.end_cpu_ns and (record.end_ns or record.seen_ns):
                clock.add(record.end_ns or record.seen_ns, record.end_cpu_ns)
            for call in thread.open_calls:
                clock.add(call.start_ns, call.start_cpu_ns)
            if self._is_running and not record.end_ns:
                add_thread_now(clock, self._process.log, record.tid)

    def _read_samples(self) -> Counter[int]:
        """Add their readings to the clocks. Returns how often each stack of threads without recorded calls was seen to
        run."""
        unplaced: Counter[int] = Counter()
        numbers = {thread.record.tid: thread.number for thread in self._process.threads}
        for sample in self._sampled.samples(self._seconds.since_ns):
            if sample.thread in self._clocks:
                self._clocks[sample.thread].add(sample.last_ns, sample.cpu_ns)
            elif sample.state != WAITS:
                unplaced[sample.stack] += sample.samples
                self.active.add(numbers.get(sample.tid, -sample.tid))
        return unplaced

    def _ended_and_in_progress(self) -> Iterator[Recent]:
        """Each call with its part within these seconds."""
        opened = {(thread.number, each.call) for thread in self._process.threads for each in thread.open_calls}
        ended: dict[int, list[Event]] = defaultdict(list)
        for event in self._events() if self._of_ring is None else self._of_ring:
            if event.start_cpu_ns and event.thread in self._clocks:
                clock = self._clocks[event.thread]
                clock.add(event.start_ns, event.start_cpu_ns)
                clock.add(event.start_ns + event.wall_ns, event.start_cpu_ns + event.cpu_ns)
            if (event.thread, event.call) in opened:
                ended[event.thread].append(event)
            end_ns = event.start_ns + event.wall_ns
            if end_ns < self._seconds.since_ns or event.start_ns > self._seconds.until_ns:
                continue
            wall_ns, cpu_ns = event.wall_ns - event.inner_wall_ns, event.cpu_ns - event.inner_cpu_ns
            if not event.parent:
                is_statement = event.intrinsic == self._statement
                self._overhead_ns[event.thread] += recording_ns(self._process.log, 1, is_statement)
            row = self._part(event.thread, event, event.start_ns, end_ns, wall_ns, cpu_ns)
            row.calls = 1
            yield row
        yield from self._in_progress(ended)

    def _in_progress(self, ended: dict[int, list[Event]]) -> Iterator[Recent]:
        """The calls in progress, each with its part so far."""
        if not self._is_running:
            return
        until_ns = self._seconds.until_ns
        cpu_ns = {number: clock.at(until_ns) for number, clock in self._clocks.items()}
        for each in calls_in_progress(self._process, ended, until_ns, cpu_ns, is_running=True):
            times = each.call.start_ns, each.until_ns, each.self_wall_ns, each.self_cpu_ns
            yield self._part(each.thread, each.call, *times)

    def _events(self) -> Iterator[Event]:
        """The events of the blocks of these seconds, and of the last block of each thread before."""
        events = self._process.events
        before: dict[int, tuple[int, PlaceOfBlock]] = {}
        wanted: list[PlaceOfBlock] = []
        for place, head in events.heads() if events else ():
            if head.last_ns >= self._seconds.since_ns:
                wanted.append(place)
            elif before.get(head.thread, (-1,))[0] < head.sequence:
                before[head.thread] = head.sequence, place
        for place in (*(place for _, place in before.values()), *wanted):
            block = events.block(place) if events else None
            if events and block:
                yield from events.events(block)

    def _part(
        self, thread: int, call: Event | OpenCall, start_ns: int, end_ns: int, wall_ns: int, cpu_ns: int
    ) -> Recent:
        """The part of a call's self times within these seconds. The CPU time of calls that contain code belongs to
        their functions, if these are sampled."""
        intrinsic = self._process.intrinsic(call.intrinsic)
        share = self._seconds.within(start_ns, end_ns) / (end_ns - start_ns) if end_ns > start_ns else 1.0
        wall_ns = round(max(wall_ns, 0) * share)
        cpu_ns = min(round(max(cpu_ns, 0) * share), wall_ns)
        self.active.add(thread)
        calls = self._calls[thread]
        calls.wall_ns += wall_ns
        calls.cpu_ns += cpu_ns
        if call.intrinsic in self._containers:
            self._code_ns[thread, call.intrinsic] += cpu_ns
            cpu_ns = 0
        return Recent(intrinsic.kind, intrinsic.name, self._process.own_line(call.stack), 0, wall_ns, cpu_ns)

    def _beside_calls(self, number: int, record: ThreadRecord) -> Iterator[Recent]:
        """What recording cost a thread, what it took in pauses, and its code outside of calls, unless functions are
        sampled."""
        seconds, clock, calls = self._seconds, self._clocks[number], self._calls[number]
        cpu_ns = max(clock.used_ns(seconds.since_ns, seconds.until_ns) - calls.cpu_ns, 0)
        wall_ns = max(seconds.within(record.start_ns, record.end_ns or seconds.until_ns) - calls.wall_ns, cpu_ns)
        overhead_ns = min(self._overhead_ns[number], cpu_ns)
        if cpu_ns:
            self.active.add(number)
        if overhead_ns * LEAST_PART > seconds.length_ns:
            yield Recent(OVERHEAD, OVERHEAD, None, 0, overhead_ns, overhead_ns)
        wall_ns, cpu_ns = wall_ns - overhead_ns, cpu_ns - overhead_ns
        paused = self._paused(number, record, wall_ns, cpu_ns)
        if paused.wall_ns:
            yield paused
        wall_ns, cpu_ns = wall_ns - paused.wall_ns, cpu_ns - paused.cpu_ns
        if self._sampled.is_there:
            self._code_ns[number, OUTSIDE_CALLS] = cpu_ns
        elif cpu_ns and self._is_profiled:
            yield Recent(CODE, NOT_SAMPLED.function, NOT_SAMPLED, 0, 0, cpu_ns)
        elif cpu_ns:
            yield Recent(CODE, CODE, None, 0, wall_ns, cpu_ns)

    def _paused(self, number: int, record: ThreadRecord, wall_ns: int, cpu_ns: int) -> Recent:
        """What of a thread's remaining time is in pauses; a call that was in progress meanwhile has its own."""
        since_ns = max(record.start_ns, self._seconds.since_ns)
        until_ns = max(min(record.end_ns or self._seconds.until_ns, self._seconds.until_ns), since_ns)
        parts = list(self._pauses.overlapping(since_ns, until_ns))
        used_ns = sum(self._clocks[number].used_ns(begin_ns, end_ns) for begin_ns, end_ns in parts)
        paused_ns = min(sum(end_ns - begin_ns for begin_ns, end_ns in parts), wall_ns)
        return Recent(PAUSED, PAUSED, None, 0, paused_ns, min(used_ns, cpu_ns, paused_ns))

    def _walked(self) -> Walked:
        since_ns = self._seconds.since_ns
        started = {number: clock.at(since_ns) for number, clock in self._clocks.items()}
        waits = numbers_of(self._process, ONLY_WAITING)
        return walk(self._sampled, started, self._containers, waits, since_ns=since_ns)

    def _functions(self, walked: Walked, unplaced: Counter[int]) -> Iterator[Recent]:
        """The code that was sampled, by line of its function."""
        lines: dict[Site, Code] = defaultdict(Code)
        groups = Groups(self._sampled, innermost)
        for pool, cpu_ns in self._code_ns.items():
            weights = walked.pools.get(pool, Weights())
            for site, code in divided(Spent(cpu_ns, cpu_ns), weights, groups, NOT_SAMPLED).items():
                lines[site].add(code)
        for stack, samples in unplaced.items():
            lines[innermost(sampled_frames(self._sampled, stack))].add(Code(samples, walked.unplaced_ns[stack]))
        functions: dict[tuple[str, str], Code] = defaultdict(Code)
        for site, code in lines.items():
            functions[function_of((site,))].add(code)
        for function in functions_from(lines, functions):
            yield Recent(CODE, function.site.function, function.site, 0, 0, function.code.cpu_ns, function.code.samples)

    def _not_recorded(self, whole: Readings, unplaced_ns: int) -> Iterator[Recent]:
        """What the process used outside of recorded threads, as in native ones: from the reading nearest to the
        beginning of these seconds until their end, in proportion."""
        seconds = self._seconds
        since_ns = whole.nearest(seconds.since_ns)
        used_ns = whole.used_ns(since_ns, seconds.until_ns)
        used_ns -= sum(clock.used_ns(since_ns, seconds.until_ns) for clock in self._clocks.values())
        cpu_ns = used_ns * seconds.length_ns // max(seconds.until_ns - since_ns, 1) - unplaced_ns
        if cpu_ns * LEAST_PART > seconds.length_ns:
            yield Recent(NOT_RECORDED, NOT_RECORDED, None, 0, 0, cpu_ns)
