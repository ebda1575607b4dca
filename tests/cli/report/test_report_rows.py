"""`interpose report` by one grouping or another: rows, their order, and formats."""

import csv
import io
import json
from pathlib import Path

import pytest
from shop_orders import ended, orders, served

from interpose.analysis.calls.groupings import GROUPINGS
from tests.build import SECOND, START_NS, Build, event


@pytest.mark.parametrize("by", ["kind", "intrinsic", "site", "function", "detail", "thread", "process"])
@pytest.mark.parametrize("written", ["text", "json", "csv", "markdown"])
def test_every_grouping_in_every_format(run_main, by, written):
    ended(orders()).write()

    code, out, err = run_main("report", "--by", by, "--format", written)

    assert (code, err) == (0, "")
    assert "overhead" in out


def test_json_rows_have_the_promised_keys_and_add_up(run_main):
    ended(orders()).write()

    _, out, _ = run_main("report", "--by", "intrinsic", "--format", "json")
    rows = json.loads(out)

    assert list(rows[0]) == [
        "kind",
        "intrinsic",
        "calls",
        "errors",
        "wall_ns",
        "cpu_ns",
        "self_wall_ns",
        "self_cpu_ns",
        "bytes",
        "rows",
        "counted",
    ]
    assert sum(row["self_wall_ns"] for row in rows) == 20 * SECOND
    assert [(row["kind"], row["intrinsic"]) for row in rows] == [
        ("db", "sqlite3.Cursor.execute"),
        ("file", "os.write"),
        ("code", None),
        ("overhead", None),
    ]


def test_json_without_a_grouping_is_one_object(run_main):
    build = ended(orders())
    build.log_events.append(f'<event kind="warning" time_ns="{START_NS}" text="no such library"/>')
    build.write()

    code, out, err = run_main("report", "--format", "json")
    found = json.loads(out)

    assert (code, err) == (0, "")
    totals = ["elapsed_ns", "thread_ns", "overhead_in_calls_ns", "cpu_ns", "complete"]
    lists = ["rows", "findings", "memory", "counters"]
    left_out = ["unexplained_wait_ns", "not_recorded"]
    assert list(found) == [*totals, *lists, "samples", "children_not_followed", *left_out, "warnings"]
    assert [row["kind"] for row in found["rows"]] == ["db", "file", "code", "overhead"]
    assert sum(row["self_wall_ns"] for row in found["rows"]) == found["thread_ns"] == 20 * SECOND
    assert sum(row["self_cpu_ns"] for row in found["rows"]) == found["cpu_ns"]
    assert found["complete"] is True
    assert found["findings"][0]["bound_ns"] > 0
    assert found["warnings"] == ["no such library"]


def test_json_says_where_an_experiment_is_incomplete(run_main):
    build = ended(orders())
    build.threads[0][0]["dropped"] = 7
    build.write()

    found = json.loads(run_main("report", "--format", "json")[1])

    assert found["complete"] is False
    assert any("7 events lost" in line for line in found["warnings"])


