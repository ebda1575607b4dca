"""How a process ended, or that it still runs."""

from __future__ import annotations

import errno
import os
import signal
from collections.abc import Iterator
from dataclasses import dataclass

from interpose.experiments.format.children import EXEC, Child, split_lineage
from interpose.experiments.format.records import Overview
from interpose.experiments.model.experiment import Experiment
from interpose.experiments.model.process import Process
from interpose.experiments.model.process_numbers import number_here

OVERVIEW_END = 3
OVERVIEW_STOPPED = 4
_MOVED = "perhaps the experiment was renamed or removed, or the program changed its root"
_OUT_OF_REACH = {
    errno.EACCES: "perhaps the program changed its user",
    errno.EPERM: "perhaps the program changed its user",
    errno.ENOENT: _MOVED,
    errno.ENOTDIR: _MOVED,
    errno.ESTALE: _MOVED,
}
RESERVE_REACHED = 4096  # why recording stopped; errors of the system's have lower numbers
DETACHED = "detached"
# Signals that ask a program to end.
ASKED_TO_END = (signal.SIGTERM, signal.SIGINT, signal.SIGHUP)
_SLACK_NS = 2_000_000_000  # boot time is told in seconds, a process's start in hundredths


@dataclass(frozen=True)
class Ending:
    """The end of a process.

    `state` is `exit` (with `status`), `killed` (with `signal`), `exec` (it became `command`), `running`, `saved` (the
    experiment is a copy made while it ran), `detached` (it ran on unrecorded), `unseen` (nobody saw it end), or
    `unawaited` (a child that was not recorded, and that its parent did not wait for: it may still run).
    `end_ns` is the monotonic instant of the end, of the copy, or of detaching; None if unknown.
    """

    state: str
    end_ns: int | None = None
    status: int = 0
    signal: int = 0
    command: str = ""


def ending(process: Process) -> Ending:
    """How `process` ended: from the process that waited for it, from its own record, or because it became another
    program."""
    if detached := _as_detached(process):
        return detached
    samples = [sample for sample in process.overview if sample.kind == OVERVIEW_END]
    if process.became and not samples:
        return Ending("exec", process.became.record.start_ns, command=process.became.command)
    if not samples and (program := _became_unnoted(process)):
        return Ending("exec", program.log.start_ns, command=program.log.executable)
    seen = ending_of_number(process)
    if samples and not (seen and seen.state == "killed"):
        return Ending("exit", samples[-1].time_ns, status=seen.status if seen else samples[-1].status)
    return seen or _as_saved(process) or Ending("running" if is_running(process) else "unseen")


def _became_unnoted(process: Process) -> Process | None:
    """What the process became by C code, which notes no exec: it has the same number.

    It is the process's own descendant or, where its variables were made before the fork, comes of the same attempt.
    """
    below = [each for each in process.descendants_with(process.log.pid) if split_lineage(each.lineage)[1] == "x"]
    beside = process.starter.descendants_with(process.log.pid) if process.starter and process.started_as else []
    later = [each for each in beside if each.log.start_ns > process.log.start_ns]
    of_one = [each for each in later if each.started_as == process.started_as]
    return next(iter(below + of_one), None)


def _as_saved(process: Process) -> Ending | None:
    saved = [event for event in process.log.events if event.kind == "saved"]
    return Ending("saved", saved[-1].time_ns or None) if saved else None


def _as_detached(process: Process) -> Ending | None:
    detached = [event for event in process.log.events if event.kind == DETACHED]
    return Ending(DETACHED, detached[-1].time_ns or None) if detached else None


def ending_of_number(process: Process) -> Ending | None:
    """The end of the last process with this process's number, as its parent saw it, otherwise from its log; or None.

    After an exec, the new program has the same number.
    """
    child, starter = process.started_as, process.starter
    if child and starter and child.record.how == EXEC:
        return ending_of_number(starter)
    return (ending_of_child(child) if child else None) or _as_noted_in_log(process)


def _as_noted_in_log(process: Process) -> Ending | None:
    exits = [event for event in process.log.events if event.kind == "exit"]
    killed = [event for event in exits if event.signal]
    if killed:
        return Ending("killed", killed[-1].time_ns or None, signal=killed[-1].signal or 0)
    return Ending("exit", exits[-1].time_ns or None, status=exits[-1].status or 0) if exits else None


