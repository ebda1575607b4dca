"""Profiles: one row for each that differs, by whatever one groups."""

from collections import Counter

import pytest

from interpose.analysis.analysis import Analysis
from interpose.analysis.calls.groupings import GROUPINGS
from interpose.analysis.calls.profile import by_kind, profile
from interpose.analysis.calls.rows import is_uncertain, own_lines
from interpose.analysis.consolidation.plain_consolidator import PlainConsolidator
from interpose.analysis.findings.survey import Survey
from interpose.experiments.model.experiment import Experiment
from interpose.legacy.programs import BETWEEN, programs
from interpose.reports.tables.rows import arranged
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
    assert shown(profile(Analysis(shop), by).rows) == rows


@pytest.mark.parametrize("by", GROUPINGS)
def test_every_grouping_adds_up_to_the_thread_time(shop, by):
    made = profile(Analysis(shop), by)

    assert made.total.wall_ns == 1000 + 400 + 10
    assert sum(row.sums.self_wall_ns for row in made.rows) == 1410
    closing = [row for row in made.rows if not row.is_of_calls]
    assert list(dict.fromkeys(row.kind for row in closing)) == ["code", "overhead"]
    assert made.rows[-len(closing) :] == closing
    assert shop.damages.found == []


@pytest.fixture
def nested(tmp_path):
    """A query that calls a function of the program's own, which queries from another line and writes."""
    build = Build(tmp_path / "n.1.er")
    query, write = build.intrinsic("sqlite3.Cursor.execute", "db"), build.intrinsic("os.write", "file")
    commit = build.intrinsic("sqlite3.Connection.commit", "db")
    first = build.stack(build.site("/home/u/shop/orders.py", 88, "save"))
    second = build.stack(build.site("/home/u/shop/orders.py", 99, "check"))
    build.block(
        [
            event(30, 10, 5, call=4, parent=3, intrinsic=query, stack=second),
            event(20, 40, 9, call=3, parent=2, intrinsic=write, stack=second, inner_wall_ns=10, inner_cpu_ns=5),
            event(10, 60, 9, call=2, parent=1, intrinsic=commit, stack=second, inner_wall_ns=40, inner_cpu_ns=9),
            event(0, 100, 30, call=1, intrinsic=query, stack=first, inner_wall_ns=60, inner_cpu_ns=9),
        ]
    )
    build.thread(end_ns=START_NS + 1000, end_cpu_ns=500, tid=812, main=1, recorded=4)
    build.ended(1000, 500)
    return Experiment(str(build.write()))


@pytest.mark.parametrize(
    ("by", "inclusive"),
    [
        ("kind", {"db": 100, "file": 40}),
        ("intrinsic", {"sqlite3.Cursor.execute": 100, "os.write": 40, "sqlite3.Connection.commit": 60}),
        ("function", {"save": 100, "check": 10 + 40 + 60}),
        ("thread", {"812 main": 100}),
        ("process", {"4194305": 100}),
    ],
)
@pytest.mark.parametrize("consolidator", [PlainConsolidator, None])
def test_inclusive_times_count_no_second_of_a_row_twice(nested, by, inclusive, consolidator):
    found = {}
    for row in profile(Analysis(nested, consolidator=consolidator), by).rows:
        if row.is_of_calls:
            name = next(iter(row.labels.values()), row.intrinsic or row.kind)
            found[name] = found.get(name, 0) + row.sums.wall_ns

    assert found == inclusive


def test_errors_and_bytes_are_counted(shop):
    row = next(row for row in profile(Analysis(shop), "intrinsic").rows if row.intrinsic == "os.write")

    assert (row.sums.errors, row.sums.bytes) == (1, 7)


def test_kinds_come_in_their_order_and_unknown_ones_last(tmp_path):
    build = Build(tmp_path / "t.1.er")
    numbers = [build.intrinsic(kind, kind) for kind in ("sleep", "odd", "db", "file")]
    build.block([event(0, 5, intrinsic=number) for number in [*numbers, 99]])

    rows = by_kind(profile(Analysis(Experiment(str(build.write()))), "intrinsic"))

    assert [row.kind for row in rows] == ["db", "file", "sleep", "?", "odd", "code", "overhead"]


