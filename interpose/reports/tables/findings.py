"""The table of findings: what each could save at most, in a sentence, and what to do about it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from interpose.analysis.findings.finding import Finding
from interpose.reports.formats.table import Column, Table
from interpose.reports.formats.units import duration, percent, scale_for
from interpose.reports.sentences.advice import advice_for
from interpose.reports.sentences.sentences import Sentences

NAMES = (
    "finding",
    "bound_ns",
    "wall_ns",
    "calls",
    "bytes",
    "units",
    "unit",
    "about",
    "each_ns",
    "longest_ns",
    "waiting_tasks",
    "is_estimated",
    "transaction",
    "kind",
    "intrinsic",
    "site",
    "function",
    "lines",
    "words",
    "advice",
)


def findings_table(findings: Sequence[Finding], matters_ns: int, cwd: str) -> Table:
    """The table of findings: a row for each."""
    words = Sentences(findings, cwd, matters_ns)
    scale = scale_for(max((each.bound_ns for each in findings), default=0))
    return Table(
        names=NAMES,
        values=lambda each: _values(each, words),
        columns=[
            Column("at most", lambda each: scale.show(each.bound_ns)),
            Column(f"of {duration(matters_ns)}", lambda each: percent(each.bound_ns, matters_ns), optional=True),
            Column("finding", lambda each: each.rule, right=False, optional=True),
            Column("what", lambda each: words.with_advice(each), right=False, flexible=True, wraps=True),
        ],
        rows=findings,
        shown=words.shown,
    )


def _values(finding: Finding, words: Sentences) -> dict[str, Any]:
    first = finding.first
    site = finding.site or (first.site if first else None)
    return {
        "finding": finding.rule,
        "bound_ns": finding.bound_ns,
        "wall_ns": finding.named_ns or finding.wall_ns,
        "calls": finding.calls,
        "bytes": finding.bytes,
        "units": finding.units,
        "unit": finding.unit,
        "about": finding.about,
        "each_ns": finding.each_ns,
        "longest_ns": finding.longest_ns,
        "waiting_tasks": finding.waiting,
        "is_estimated": finding.is_estimated,
        "transaction": first.transaction if first else "",
        "kind": first.kind if first else "",
        "intrinsic": finding.intrinsic or (first.intrinsic if first and not finding.site else ""),
        "site": f"{site.file}:{site.line}" if site else "",
        "function": site.function if site else "",
        "lines": words.lines(finding),
        "words": words.of(finding),
        "advice": advice_for(finding),
    }
