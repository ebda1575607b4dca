"""What samples the code of an experiment's processes, in the monitor, on a thread of its own.

A process can be sampled as soon as it has described itself: its log.xml says where its interpreter has what, or that it
has none.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Iterable

from interpose.analysis.recording.ending import has_mapped
from interpose.counters import COUNTERS
from interpose.errors import ExperimentError
from interpose.experiments.metadata import names
from interpose.experiments.model.files import Damages
from interpose.experiments.model.process import Process
from interpose.experiments.model.process_numbers import is_number_here
from interpose.experiments.model.sampled import IN_OTHER_NAMESPACE
from interpose.memory_limit import memory_limit_bytes
from interpose.timing.sampler import Sampler, refuse

LONGEST_S = 0.5  # between two looks for processes that have come
COMING_S = 0.01  # where one has its directory, and has not described itself
COMING_LOOKS = 500


class Profiler(threading.Thread):
    """Samples the processes of the experiment in `founder`, `rate` times a second, until `close`, with these counters.
    Raises OSError."""

    def __init__(self, founder: str, rate: float, counters: Iterable[str] = ()) -> None:
        super().__init__(name="interpose-profiler", daemon=True)
        self._founder = founder
        counted = [(COUNTERS[name].source, COUNTERS[name].config) for name in counters]
        self._sampler = Sampler(founder, rate, counted=counted)
        self._known: set[str] = set()
        self._coming: dict[str, int] = {}
        self._stopped = False
        self.start()

    def run(self) -> None:
        """Look for processes, and sample those that there are."""
        while not self._stopped:
            self._find()
            self._sampler.run(COMING_S if self._coming else LONGEST_S)

    def close(self) -> None:
        """Write what is not written yet."""
        self._stopped = True
        self._sampler.stop()
        self.join()
        self._sampler.close()

    def _find(self) -> None:
        try:
            found = ["", *(each for each in os.listdir(self._founder) if _is_descendant(each))]
        except OSError:
            self._stopped = True
            return
        for place in found:
            if place not in self._known and self._is_there(place):
                self._known.add(place)
                self._coming.pop(place, None)

    def _is_there(self, place: str) -> bool:
        """Whether nothing is left to do for the process: it is sampled, cannot be, or never appears."""
        directory = os.path.join(self._founder, place)
        process = _described(directory, place)
        if process is None:
            self._coming[place] = self._coming.get(place, 0) + 1
            return self._coming[place] > COMING_LOOKS
        log = process.log
        if not log.interpreter and log.is_python:
            return True
        if not is_number_here(log):
            refuse(directory, IN_OTHER_NAMESPACE)
        elif has_mapped(directory, log.pid):
            try:
                limit_bytes = memory_limit_bytes(log.pid)
                self._sampler.add(log.pid, directory, log.interpreter, log.libraries, limit_bytes)
            except (OSError, OverflowError):
                pass  # it has ended, or may not be read: its time is not sampled, and reports say so
        return True


def _is_descendant(name: str) -> bool:
    lineage = name.removesuffix(names.SUFFIX)
    return lineage != name and names.is_lineage(lineage)


def _described(directory: str, place: str) -> Process | None:
    """The process that records into `directory`, as soon as it has said all of itself."""
    try:
        if os.stat(os.path.join(directory, names.LOG)).st_size == 0:
            return None
        process = Process(directory, place, "", Damages())
    except (OSError, ExperimentError):
        return None
    return process if process.log.pid else None
