"""A signal to `interpose run` takes a sample of what the program has used, and begins a labelled window of time."""

from __future__ import annotations

import signal
import time

from interpose.cli.messages import say
from interpose.cli.running.recorded_founder import Begun
from interpose.errors import ExperimentError
from interpose.experiments.metadata.control import Control
from interpose.experiments.metadata.creating import without_links
from interpose.experiments.metadata.labels import Mark, read_marks, write_marks
from interpose.experiments.model.files import Damages

LABEL = "sample"


class Sampler:
    """At each of its signals the window `sample1` begins, `sample2` and so on, and the one before ends."""

    def __init__(self, experiment: str, asked_by: signal.Signals) -> None:
        self.signals = frozenset({asked_by})
        self._begun = Begun(without_links(experiment))
        self._taken = 0

    def signalled(self, number: signal.Signals) -> None:
        """Mark this instant, and have every process sampled with its next call."""
        try:
            founder = self._begun.founder()
            if founder is None:
                return say("nothing was recorded yet, so no sample was taken")
            Control(founder).want_sample()
            self._mark(founder.directory, time.clock_gettime_ns(time.CLOCK_MONOTONIC))
        except (ExperimentError, OSError) as error:
            say(f"no sample was taken: {getattr(error, 'strerror', None) or error}")

    def attend(self) -> float | None:
        """Nothing is due but at its signal."""
        return None

    def _mark(self, directory: str, now_ns: int) -> None:
        marks = read_marks(directory, directory, Damages())
        if self._taken:
            marks.append(Mark(f"{LABEL}{self._taken}", "stop", now_ns))
        self._taken += 1
        write_marks(directory, [*marks, Mark(f"{LABEL}{self._taken}", "start", now_ns)])
