"""The first screen, and a comparison, as Markdown for GitHub: a heading, the result, tables, the rest folded."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TextIO

from interpose.analysis.calls.profile import by_kind
from interpose.analysis.comparison.comparison import Compared, Comparison
from interpose.analysis.comparison.conditions import Outcome
from interpose.analysis.comparison.differences import CHANGED, RUNS_AT_LEAST
from interpose.reports.formats import github
from interpose.reports.formats.colour import Paint
from interpose.reports.formats.units import count
from interpose.reports.screen.screen import Screen
from interpose.reports.screen.summary import answer, first_lines, totals
from interpose.reports.screen.whole import warnings_of
from interpose.reports.tables.comparison import comparison_table, conditions_table, last_rows, verdict_on
from interpose.reports.tables.rows import arranged, profile_table

ROWS = 50  # in a table
_LINES = 20
_WIDTH = 100


@dataclass(frozen=True)
class Comment:
    """The comment on a comparison: what was `found`, by which measure, the outcomes of conditions, and differences
    between the sides.

    `mode` is how the second side is shown; a table has at most `limit` rows.
    """

    found: Comparison
    by: str
    mode: str
    outcomes: Sequence[Outcome]
    unlike: Sequence[str]
    limit: int | None = None


def write_report(screen: Screen, out: TextIO) -> None:
    """Write what the first screen says to `out`, then the lines that took most."""
    screen = replace(screen, width=_WIDTH, paint=Paint(False))
    out.write("### interpose report\n\n")
    told = answer(screen)
    _write_block([*first_lines(screen), *totals(screen), *([""] if told else []), *told], out)
    out.write("\n")
    rows = replace(screen.profile, rows=by_kind(screen.profile))
    github.write(profile_table(rows, "kind", screen.log), out, _WIDTH)
    if any(row.site for row in screen.profile.rows):
        with github.folded(f"The {_LINES} lines with the most time", out):
            lines = replace(screen.profile, rows=arranged(screen.profile.rows, None, _LINES))
            github.write(profile_table(lines, "site", screen.log), out, _WIDTH)
    _write_folded("Warnings", list(warnings_of(screen)), out)


def write_comparison(comment: Comment, out: TextIO) -> None:
    """Write a comparison to `out`: conditions and what changed first, the rest folded."""
    found, limit = comment.found, comment.limit or ROWS
    out.write(f"### interpose compare: {verdict_on(found)}\n\n")
    if comment.outcomes:
        github.write(conditions_table(comment.outcomes), out, _WIDTH)
        out.write("\n")
    table = comparison_table(found, comment.by, comment.mode)
    first = [row for row in found.rows if _is_first(row, found)]
    others = [*first[limit:], *(row for row in found.rows if row not in first)]
    github.write(replace(table, rows=[*first[:limit], *last_rows(found)]), out, _WIDTH)
    if others:
        shown = f", {limit} shown" if len(others) > limit else ""
        with github.folded(f"{count(len(others), 'other row')}{shown}", out):
            github.write(replace(table, rows=others[:limit]), out, _WIDTH)
    _write_folded("What else differs between the sides", comment.unlike, out)


def _is_first(row: Compared, found: Comparison) -> bool:
    """Whether a row is not folded: it has changed, or, where too few runs say so, it matters."""
    is_judged = min(found.runs_a, found.runs_b) >= RUNS_AT_LEAST
    return row.verdict == CHANGED if is_judged else row.matters


def _write_folded(title: str, lines: Sequence[str], out: TextIO) -> None:
    if lines:
        with github.folded(title, out):
            _write_block(lines, out)


def _write_block(lines: Sequence[str], out: TextIO) -> None:
    out.writelines(f"{line}\n" for line in github.fenced(lines))
