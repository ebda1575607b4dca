"""What `interpose run` keeps copies for while its child runs: a signal that asks for one, a trigger that fired."""

from __future__ import annotations

import signal

from interpose.cli.copies import save
from interpose.cli.messages import say
from interpose.cli.running.recorded_founder import Begun
from interpose.errors import ExperimentError, InterposeError
from interpose.experiments.metadata import names
from interpose.experiments.metadata.control import Control
from interpose.experiments.model.experiment import Experiment

LOOK_EVERY_S = 0.05


class Saver:
    """Keeps a copy of the experiment at each of the signals, and of as many triggers as `at_most` says."""

    def __init__(self, experiment: str, asked_by: signal.Signals | None, at_most: int) -> None:
        self.signals = frozenset({asked_by} if asked_by else ())
        self._experiment = experiment
        self._left = at_most
        self._seen = 0
        self._begun = Begun(experiment)

    def signalled(self, number: signal.Signals) -> None:
        """Keep a copy, as was asked."""
        self._save()

    def attend(self) -> float | None:
        """Keep a copy if a trigger has fired since; returns when to look again, None if no copy is left."""
        if self._left == 0:
            return None
        fired = self._triggers()
        if fired > self._seen:
            self._seen = fired
            self._left -= 1
            self._save()
        return LOOK_EVERY_S

    def _triggers(self) -> int:
        try:
            founder = self._begun.founder()
            return Control(founder).read().triggers if founder else 0
        except ExperimentError:
            return 0

    def _save(self) -> None:
        try:
            if not names.is_recorded(self._experiment):
                return say("nothing was recorded yet, so there is nothing to save")
            say(f"saved as {save(Experiment(self._experiment))}")
        except InterposeError as error:
            say(f"not saved: {error}")
