"""Tables of coverage: a row for each module, for each line, or for each context."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from itertools import chain
from typing import Any

from interpose.analysis.coverage.conditions import EXIT
from interpose.analysis.coverage.coverage import Coverage
from interpose.analysis.coverage.module import COVERED, MISSED, PARTLY, Line, Module, Share
from interpose.reports.formats.table import Column, Table, Values, clean

TOTAL = "TOTAL"
NO_CONTEXT = "(none)"
SORTS = ("file", "statements", "missed", "percent")
OWN_NAMES = ("statements", "executed", "missed", "percent")
GENERATED_NAMES = ("generated", "generated_executed", "percent_with_generated")
BRANCH_NAMES = ("branches", "branches_gone")
LINE_COUNTS = ("lines", "lines_covered", "lines_partly", "lines_missed", "lines_excluded")


@dataclass(frozen=True)
class ModuleRow:
    """A row: of a module, or of all (then `name` says so)."""

    file: str
    name: str
    own: Share
    percent: float | None
    generated: Share
    branches: Share
    lines: dict[str, int]
    excluded: int
    missing: str
    said: str

    @property
    def missed(self) -> int:
        """Statements that did not run."""
        return self.own.whole - self.own.part

    @property
    def percent_with_generated(self) -> float | None:
        """How much ran, code that was made at run time included; None if it is not known."""
        return (self.own + self.generated).percent if self.generated.whole else self.percent


def shown_percent(percent: float | None) -> str:
    """Rounded as coverage.py does: only nothing is `0.0 %`, and only all is `100.0 %`. `?` if it is not known."""
    if percent is None:
        return "?"
    return f"{percent if percent in (0, 100) else min(max(round(percent, 1), 0.1), 99.9):.1f} %"


def missing_shown(module: Module) -> str:
    """The lines that were missed: `4, 12-17`."""
    return ", ".join(str(first) if first == last else f"{first}-{last}" for first, last in module.missing)


def module_rows(coverage: Coverage, place: str, sort: str = "file", without_covered: bool = False) -> list[ModuleRow]:
    """A row for each module, sorted by one of `SORTS`, and one for all; paths as from the directory `place`."""
    rows = [_module_row(module, place) for module in coverage.modules]
    keys: dict[str, Callable[[ModuleRow], Any]] = {
        "file": lambda row: row.file,
        "statements": lambda row: -row.own.whole,
        "missed": lambda row: -row.missed,
        "percent": lambda row: -1 if row.percent is None else row.percent,
    }
    total = ModuleRow(
        TOTAL,
        TOTAL,
        coverage.own,
        coverage.own.percent,
        sum((row.generated for row in rows), Share(0, 0)),
        coverage.branches,
        {status: sum(row.lines[status] for row in rows) for status in (COVERED, PARTLY, MISSED)},
        sum(row.excluded for row in rows),
        "",
        "",
    )
    if without_covered:
        rows = [row for row in rows if row.missed or row.percent is None or row.lines[PARTLY]]
    return [*sorted(rows, key=keys[sort]), total]


def modules_table(rows: Sequence[ModuleRow], with_branches: bool, with_missing: bool) -> Table:
    """The table of modules."""
    names = ("file", "module", *OWN_NAMES, *GENERATED_NAMES, *LINE_COUNTS, *BRANCH_NAMES, "missing", "note")
    columns = [
        Column("file", lambda row: clean(row.file), right=False, flexible=True, keep="end"),
        Column("statements", lambda row: _number(row, row.own.whole)),
        Column("missed", lambda row: _number(row, row.missed)),
        Column("covered", lambda row: shown_percent(row.percent)),
    ]
    if any(row.generated.whole for row in rows):
        columns.append(Column("with generated", lambda row: shown_percent(row.percent_with_generated)))
    columns.append(Column("partly", lambda row: _number(row, row.lines[PARTLY]), optional=True))
    if with_branches:
        columns.append(Column("branches", lambda row: _number(row, row.branches.whole)))
        columns.append(Column("not gone", lambda row: _number(row, row.branches.whole - row.branches.part)))
    if with_missing:
        columns.append(Column("lines missed", lambda row: row.missing, right=False))
    if any(row.said for row in rows):
        columns.append(Column("", lambda row: clean(row.said), right=False, flexible=True))
    return Table(names, _module_values, columns, rows)


def _number(row: ModuleRow, number: int) -> str:
    """A number of a row; empty if its statements are not known."""
    return f"{number:,}" if row.percent is not None else ""


def _module_row(module: Module, place: str) -> ModuleRow:
    return ModuleRow(
        module.path_from(place),
        module.name,
        module.own,
        module.percent,
        module.generated,
        module.branches,
        {status: module.count(status) for status in (COVERED, PARTLY, MISSED)},
        len(module.table.excluded) if module.table else 0,
        missing_shown(module),
        _said(module),
    )


def _said(module: Module) -> str:
    if not module.why:
        return module.note
    lines = sorted(module.lines_seen)
    ran = f"; ran: {', '.join(map(str, lines[:8]))}{' …' * (len(lines) > 8)}" if lines else ""
    return module.why + ran


def _module_values(row: ModuleRow) -> Values:
    return {
        "file": None if row.name == TOTAL else row.file,
        "module": row.name,
        **dict(zip(OWN_NAMES, (row.own.whole, row.own.part, row.missed, row.percent), strict=True)),
        **dict(zip(GENERATED_NAMES, (*reversed(row.generated), row.percent_with_generated), strict=True)),
        "lines": sum(row.lines.values()),
        **{f"lines_{status}": count for status, count in row.lines.items()},
        "lines_excluded": row.excluded,
        **dict(zip(BRANCH_NAMES, (row.branches.whole, row.branches.part), strict=True)),
        "missing": row.missing or None,
        "note": row.said or None,
    }


@dataclass(frozen=True)
class LineRow:
    """A line of a module that has statements."""

    file: str
    line: Line
    source: str
    contexts: Sequence[str]


def lines_table(coverage: Coverage, place: str, with_contexts: bool) -> Table:
    """A row for each line with statements: covered, missed or partly."""
    names = ("file", "line", "status", "statements", "executed", *BRANCH_NAMES, "leads_not_to", "contexts", "source")
    columns = [
        Column("line", lambda row: clean(f"{row.file}:{row.line.number}"), right=False, flexible=True, keep="end"),
        Column("", lambda row: row.line.status, right=False),
        Column("executed", lambda row: f"{row.line.executed} of {row.line.statements}"),
        Column("did not go to", lambda row: _not_gone(row.line), right=False, optional=True),
        Column("source", lambda row: clean(row.source.strip()), right=False, flexible=True),
    ]
    if with_contexts:
        columns.insert(3, Column("contexts", _contexts_shown, right=False, flexible=True))
    return Table(names, _line_values, columns, _line_rows(coverage, place))


def _contexts_shown(row: LineRow) -> str:
    return clean(", ".join(context or NO_CONTEXT for context in row.contexts))


def _line_rows(coverage: Coverage, place: str) -> Iterator[LineRow]:
    for module in coverage.modules:
        for number, line in module.lines.items():
            source = module.table.text[number - 1] if module.table else ""
            yield LineRow(module.path_from(place), line, source, module.contexts.get(number, ()))


def _line_values(row: LineRow) -> Values:
    line = row.line
    return {
        "file": row.file,
        "line": line.number,
        "status": line.status,
        "statements": line.statements,
        "executed": line.executed,
        "branches": len(line.branches),
        "branches_gone": sum(line.branches.values()),
        "leads_not_to": _not_gone(line) or None,
        "contexts": ", ".join(row.contexts) or None,
        "source": row.source.strip(),
    }


def _not_gone(line: Line) -> str:
    if not line.executed:
        return ""
    targets = [target for target, was_gone in line.branches.items() if not was_gone]
    return ", ".join("exit" if target == EXIT else str(target) for target in targets)


@dataclass
class ContextRow:
    """A context: the statements that ran in it, how many of them in no other, and the modules that they are of."""

    name: str
    whole: int
    part: int = 0
    alone: int = 0
    modules: int = 0

    @property
    def share(self) -> Share:
        """The statements that ran in it, of all."""
        return Share(self.part, self.whole)


def contexts_table(coverage: Coverage) -> Table:
    """A row for each context."""
    names = ("context", "statements", "percent", "alone", "modules")
    columns = [
        Column("context", lambda row: clean(row.name or NO_CONTEXT), right=False, flexible=True),
        Column("statements", lambda row: f"{row.share.part:,}"),
        Column("of all", lambda row: shown_percent(row.share.percent)),
        Column("alone", lambda row: f"{row.alone:,}"),
        Column("modules", lambda row: f"{row.modules:,}"),
    ]
    return Table(names, _context_values, columns, _context_rows(coverage))


def _context_rows(coverage: Coverage) -> list[ContextRow]:
    whole = coverage.own.whole
    rows = {name: ContextRow(name, whole) for name in coverage.contexts}
    for module in coverage.modules:
        times = Counter(chain.from_iterable(module.by_context.values()))
        for name, numbers in module.by_context.items():
            rows[name].part += len(numbers)
            rows[name].alone += sum(times[number] == 1 for number in numbers)
            rows[name].modules += bool(numbers)
    return list(rows.values())


def _context_values(row: ContextRow) -> Values:
    return {
        "context": row.name,
        "statements": row.share.part,
        "percent": row.share.percent,
        "alone": row.alone,
        "modules": row.modules,
    }
