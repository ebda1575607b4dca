"""Tables for people: values as text, columns that line up, lines that fit the width of the terminal."""

from __future__ import annotations

import unicodedata
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import chain, islice, zip_longest
from operator import itemgetter
from typing import Any

Values = Mapping[str, Any]

NARROWEST = 8
READABLE = 22
_ROWS_MEASURED = 500
_GAP = 2


@dataclass(frozen=True)
class Column:
    """A column of a table for people: its header, which can have several lines, and how it shows a row.

    If a line does not fit, `optional` columns are left out, the last one first, and `flexible` ones are shortened;
    `keep` says what of a text remains: its `start`, its `end`, or both `ends`. A column that `wraps` continues on the
    next line instead: sentences are not cut.
    """

    title: str
    show: Callable[[Any], str]
    right: bool = True
    flexible: bool = False
    optional: bool = False
    keep: str = "start"
    wraps: bool = False


_Measured = tuple[Column, int]


@dataclass(frozen=True)
class Table:
    """What a report consists of: for machines `names` and the values of each row, for people `columns`.

    A `title` above it and `notes` below it are for people, too; `shown` has the paths of the lines of code that
    columns have shown.
    """

    names: Sequence[str]
    values: Callable[[Any], Values]
    columns: Sequence[Column]
    rows: Iterable[Any]
    title: str = ""
    notes: Sequence[str] = ()
    shown: Mapping[str, str | None] = field(default_factory=dict)


def table_of_cells(
    title: str,
    heads: Sequence[Sequence[str]],
    rows: Iterable[Sequence[str]],
    right: Sequence[bool] = (),
    notes: Sequence[str] = (),
) -> Table:
    """The table with these rows of cells; headers have several lines, and the columns in `right` are numbers."""
    names = [" ".join(line for line in head if line) for head in heads]
    on_right = [*right, *[False] * (len(heads) - len(right))]
    columns = [
        Column("\n".join(head), itemgetter(place), on_right[place]) for place, head in enumerate(heads)
    ]
    return Table(names, lambda row: dict(zip(names, row, strict=True)), columns, rows, title, notes)


def lines(columns: Sequence[Column], rows: Iterable[Any], width: int) -> Iterator[str]:
    """The table as lines of at most `width`: the heads, then each row. Widths are those of the first rows."""
    left = iter(rows)
    first = list(islice(left, _ROWS_MEASURED))
    layout = layout_of(columns, first, width)
    yield layout.heads()
    for row in chain(first, left):
        yield from layout.lines_of(row)


@dataclass(frozen=True)
class LineLayout:
    """The columns that a line has room for, and how wide each is."""

    columns: Sequence[Column]
    widths: Sequence[int]

    def heads(self) -> str:
        """The line of the headers."""
        return _line(self.columns, [column.title for column in self.columns], self.widths)

    def line_of(self, row: Any) -> str:
        """The line of `row`; nothing continues on the next one."""
        return _line(self.columns, [column.show(row) for column in self.columns], self.widths)

    def lines_of(self, row: Any) -> Iterator[str]:
        """The lines of `row`: several if texts wrap."""
        cells = [column.show(row) for column in self.columns]
        has_wrapped = any(column.wraps for column in self.columns)
        for each in _lines_of_cells(self.columns, cells, self.widths) if has_wrapped else (cells,):
            yield _line(self.columns, each, self.widths)

    @property
    def width(self) -> int:
        """How wide a line is, if the last column is full."""
        return sum(self.widths) + _GAP * max(len(self.widths) - 1, 0)

    def column_at(self, place: int) -> Column | None:
        """The column that a line has at `place`, from 0."""
        for column, width in zip(self.columns, self.widths, strict=True):
            if place < width + _GAP:
                return column
            place -= width + _GAP
        return None


def layout_of(columns: Sequence[Column], rows: Sequence[Any], width: int) -> LineLayout:
    """How lines of at most `width` show `rows`; the first of them are measured."""
    first = rows[:_ROWS_MEASURED]
    chosen = [(column, _widest(column, first)) for column in columns]
    while _is_squeezed(chosen, width) and (place := _last_optional(chosen)) is not None:
        del chosen[place]
    return LineLayout([column for column, _ in chosen], _fitted(chosen, width))


