"""Profiles: one row for each that differs, by whatever one groups."""

import pytest

from interpose.analysis.profile import GROUPINGS, by_kind, is_uncertain, own_lines, profile
from interpose.experiments.experiment import Experiment
from tests.build import START_NS, Build, event


@pytest.fixture
def shop(tmp_path):
    """A founder that writes and queries from two threads, and a child that queries."""
    founder = Build(tmp_path / "t.1.er")
    query, write = founder.intrinsic("sqlite3.Cursor.execute", "db"), founder.intrinsic("os.write", "file")
    save = founder.stack(founder.site("/home/u/shop/orders.py", 88, "save"))
    log = founder.stack(founder.site("/usr/lib/logging.py", 5, "emit", own=0), save)
    founder.block(
        [
            event(0, 100, 10, call=1, intrinsic=query, stack=save, detail=founder.string("select ?")),
            event(200, 50, 50, call=2, intrinsic=write, stack=log, bytes=7, error=founder.string("OSError")),
            event(300, 30, 0, call=1, thread=2, intrinsic=query, stack=save),
        ]
    )
    founder.thread(end_ns=START_NS + 1000, end_cpu_ns=500, tid=812, main=1, recorded=2)
    founder.thread(end_ns=START_NS + 400, tid=813, recorded=1)
    founder.ended(1000, 500)
    child = Build(tmp_path / "t.1.er" / "_f1.er", pid=900)
    child.intrinsic("sqlite3.Cursor.execute", "db")
    child.block([event(0, 5, thread=1, stack=child.stack(child.site("/home/u/shop/orders.py", 88, "save")))])
    child.thread(end_ns=START_NS + 10, tid=900, recorded=1)
    for build in (founder, child):
        build.write()
    return Experiment(str(tmp_path / "t.1.er"))


def shown(rows):
    return [
        (row.kind, row.intrinsic, *row.labels.values(), row.sums.calls, row.sums.self_wall_ns)
        for row in rows
        if row.is_of_calls
    ]


@pytest.mark.parametrize(
    ("by", "rows"),
    [
        ("kind", [("db", None, 3, 135), ("file", None, 1, 50)]),
        ("intrinsic", [("db", "sqlite3.Cursor.execute", 3, 135), ("file", "os.write", 1, 50)]),
        (
            "site",
            [
                ("db", "sqlite3.Cursor.execute", "/home/u/shop/orders.py:88", "save", 3, 135),
                ("file", "os.write", "/home/u/shop/orders.py:88", "save", 1, 50),
            ],
        ),
        (
            "function",
            [
                ("db", "sqlite3.Cursor.execute", "save", "/home/u/shop/orders.py", 3, 135),
                ("file", "os.write", "save", "/home/u/shop/orders.py", 1, 50),
            ],
        ),
        (
            "detail",
            [
                ("db", "sqlite3.Cursor.execute", "select ?", 1, 100),
                ("file", "os.write", "", 1, 50),
                ("db", "sqlite3.Cursor.execute", "", 2, 35),
            ],
        ),
        (
            "thread",
            [
                (None, None, "812 main", "4194305", 2, 150),
                (None, None, "813", "4194305", 1, 30),
                (None, None, "900", "900 _f1", 1, 5),
            ],
        ),
        ("process", [(None, None, "4194305", 3, 180), (None, None, "900 _f1", 1, 5)]),
    ],
)
def test_rows_are_grouped(shop, by, rows):
    assert shown(profile(shop, by).rows) == rows


@pytest.mark.parametrize("by", GROUPINGS)
def test_every_grouping_adds_up_to_the_thread_time(shop, by):
    made = profile(shop, by)

    assert made.total.wall_ns == 1000 + 400 + 10
    assert sum(row.sums.self_wall_ns for row in made.rows) == 1410
    assert [row.kind for row in made.rows[-2:]] == ["program", "interpose"]
    assert shop.damages.found == []


def test_errors_and_bytes_are_counted(shop):
    row = next(row for row in profile(shop, "intrinsic").rows if row.intrinsic == "os.write")

    assert (row.sums.errors, row.sums.bytes) == (1, 7)


def test_kinds_come_in_their_order_and_unknown_ones_last(tmp_path):
    build = Build(tmp_path / "t.1.er")
    numbers = [build.intrinsic(kind, kind) for kind in ("sleep", "odd", "db", "file")]
    build.block([event(0, 5, intrinsic=number) for number in [*numbers, 99]])

    rows = by_kind(profile(Experiment(str(build.write())), "intrinsic").rows)

    assert [row.kind for row in rows] == ["db", "file", "sleep", "?", "odd"]


def test_only_ones_own_lines_are_own(shop, tmp_path):
    build = Build(tmp_path / "u.1.er")
    build.block([event(0, 5, stack=build.stack(build.site("/usr/lib/a.py", 1, "f", own=0)))])

    assert len(own_lines(profile(shop, "site").rows)) == 2
    assert own_lines(profile(Experiment(str(build.write())), "site").rows) == []


@pytest.mark.parametrize(
    ("total_ns", "calls", "uncertain"), [(0, 5, False), (299, 1, True), (300, 1, False), (2999, 10, True)]
)
def test_a_figure_near_the_cost_of_measuring_is_uncertain(total_ns, calls, uncertain):
    assert is_uncertain(total_ns, calls, inside_ns=30, resolution_ns=1) is uncertain
