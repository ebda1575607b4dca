"""A section of a profile: its figures, and a table with bars."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from math import sqrt
from typing import Any, NamedTuple

from interpose.reports.formats.table import Column, Table, clean
from interpose.reports.formats.units import SECOND_NS, count, duration

_BAR = 20

TEXT, TIME, COUNT = "text", "time", "count"
NO_SAMPLES = "samples: not recorded (record with INTERPOSE_SAMPLE=on)"


@dataclass
class Section:
    """A part of the profile: its title, its data, a table, and notes."""

    title: str
    made_from: str
    table: Table
    notes: Sequence[str] = field(default_factory=tuple)


class Head(NamedTuple):
    """A column: its name for machines, its title for people, and what its values are."""

    name: str
    title: str
    unit: str = TIME


def with_others(rows: list[tuple[Any, ...]], limit: int | None, texts: int) -> list[tuple[Any, ...]]:
    """The first rows, and the rest in one: `.OTHER`."""
    if not limit or len(rows) <= limit:
        return rows
    rest = rows[limit:]
    numbers = [None if None in column else sum(column) for column in list(zip(*rest, strict=True))[texts:]]
    return [*rows[:limit], (".OTHER", *[""] * (texts - 1), *numbers)]


def largest(rows: list[tuple[Any, ...]], limit: int | None, texts: int, place: int) -> list[tuple[Any, ...]]:
    """The rows with the largest figures at `place`, in the order in which they are given, and the rest in one."""
    by_size = sorted(range(len(rows)), key=lambda number: -rows[number][place])
    order = [*sorted(by_size[:limit]), *by_size[limit:]] if limit else range(len(rows))
    return with_others([rows[number] for number in order], limit, texts)


def margin(samples: int) -> str:
    if not samples:
        return NO_SAMPLES
    margin = 98 / sqrt(samples)
    told = f"figures estimated from the {count(samples, 'sample')} have a margin of error"
    return f"{told} of 98/sqrt(n) = {margin:.1f} %"


def with_share(part_ns: int, whole_ns: int) -> str:
    return f"{duration(part_ns)}  {100 * part_ns / whole_ns:.1f} %" if whole_ns else duration(part_ns)


def bar(part: int, whole: int) -> str:
    return "*" * round(_BAR * part / whole) if whole else ""


def table_of(
    heads: Sequence[Head], rows: Sequence[tuple[Any, ...]], shares: Sequence[str] = (), whole: int = 0
) -> Table:
    """The table of `rows`; behind those columns that are in `shares` stands the share of `whole`."""
    columns: list[Column] = []
    for place, head in enumerate(heads):
        columns.append(_column(head, place))
        if head.name in shares:
            columns.append(Column("share", _share_of(place, whole)))
    names = [head.name for head in heads]
    return Table(names, lambda row: dict(zip(names, row, strict=True)), columns, rows)


def _column(head: Head, place: int) -> Column:
    shows: dict[str, Callable[[Any], str]] = {
        TEXT: lambda value: clean(str(value)),
        COUNT: lambda value: f"{value:,}",
        TIME: lambda value: f"{value / SECOND_NS:,.3f} s",
    }
    show, is_text = shows[head.unit], head.unit == TEXT
    missing = "" if is_text or head.unit == COUNT else "-"
    return Column(
        head.title, lambda row: missing if row[place] is None else show(row[place]), right=not is_text, flexible=is_text
    )


def _share_of(place: int, whole: int) -> Callable[[Any], str]:
    return lambda row: f"{100 * row[place] / whole:.2f} %" if whole and row[place] is not None else ""


def shown_without(table: Table, name: str) -> Table:
    """The table with that column for machines alone."""
    kept = [column for column, known in zip(table.columns, table.names, strict=True) if known != name]
    return Table(table.names, table.values, kept, table.rows)
