"""The rule about calls that failed: time for which the program got nothing but an exception, also that for which a
package slept inside, as between its attempts."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import replace
from itertools import chain
from typing import Any

from interpose.analysis.findings.errors import failures_of
from interpose.analysis.findings.finding import LARGE, Calls, Finding, found
from interpose.analysis.findings.row_locks import held_meanwhile
from interpose.analysis.findings.survey import Survey, grouped, total_of
from interpose.analysis.findings.waits import POOL, slow_lines, slow_work


def failed_calls(survey: Survey) -> Iterator[Finding]:
    """Calls from one line, or of a pool's work, that ended with exceptions, which no program expects to have."""
    for _, rows in grouped(chain.from_iterable(slow_lines(survey)), lambda row: (row.site, row.intrinsic)):
        yield from _failed_of(rows, unit="call", **held_meanwhile(survey, rows, has_failed=True))
    work = grouped(chain.from_iterable(slow_work(survey)), lambda row: (row.work, row.intrinsic))
    for (site, intrinsic), rows in work:
        yield from _failed_of(rows, unit=POOL, site=site, intrinsic=intrinsic)


def _failed_of(rows: list[Calls], **named: Any) -> Iterator[Finding]:
    is_most = mostly_failed(rows)
    if failed := [_failed(row, is_most) for row in rows if failures_of(row)]:
        yield found("failed calls", failed, units=total_of(rows)[0], floor=LARGE, **named)


def mostly_failed(rows: Iterable[Calls]) -> bool:
    """Whether most of the time of these calls went to those that failed."""
    listed = list(rows)
    failed_ns = sum(wall_ns for row in listed for _, wall_ns in failures_of(row).values())
    return 2 * failed_ns > total_of(listed)[1]


def _failed(row: Calls, is_most: bool) -> Calls:
    """The part of these calls that failed, with no more CPU time than they may have used; `is_most` if most of the time
    of their line's calls went to those that failed."""
    failures = failures_of(row)
    calls, wall_ns = (sum(figures) for figures in zip(*failures.values(), strict=True))
    cpu_ns = row.cpu_ns * wall_ns // max(row.wall_ns, 1)
    figures = {"calls": calls, "failed": calls, "failures": failures, "wall_ns": wall_ns, "cpu_ns": cpu_ns}
    return replace(row, **figures, bytes=0, rows=0, unended=0, is_part=not (is_most or mostly_failed([row])))
