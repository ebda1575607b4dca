"""Tables of the page: each cell has its text and, to be sorted by, its value; the last rows stay where they are."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from interpose.reports.formats.units import count
from interpose.reports.page.markup import Markup, element, escaped, joined

ROWS_AT_MOST = 300
LETTERS_AT_MOST = 300


@dataclass(frozen=True)
class Field:
    """A column: its title, the text of a row in it, and the number to sort by, if there is one.

    `hint` explains the column. `drawn` returns HTML instead of text; with the same text, if rows are sorted by it.
    `link` is the name of the text's target on the page.
    """

    title: str
    text: Callable[[Any], str] | None = None
    value: Callable[[Any], int | float | None] | None = None
    hint: str = ""
    drawn: Callable[[Any], Markup] | None = None
    link: Callable[[Any], str | None] | None = None


def grid(
    name: str,
    title: str,
    fields: Sequence[Field],
    rows: Sequence[Any],
    last: Iterable[Any] = (),
    more: str = "",
    rest: Callable[[Sequence[Any]], Any] | None = None,
) -> Markup:
    """A table of `rows`, at most `ROWS_AT_MOST`, and `last` below them in any order of the others.

    Where rows are left out, it is said how many, with `more` about where they are; `rest` puts them into one.
    """
    kept, left = rows[:ROWS_AT_MOST], rows[ROWS_AT_MOST:]
    below = [rest(left)] if left and rest else []
    said = f"{title}: the first {len(kept):,} of {count(len(rows), 'row')}. {more}" if left else title
    head = element("tr", [_head(field) for field in fields])
    parts = [
        element("caption", said, class_="" if left else "hidden"),
        element("thead", head),
        element("tbody", [_row(fields, row) for row in kept]),
    ]
    foot = [_row(fields, row) for row in [*below, *last]]
    if foot:
        parts.append(element("tfoot", foot))
    table = element("table", parts, id=name, data_grid=True)
    return element("div", [table], class_="grid", role="region", aria_label=f"Table: {title}", tabindex="0")


def shown(text: str) -> str:
    """`text`, cut where it is too long for a cell."""
    return text if len(text) <= LETTERS_AT_MOST else f"{text[:LETTERS_AT_MOST]}…"


def _head(field: Field) -> Markup:
    kind = "n" if field.value else "bar" if field.drawn else None
    is_unsorted = not (field.text or field.value)
    return element("th", field.title, scope="col", class_=kind, title=field.hint or None, data_unsorted=is_unsorted)


def _row(fields: Sequence[Field], row: Any) -> Markup:
    return element("tr", [_cell(field, row, place) for place, field in enumerate(fields)])


def _cell(field: Field, row: Any, place: int) -> Markup:
    if field.drawn:
        return element("td", [field.drawn(row)], class_="bar")
    assert field.text is not None
    text = shown(field.text(row))
    if field.value:
        return element("td", text, class_="n", data_v=field.value(row))
    target = field.link(row) if field.link else None
    return element("td", [element("a", text, href=f"#{target}")] if target else text)


def section(name: str, title: str, *parts: str) -> Markup:
    """A section of the page, under its heading."""
    heading = element("h2", title, id=f"{name}-title")
    return element("section", [heading, *parts], id=name, aria_labelledby=f"{name}-title")


def note(*parts: str) -> Markup:
    """A remark in small letters."""
    return element("p", joined([escaped(part) for part in parts]), class_="note")
