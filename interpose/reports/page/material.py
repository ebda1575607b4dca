"""What the page is made from: an experiment, and what the analysis found in it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from interpose.analysis.calls.hot_lines import HotFile
from interpose.analysis.calls.profile import Profile
from interpose.analysis.findings.finding import Finding
from interpose.analysis.findings.survey import Survey
from interpose.analysis.time.timeline import Timeline
from interpose.analysis.time.usage import Usage
from interpose.analysis.transactions.response_times import Transactions
from interpose.experiments.model.experiment import Experiment
from interpose.legacy.programs import Program


@dataclass(frozen=True)
class Material:
    """The data of the page. `profiles` are by grouping; `code` are those that include sampled code and what
    was counted; `now_s` is the present calendar time."""

    survey: Survey
    findings: Sequence[Finding]
    profiles: Mapping[str, Profile]
    transactions: Transactions
    timeline: Timeline
    usages: Sequence[Usage]
    programs: Sequence[Program]
    files: Sequence[HotFile]
    now_s: float
    version: str
    code: Mapping[str, Profile] = field(default_factory=dict)

    @property
    def experiment(self) -> Experiment:
        return self.survey.analysis.experiment
