"""Which metrics stand in the columns of a table, and how: `e.%wall:i+cpu:name`.

A column's text is flavours, signs, and a metric's name: `e` what a function took by itself, `i` with all that it
called, `a` what of it is attributed to a caller; `.` as a time, `+` as a value (nanoseconds), `%` as a share of
`<Total>`, `!` not shown. Where no flavour is given it is `ei`. `name` is the column of names.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from difflib import get_close_matches
from typing import NamedTuple

from interpose.analysis.calls.figures import COUNT, SIZE, TIME, Metric, Vector
from interpose.counters import COUNTERS
from interpose.errors import UsageError
from interpose.reports.formats.units import SECOND_NS

EXCLUSIVE, INCLUSIVE, ATTRIBUTED = "e", "i", "a"
NAME = "name"
_FLAVOURS = {EXCLUSIVE: "Excl.", INCLUSIVE: "Incl.", ATTRIBUTED: "Attr."}
_SPEC = re.compile(r"(?P<flavours>[eia]*)(?P<signs>[.+%!]+)(?P<name>\w+)")
DEFAULT = "e.%wall:i.wall:e.cpu:e.wait:e+calls:name"


class Column(NamedTuple):
    """A column: a metric in one flavour, and how it is shown: `.`, `+` or `%`; without a metric, that of the names."""

    metric: Metric | None
    flavour: str = ""
    sign: str = ""

    @property
    def head(self) -> tuple[str, ...]:
        """The lines above the column."""
        if self.metric is None:
            return ("", "", "Name")
        units = {"%": "%", ".": "sec.", "+": "ns"}
        unit = units[self.sign] if self.is_time or self.sign == "%" else ""
        return (_FLAVOURS[self.flavour], self.metric.title, unit)

    @property
    def is_time(self) -> bool:
        """Whether it is measured in time."""
        return self.metric is not None and self.metric.unit == TIME

    @property
    def spec(self) -> str:
        """The form in which one requests it."""
        return NAME if self.metric is None else f"{self.flavour}{self.sign}{self.metric.name}"


class Sort(NamedTuple):
    """By what rows are sorted; by their names where there is no metric. The largest come first unless `is_reversed`."""

    metric: Metric | None
    flavour: str = EXCLUSIVE
    is_reversed: bool = False

    @property
    def title(self) -> str:
        """The line above a table."""
        words = {EXCLUSIVE: "Exclusive", INCLUSIVE: "Inclusive", ATTRIBUTED: "Attributed"}
        told = "Name" if self.metric is None else f"{words[self.flavour]} {self.metric.title}"
        return told + (" (reversed)" if self.is_reversed else "")


def parse_columns(text: str, known: Mapping[str, Metric]) -> list[Column]:
    """The columns that `text` asks for; that of names is the last where it is not said. Raises UsageError."""
    columns: list[Column] = []
    for part in text.split(":"):
        columns += _parse(part.strip(), known)
    if not any(column.metric is None for column in columns):
        columns.append(Column(None))
    return columns


def parse_sort(text: str, known: Mapping[str, Metric]) -> Sort:
    """What `sort` is given: `i.wall`, `-e.cpu`, `calls`, `name`. Raises UsageError."""
    is_reversed, text = text.startswith("-"), text.removeprefix("-")
    if text == NAME:
        return Sort(None, is_reversed=is_reversed)
    found = _SPEC.fullmatch(text)
    flavours, name = (found["flavours"], found["name"]) if found else ("", text)
    return Sort(_metric(name, known), flavours[:1] or EXCLUSIVE, is_reversed)


def _parse(part: str, known: Mapping[str, Metric]) -> list[Column]:
    if part in (NAME, f"!{NAME}", f".{NAME}"):
        return [Column(None)]
    found = _SPEC.fullmatch(part)
    if not found:
        metric = _metric(part, known)
        return [Column(metric, flavour, "." if metric.unit == TIME else "+") for flavour in "ei"]
    metric = _metric(found["name"], known)
    if "!" in found["signs"]:
        return []
    signs = dict.fromkeys(sign if metric.unit == TIME or sign == "%" else "+" for sign in found["signs"])
    return [Column(metric, flavour, sign) for flavour in found["flavours"] or "ei" for sign in signs]


def _metric(name: str, known: Mapping[str, Metric]) -> Metric:
    if name in known:
        return known[name]
    if name in COUNTERS:
        how = f"request it with interpose run --counters {name}, if interpose doctor says that it can be read"
        raise UsageError(f"{name} was not counted: {how}")
    near = get_close_matches(name, [*known, NAME], 1)
    meant = f"did you mean {near[0]}?" if near else f"there are {', '.join(known)}"
    raise UsageError(f"{name or 'nothing'} is not a metric; {meant}")


def cell(column: Column, vector: Vector, total: Vector) -> str:
    """A column's value of `vector`; `total` is what shares refer to."""
    assert column.metric is not None
    return number(vector[column.metric.place], total[column.metric.place], column.sign, column.metric.unit)


def number(value: int, whole: int, sign: str, unit: str = TIME) -> str:
    """A figure: `0.` is nothing at all, `0.000` less than can be shown."""
    if sign == "%":
        return f"{100 * value / whole:.2f}" if value and whole else "0."
    if sign == "." and unit == TIME:
        return f"{value / SECOND_NS:.3f}" if value else "0."
    return str(value) if unit in (COUNT, SIZE, TIME) else ""


def sorted_by(sort: Sort, rows: Sequence[tuple[str, Mapping[str, Vector]]]) -> list[int]:
    """The places of `rows`, each a name and its vectors by flavour, in the order of `sort`."""

    def key(place: int) -> tuple[float, str]:
        name, vectors = rows[place]
        if sort.metric is None:
            return 0, name
        vector = vectors.get(sort.flavour) or next(iter(vectors.values()))
        value = vector[sort.metric.place]
        return (value if sort.is_reversed else -value), name

    found = sorted(range(len(rows)), key=key)
    return found[::-1] if sort.metric is None and sort.is_reversed else found
