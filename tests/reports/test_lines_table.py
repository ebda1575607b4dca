"""Rows of line trace that are the same line in several modules are told apart."""

import pytest

from interpose.analysis.lines.line_rows import Figures, Place
from interpose.reports.tables.lines import LineRow, lines_table

pytestmark = pytest.mark.every_python


def table_of(*places):
    rows = [LineRow(Place("/home/u/app.py", *place, 1), 3, Figures(executed=1)) for place in places]
    return lines_table(rows, (), "")


def shown(table, title):
    (column,) = [each for each in table.columns if each.title == title]
    return [column.show(row) for row in table.rows]


def test_the_module_is_shown_of_a_function_that_several_modules_have():
    table = table_of(("__main__", "work"), ("__mp_main__", "work"), ("__main__", "alone"))

    assert shown(table, "module") == ["__main__", "__mp_main__", ""]
    assert [table.values(row)["module"] for row in table.rows] == ["__main__", "__mp_main__", "__main__"]


def test_there_is_no_column_of_modules_where_each_function_has_one():
    table = table_of(("__main__", "work"), ("__main__", "alone"))

    assert [each.title for each in table.columns][:3] == ["line", "function", "executed"]
