"""What the page is made from: an experiment, and what the analysis found in it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from interpose.analysis.findings.finding import Finding
from interpose.analysis.findings.survey import Survey
from interpose.analysis.hot_lines import HotFile
from interpose.analysis.profile import Profile
from interpose.analysis.programs import Program
from interpose.analysis.timeline import Timeline
from interpose.analysis.transactions import Transactions
from interpose.analysis.usage import Usage
from interpose.experiments.experiment import Experiment


@dataclass(frozen=True)
class Material:
    """All of it. `profiles` are by the name of their grouping; `now_s` is the present on the calendar."""

    experiment: Experiment
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
