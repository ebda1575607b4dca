"""Pauses and resumes what `interpose run` records, even before its program has begun; a signal can do it."""

from __future__ import annotations

import signal

from interpose.cli.running.recorded_founder import Begun
from interpose.errors import ExperimentError
from interpose.experiments.metadata.pauses import Switch

SOON_S = 0.05  # the program has not begun to record


class Pauser:
    """Whether the recording of `experiment` is paused, and the way to change that."""

    def __init__(self, experiment: str, paused: bool) -> None:
        self._begun = Begun(experiment)
        self._paused = paused

    def turn(self, paused: bool) -> bool:
        """Pause or resume; return whether it is done, because the program may not have begun. Raises ExperimentError,
        OSError."""
        founder = self._begun.founder() if paused != self._paused else None
        if founder:
            Switch(founder).turn(paused)
            self._paused = paused
        return paused == self._paused


class Toggle:
    """Pauses the recording of `experiment` at the signal `asked_by`, and lets it go on at the next."""

    def __init__(self, experiment: str, asked_by: signal.Signals, paused: bool) -> None:
        self.signals = frozenset({asked_by})
        self._pauser = Pauser(experiment, paused)
        self._wanted = paused

    def signalled(self, number: signal.Signals) -> None:
        """The other from now on."""
        self._wanted = not self._wanted

    def attend(self) -> float | None:
        """Toggle, if requested; return when to try again."""
        try:
            return None if self._pauser.turn(self._wanted) else SOON_S
        except (ExperimentError, OSError):
            return None  # it has ended
