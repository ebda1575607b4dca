"""Rules about database drivers, from the native calls inside database calls.

A driver in C computes, waits for its server or, with the database in the process, waits for the disk. Without native
calls (INTERPOSE=calls,native) this is unknown, and these rules find nothing.
"""

from __future__ import annotations

from collections.abc import Iterator

from interpose.analysis.findings.finding import SLOW_SHARE, Calls, Finding, Floor, found
from interpose.analysis.findings.survey import Survey, grouped, total_of
from interpose.experiments.model.stacks import Site

# Who takes less than half of the time is not the one to look at.
MOST = 0.5
# These databases are libraries: what their calls compute is the work of the database.
IN_PROCESS = frozenset(("sqlite3", "duckdb"))
# What the calls take, not only what they wait for, is a tenth of the time.
SLOW = Floor(share=SLOW_SHARE, is_of_evidence=True)


def waits_for_the_disk(survey: Survey) -> Iterator[Finding]:
    """Calls of a database from one line that mostly waited for files."""
    for rows, waited_ns in _mostly_waiting(survey, "file"):
        yield found("database waits for the disk", rows, waited_ns, floor=SLOW)


def waits_for_a_lock(survey: Survey) -> Iterator[Finding]:
    """Calls of a database from one line that mostly slept, as SQLite does while another connection has the lock."""
    for rows, waited_ns in _mostly_waiting(survey, "sleep"):
        yield found("database waits for a lock", rows, waited_ns, floor=SLOW)


def driver_computes(survey: Survey) -> Iterator[Finding]:
    """Calls from one line in which a driver that talks to a server mostly computed itself."""
    talking = {_driver(each) for each in survey.of_kind("db") if "net" in each.native_wait_ns}
    for rows in _lines(survey):
        own_cpu_ns = sum(each.cpu_ns - each.native_cpu_ns for each in rows)
        if _driver(rows[0]) in talking and own_cpu_ns >= MOST * total_of(rows)[1]:
            yield found("driver computes", rows, own_cpu_ns, floor=SLOW)


def computes(finding: Finding) -> bool:
    """Whether the calls in the evidence mostly computed."""
    return finding.cpu_ns >= MOST * finding.wall_ns


def is_in_process(calls: Calls) -> bool:
    """Whether the database runs in the process of its client."""
    return _driver(calls) in IN_PROCESS


def _mostly_waiting(survey: Survey, kind: str) -> Iterator[tuple[list[Calls], int]]:
    """The calls that mostly waited in native calls of this kind, and for how long."""
    for rows in _lines(survey):
        waited_ns = sum(each.native_wait_ns.get(kind, 0) for each in rows)
        if waited_ns >= MOST * total_of(rows)[1]:
            yield rows, waited_ns


def _lines(survey: Survey) -> Iterator[list[Calls]]:
    """The calls of databases, by line and intrinsic."""
    for _, rows in grouped(survey.of_kind("db"), _line):
        yield rows


def _driver(calls: Calls) -> str:
    return calls.intrinsic.partition(".")[0]


def _line(calls: Calls) -> tuple[Site | None, str]:
    return calls.site, calls.intrinsic
