"""How a process ended, or that it still runs."""

from __future__ import annotations

import os
from dataclasses import dataclass

from interpose.experiments.process import Process

OVERVIEW_END = 3
OVERVIEW_STOPPED = 4
_SLACK_NS = 2_000_000_000  # boot time is told in seconds, a process's start in hundredths


@dataclass(frozen=True)
class Ending:
    """The end of a process.

    `state` is `exit` (with `status`), `killed` (with `signal`), `running`, or `unseen` where nobody saw it
    end. `end_ns` is the monotonic instant of the end, None where it is not known.
    """

    state: str
    end_ns: int | None = None
    status: int = 0
    signal: int = 0


def ending(process: Process) -> Ending:
    """How `process` ended."""
    samples = [sample for sample in process.overview if sample.kind == OVERVIEW_END]
    exits = [event for event in process.log.events if event.kind == "exit"]
    killed = [event for event in exits if event.signal]
    if killed:
        return Ending("killed", killed[-1].time_ns or None, signal=killed[-1].signal or 0)
    if samples:
        return Ending("exit", samples[-1].time_ns, status=samples[-1].status)
    if exits:
        return Ending("exit", exits[-1].time_ns or None, status=exits[-1].status or 0)
    return Ending("running" if is_running(process) else "unseen")


def recording_stopped(process: Process) -> str | None:
    """Why recording ended before the process did, or None."""
    for sample in process.overview:
        if sample.kind == OVERVIEW_STOPPED:
            return os.strerror(sample.status) if 0 < sample.status < 4096 else f"error {sample.status}"
    stopped = [event.why for event in process.log.events if event.kind == "stopped"]
    return (stopped[-1] or "no reason given") if stopped else None


def is_running(process: Process) -> bool:
    """Whether the recorded process is alive: on this host, and begun no later than was recorded."""
    if process.log.system.get("host") != os.uname().nodename:
        return False
    started_ns = _calendar_start_ns(process.log.pid)
    return started_ns is not None and started_ns <= process.log.time_ns + _SLACK_NS


def _calendar_start_ns(pid: int) -> int | None:
    """The calendar time at which the living process `pid` began, or None where there is none."""
    try:
        with open(f"/proc/{pid}/stat", "rb") as file:
            state, *numbers = file.read().rpartition(b")")[2].split()
        with open("/proc/stat", "rb") as file:
            boot_s = next(int(line.split()[1]) for line in file if line.startswith(b"btime "))
    except (OSError, ValueError, StopIteration):
        return None
    if state in (b"Z", b"X"):
        return None
    ticks = int(numbers[18])
    return boot_s * 1_000_000_000 + ticks * 1_000_000_000 // os.sysconf("SC_CLK_TCK")
