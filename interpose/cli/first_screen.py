"""The first screen of an analysis, for the stream that it is written to."""

from __future__ import annotations

import time
from typing import TextIO

from interpose.analysis.analysis import Analysis
from interpose.analysis.calls.profile import profile
from interpose.analysis.findings.survey import Survey
from interpose.cli.output import paint_for, width_of
from interpose.reports.screen.screen import Screen


def screen_for(out: TextIO, analysis: Analysis) -> Screen:
    """The first screen of `analysis`, as wide and as coloured as `out` can show it."""
    survey = Survey(analysis)
    made = profile(analysis, "site")
    return Screen(made, time.time(), width_of(out), paint_for(out), survey)