@pytest.fixture
def server(tmp_path):
    """A server with a worker: most of the time both wait for work, and a lock that is mostly free."""
    build = Build(tmp_path / "s.1.er")
    accept = build.intrinsic("socket.socket.accept", "net", "idle")
    write = build.intrinsic("os.write", "file", "screen", "net")
    serve = build.stack(build.site("/srv/app.py", 7, "serve"))
    build.block(
        [
            event(0, 700, 10, call=1, intrinsic=accept + 1, stack=serve),
            event(700, 20, 20, call=2, intrinsic=accept, stack=serve),
            event(800, 50, 10, call=3, intrinsic=write + 2, stack=serve),
            event(850, 30, 10, call=4, intrinsic=write, stack=serve),
            event(0, 900, 0, call=1, thread=2, intrinsic=accept + 1, stack=serve),
        ]
    )
    build.thread(end_ns=START_NS + 1000, end_cpu_ns=100, tid=812, main=1, recorded=4, passed=1_200_000)
    build.thread(end_ns=START_NS + 1000, tid=813, recorded=1, passed=34_567)
    build.thread(end_ns=START_NS + 1000, tid=814, passed=9)
    build.ended(1000, 100)
    return Experiment(str(build.write()))


@pytest.mark.parametrize(
    ("by", "rows"),
    [
        ("kind", [("net", 70), ("file", 30), ("sync", 0), "code", "overhead", ("idle", 1600)]),
        ("intrinsic", [("net", 50), ("file", 30), ("net", 20), "code", "overhead", ("idle", 1600)]),
        ("site", [("net", 50), ("file", 30), ("net", 20), "code", "overhead", ("idle", 1600)]),
        ("detail", [("net", 50), ("file", 30), ("net", 20), "code", "overhead", ("idle", 1600)]),
        (
            "thread",
            [(None, 100), (None, 0), (None, 0), *["code"] * 3, *["overhead"] * 2, ("idle", 900), ("idle", 700)],
        ),
        ("process", [(None, 100), "code", "overhead", ("idle", 1600)]),
    ],
)
def test_what_waited_for_work_comes_last(server, by, rows):
    made = profile(Analysis(server), by)

    found = [(row.kind, row.sums.self_wall_ns) if row.is_of_calls else row.kind for row in made.rows]
    assert found == rows
    assert sum(row.sums.self_wall_ns for row in made.rows) == made.total.wall_ns == 3000
    assert sum(row.sums.self_cpu_ns for row in made.rows) == made.total.cpu_ns


@pytest.mark.parametrize(
    ("by", "known"),
    [
        ("thread", {"812 main": 1000, "813": 1000, "814": 1000}),
        ("process", {"4194305": 3000}),
        ("program", {"orders.py": 3000}),
    ],
)
def test_what_is_in_no_call_is_told_of_each_thread_and_of_what_it_is_a_part_of(server, by, known):
    made, found = profile(Analysis(server), by), Counter()
    for row in made.rows:
        found[row.labels[by]] += row.sums.self_wall_ns

    assert found == known


@pytest.mark.parametrize(
    ("arguments", "cwd", "known"),
    [
        (["orders.py"], "/home/u/shop", "orders.py"),
        (["./orders.py", "--pin", "?"], "/home/u/shop", "orders.py"),
        (["-u", "-X", "dev", "../shop/orders.py"], "/home/u/bin", "/home/u/shop/orders.py"),
        (["/usr/bin/orders"], "/home/u/shop", "/usr/bin/orders"),
        (["-Im", "shop.web", "x"], "/home/u/shop", "-m shop.web"),
        (["-mshop.web"], "/home/u/shop", "-m shop.web"),
        (["-uc", "?", "x.py"], "/home/u/shop", "-c"),
        (["-Wd", "--", "orders.py"], "/home/u/shop", "orders.py"),
        (["-"], "/home/u/shop", "-"),
        (["orders.py"], "", "orders.py"),
    ],
)
def test_a_program_has_one_name_however_it_was_started(tmp_path, arguments, cwd, known):
    build = Build(tmp_path / "t.1.er", arguments=arguments, cwd=cwd)
    build.events([event(100, 50)])

    made = profile(Analysis(Experiment(str(build.write()))), "program")

    assert {row.labels["program"] for row in made.rows} == {known}


