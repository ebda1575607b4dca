"""Findings of many experiments: the same calls of several are one row of the evidence."""

from __future__ import annotations

from collections.abc import Hashable, Iterable
from dataclasses import replace

from interpose.analysis.findings.finding import Calls, Finding


def with_like_rows_together(findings: Iterable[Finding]) -> list[Finding]:
    """The findings, in the evidence of which no two rows are of the same calls; those given do not change. When calls
    were made is left out: each experiment has its own clock."""
    return [replace(each, rows=_together(each.rows)) for each in findings]


def _together(rows: Iterable[Calls]) -> tuple[Calls, ...]:
    found: dict[Hashable, Calls] = {}
    for row in rows:
        into = found.get(row.likeness)
        if into is None:
            into = replace(row, threads=set(row.threads), native_wait_ns=dict(row.native_wait_ns))
            into.failures, into.seen_ns, into.ended_ns = dict(row.failures), {}, {}
            found[row.likeness] = into
        else:
            _add(into, row)
    in_order = sorted(
        found.values(),
        key=lambda row: (-row.wall_ns, row.intrinsic, row.site.line if row.site else 0, row.transaction, row.detail),
    )
    return tuple(in_order)


def _add(into: Calls, row: Calls) -> None:
    into.calls += row.calls
    into.failed += row.failed
    into.unended += row.unended
    into.unended_at = row.unended_at | into.unended_at
    into.wall_ns += row.wall_ns
    into.cpu_ns += row.cpu_ns
    into.bytes += row.bytes
    into.rows += row.rows
    into.longest_ns = max(into.longest_ns, row.longest_ns)
    into.among += row.among
    into.is_estimated |= row.is_estimated
    into.threads |= row.threads
    into.slept_ns += row.slept_ns
    into.native_cpu_ns += row.native_cpu_ns
    for kind, wait_ns in row.native_wait_ns.items():
        into.add_native_wait(kind, wait_ns)
    for error, failures in row.failures.items():
        into.add_failures(error, *failures)