@pytest.mark.parametrize("by", ["function", "line"])
def test_functions_that_were_sampled_are_rows_beside_calls(run_main, by):
    build = ended(orders())
    stack = build.sampled_stack(("/home/u/shop/orders.py", 3, "main"), ("/home/u/shop/orders.py", 9, "work"))
    for place in range(1, 100):
        build.thread_sample(START_NS + place * SECOND // 5, cpu_ns=place * SECOND // 50, stack=stack)
    build.write()

    rows = json.loads(run_main("report", "--by", by, "--format", "json")[1])
    text = run_main("report", "--by", by)[1]

    found = next(row for row in rows if row["kind"] == "code")
    assert (found["function"], found["file"], found["line"]) == ("work", "/home/u/shop/orders.py", 9)
    assert found["samples"] == 99
    assert found["margin_ns"] > 0
    waits = found["gil_ns"] + found["runqueue_ns"] + found["unexplained_ns"]
    assert found["self_wall_ns"] == found["self_cpu_ns"] + waits
    assert sum(row["self_wall_ns"] for row in rows) == 20 * SECOND
    assert "\u00b1" in text
    assert next(row for row in rows if row["kind"] == "db")["samples"] is None


def test_rows_are_sorted_and_limited(run_main):
    ended(orders()).write()

    _, out, _ = run_main("report", "--by", "intrinsic", "--sort", "bytes", "--limit", "1", "--format", "csv")
    _, *rows = csv.reader(io.StringIO(out))

    assert [row[:2] for row in rows] == [["file", "os.write"], ["code", ""], ["overhead", ""]]


def test_rows_that_a_limit_hides_are_summed_in_the_last_one(run_main):
    ended(orders()).write()

    _, out, _ = run_main("report", "--by", "intrinsic", "--limit", "1")
    *_, last = out.splitlines()

    assert last.split() == ["1", "more", "row", "100", "2.00", "s", "0.05", "s", "1.95", "s", "10", "%", "1,000"]


@pytest.mark.parametrize("sort", ["name", "calls", "wall", "wait", "cpu"])
@pytest.mark.parametrize(
    ("limit", "kinds"),
    [
        ("9", {"net", "sync", "code", "overhead", "idle"}),
        ("2", {"net", "sync", "code", "overhead"}),
    ],
)
def test_waiting_for_work_is_last_however_one_sorts_and_the_first_to_go(run_main, sort, limit, kinds):
    served().write()

    for by in ("intrinsic", "site", "function", "detail"):
        _, out, _ = run_main("report", "--by", by, "--sort", sort, "--limit", limit, "--format", "json")
        found = [row["kind"] for row in json.loads(out)]
        assert set(found) == kinds
        assert ("idle" not in found) or found[-1] == "idle"


def test_the_kinds_of_one_intrinsic_are_told_apart(run_main):
    served().write()

    _, out, _ = run_main("report", "--by", "site")

    found = [line.split()[:2] for line in out.splitlines()]
    assert found[0] == ["kind", "intrinsic"]
    assert ["net", "socket.socket.accept"] in found
    assert found[-1] == ["idle", "socket.socket.accept"]
    assert any(line.startswith("code ") for line in out.splitlines())


def test_a_call_in_progress_that_waits_for_work_has_its_kind(run_main):
    build = served()
    opened = [{"start_ns": START_NS + 19 * SECOND, "call": 4, "intrinsic": 2, "stack": 1}]
    build.thread(open_calls=opened, tid=813)
    build.write()

    rows = json.loads(run_main("events", "--last", "1", "--format", "json")[1])
    _, screen, _ = run_main("report")

    assert [(row["intrinsic"], row["kind"], row["state"]) for row in rows] == [
        ("socket.socket.accept", "idle", "exit")
    ]
    assert " in progress  socket.socket.accept at serve.py:7 for 1.00 s when it ended\n" in screen


def test_json_of_threads_tells_the_calls_that_did_not_wait(run_main):
    served().write()

    _, out, _ = run_main("report", "--by", "thread", "--format", "json")

    assert [(row["thread"], row["kind"], row["passed"]) for row in json.loads(out)] == [
        ("812 main", None, 1_234_567),
        ("812 main", "code", 0),
        ("812 main", "overhead", 0),
        ("812 main", "idle", 0),
    ]


def test_the_table_of_threads_names_uncontended_locks(run_main):
    served().write()

    head, first, *_ = run_main("report", "--by", "thread")[1].splitlines()

    assert (head.split()[-1], first.split()[-1]) == ("uncontended", "1,234,567")


def test_calls_of_a_database_without_a_statement_say_so(run_main):
    build = Build(Path("test.1.er"))
    commit, sleep = build.intrinsic("sqlite3.Connection.commit", "db"), build.intrinsic("time.sleep", "sleep")
    build.events([event(0, 9, call=1, intrinsic=commit), event(10, 5, call=2, intrinsic=sleep)])
    build.thread(end_ns=START_NS + SECOND, recorded=2, made=2)
    ended(build).write()

    _, first, second, *_ = run_main("report", "--by", "statement")[1].splitlines()

    assert [first.split()[:4], second.split()[:2]] == [["db", "no", "statement", "1"], ["sleep", "1"]]


def of_driver(build):
    """The calls of a driver in Python: it connects, asks, and waits for the answer."""
    connect, query = build.intrinsic("pymysql.connect", "db"), build.intrinsic("pymysql.Connection.query", "db")
    build.intrinsic("socket.socket.recv_into", "net")
    receive = build.intrinsic("socket.socket.recv_into", "db")
    details = {connect: "127.0.0.1/shop", query: "SELECT ?", receive: "127.0.0.1:3306"}
    numbered = {intrinsic: build.string(detail) for intrinsic, detail in details.items()}
    build.events(
        [event(10 * each, 5, call=each, intrinsic=each, detail=numbered[each]) for each in (connect, query, receive)]
    )
    build.thread(end_ns=START_NS + SECOND, recorded=3, made=3)
    return ended(build)


def test_statements_are_what_a_database_was_asked_and_not_where_a_driver_sent_it(run_main):
    of_driver(Build(Path("test.1.er"))).write()

    rows = json.loads(run_main("report", "--by", "statement", "--format", "json")[1])

    assert {(each["statement"], each["calls"]) for each in rows if each["kind"] == "db"} == {("SELECT ?", 1), ("", 2)}


@pytest.mark.packages
def test_the_view_of_statements_has_the_same(run_main):
    pytest.importorskip("duckdb")
    of_driver(Build(Path("test.1.er"))).write()

    rows = json.loads(run_main("sql", "select intrinsic, detail from statements", "--format", "json")[1])

    assert rows == [{"intrinsic": "pymysql.Connection.query", "detail": "SELECT ?"}]


def test_tables_fit_eighty_columns_and_tell_self_and_inclusive_times(run_main, monkeypatch):
    served().write()
    monkeypatch.setattr("interpose.cli.output._NO_WIDTH", 80)

    for by in GROUPINGS:
        _, out, _ = run_main("report", "--by", by)
        head, *rows = out.splitlines()
        assert " calls  self wall  self CPU     wait  inclusive" in head
        assert max(map(len, [head, *rows])) <= 80


def test_the_inclusive_time_is_that_of_the_outer_call(run_main):
    build = Build(Path("test.1.er"))
    query, sleep = build.intrinsic("sqlite3.Cursor.execute", "db"), build.intrinsic("time.sleep", "sleep")
    build.block(
        [
            event(10, 30_000_000, call=3, parent=2, intrinsic=sleep),
            event(5, 50_000_000, call=2, parent=1, intrinsic=query, inner_wall_ns=30_000_000),
            event(0, 90_000_000, 7_000_000, call=1, intrinsic=query, inner_wall_ns=50_000_000),
        ]
    )
    build.thread(end_ns=START_NS + 100_000_000, recorded=3)
    build.ended(100_000_000, 7_000_000)
    build.write()

    text = run_main("report", "--by", "intrinsic", "--sort", "inclusive")[1].splitlines()
    rows = json.loads(run_main("report", "--by", "intrinsic", "--format", "json")[1])
    calls = json.loads(run_main("events", "--format", "json")[1])

    assert [" ".join(line.split()) for line in text[1:4]] == [
        "db sqlite3.Cursor.execute 2 60.00 ms 7.00 ms 53.00 ms 90.00 ms 60 %",
        "sleep time.sleep 1 30.00 ms 0.00 ms 30.00 ms 30.00 ms 30 %",
        "code 10.00 ms 0.00 ms 10.00 ms 10 %",
    ]
    assert [(row["wall_ns"], row["self_wall_ns"]) for row in rows[:2]] == [
        (90_000_000, 60_000_000),
        (30_000_000, 30_000_000),
    ]
    assert [(call["wall_ns"], call["self_wall_ns"], call["self_cpu_ns"]) for call in calls] == [
        (90_000_000, 40_000_000, 7_000_000),
        (50_000_000, 20_000_000, 0),
        (30_000_000, 30_000_000, 0),
    ]


def test_a_wait_in_progress_is_told_without_the_waits_inside_of_it(run_main):
    build = Build("test.1.er", cwd="/home/u")
    wait = build.stack(build.site("/home/u/serve.py", 9, "work"))
    inside = build.stack(build.site("/usr/lib/python3.12/threading.py", 355, "wait", own=0), wait)
    other = build.stack(build.site("/home/u/serve.py", 20, "called_back"), inside)
    names = ("threading.Event.wait", "threading.Condition.wait", "threading.Lock.acquire", "time.sleep")
    calls = [(build.intrinsic(each, "sync"), at) for each, at in zip(names, (wait, inside, inside, other), strict=True)]
    opened = [
        {"start_ns": START_NS + number * SECOND, "call": number, "intrinsic": intrinsic, "stack": at}
        for number, (intrinsic, at) in enumerate(calls, 1)
    ]
    build.thread(open_calls=opened, main=1, tid=812, made=4)
    build.thread(open_calls=[opened[2] | {"call": 9}], tid=813, made=1)
    build.ended(10 * SECOND, 0)
    build.write()

    _, out, _ = run_main("report")

    told = [line.split()[2:5] for line in out.splitlines() if line.startswith(" in progress  ") and " at " in line]
    assert sorted(told) == [
        ["threading.Event.wait", "at", "serve.py:9"],
        ["threading.Lock.acquire", "at", "serve.py:9"],
        ["time.sleep", "at", "serve.py:20"],
    ]
