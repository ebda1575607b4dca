"""Pauses: when nothing was recorded because somebody asked for it, from the founder's log."""

from __future__ import annotations

import time
from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Iterator
from itertools import accumulate

from interpose.errors import ExperimentError
from interpose.experiments.metadata.control import Control
from interpose.experiments.metadata.endings import append
from interpose.experiments.metadata.log import LogEvent
from interpose.experiments.model.experiment import Experiment
from interpose.experiments.model.files import Damages
from interpose.experiments.model.process import Process

PAUSE, RESUME = "pause", "resume"
NO_END_NS = 1 << 63


class Pauses:
    """When recording was paused, in nanoseconds of the monotonic clock; the last pause may have no end."""

    def __init__(self, events: Iterable[LogEvent] = ()) -> None:
        found = _intervals(sorted((each.time_ns, each.kind) for each in events if each.kind in (PAUSE, RESUME)))
        self._begins = [begin for begin, _ in found]
        self._ends = [end for _, end in found]
        self._before = [0, *accumulate(end - begin for begin, end in found)]

    def __len__(self) -> int:
        return len(self._begins)

    def within(self, begin_ns: int, end_ns: int) -> int:
        """How long recording was paused between the two instants."""
        return max(self._until(end_ns) - self._until(begin_ns), 0)

    def overlapping(self, begin_ns: int, end_ns: int) -> Iterator[tuple[int, int]]:
        """The beginnings and ends of the pauses between the two instants, or of their parts there."""
        for place in range(bisect_right(self._ends, begin_ns), bisect_left(self._begins, end_ns)):
            yield max(self._begins[place], begin_ns), min(self._ends[place], end_ns)

    def _until(self, instant_ns: int) -> int:
        place = bisect_right(self._begins, instant_ns)
        if place == 0:
            return 0
        return self._before[place - 1] + min(instant_ns, self._ends[place - 1]) - self._begins[place - 1]


def pauses_of(experiment: Experiment) -> Pauses:
    """The pauses of `experiment`; of a descendant alone too, for its founder's log has them."""
    founder = experiment.founder
    if experiment.founder_directory == founder.directory:
        return Pauses(founder.log.events)
    try:
        founder = Process(experiment.founder_directory, founder.place, "", Damages())
    except ExperimentError:
        return Pauses(())  # with MPI ranks alone, no founder was recorded
    return Pauses(founder.log.events)


def _intervals(events: Iterable[tuple[int, str]]) -> list[tuple[int, int]]:
    found, since_ns = [], None
    for time_ns, kind in events:
        if kind == PAUSE and since_ns is None:
            since_ns = time_ns
        elif kind == RESUME and since_ns is not None:
            found.append((since_ns, time_ns))
            since_ns = None
    if since_ns is not None:
        found.append((since_ns, max(NO_END_NS, since_ns)))
    return found


class Switch:
    """Pauses and resumes the recording of the experiment with the founder `process`.

    Raises ExperimentError if it has no control page.
    """

    def __init__(self, process: Process) -> None:
        self._directory = process.directory
        self._control = Control(process)

    def turn(self, paused: bool) -> None:
        """Pause, or go on, unless that is so already. Raises ExperimentError."""
        with self._control.held():
            if paused != bool(self._control.read().paused):
                self.pause() if paused else self.resume()

    def pause(self) -> None:
        """Nothing is recorded from now on. Raises ExperimentError."""
        self._control.write(paused=1)
        self._note(PAUSE)

    def resume(self) -> None:
        """Resume recording. Raises ExperimentError."""
        self._note(RESUME)
        self._control.write(paused=0)

    def _note(self, kind: str) -> None:
        time_ns = time.clock_gettime_ns(time.CLOCK_MONOTONIC)
        append(self._directory, f'  <event kind="{kind}" time_ns="{time_ns}"/>\n'.encode())
