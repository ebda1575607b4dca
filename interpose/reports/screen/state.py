"""An experiment in a few words: its command, how it ended, when, and whether all of it is there."""

from __future__ import annotations

from collections.abc import Iterable

from interpose.analysis.analysis import Analysis
from interpose.analysis.calls.account import ProcessAccount
from interpose.analysis.recording.command import command_of, last_part
from interpose.analysis.recording.ending import ASKED_TO_END, Ending, signal_name, stopped_in_words
from interpose.experiments.format.blocks import BLOCK_BYTES
from interpose.experiments.metadata.control import control_of
from interpose.experiments.model.experiment import Experiment
from interpose.experiments.model.process import Process
from interpose.reports.formats.table import clean
from interpose.reports.formats.units import SECOND_NS, age, count, size


def command_line(process: Process) -> str:
    """The command as it was given: `python orders.py`, `gunicorn shop:app`."""
    return clean(command_of(process))


def ending_in_words(end: Ending) -> str:
    """How it ended: `exit 0`, `killed by SIGKILL`, `ended by SIGTERM`, `became true by exec`, `running` …"""
    if end.state == "killed":
        return f"{'ended' if end.signal in ASKED_TO_END else 'killed'} by {signal_name(end.signal)}"
    if end.state == "exec":
        return clean(f"became {last_part(end.command) or 'another program'} by exec")
    known = {
        "exit": f"exit {end.status}",
        "running": "running",
        "saved": "saved while running",
        "detached": "detached, and ran on",
        "unawaited": "not waited for",
    }
    return known.get(end.state, "ended, status unknown")


def ended_ago(account: ProcessAccount, now_s: float) -> str:
    """How long ago the process ended or, while it runs, began."""
    log = account.process.log
    if not log.time_ns:
        return "at an unknown time"
    if account.ending.state == "running":
        return f"started {age(now_s - log.time_ns / SECOND_NS)}"
    return age(now_s - (log.time_ns + account.latest_ns - log.start_ns) / SECOND_NS)


def events_lost(accounts: Iterable[ProcessAccount]) -> int:
    """Events for which there was no room."""
    return sum(account.dropped for account in accounts)


def what_is_missing(experiment: Experiment) -> str | None:
    """The first reason why the experiment does not tell all, or None."""
    for process in experiment.processes:
        if why := stopped_in_words(process):
            return clean(why)
        if process.unrecorded_children:
            return f"{count(process.unrecorded_children, 'fork')} not recorded"
    page = control_of(experiment)
    if page and page.in_use_bytes < 0:
        given, taken = size(page.drained_bytes), size(page.taken_bytes)
        return f"the pool's figures disagree: {given} returned of {taken} taken"
    if why := why_full(experiment):
        return why
    if experiment.damages.found:
        place, what = experiment.damages.found[0]
        return clean(f"{place.removeprefix(experiment.name + '/')}: {what}")
    return None


def why_full(experiment: Experiment) -> str | None:
    """Why events were dropped for want of room; None if none were."""
    page = control_of(experiment)
    if page is None or not page.full_drops:
        return None
    at_limit = page.limit_bytes and page.taken_bytes + page.other_bytes + BLOCK_BYTES > page.limit_bytes
    return "the limit was reached (INTERPOSE_LIMIT)" if at_limit else "the pool was full (INTERPOSE_POOL)"


def completeness(analysis: Analysis) -> str:
    """`complete`, `complete so far` or `incomplete: ` and why; for a ring, what it still has comes first."""
    accounts = analysis.accounts
    number = events_lost(accounts)
    why = [what_is_missing(analysis.experiment) or "", f"{count(number, 'event')} lost" if number else ""]
    state = f"incomplete: {'; '.join(filter(None, why))}" if any(why) else "complete"
    if overwritten := sum(account.overwritten for account in accounts):
        found = sum(account.found for account in accounts)
        ring = f"ring: the last {found:,} of {count(found + overwritten, 'call')}"
        return f"{ring}, {state}" if any(why) else ring
    return f"{state} so far" if analysis.is_running and not any(why) else state


def is_well(completeness: str) -> bool:
    """Whether what `completeness` says is nothing to warn of."""
    return "incomplete: " not in completeness