def ending_of_child(child: Child) -> Ending | None:
    """The end of a child as its record tells it, or None."""
    if child.signal is not None:
        return Ending("killed", child.record.end_ns, signal=child.signal)
    return Ending("exit", child.record.end_ns, status=child.exit_status or 0) if child.has_ended else None


def recording_stopped(process: Process) -> str | None:
    """Why recording ended before the process did, or None."""
    if stop := _stop(process):
        return _why_stopped(stop.status)
    stopped = [event.why for event in process.log.events if event.kind == "stopped"]
    return (stopped[-1] or "no reason given") if stopped else None


def stopped_in_words(process: Process) -> str | None:
    """The same as a phrase; if the files of the experiment were out of reach, with the time and what may have been the
    cause."""
    why, stop = recording_stopped(process), _stop(process)
    if why is None or stop is None or stop.status not in _OUT_OF_REACH:
        return None if why is None else f"recording stopped, {why}"
    after_s = max(stop.time_ns - process.log.start_ns, 0) / 1_000_000_000
    what = "the program could not open its experiment any more"
    return f"recording stopped {after_s:.2f} s after the start: {what} ({why}; {_OUT_OF_REACH[stop.status]})"


def _stop(process: Process) -> Overview | None:
    return next((sample for sample in process.overview if sample.kind == OVERVIEW_STOPPED), None)


def _why_stopped(reason: int) -> str:
    if reason == RESERVE_REACHED:
        return "too little disk is free (INTERPOSE_RESERVE)"
    return os.strerror(reason) if 0 < reason < RESERVE_REACHED else f"error {reason}"


def is_running(process: Process) -> bool:
    """Whether the recorded process is alive and still recorded: it is on this host, and began no later than recorded.
    """
    if _as_detached(process) or process.log.system.get("host") != os.uname().nodename:
        return False
    started_ns = _calendar_start_ns(number_here(process.log))
    return started_ns is not None and started_ns <= process.log.time_ns + _SLACK_NS


def signal_name(number: int) -> str:
    """The name of a signal, as SIGTERM, or its number if it has none."""
    try:
        return signal.Signals(number).name
    except ValueError:
        return f"signal {number}"


def any_running(experiment: Experiment) -> bool:
    """Whether a process of the experiment still runs."""
    return any(ending(process).state == "running" for process in experiment.processes)


def has_mapped(directory: str, pid: int) -> bool:
    """Whether the process `pid` has the threads file in `directory` mapped, as every recorded process does; if the
    kernel does not say, whether the process exists.

    All processes of the experiment map the founder's, also after an exec.
    """
    try:
        wanted = os.fsencode(f" {os.stat(os.path.join(directory, 'threads')).st_ino} ")
        return any(wanted in line for line in _mapped_lines(pid))
    except OSError:
        return os.path.exists(f"/proc/{pid}")


def _mapped_lines(pid: int) -> Iterator[bytes]:
    """What the process has mapped. The kernel says nothing of a thread that has ended, even if it was the first."""
    for thread in os.listdir(f"/proc/{pid}/task"):
        with open(f"/proc/{pid}/task/{thread}/maps", "rb") as maps:
            if first := maps.readline():
                yield first
                yield from maps
                return


def _calendar_start_ns(pid: int) -> int | None:
    """The calendar time at which the living process `pid` began; None if there is none."""
    try:
        with open(f"/proc/{pid}/stat", "rb") as file:
            state, *numbers = file.read().rpartition(b")")[2].split()
        with open("/proc/stat", "rb") as file:
            boot_s = next(int(line.split()[1]) for line in file if line.startswith(b"btime "))
    except (OSError, ValueError, StopIteration):
        return None
    threads = int(numbers[16])
    if state in (b"Z", b"X") and threads < 2:  # with others, only its first thread has ended
        return None
    ticks = int(numbers[18])
    return boot_s * 1_000_000_000 + ticks * 1_000_000_000 // os.sysconf("SC_CLK_TCK")