def clean(text: str) -> str:
    """`text` without anything that a terminal would act upon: unprintable characters are shown as escapes."""
    if text.isprintable():
        return text
    return "".join(letter if letter.isprintable() else _escaped(letter) for letter in text)


def shortened(text: str, width: int, keep: str = "start") -> str:
    """`text` in at most `width` columns, with three dots (one sign) where something was left out."""
    if columns_of(text) <= width:
        return text
    if width < 1:
        return ""
    end = {"start": 0, "ends": (width - 1) // 2, "end": width - 1}[keep]
    return _cut(text, width - 1 - end) + "\u2026" + _cut(text[::-1], end)[::-1]


def wrapped(text: str, width: int, indent: str = "") -> list[str]:
    """`text` in lines of at most `width` columns, those after the first indented; only a word that is longer than a
    line is broken."""
    width = max(width, len(indent) + 2)
    found = []
    while columns_of(text) > width:
        fits = _cut(text, width)
        words = fits if text[len(fits)] == " " else fits.rpartition(" ")[0]
        taken = words if words.strip() else fits
        found.append(taken.rstrip())
        text = indent + text[len(taken) :].lstrip()
    return [*found, text]


def columns_of(text: str) -> int:
    """How many columns of a terminal `text` takes."""
    if text.isascii():
        return len(text)
    return sum(_width(letter) for letter in text)


def _width(letter: str) -> int:
    if unicodedata.combining(letter):
        return 0
    return 2 if unicodedata.east_asian_width(letter) in "WF" else 1


def _cut(text: str, width: int) -> str:
    taken = 0
    for place, letter in enumerate(text):
        taken += _width(letter)
        if taken > width:
            return text[:place]
    return text


def _escaped(letter: str) -> str:
    code = ord(letter)
    if code < 0x100:
        return f"\\x{code:02x}"
    return f"\\u{code:04x}" if code < 0x10000 else f"\\U{code:08x}"


def _widest(column: Column, rows: Sequence[Any]) -> int:
    return max(columns_of(column.title), *(columns_of(column.show(row)) for row in rows), 0)


def _is_squeezed(chosen: Sequence[_Measured], width: int) -> bool:
    """Whether texts would have to be cut below what one can read."""
    least = sum(min(natural, READABLE) if column.flexible else natural for column, natural in chosen)
    return least + _GAP * (len(chosen) - 1) > width


def _last_optional(chosen: Sequence[_Measured]) -> int | None:
    return max((place for place, (column, _) in enumerate(chosen) if column.optional), default=None)


def _fitted(chosen: Sequence[_Measured], width: int) -> list[int]:
    """The widths, those of flexible columns taken back, the widest first, until a line fits; to what one can read if it
    does not fit in any way."""
    fitted = [natural for _, natural in chosen]
    excess = sum(fitted) + _GAP * (len(fitted) - 1) - width
    flexible = [place for place, (column, _) in enumerate(chosen) if column.flexible]
    to_spare = sum(max(fitted[place] - NARROWEST, 0) for place in flexible)
    least = NARROWEST if to_spare >= excess else READABLE
    while excess > 0 and any(fitted[place] > least for place in flexible):
        widest = max(flexible, key=lambda place: fitted[place])
        fitted[widest] -= 1
        excess -= 1
    return fitted


def _lines_of_cells(
    columns: Sequence[Column], cells: Sequence[str], widths: Sequence[int]
) -> Iterator[Sequence[str]]:
    """The cells of each line that a row takes."""
    parts = [
        wrapped(cell, width) if column.wraps else [cell]
        for column, cell, width in zip(columns, cells, widths, strict=True)
    ]
    return zip_longest(*parts, fillvalue="")


def _line(columns: Sequence[Column], cells: Sequence[str], widths: Sequence[int]) -> str:
    parts = []
    for column, cell, width in zip(columns, cells, widths, strict=True):
        text = shortened(cell, width, column.keep) if column.flexible else cell
        pad = " " * (width - columns_of(text))
        parts.append(pad + text if column.right else text + pad)
    return (" " * _GAP).join(parts).rstrip()
