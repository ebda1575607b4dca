"""What the HTML report is made from, gathered for one experiment or several."""

from __future__ import annotations

import time
from typing import TextIO

from interpose import __version__
from interpose.analysis.analysis import Analysis
from interpose.analysis.calls.hot_lines import hot_files
from interpose.analysis.calls.profile import profile
from interpose.analysis.findings.engine import found_in
from interpose.analysis.findings.survey import Survey
from interpose.analysis.profile.count_rows import WITH_COUNTS, with_code_and_counts
from interpose.analysis.time.timeline import timeline
from interpose.analysis.time.usage import usages
from interpose.analysis.transactions.response_times import transactions
from interpose.experiments.model.collection import Collection
from interpose.legacy import mashzone
from interpose.legacy.programs import programs
from interpose.reports.page.document import write
from interpose.reports.page.material import Material
from interpose.reports.page.profiles import TITLES

PROFILES = ("site", *TITLES)


def write_page(analysis: Analysis, out: TextIO) -> None:
    """Write the HTML report to `out`; events are read twice, by line and transaction, and by time."""
    survey = Survey(analysis, histograms=True)
    experiment = analysis.experiment
    profiles = {by: profile(analysis, by) for by in dict.fromkeys(PROFILES)}
    made = Material(
        survey=survey,
        findings=found_in(survey),
        profiles=profiles,
        code={by: with_code_and_counts(profiles[by], by) for by in WITH_COUNTS if by in profiles},
        transactions=transactions(analysis),
        timeline=timeline(analysis),
        usages=[] if isinstance(experiment, Collection) else list(usages(experiment)),
        programs=programs(survey),
        files=hot_files(profiles["site"].rows, experiment),
        now_s=time.time(),
        version=__version__,
    )
    write(made, out)


def write_sheet(analysis: Analysis, out: TextIO) -> None:
    """Write the sheet of CPU time by program for dashboards."""
    is_sampled = bool(analysis.experiment.founder.log.interval)
    mashzone.write(programs(Survey(analysis, is_scaled=False)), out, is_sampled)
