"""Sentences about calls of every kind."""

from __future__ import annotations

from interpose.analysis.findings.busy_polls import FILE
from interpose.analysis.findings.finding import Finding
from interpose.analysis.findings.waits import HELD_LOCK, POOL
from interpose.reports.formats.units import count, duration
from interpose.reports.sentences.wording import (
    Wording,
    calls_made,
    each_took,
    if_failed,
    in_row_lock,
    quoted,
    with_errors,
)


def again(words: Wording, finding: Finding) -> str:
    what = f"{finding.intrinsic} was called {count(finding.calls, 'time')} for {quoted(words.path(finding.about))}"
    what += f" from {words.line(finding.site)}"
    failed = sum(row.failed for row in finding.rows)
    what += f", {failed:,} failed" if 2 * failed > sum(row.calls for row in finding.rows) else ""
    others = sum(row.calls for row in finding.rows) - finding.calls
    if finding.named_ns:
        each = f", {duration(finding.named_ns // finding.calls)} each" if finding.calls > 1 else ""
        return f"{what}{each} ({words.took_of(finding, finding.named_ns)}){_elsewhere(finding, others)}."
    more = f", with {count(others, 'more call')} on it" if others else ""
    return f"{what}{more} ({words.took(finding)})."


def busy_poll(words: Wording, finding: Finding) -> str:
    """A busy loop: what it asked for, for how long, and what that cost."""
    assert finding.first is not None
    about = f" for {quoted(words.path(finding.about))}" if finding.unit == FILE else ""
    asked = f"{finding.first.intrinsic} was called {count(finding.calls, 'time')}{about} from {words.lines(finding)}"
    failed = sum(row.failed for row in finding.rows)
    answers = f", {failed:,} times in vain" if failed else ""
    child = f" Child processes ({finding.meanwhile}) ran meanwhile." if finding.meanwhile else ""
    used = f"a busy loop, which used {duration(finding.polled_cpu_ns)} of CPU time"
    return f"{asked}{answers}, in {used} ({words.took(finding)}).{child}"


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
        made = f"{finding.calls:,} of {calls_made(words, finding, among)} took far longer than the others"
    else:
        made = calls_made(words, finding)
    took = f"{made}{if_failed(finding)}{each_took(finding)} ({words.took(finding)})"
    held = _in_lock(words, finding) + in_row_lock(words, finding)
    return f"{took}{_statement(finding) if among else ''}.{_of_pool(finding)}{held}"


def _in_lock(words: Wording, finding: Finding) -> str:
    is_held = finding.unit == HELD_LOCK
    return f" Others waited for the lock of {words.path(finding.about)}, which it had meanwhile." if is_held else ""


def _of_pool(finding: Finding) -> str:
    return " A pool made them: no line of the program is on the stack." if finding.unit == POOL else ""


def failed(words: Wording, finding: Finding) -> str:
    number = f"{finding.calls:,} of " if finding.units > 1 else ""
    what = f"{number}{calls_made(words, finding, finding.units)} failed{with_errors(finding.rows)}"
    took = f"{each_took(finding)}{_slept(finding)} ({words.took(finding)})"
    return f"{what}{took}{_statement(finding)}.{_of_pool(finding)}{in_row_lock(words, finding)}"


def _slept(finding: Finding) -> str:
    """How long a package slept in these calls, if that is most of their time."""
    slept_ns = sum(row.slept_ns for row in finding.rows)
    return f", {duration(slept_ns)} in sleeps of the package" if 2 * slept_ns > finding.wall_ns else ""


def _statement(finding: Finding) -> str:
    """The statement of all of the evidence, if it is one."""
    details = {row.detail for row in finding.rows}
    return f": {quoted(details.pop())}" if len(details) == 1 and "" not in details else ""


def no_lines(words: Wording, finding: Finding) -> str:
    return f"{count(finding.calls, 'call')} have no line: INTERPOSE_STACK was none ({words.took(finding)})."
