"""Calls in progress when the recording of a process ended, or now, and their time so far."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise

from interpose.experiments.format.records import Event, OpenCall
from interpose.experiments.model.process import Process
from interpose.kinds import CONTAINERS


@dataclass(frozen=True)
class InProgress:
    """A call in progress, from `call.start_ns` until `until_ns`. Its self times exclude the recorded calls inside,
    ended or in progress. The CPU time is the part that is known."""

    thread: int
    call: OpenCall
    until_ns: int
    self_wall_ns: int
    self_cpu_ns: int


def calls_in_progress(
    process: Process,
    events: Mapping[int, list[Event]],
    until_ns: int,
    until_cpu_ns: Mapping[int, int],
    is_running: bool,
) -> Iterator[InProgress]:
    """The calls in progress of `process`, for each thread the outermost first. `events` are the last ones of each
    thread, `until_cpu_ns` is its last known CPU time.

    If the process still runs, a call was in progress until the threads were read, which may be long after `until_ns`.
    """
    for thread in process.threads:
        ended = {event.call for event in events.get(thread.number, [])}
        there = [each for each in thread.open_calls if each.call not in ended and not _became(process, each)]
        is_now = is_running and bool(there) and not contains_code(process, there[-1])
        latest_ns = thread.record.end_ns or (max(until_ns, process.threads_read_ns) if is_now else until_ns)
        latest_cpu_ns = until_cpu_ns.get(thread.number, thread.record.end_cpu_ns)
        for call, (wall_ns, cpu_ns) in zip(there, _self_times(there, latest_ns, latest_cpu_ns), strict=True):
            yield InProgress(thread.number, call, latest_ns, wall_ns, cpu_ns)


def self_time_in_progress(process: Process, calls: Sequence[InProgress]) -> dict[int, tuple[int, int]]:
    """The wall and CPU time of each thread in its calls in progress, without those that contain code of the program."""
    found: dict[int, tuple[int, int]] = {}
    for each in without_code(process, calls):
        wall_ns, cpu_ns = found.get(each.thread, (0, 0))
        found[each.thread] = wall_ns + each.self_wall_ns, cpu_ns + each.self_cpu_ns
    return found


def without_code(process: Process, calls: Sequence[InProgress]) -> Iterator[InProgress]:
    """The calls that contain no code of the program."""
    return (each for each in calls if not contains_code(process, each.call))


def contains_code(process: Process, call: OpenCall) -> bool:
    """Whether code of the program runs within the call."""
    return process.intrinsic(call.intrinsic).kind in CONTAINERS


def _self_times(calls: Sequence[OpenCall], until_ns: int, until_cpu_ns: int) -> Iterator[tuple[int, int]]:
    """The time of each call until the one inside it began; of the innermost call, until the end."""
    instants = [*((each.start_ns, each.start_cpu_ns) for each in calls), (until_ns, until_cpu_ns)]
    for call, ((start_ns, start_cpu_ns), (end_ns, end_cpu_ns)) in zip(calls, pairwise(instants), strict=True):
        wall_ns = max(end_ns - start_ns - call.inner_wall_ns, 0)
        yield wall_ns, min(max(end_cpu_ns - start_cpu_ns - call.inner_cpu_ns, 0), wall_ns)


def _became(process: Process, call: OpenCall) -> bool:
    """Whether the call is an exec that succeeded: by it, the process became another program."""
    became = process.became
    is_exec = process.intrinsic(call.intrinsic).name.startswith("os.exec")
    return is_exec and became is not None and call.start_ns >= became.record.start_ns
