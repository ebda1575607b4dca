"""What is behind a row: a finer table of its parts, the calls that it is made of, or a line of source."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from interpose.analysis.calls.rows import CODE, START_UP, Row
from interpose.reports.formats.table import clean

FINER = {"kind": "intrinsic", "intrinsic": "site", "function": "site"}
QUOTES = "'\""


@dataclass(frozen=True)
class Step:
    """A table of rows by `by`, and what all of its rows have in common: names of columns, with their values."""

    by: str
    common: Mapping[str, str | None] = field(default_factory=dict)

    def keeps(self, row: Row) -> bool:
        """Whether the row is one of the table's."""
        return all(_value(row, name) == value for name, value in self.common.items())

    @property
    def title(self) -> str:
        """What the table shows: `by intrinsic, kind db`."""
        by = "line" if self.by == "site" else self.by
        return clean(", ".join([f"by {by}", *(f"{name} {value}" for name, value in self.common.items() if value)]))


@dataclass(frozen=True)
class Line:
    """A line of a source, or of `function` there the first; 0 if neither is known."""

    file: str
    number: int = 0
    function: str = ""


@dataclass(frozen=True)
class Calls:
    """The calls that match an expression."""

    expression: str


def behind(step: Step, row: Row) -> Step | Line | Calls | None:
    """What `row` of a table opens; None if there is nothing finer."""
    if step.by == "site":
        return Line(row.site.file, row.site.line) if row.site else None
    if step.by == "function" and (row.labels or row.code):
        return Step("site", {"function": row.labels.get("function"), "file": row.labels.get("file")})
    if not row.is_of_calls:
        return Step("function", {"kind": CODE}) if step.by in ("kind", "intrinsic") and row.kind == CODE else None
    if step.by in FINER and row.kind != START_UP:
        names = ("kind",) if step.by == "kind" else ("kind", "intrinsic")
        return Step(FINER[step.by], {name: _value(row, name) for name in names})
    return _calls_of(step.by, row)


def _calls_of(by: str, row: Row) -> Calls | None:
    """The calls of a row of statements, files, details, threads or processes."""
    named = row.labels.get(by, "")
    if by in ("statement", "file", "detail"):
        quote = next((each for each in QUOTES if each not in named), None)
        return Calls(f"DETAIL == {quote}{named}{quote}") if named and quote else None
    number = (named.split() or [""])[0]
    tokens = {"thread": "THREAD", "process": "PID"}
    return Calls(f"{tokens[by]} == {number}") if by in tokens and number.isdecimal() and number.isascii() else None


def _value(row: Row, name: str) -> str | None:
    if name in ("kind", "intrinsic"):
        found: str | None = getattr(row, name)
        return found
    if name == "file" and row.site:
        return row.site.file
    return row.labels.get(name)
