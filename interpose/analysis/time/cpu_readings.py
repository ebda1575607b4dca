"""Readings of a clock of CPU time: what a thread or a process had used at any instant, also while it runs."""

from __future__ import annotations

import time
from bisect import bisect_left
from functools import cached_property

from interpose.experiments.metadata.log import Log
from interpose.experiments.model.process_numbers import is_number_here, number_here

_OF_PROCESS = 2  # how the kernel numbers the clock of a process's CPU time: the complement of its number, and this


class Readings:
    """What a clock of CPU time read at known instants. Between two of them, the time is divided as the wall time is."""

    def __init__(self) -> None:
        self._added: dict[int, int] = {}

    def add(self, instant_ns: int, cpu_ns: int) -> None:
        """Add a reading. All are added before the first question."""
        self._added[instant_ns] = max(cpu_ns, self._added.get(instant_ns, 0))

    def used_ns(self, since_ns: int, until_ns: int) -> int:
        """What was used between two instants, as far as there are readings."""
        return max(self.at(until_ns) - self.at(since_ns), 0)

    def at(self, instant_ns: int) -> int:
        """The reading at an instant: before the first one as at that, after the last one the same."""
        place = bisect_left(self._instants, instant_ns)
        if place == len(self._instants):
            return self._added[self._instants[-1]] if self._instants else 0
        after_ns = self._instants[place]
        if not place or after_ns == instant_ns:
            return self._added[after_ns]
        before_ns = self._instants[place - 1]
        used_ns = self._added[after_ns] - self._added[before_ns]
        return self._added[before_ns] + used_ns * (instant_ns - before_ns) // (after_ns - before_ns)

    def nearest(self, instant_ns: int) -> int:
        """The instant of the reading before the last one that is closest to this one; the same if there is none."""
        return min(self._instants[:-1], key=lambda each: abs(each - instant_ns), default=instant_ns)

    @cached_property
    def _instants(self) -> list[int]:
        return sorted(self._added)


def add_process_now(readings: Readings, log: Log) -> None:
    """Add what the process with this log has used until now, if it is there."""
    pid = number_here(log)
    try:
        if pid:
            readings.add(time.monotonic_ns(), time.clock_gettime_ns(~pid << 3 | _OF_PROCESS))
    except OSError:
        return


def add_thread_now(readings: Readings, log: Log, tid: int) -> None:
    """The same of a thread of the process, if it has that number here."""
    if not is_number_here(log):
        return
    try:
        with open(f"/proc/{log.pid}/task/{tid}/schedstat", "rb") as file:
            readings.add(time.monotonic_ns(), int(file.read().split()[0]))
    except (OSError, ValueError, IndexError):
        return