def test_a_script_that_children_run_in_other_directories_is_one_program(tmp_path):
    founder = Build(tmp_path / "t.1.er", cwd="/home/u", arguments=["-u", "shop/orders.py"])
    founder.events([event(100, 50)])
    founder.write()
    for number, (cwd, script) in enumerate([("/home/u/shop", "orders.py"), ("/tmp", "/home/u/shop/orders.py")], 1):
        child = Build(tmp_path / "t.1.er" / f"_c{number}.er", pid=900 + number, cwd=cwd, arguments=[script])
        child.events([event(100, 50)])
        child.write()
    analysis = Analysis(Experiment(str(tmp_path / "t.1.er")))

    assert {row.labels["program"] for row in profile(analysis, "program").rows} == {"shop/orders.py"}
    assert {row.name for row in programs(Survey(analysis)) if row.part == BETWEEN} == {"/home/u/shop/orders.py"}


def test_a_limit_of_rows_holds_for_each_kind_of_what_is_in_no_call(server):
    rows = arranged(profile(Analysis(server), "thread").rows, None, 1)

    assert [(row.kind, row.labels["thread"]) for row in rows] == [
        *((None, "812 main"), ("code", "814"), ("overhead", rows[2].labels["thread"]))
    ]


def test_waiting_for_work_comes_last_among_the_kinds_and_is_no_own_line(server):
    made = profile(Analysis(server), "site")

    kinds = by_kind(made)
    assert [row.kind for row in kinds] == ["file", "net", "sync", "code", "overhead", "idle"]
    assert kinds[-1].comment == "waiting for work"
    assert sum(row.sums.self_wall_ns for row in kinds) == made.total.wall_ns
    assert {row.kind for row in own_lines(made.rows)} == {"file", "net"}


@pytest.mark.parametrize(
    ("by", "passed"),
    [
        ("kind", {"sync": 1_234_576}),
        ("thread", {"812 main": 1_200_000, "813": 34_567, "814": 9}),
        ("process", {"4194305": 1_234_576}),
        ("intrinsic", {}),
    ],
)
def test_calls_that_did_not_wait_are_told_once(server, by, passed):
    rows = [row for row in profile(Analysis(server), by).rows if row.passed]

    assert {next(iter(row.labels.values()), row.kind): row.passed for row in rows} == passed


def test_a_kind_of_calls_may_be_called_as_a_closing_row_and_is_none(tmp_path):
    build = Build(tmp_path / "t.1.er")
    build.block([event(0, 5, intrinsic=build.intrinsic("a", "code"))])
    build.thread(end_ns=START_NS + 9)

    rows = by_kind(profile(Analysis(Experiment(str(build.write()))), "site"))

    assert [(row.kind, row.is_of_calls) for row in rows] == [
        ("code", True),
        ("code", False),
        ("overhead", False),
    ]
    assert sum(row.sums.self_wall_ns for row in rows) == 9


def test_only_ones_own_lines_are_own(shop, tmp_path):
    build = Build(tmp_path / "u.1.er")
    build.block([event(0, 5, stack=build.stack(build.site("/usr/lib/a.py", 1, "f", own=0)))])

    assert len(own_lines(profile(Analysis(shop), "site").rows)) == 2
    assert own_lines(profile(Analysis(Experiment(str(build.write()))), "site").rows) == []


@pytest.mark.parametrize(
    ("total_ns", "calls", "uncertain"), [(0, 5, False), (299, 1, True), (300, 1, False), (2999, 10, True)]
)
def test_a_figure_near_the_cost_of_measuring_is_uncertain(total_ns, calls, uncertain):
    assert is_uncertain(total_ns, calls, inside_ns=30, resolution_ns=1) is uncertain
