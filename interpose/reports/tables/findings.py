"""Findings in words: what was found, where, and what would have to be otherwise."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any

from interpose.analysis.findings.finding import Calls, Finding
from interpose.experiments.model.process import Site
from interpose.reports.formats.short_paths import Places
from interpose.reports.formats.table import Column, Table, clean, shortened
from interpose.reports.formats.units import count, duration, percent, scale_for, size

NAMES = (
    "finding",
    "bound_ns",
    "wall_ns",
    "calls",
    "bytes",
    "units",
    "unit",
    "about",
    "transaction",
    "kind",
    "intrinsic",
    "site",
    "function",
    "lines",
    "words",
    "advice",
)
_LINES = 3
_LONGEST_DETAIL = 72
# What would have to be otherwise, so that the time could be won.
ADVICE = {
    "N+1 statements": "ask once for all of them: a join, IN (...), executemany or a pipeline",
    "commits one by one": "commit several together",
    "reconnects": "keep the connection, or take it from a pool",
    "tiny reads and writes": "read and write through a buffer, or more at once",
    "fsync storm": "force to the disk once, when all is written",
    "sleep within a transaction": "sleep outside of it, or wait for what is to come instead",
    "lock convoy": "hold the lock for less, or have more than one",
    "work repeated": "keep what was read",
    "slow statement": "look at its plan: an index, fewer rows, fewer columns",
    "wait not seen": "calls that are not interposed: interpose doctor; docs/limits.md",
    "hot program": "its own work is the time: record its lines (interpose run --lines own)",
    "no lines": "record with INTERPOSE_STACK=own",
}


class Words:
    """Puts findings into words, with files as short as they can be told apart."""

    def __init__(self, findings: Iterable[Finding], cwd: str) -> None:
        sites = {row.site for each in findings for row in each.rows if row.site}
        self._places = Places([site.file for site in sites], cwd)
        self._cwd = cwd

    def of(self, finding: Finding) -> str:
        """The finding in a sentence, with its numbers and its place."""
        return clean(_WORDS[finding.rule](self, finding))

    def where(self, row: Calls | None) -> str:
        """The line that calls were made from."""
        return self.line(row.site) if row else "?"

    def line(self, site: Site | None) -> str:
        """A line: `orders.py:88 get`."""
        return f"{self._places.line(site)} {site.function}" if site else "an unknown line"

    def path(self, path: str) -> str:
        """A file that was read or written, relative to where the program ran."""
        under = self._cwd.rstrip("/") + "/"
        return path[len(under) :] if len(under) > 1 and path.startswith(under) else path

    def lines(self, finding: Finding) -> str:
        """The lines of the evidence, those that took most first."""
        told = list(dict.fromkeys(self.line(row.site) for row in finding.rows))
        more = f" and {len(told) - _LINES} more" if len(told) > _LINES else ""
        return clean(", ".join(told[:_LINES]) + more)


def findings_table(findings: Sequence[Finding], matters_ns: int, cwd: str) -> Table:
    """The table of findings: a row for each."""
    words = Words(findings, cwd)
    scale = scale_for(max((each.bound_ns for each in findings), default=0))
    return Table(
        names=NAMES,
        values=lambda each: _values(each, words),
        columns=[
            Column("at most", lambda each: scale.show(each.bound_ns)),
            Column("share", lambda each: percent(each.bound_ns, matters_ns), optional=True),
            Column("finding", lambda each: each.rule, right=False),
            Column("what", words.of, right=False, flexible=True),
            Column("advice", lambda each: ADVICE[each.rule], right=False, flexible=True, optional=True),
        ],
        rows=findings,
    )


def _values(finding: Finding, words: Words) -> dict[str, Any]:
    first = finding.first
    site = first.site if first else None
    return {
        "finding": finding.rule,
        "bound_ns": finding.bound_ns,
        "wall_ns": finding.wall_ns,
        "calls": finding.calls,
        "bytes": finding.bytes,
        "units": finding.units,
        "unit": finding.unit,
        "about": finding.about,
        "transaction": first.transaction if first else "",
        "kind": first.kind if first else "",
        "intrinsic": first.intrinsic if first else "",
        "site": f"{site.file}:{site.line}" if site else "",
        "function": site.function if site else "",
        "lines": words.lines(finding),
        "words": words.of(finding),
        "advice": ADVICE[finding.rule],
    }


def _statement(text: str) -> str:
    return shortened(" ".join(text.split()), _LONGEST_DETAIL)


def _asked(finding: Finding) -> int:
    """How often the statement was made, without the fetches of what it gave."""
    return sum(row.calls for row in finding.rows if row.detail) or finding.calls


def _within(finding: Finding) -> str:
    """In which transactions: ` in 3 transactions "pay"`."""
    first = finding.first
    if not first or not first.transaction:
        return ""
    return f' in {count(finding.units, "transaction")} "{first.transaction}"'


def _repeated(words: Words, finding: Finding) -> str:
    asked = finding.rows[0] if finding.rows[0].detail else next(row for row in finding.rows if row.detail)
    within = _within(finding) or f" in {count(finding.units, 'thread')}"
    return f"{_asked(finding):,} at {words.where(asked)}{within}: {_statement(finding.about)}"


def _commits(words: Words, finding: Finding) -> str:
    within = "" if finding.unit == "batch" else _within(finding)
    return f"{finding.calls:,} at {words.where(finding.first)}{within}, {_each(finding)}"


def _reconnects(words: Words, finding: Finding) -> str:
    to = f" to {words.path(finding.about)}" if finding.about else ""
    return f"{finding.calls:,}{to} at {words.lines(finding)}, {_each(finding)}"


def _tiny(words: Words, finding: Finding) -> str:
    assert finding.first is not None
    mean = size(finding.bytes // finding.calls)
    verb = finding.first.verb
    return f"{finding.calls:,} x {verb} of {mean} each: {words.path(finding.about)} at {words.lines(finding)}"


def _forced(words: Words, finding: Finding) -> str:
    assert finding.first is not None
    what = _within(finding) or f" of {count(finding.units, 'file')}"
    return f"{finding.calls:,} x {finding.first.intrinsic}{what} at {words.where(finding.first)}, {_each(finding)}"


def _sleep(words: Words, finding: Finding) -> str:
    return f"{finding.calls:,} at {words.where(finding.first)}{_within(finding)}, {_each(finding)}"


def _convoy(words: Words, finding: Finding) -> str:
    holder = words.path(finding.about)
    threads = count(finding.units, "thread")
    return f"{threads} waited {finding.calls:,} times for a lock held at {holder}, at {words.lines(finding)}"


def _again(words: Words, finding: Finding) -> str:
    what = _statement(words.path(finding.about))
    times = count(max(row.calls for row in finding.rows), "time")
    return f"up to {times} at {words.where(finding.first)}: {what}"


def _slow(words: Words, finding: Finding) -> str:
    return f"{finding.calls:,} x, {_each(finding)}, at {words.lines(finding)}: {_statement(finding.about)}"


def _unseen(words: Words, finding: Finding) -> str:
    return "the program waited in no call that is known"


def _hot(words: Words, finding: Finding) -> str:
    return f"{words.path(finding.about)} works by itself, between its calls"


def _no_lines(words: Words, finding: Finding) -> str:
    return f"{count(finding.calls, 'call')} have no line: INTERPOSE_STACK was none"


def _each(finding: Finding) -> str:
    return f"{duration(finding.wall_ns // max(finding.calls, 1))} each"


_WORDS: dict[str, Callable[[Words, Finding], str]] = {
    "N+1 statements": _repeated,
    "commits one by one": _commits,
    "reconnects": _reconnects,
    "tiny reads and writes": _tiny,
    "fsync storm": _forced,
    "sleep within a transaction": _sleep,
    "lock convoy": _convoy,
    "work repeated": _again,
    "slow statement": _slow,
    "wait not seen": _unseen,
    "hot program": _hot,
    "no lines": _no_lines,
}
