"""Runs at some paths, as comparisons and trends read them: one after the other, what cannot be read is left out."""

from __future__ import annotations

import argparse

from interpose.analysis.analysis import Analysis
from interpose.analysis.comparison.figures import MEASURES, Run, meanings, run_of
from interpose.analysis.comparison.likeness import Circumstances, circumstances
from interpose.cli.experiment_choice import note_damages, note_sampled, open_experiment, refuse_sampled
from interpose.cli.messages import say
from interpose.errors import ExperimentError
from interpose.experiments.model.files import Damages


def add_measure_argument(parser: argparse.ArgumentParser) -> None:
    """The option --measure."""
    parser.add_argument(
        "--measure",
        choices=tuple(MEASURES),
        metavar="MEASURE",
        default="total",
        help=meanings().replace("%", "%%"),
    )


class Runs:
    """The runs at some paths with their circumstances, and when each began on the calendar; what cannot be read is
    said, and left out. `code` is the exit code so far. Raises ExperimentError if none can be read."""

    def __init__(self, paths: list[str], by: str, with_calls: bool) -> None:
        self.runs: list[Run] = []
        self.circumstances: list[Circumstances] = []
        self.times_ns: list[int] = []
        self.code = 0
        refused = Damages()
        for path in paths:
            try:
                self._read(path, by, with_calls)
            except ExperimentError as error:
                place, _, what = str(error).rpartition(": ")
                refused.add(place, what)
        if not self.runs:
            raise ExperimentError(str(refused.found[0]))
        for damage in refused.found:
            say(f"{damage}; left out")
            self.code = 3

    def _read(self, path: str, by: str, with_calls: bool) -> None:
        experiment = open_experiment(path)
        refuse_sampled(experiment)
        note_sampled(experiment, "counts and times are estimates, whose margins are not in the comparison")
        analysis = Analysis(experiment)
        self.runs.append(run_of(analysis, by, with_calls))
        self.circumstances.append(circumstances(analysis))
        self.times_ns.append(experiment.founder.log.time_ns)
        self.code = max(self.code, note_damages(experiment))

    def order_by_time(self) -> None:
        """Sort the runs by their beginnings; runs that began at once, or at an unknown time, by name."""
        order = sorted(range(len(self.runs)), key=lambda place: (self.times_ns[place], self.runs[place].name))
        self.runs = [self.runs[place] for place in order]
        self.circumstances = [self.circumstances[place] for place in order]
        self.times_ns = [self.times_ns[place] for place in order]
