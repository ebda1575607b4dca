"""What functions and calls of a running program took in the last seconds, from its files.

Only blocks of events and samples from these seconds are read. Figures are as measured: the CPU time between two samples
belongs to the stack of the second one, and a call counts when it has ended, or for as long as it is in progress.
"""

from __future__ import annotations

import time
from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass, field

from interpose.analysis.calls.account import latest_instant_ns
from interpose.analysis.calls.rows import CODE
from interpose.analysis.profile.profiled import innermost, numbers_of, sampled_frames
from interpose.analysis.profile.weights import USUAL_NS, is_code
from interpose.analysis.recording.ending import ending
from interpose.experiments.format.records import Event, OpenCall
from interpose.experiments.model.experiment import Experiment
from interpose.experiments.model.process import Process
from interpose.experiments.model.sampled import RUNS, Sampled
from interpose.experiments.model.stacks import Site
from interpose.kinds import CONTAINERS


@dataclass
class Recent:
    """A sampled function, or calls from one line: their time within the last seconds."""

    kind: str
    name: str
    site: Site | None
    calls: int = 0
    wall_ns: int = 0
    cpu_ns: int = 0
    samples: int = 0


@dataclass
class Seconds:
    """What was found in `length_ns` until `until_ns` on the monotonic clock, largest first."""

    until_ns: int
    length_ns: int
    rows: list[Recent] = field(default_factory=list)
    threads: int = 0


def last_seconds(experiment: Experiment, length_ns: int) -> Seconds:
    """What each function and each line's calls took in the last seconds; of a program that has ended, its own last."""
    made = Seconds(_until_ns(experiment), length_ns)
    found: dict[tuple[str, str, Site | None], Recent] = {}
    threads: set[tuple[Process, int]] = set()
    for process in experiment.processes:
        for thread, each in (*_code(process, made), *_ended(process, made), *_in_progress(process, made)):
            threads.add((process, thread))
            row = found.setdefault((each.kind, each.name, each.site), Recent(each.kind, each.name, each.site))
            row.calls += each.calls
            row.wall_ns += each.wall_ns
            row.cpu_ns += each.cpu_ns
            row.samples += each.samples
    made.threads = len(threads)
    made.rows = sorted(found.values(), key=lambda each: (-max(each.cpu_ns, each.wall_ns), each.kind, each.name))
    return made


def _until_ns(experiment: Experiment) -> int:
    if any(ending(process).state == "running" for process in experiment.processes):
        return time.clock_gettime_ns(time.CLOCK_MONOTONIC)
    return max(ending(process).end_ns or latest_instant_ns(process, ()) for process in experiment.processes)


def _code(process: Process, seconds: Seconds) -> Iterator[tuple[int, Recent]]:
    """The code that was sampled while it ran, by line of its function."""
    sampled, containers = Sampled(process), numbers_of(process, CONTAINERS)
    since_ns, counted_ns = seconds.until_ns - seconds.length_ns, dict[int, int]()
    started = {thread.number: thread.record.start_cpu_ns for thread in process.threads}
    numbers = {thread.record.tid: thread.number for thread in process.threads}
    functions: dict[tuple[int, str, str], Recent] = {}
    for sample in sampled.samples():
        if sample.state != RUNS:
            continue
        before_ns = counted_ns.get(sample.tid)
        counted_ns[sample.tid] = sample.cpu_ns
        if before_ns is None:  # what came before is unknown
            before_ns = max(started.get(sample.thread, 0), sample.cpu_ns - USUAL_NS * sample.samples)
        used_ns = max(sample.cpu_ns - before_ns, 0)
        if sample.last_ns < since_ns or not is_code(sample, containers):
            continue
        site = innermost(sampled_frames(sampled, sample.stack))
        thread = sample.thread or numbers.get(sample.tid) or -sample.tid  # some threads have no calls, so no number
        key = thread, site.function, site.file
        row = functions.setdefault(key, Recent(CODE, site.function, site))
        row.cpu_ns += min(used_ns, seconds.length_ns)
        row.samples += sample.samples
    merged: dict[tuple[str, str], Site | None] = defaultdict(lambda: None)
    for (thread, function, file), row in functions.items():
        merged[function, file] = row.site = merged[function, file] or row.site
        yield thread, row


def _ended(process: Process, seconds: Seconds) -> Iterator[tuple[int, Recent]]:
    """The calls that ended within these seconds, each with its part inside. The CPU time of calls that contain code
    belongs to their functions, if these are sampled."""
    in_functions = CONTAINERS if Sampled(process).is_there else frozenset()
    since_ns = seconds.until_ns - seconds.length_ns
    for place, head in process.events.heads() if process.events else ():
        block = process.events.block(place) if process.events and head.last_ns >= since_ns else None
        for event in process.events.events(block) if process.events and block else ():
            if event.start_ns + event.wall_ns >= since_ns:
                found = _of_event(process, event, seconds.length_ns)
                found.cpu_ns = 0 if found.kind in in_functions else found.cpu_ns
                yield event.thread, found


def _of_event(process: Process, event: Event, length_ns: int) -> Recent:
    intrinsic = process.intrinsic(event.intrinsic)
    self_ns = min(max(event.wall_ns - event.inner_wall_ns, 0), length_ns)
    cpu_ns = min(max(event.cpu_ns - event.inner_cpu_ns, 0), self_ns)
    return Recent(intrinsic.kind, intrinsic.name, process.own_line(event.stack), 1, self_ns, cpu_ns)


def _in_progress(process: Process, seconds: Seconds) -> Iterator[tuple[int, Recent]]:
    """The innermost call in which each thread is now, with its part in these seconds."""
    for thread in process.threads if ending(process).state == "running" else ():
        if thread.open_calls:
            call: OpenCall = thread.open_calls[-1]
            intrinsic = process.intrinsic(call.intrinsic)
            wall_ns = min(max(seconds.until_ns - call.start_ns, 0), seconds.length_ns)
            yield thread.number, Recent(intrinsic.kind, intrinsic.name, process.own_line(call.stack), 0, wall_ns)
