"""Sentences about files."""

from __future__ import annotations

from interpose.analysis.findings.finding import Finding
from interpose.reports.formats.units import count, size
from interpose.reports.sentences.wording import Wording, calls_made, each_took, per_unit


def tiny(words: Wording, finding: Finding) -> str:
    assert finding.first is not None
    mean = _mean_size(finding.bytes, finding.calls)
    what = f"{count(finding.calls, 'call')} of {finding.first.verb} with {mean} each"
    return f"{what} on {words.path(finding.about)} from {words.lines(finding)} ({words.took(finding)})."


def _mean_size(moved: int, calls: int) -> str:
    """The mean of what calls moved: `1 B`, `1.5 B`, `64 B`; never nothing, if anything was moved."""
    mean = round(moved / calls, 1)
    if moved and not mean:
        return "less than 0.1 B"
    return size(round(moved / calls)) if mean >= 10 or mean == int(mean) else f"{mean} B"


def forced(words: Wording, finding: Finding) -> str:
    assert finding.first is not None
    each = per_unit(finding, finding.calls)
    return f"{calls_made(words, finding)}{each}{each_took(finding)} ({words.took(finding)})."
