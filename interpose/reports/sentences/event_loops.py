"""Sentences about event loops and awaits."""

from __future__ import annotations

from interpose.analysis.findings.event_loops import AT, BEFORE, NATIVE_LOOP, WITHIN
from interpose.analysis.findings.finding import Finding
from interpose.reports.formats.units import count, duration
from interpose.reports.sentences.wording import Wording, in_row_lock, per_unit, took_about

_SIDES = {BEFORE: "before", AT: "at"}


def blocked(words: Wording, finding: Finding) -> str:
    where = words.line(finding.site)
    side = "" if finding.unit == WITHIN else f" {_SIDES.get(finding.unit, 'after')} {where}"
    what = f"{finding.intrinsic} from {where}" if finding.intrinsic else f"Code of {finding.about}{side}"
    if finding.intrinsic and not finding.about:  # of several tasks, each for a short time
        what = f"Calls of {what}"
    times = f"{finding.units:,} times, for up to" if finding.units > 1 else "once, for"
    times = f"{times} {duration(finding.longest_ns)}"
    waited = f"while up to {count(finding.waiting, 'other task')} waited"
    return f"{what} blocked the event loop {times}, {waited} ({words.of_time(finding.bound_ns)})."


def one_by_one(words: Wording, finding: Finding) -> str:
    each = per_unit(finding, finding.calls) if finding.units > 1 else ""
    return f"{_awaits(words, finding)}{each}, one after the other{_of_each(finding)}{took_about(words, finding)}."


def slow_awaits(words: Wording, finding: Finding) -> str:
    awaits = f"{_awaits(words, finding)}{_of_each(finding)}{took_about(words, finding)}."
    return awaits + in_row_lock(words, finding)


def _awaits(words: Wording, finding: Finding) -> str:
    assert finding.first is not None
    return f"{count(finding.calls, 'await')} of {finding.first.intrinsic} from {words.where(finding.first)}"


def _of_each(finding: Finding) -> str:
    return f", {duration(finding.each_ns)} each" if finding.calls > 1 else ""


def loop_waits(words: Wording, finding: Finding) -> str:
    if finding.unit == NATIVE_LOOP:
        of_what = "something that native calls do not show, such as a child process or a client"
        return f"The event loop waited for {of_what} ({words.of_time(finding.bound_ns)})."
    return (
        "The event loop waited for a timer, or for the network in an await that was not recorded"
        f" ({words.of_time(finding.bound_ns)})."
    )
