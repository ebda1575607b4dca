"""What the first screen is made from."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property

from interpose.analysis.analysis import Analysis
from interpose.analysis.calls.account import ProcessAccount
from interpose.analysis.calls.profile import Profile
from interpose.analysis.findings.survey import Survey
from interpose.analysis.profile.profiled import Profiled, profiled, program_waits
from interpose.analysis.time.run_queue import Unseen
from interpose.experiments.metadata.log import Log
from interpose.experiments.model.experiment import Experiment
from interpose.reports.formats.colour import Paint
from interpose.reports.formats.short_paths import Shown


@dataclass(frozen=True)
class Screen:
    """What the first screen is made from: a profile by site, the present time, the width and colours of the terminal,
    and the survey that findings are made from, if they are wanted; `shown` are the lines of code it names."""

    profile: Profile
    now_s: float
    width: int
    paint: Paint
    survey: Survey | None = None
    shown: Shown = field(default_factory=dict)

    @cached_property
    def profiled(self) -> Profiled:
        """The sampled profile."""
        return self.survey.profiled if self.survey else profiled(self.analysis)

    @property
    def unseen(self) -> Unseen:
        """The program's waits outside of its calls."""
        return program_waits(self.analysis, self.profiled)

    @property
    def analysis(self) -> Analysis:
        assert self.profile.analysis is not None
        return self.profile.analysis

    @property
    def experiment(self) -> Experiment:
        return self.analysis.experiment

    @property
    def log(self) -> Log:
        return self.experiment.founder.log

    @property
    def founder(self) -> ProcessAccount:
        return self.analysis.accounts[0]


def has_findings(screen: Screen) -> bool:
    """Whether all calls were recorded: sampled calls have no wall times."""
    return screen.survey is not None and not screen.log.interval and "calls" in screen.log.recorded


def has_idle(screen: Screen) -> bool:
    """Whether the program waited for work for part of the thread time."""
    return screen.survey is not None and has_findings(screen) and screen.survey.times.is_partly_idle
