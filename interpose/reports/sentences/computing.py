"""Sentences about the time outside recorded calls."""

from __future__ import annotations

from interpose.analysis.findings.finding import Finding
from interpose.analysis.findings.next_steps import CALLS, END, LINES, OWN_SHARE
from interpose.analysis.findings.unseen_waits import INTERPRETER_LOCK
from interpose.analysis.profile.profiled import NO_PYTHON, OWN_CODE
from interpose.reports.formats.units import count, percent
from interpose.reports.sentences.wording import Wording, quoted

# What samples cannot tell from the lines of a Python function (docs/profile.md).
_OR_SHORT = " or short C functions"


def processor(words: Wording, finding: Finding) -> str:
    return f"The program was ready to run, but waited for CPU ({words.took(finding)}, estimated)."


def unexplained(words: Wording, finding: Finding) -> str:
    if finding.about == INTERPRETER_LOCK:
        threads = f"{count(finding.units, 'thread')} computed at the same time"
        return f"{threads} and probably waited for Python's interpreter lock ({words.took(finding)})."
    where = f", mostly at {words.line(finding.site)}" if finding.site else ""
    where = ", and ran no Python code meanwhile" if finding.site == NO_PYTHON else where
    return f"The program waited outside all recorded calls{where} ({words.took(finding)})."


def computing(words: Wording, finding: Finding) -> str:
    if finding.unit == END:
        used = f"CPU time ({words.took(finding)})"
        return f"Python computes after the program's last line, mostly to free its objects: {used}."
    does = "computes, or makes calls that were not recorded" if finding.unit == CALLS else "computes"
    if finding.site:
        what, called = _what_computes(words, finding), _called(words, finding)
        return f"{words.line(finding.site)} {does}{what} ({words.took(finding)}){called}.{_reopened(words, finding)}"
    traced = ", with the cost of tracing its lines" if finding.unit == LINES else ""
    return f"{words.path(finding.about)} {does}: CPU time between recorded calls{traced} ({words.took(finding)})."


def _reopened(words: Wording, finding: Finding) -> str:
    path, times = finding.reopened
    return f" It opened {quoted(words.path(path))} {count(times, 'time')} without a recorded change." if times else ""


def _what_computes(words: Wording, finding: Finding) -> str:
    """Its own code, or the library code that it calls: `, 81 % of it in decoder.py:353 raw_decode: CPU time`. Nothing
    of it if that is unknown."""
    if not finding.inner:
        return ": CPU time"
    if finding.inner[0].what == OWN_CODE and finding.inner[0].share >= OWN_SHARE:
        return f": CPU time of {_code(finding, OWN_CODE)}"
    first, *others = [
        (percent(round(100 * each.share), 100), words.line(each.site) if each.site else _code(finding, each.what))
        for each in finding.inner
    ]
    return f", {first[0]} of it in {first[1]}{''.join(f', {share} in {what}' for share, what in others)}: CPU time"


def _code(finding: Finding, what: str) -> str:
    is_of_python = what == OWN_CODE and not (finding.site and finding.site.is_native)
    return what + _OR_SHORT if is_of_python else what


def _called(words: Wording, finding: Finding) -> str:
    """The chain of callers: `, called from a.py:3 f, below b.py:7 g (80 % of it)`; that a script runs says nothing."""
    lines = [words.line(site) for site in finding.callers.lines if site.function != "<module>"]
    if not lines:
        return ""
    below = f", below {' and '.join(lines[1:])}" if lines[1:] else ""
    used = percent(round(100 * finding.callers.share), 100)
    share = f" ({used} of it)" if used != "100 %" else ""
    return f", called from {lines[0]}{below}{share}"


def computing_while_idle(words: Wording, finding: Finding) -> str:
    made = f"{count(finding.calls, 'call')} of {finding.intrinsic} from {words.lines(finding)}"
    return f"{made} waited for work, and also computed ({words.took(finding)})."
