"""Reports: figures, tables and formats, and that nothing recorded acts upon a terminal or a spreadsheet."""

import csv as csv_module
import io
import json as json_module
import string

import pytest
from hypothesis import given
from hypothesis import strategies as st

from interpose.reports.formats import csv, json, markdown, text
from interpose.reports.formats.colour import Paint, wants_colour
from interpose.reports.formats.short_paths import Places
from interpose.reports.formats.table import Column, Table, clean, columns_of, lines, shortened, wrapped
from interpose.reports.formats.units import age, count, duration, percent, scale_for

SECOND = 1_000_000_000


@pytest.mark.parametrize(
    ("ns", "shown"),
    [
        (0, "0 ns"),
        (999, "999 ns"),
        (1_000, "1.00 us"),
        (12_340, "12.3 us"),
        (999_600, "1.00 ms"),
        (800_000_000, "800 ms"),
        (12_345 * SECOND, "12,345 s"),
    ],
)
def test_durations_have_three_figures(ns, shown):
    assert duration(ns) == shown


@pytest.mark.parametrize(
    ("largest", "ns", "shown"),
    [
        (20 * SECOND, 5 * SECOND + 10_000_000, "5.01 s"),
        (20 * SECOND, 12_345 * SECOND, "12,345.00 s"),
        (2 * SECOND, SECOND // 1000, "0.001 s"),
        (SECOND - 1, 1_234_000, "1.23 ms"),
        (0, 0, "0.00 us"),
    ],
)
def test_a_column_has_one_unit(largest, ns, shown):
    assert scale_for(largest).show(ns) == shown


def test_counts_ages_and_shares_read_well():
    assert [count(1, "call"), count(41_207, "call")] == ["1 call", "41,207 calls"]
    assert [age(0.2), age(-5), age(-60), age(1), age(125), age(7_300), age(200_000)] == [
        "just now",
        "just now",
        "in the future",
        "1 second ago",
        "2 minutes ago",
        "2 hours ago",
        "2 days ago",
    ]
    assert [percent(1, 4), percent(0, 0)] == ["25 %", "0 %"]


@given(st.text())
def test_nothing_that_is_shown_acts_upon_a_terminal(anything):
    shown = clean(anything)

    assert shown.isprintable()
    assert clean(shown) == shown


def test_what_is_not_printable_is_shown_as_an_escape():
    assert clean("a\x1b[31m\n\x9b\u202e\U000e0001b") == r"a\x1b[31m\x0a\x9b\u202e\U000e0001b"


@given(st.text(alphabet="ab\u4e2d\u0301", max_size=30), st.integers(1, 20), st.sampled_from(["start", "end", "ends"]))
def test_a_shortened_text_fits(anything, width, keep):
    assert columns_of(shortened(anything, width, keep)) <= width


def test_of_a_text_its_start_its_end_or_both_remain():
    shown = [shortened("test_a.py::test_insert[2]", 11, keep) for keep in ("start", "end", "ends")]

    assert shown == ["test_a.py:\u2026", "\u2026_insert[2]", "test_\u2026rt[2]"]


def table_of(rows):
    columns = [
        Column("calls", lambda row: str(row["calls"])),
        Column("name", lambda row: clean(row["name"]), right=False, flexible=True),
    ]
    return Table(("name", "calls"), lambda row: row, columns, rows)


def written(module, rows, width=80):
    out = io.StringIO()
    module.write(table_of(rows), out, width)
    return out.getvalue()


def test_text_lines_up():
    assert written(text, [{"name": "os.write", "calls": 8412}, {"name": "x", "calls": 1}]) == (
        "calls  name\n 8412  os.write\n    1  x\n"
    )


def test_wide_letters_line_up():
    columns = [Column("a", str, right=False), Column("b", str, right=False)]

    assert list(lines(columns, ["\u4e2d\u6587", "x"], 80)) == [
        "a     b",
        "\u4e2d\u6587  \u4e2d\u6587",
        "x     x",
    ]


@given(st.lists(st.text(alphabet=string.printable + "\u4e2d", max_size=200), max_size=5), st.integers(20, 90))
def test_no_line_of_text_is_wider_than_the_terminal(names, width):
    rows = [{"name": name, "calls": 5} for name in names]

    assert all(columns_of(line) <= width for line in written(text, rows, width).splitlines())


def test_where_a_line_does_not_fit_optional_columns_are_left_out():
    columns = [
        Column("name", lambda row: row, flexible=True),
        Column("share", lambda row: "25 %", optional=True),
    ]

    assert next(lines(columns, ["x" * 30], 40)).split() == ["name", "share"]
    assert next(lines(columns, ["x" * 30], 25)).split() == ["name"]


def test_where_a_line_fits_in_no_way_names_stay_readable():
    columns = [
        Column("name", lambda row: row, right=False, flexible=True),
        Column("calls", lambda row: "1,000"),
    ]

    assert list(lines(columns, ["x" * 30], 15)) == ["name      calls", "xxxxxxx\u2026  1,000"]
    assert list(lines(columns, ["x" * 30], 14)) == [f"name{' ' * 18}  calls", f"{'x' * 21}\u2026  1,000"]


@given(st.lists(st.text(alphabet=string.printable + "\u4e2d ", max_size=200), max_size=5), st.integers(20, 90))
def test_a_column_that_wraps_is_never_cut(names, width):
    columns = [Column("calls", lambda row: "5"), Column("what", clean, right=False, flexible=True, wraps=True)]

    found = list(lines(columns, names, width))

    assert all(columns_of(line) <= width for line in found)
    assert "".join(found[1:]).replace(" ", "") == "".join(f"5{clean(name)}" for name in names).replace(" ", "")


def test_words_stay_whole_where_a_line_has_room():
    columns = [Column("calls", lambda row: "5"), Column("what", str, right=False, flexible=True, wraps=True)]

    assert list(lines(columns, ["load them together with one join", "x" * 30], 25)) == [
        "calls  what",
        "    5  load them together",
        "       with one join",
        "    5  xxxxxxxxxxxxxxxxxx",
        "       xxxxxxxxxxxx",
    ]


@pytest.mark.parametrize("indent", ["", "  "])
def test_what_is_wrapped_ends_however_narrow_a_line_is(indent):
    assert "".join(wrapped("\u4e2d\u6587 ab", 0, indent)).replace(" ", "") == "\u4e2d\u6587ab"


def test_rows_are_written_as_they_come():
    taken = []

    def rows():
        for number in range(2000):
            taken.append(number)
            yield number

    next(lines([Column("n", str)], rows(), 80))

    assert len(taken) < 1000


@given(st.lists(st.fixed_dictionaries({"name": st.text(), "calls": st.integers()}), max_size=5))
def test_json_comes_back_and_is_printable(rows):
    result = written(json, rows)

    assert json_module.loads(result) == rows
    assert result.replace("\n", "").isprintable()
    assert result.isascii()


@given(st.lists(st.fixed_dictionaries({"name": st.text(max_size=20), "calls": st.integers()}), max_size=5))
def test_csv_has_the_same_cells_and_no_formula(rows):
    head, *found = csv_module.reader(io.StringIO(written(csv, rows)))

    assert head == ["name", "calls"]
    assert [cells[0].removeprefix("'") for cells in found] == [
        clean(row["name"]).removeprefix("'") for row in rows
    ]
    assert not any(cells[0].startswith(("=", "+", "-", "@", "\t", "\r")) for cells in found)


def test_a_formula_is_guarded_and_a_number_is_not():
    assert written(csv, [{"name": "=cmd()", "calls": -1}, {"name": None, "calls": 2}]) == (
        "name,calls\n'=cmd(),-1\n,2\n"
    )


def test_markdown_takes_nothing_for_markdown():
    result = written(markdown, [{"name": "a|b <script> `x` [l](u) ![i](u) \n", "calls": 1}])

    assert result.splitlines() == [
        "| calls | name |",
        "| ---: | --- |",
        r"| 1 | ``a\|b <script> `x` [l](u) ![i](u) \x0a`` |",
    ]


def test_the_file_of_a_package_is_shown_with_the_package():
    places = Places(["/lib/re/__init__.py", "/lib/shop/db/__init__.py", "/home/u/__init__.py"], "/home/u")

    assert places.file("/lib/re/__init__.py") == "re/__init__.py"
    assert places.file("/lib/shop/db/__init__.py") == "db/__init__.py"
    assert places.file("/home/u/__init__.py") == "__init__.py"


def test_files_are_as_short_as_they_can_be():
    places = Places(["/home/u/shop/a.py", "/lib/x/b.py", "/lib/y/b.py", "/lib/c.py"], "/home/u/shop")

    assert [places.file(file) for file in ("/home/u/shop/a.py", "/lib/x/b.py", "/lib/c.py", "<string>")] == [
        "a.py",
        "x/b.py",
        "c.py",
        "<string>",
    ]


@pytest.mark.parametrize(
    ("is_terminal", "environment", "wanted"),
    [
        (True, {}, True),
        (False, {}, False),
        (True, {"NO_COLOR": "1"}, False),
        (True, {"NO_COLOR": ""}, True),
        (True, {"TERM": "dumb"}, False),
    ],
)
def test_colour_is_for_terminals_where_nobody_asked_for_none(is_terminal, environment, wanted):
    out = io.StringIO()
    out.isatty = lambda: is_terminal

    assert wants_colour(out, environment) is wanted


def test_paint_leaves_text_as_it_is_where_it_is_off():
    assert Paint(False)("bold", "x") == "x"
    assert Paint(True)("bold", "x") == "\x1b[1mx\x1b[0m"
