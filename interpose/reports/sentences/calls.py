"""Sentences about calls of every kind."""

from __future__ import annotations

from interpose.analysis.findings.finding import Finding
from interpose.reports.formats.units import count, duration
from interpose.reports.sentences.wording import Wording, calls_made, each_took, quoted


def again(words: Wording, finding: Finding) -> str:
    what = f"{finding.intrinsic} was called {count(finding.calls, 'time')} for {quoted(words.path(finding.about))}"
    what += f" from {words.line(finding.site)}"
    others = sum(row.calls for row in finding.rows) - finding.calls
    if finding.named_ns:
        return f"{what} ({words.took_of(finding, finding.named_ns)}){_elsewhere(finding, others)}."
    more = f", with {count(others, 'more call')} on it" if others else ""
    return f"{what}{more} ({words.took(finding)})."


def _elsewhere(finding: Finding, calls: int) -> str:
    """The calls from other lines than the named one, or of another intrinsic."""
    if not calls:
        return ""
    lines = len({row.site for row in finding.rows} - {finding.site})
    where = f" from {count(lines, 'other line')}" if lines else ""
    return f", and {count(calls, 'more call')}{where} ({duration(finding.wall_ns - finding.named_ns)})"


def slow_calls(words: Wording, finding: Finding) -> str:
    assert finding.first is not None
    if among := sum(row.among for row in finding.rows):
        what = f"{finding.calls:,} of {calls_made(words, finding, among)} took far longer than the others"
        return f"{what}{each_took(finding)} ({words.took(finding)}){_statement(finding)}."
    return f"{calls_made(words, finding)}{each_took(finding)} ({words.took(finding)})."


def _statement(finding: Finding) -> str:
    """The statement of all of the evidence, if it is one."""
    details = {row.detail for row in finding.rows}
    return f": {quoted(details.pop())}" if len(details) == 1 and "" not in details else ""


def no_lines(words: Wording, finding: Finding) -> str:
    return f"{count(finding.calls, 'call')} have no line: INTERPOSE_STACK was none ({words.took(finding)})."
