"""Sentences about locks."""

from __future__ import annotations

from interpose.analysis.findings.event_loops import TASK
from interpose.analysis.findings.finding import Calls, Finding
from interpose.analysis.findings.lock_waits import HELD
from interpose.analysis.time.file_locks import OF_FILE
from interpose.reports.formats.units import count, duration
from interpose.reports.sentences.held_locks import is_of_interpreter, line_of, waiting_thread, waits_for_itself
from interpose.reports.sentences.wording import MOST_LINES, Wording, calls_made, cut_off, each_took


def convoy(words: Wording, finding: Finding) -> str:
    site, threads = line_of(finding.about), count(finding.units, "thread")
    if not finding.about and finding.first:
        waited = f"{threads} waited {count(finding.calls, 'time')} for locks ({finding.first.intrinsic})"
        return f"{waited} in {words.lines(finding)}{cut_off(finding)} ({words.took(finding)})."
    holder = words.line(site) if site else words.path(finding.about)
    lock = "Python's interpreter lock, given up at" if is_of_interpreter(finding) else "a lock held at"
    waited = f"{threads} waited {count(finding.calls, 'time')} at {words.lines(finding)}"
    return f"{waited} for {lock} {holder} ({words.took(finding)})."


def file_lock(words: Wording, finding: Finding) -> str:
    who = "1 process" if finding.units == 1 else f"{finding.units:,} processes"
    what = f"{who} waited in {calls_made(words, finding)} for the lock of {words.path(finding.about)}"
    return f"{what}{each_took(finding)} ({words.took(finding)}). {_held_at(words, finding)}"


def _held_at(words: Wording, finding: Finding) -> str:
    """Which lines of the experiment had it, and for how much of the wait."""
    locks = [OF_FILE.fullmatch(row.detail) for row in finding.rows]
    if any(lock and lock["part"] for lock in locks):
        return "Which part of the file, and who had it, is not recorded."
    if 2 * finding.held_ns < finding.wall_ns or not finding.held_at:
        others = "another program may have it, or a process that inherited it"
        return f"No recorded call had it for most of that time: {others}."
    lines = ", ".join(map(words.line, finding.held_at[:MOST_LINES]))
    return f"Meanwhile it was held at {lines} ({duration(min(finding.held_ns, finding.wall_ns))})."


def deadlock(words: Wording, finding: Finding) -> str:
    waits = [f"{_waiting(words, row)} {_taken(words, row)}" for row in finding.rows[:MOST_LINES]]
    more = len(finding.rows) - len(waits)
    waits += [f"{count(more, 'more thread')} in the same circle"] if more else []
    may_end = any(row.verb.startswith("acquire") for row in finding.rows)  # which may have a timeout
    what = "Deadlock, unless a wait has a timeout" if may_end else "Deadlock"
    return f"{what}: {', and '.join(waits)} ({words.of_time(finding.bound_ns)})."


def unreleased(words: Wording, finding: Finding) -> str:
    row = finding.rows[0]
    several = finding.units > 1
    waits = f"{finding.units:,} threads wait at {words.lines(finding)} for a lock" if several else _waiting(words, row)
    waits = waits[0].upper() + waits[1:]
    return f"{waits} {_taken(words, row)} ({words.of_time(finding.bound_ns)})."


def _waiting(words: Wording, row: Calls) -> str:
    """A wait in progress: `thread 2 waits at app.py:6 pay for a lock`."""
    return f"thread {waiting_thread(row)} waits at {words.where(row)} for a lock"


def _taken(words: Wording, row: Calls) -> str:
    """Which thread took the lock, and where: `that thread 3 took at app.py:4 refund`."""
    held = HELD.fullmatch(row.detail)
    if not held:
        return "whose holder is unknown"
    site = line_of(held["place"])
    place = f" at {words.line(site)}" if site else f" at {held['place']}" if held["place"] else ""
    return f"that {'it' if waits_for_itself([row]) else 'thread ' + held['thread']} took{place}"


def turns(words: Wording, finding: Finding) -> str:
    assert finding.first is not None
    of_tasks = finding.unit == TASK
    who = count(finding.units, "task" if of_tasks else "thread")
    where = f"in {finding.first.intrinsic} from {words.where(finding.first)}"
    each = f", {duration(finding.each_ns)} each" if of_tasks else ""
    took = f"at least one of them for {words.took(finding)}" if of_tasks else words.took(finding)
    return f"{who} waited {count(finding.calls, 'time')} {where}{each} ({took})."
