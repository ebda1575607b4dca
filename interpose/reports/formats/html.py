"""A table as an HTML table, for pages and notebooks: all that it shows is text."""

from __future__ import annotations

from collections.abc import Container
from typing import Any, TextIO

from interpose.reports.formats.table import Table
from interpose.reports.page.markup import Markup, element


def write(table: Table, out: TextIO, width: int) -> None:
    """Write `table` to `out`."""
    out.write(table_element(table) + "\n")


def table_element(table: Table, marked: Container[Any] = ()) -> Markup:
    """The table as an element: numbers are cells of the class `n`, rows that are `marked` of the class `yellow`."""
    columns = [(column, "n" if column.right else None) for column in table.columns if column.title]
    heads = [element("th", column.title, scope="col", class_=side) for column, side in columns]
    rows = [
        element(
            "tr",
            [element("td", column.show(row), class_=side) for column, side in columns],
            class_="yellow" if row in marked else None,
        )
        for row in table.rows
    ]
    return element("table", [element("thead", [element("tr", heads)]), element("tbody", rows)])
