"""Several experiments read as one: for reports over what many programs, users or hosts did."""

from __future__ import annotations

from collections.abc import Sequence

from interpose.errors import ExperimentError
from interpose.experiments.model.experiment import Experiment
from interpose.experiments.model.files import Damages


class Collection(Experiment):
    """Experiments that are open for reading, the first of them foremost; `processes` are those of all.

    Each process keeps its own clock: instants of two experiments do not compare but on the calendar.
    """

    def __init__(self, experiments: Sequence[Experiment]) -> None:
        if not experiments:
            raise ExperimentError("no experiment can be read")
        self._experiments = list(experiments)
        first = self.experiments[0]
        self.directory = first.directory
        self.name = f"{len(self.experiments):,} experiments"
        self.packed = None
        self.damages: Damages = first.damages
        self.processes = [process for each in self.experiments for process in each.processes]
        for each in self.experiments:
            for process in each.processes:
                process.experiment = each.name

    @property
    def experiments(self) -> Sequence[Experiment]:
        """Those that are read as one."""
        return self._experiments

    @property
    def notes(self) -> list[str]:
        """The lines that were noted, with the experiment that they are of."""
        return [f"{each.name}: {line}" for each in self.experiments for line in each.notes]
