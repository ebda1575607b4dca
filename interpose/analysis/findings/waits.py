"""Rules about waiting: sleeping within a transaction, locks that all wait for, waits that nobody saw."""

from __future__ import annotations

import re
from collections.abc import Iterator

from interpose.analysis.findings.finding import Finding, found
from interpose.analysis.findings.survey import Survey, grouped, threads_of, total_of
from interpose.analysis.time.run_queue import unseen_wait

# A lock that was waited for less often was met by chance.
WAITS_AT_LEAST = 10
_OF_A_THREAD = re.compile(r"Thread\._bootstrap|_bootstrap_inner")  # what is held as long as a thread lives
_HELD = re.compile(r"held by thread \d+ at (.+)", re.DOTALL)


def sleeps(survey: Survey) -> Iterator[Finding]:
    """Sleeping while a transaction goes on, and somebody waits for it."""
    sleeping = [each for each in survey.of_kind("sleep") if each.transaction]
    for (_, transaction), rows in grouped(sleeping, lambda each: (each.site, each.transaction)):
        units = survey.counts[transaction]
        yield found("sleep within a transaction", rows, units=units, unit="transaction")


def convoys(survey: Survey) -> Iterator[Finding]:
    """Threads that wait for locks that were taken at one line; who waits for a thread's end waits for no lock."""
    held = [(each, _HELD.fullmatch(each.detail)) for each in survey.of_kind("sync")]
    waits = {id(each): match[1] for each, match in held if match}
    for holder, rows in grouped([each for each, match in held if match], lambda each: waits[id(each)]):
        calls, _ = total_of(rows)
        if calls >= WAITS_AT_LEAST and threads_of(rows) > 1 and not _OF_A_THREAD.search(holder):
            yield found("lock convoy", rows, units=threads_of(rows), unit="waiting thread", about=holder)


def wait_not_seen(survey: Survey) -> Iterator[Finding]:
    """Time in which the program was neither on a processor, nor wanted one, nor was in a call that is recorded."""
    waited_ns = unseen_wait(survey.analysis.accounts).unexplained_ns
    if waited_ns > 0 and all("calls" in each.process.log.recorded for each in survey.analysis.accounts):
        yield found("wait not seen", (), time_ns=waited_ns)
