"""Transactions: think time, response time, and what the response time was."""

import csv
import io
import json
import os
import select
import subprocess
import sys
import textwrap
import time

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from interpose.analysis.analysis import Analysis
from interpose.analysis.calls.profile import profile
from interpose.analysis.consolidation.plain_consolidator import PlainConsolidator
from interpose.analysis.consolidation.sums import DETAILS_AT_MOST
from interpose.analysis.findings.engine import findings
from interpose.analysis.findings.survey import Named, Survey
from interpose.analysis.transactions.response_times import plain_name, transactions
from interpose.experiments.model.experiment import Experiment
from interpose.reports.tables.transactions import transactions_table
from interpose.transactions import transaction
from tests.build import START_NS, Build, event

CLERK = """
import json, sqlite3, time

connection = sqlite3.connect("shop.db", isolation_level=None)
COUNT = "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 200000) SELECT max(i) FROM n"

def ask():
    begun = time.perf_counter()
    answer = input("order: ")
    thought.append(time.perf_counter() - begun)
    return answer

def order():
    while ask() != "quit":
        begun = time.perf_counter()
        connection.execute(COUNT).fetchall()
        queried.append(time.perf_counter() - begun)
        for _ in range(2):
            time.sleep(0.01)
        end = time.thread_time() + 0.13
        while time.thread_time() < end:
            pass
        answered.append(time.perf_counter() - begun)

thought, answered, queried = [], [], []
order()
with open("truth.json", "w") as file:
    json.dump([thought, answered, queried], file)
"""


class Shop:
    """A founder with intrinsics of every role, whose thread lived from 0 to `end_ns`."""

    def __init__(self, directory, **log):
        self.build = Build(directory, **({"call_ns": 0, "inside_ns": 0} | log))
        self.build.log_events.append('<user uid="1" terminal="/dev/pts/1" streams="0 1"/>')
        self.query = self.build.intrinsic("sqlite3.Cursor.execute", "db")
        self.read = self.build.intrinsic("input", "screen", terminal="1")
        self.show = self.build.intrinsic("os.write", "screen")
        self.commit = self.build.intrinsic("sqlite3.Connection.commit", "db", transaction="ends")
        self.serve = self.build.intrinsic("flask.Flask.wsgi_app", "logic", transaction="is")
        self.mark = self.build.intrinsic("interpose.transaction", "logic", transaction="is")
        self.name = self.build.intrinsic("interpose.named", "logic", transaction="named")
        self.names = [0, self.build.string("pay"), self.build.string(".batch")]
        self.ask = self.build.stack(self.build.site("/home/u/shop/orders.py", 12, "ask"))
        self.again = self.build.stack(self.build.site("/home/u/shop/orders.py", 15, "ask"))

    def made(self, events, end_ns=10_000, cpu_ns=1000, **more):
        for number, each in enumerate(events):
            each.setdefault("call", number + 1000)
        self.build.events(events)
        of_thread = {"tid": 9, "main": 1, "recorded": len(events), **more}
        self.build.thread(end_ns=START_NS + end_ns, end_cpu_ns=cpu_ns, **of_thread)
        self.build.ended(end_ns, cpu_ns)
        return transactions(Analysis(Experiment(str(self.build.write()))))


@pytest.fixture
def shop(tmp_path):
    return Shop(tmp_path / "t.1.er")


def rows(made):
    return {row.name: (row.sums.calls, row.think_ns, row.response_ns, row.cpu_ns) for row in made.rows}


def split(made, name):
    (row,) = [row for row in made.rows if row.name == name]
    return {kind: share.wall_ns for kind, share in row.split.items() if share.wall_ns}


def on_thread(made):
    return {row.name: (row.thread_ns, row.overlap_ns) for row in made.rows}


def test_think_and_response_time_at_a_terminal(shop):
    made = shop.made(
        [
            event(1000, 500, 10, intrinsic=shop.read, stack=shop.ask, start_cpu_ns=50),
            event(1600, 200, 20, intrinsic=shop.query, start_cpu_ns=70),
            event(2000, 100, 5, intrinsic=shop.show, start_cpu_ns=200),
            event(3000, 2000, 10, intrinsic=shop.read, stack=shop.ask, start_cpu_ns=300),
            event(6000, 1000, 0, intrinsic=shop.read, stack=shop.ask, start_cpu_ns=400),
        ]
    )

    assert rows(made) == {
        "ask": (2, 2500, 1500 + 1000, 240 + 90),
        ".INIT": (1, 0, 1000, 50),
        ".EXIT": (1, 1000, 3000, 600),
    }
    assert split(made, "ask") == {"db": 200, "screen": 100, "logic": 2200}


def test_what_comes_from_a_pipe_is_no_thinking(shop):
    shop.build.log_events = ['<user uid="1" terminal="/dev/pts/1" streams="1 2"/>']

    made = shop.made([event(1000, 500, intrinsic=shop.read, stack=shop.ask)])

    assert [(row.name, row.think_ns) for row in made.rows] == [(".OTHER", 0)]


def test_lines_of_a_function_that_begin_transactions_are_told_apart(shop):
    reads = [event(n * 1000, 500, intrinsic=shop.read, stack=(shop.ask, shop.again)[n % 2]) for n in range(1, 6)]

    assert [row.name for row in shop.made(reads).rows if row.is_named] == ["ask:12", "ask:15"]


def test_requests_are_named_by_route_and_their_calls_are_theirs(shop):
    plain = [shop.build.string(f"GET /orders/{number}") for number in (17, 18)]
    calls = [
        event(1100, 300, 10, intrinsic=shop.query, call=2, parent=1),
        event(1000, 1000, 100, intrinsic=shop.serve, call=1, detail=plain[0], inner_wall_ns=300, inner_cpu_ns=10),
        event(2500, 100, 0, intrinsic=shop.query, call=3),
        event(3000, 1000, 50, intrinsic=shop.serve, call=4, detail=plain[1]),
    ]
    made = shop.made(calls)

    assert rows(made)["GET /orders/*"] == (2, 0, 2000, 150)
    assert split(made, "GET /orders/*") == {"db": 300, "logic": 1700}
    assert split(made, ".IDLE") == {"db": 100, "logic": 900}


def test_what_recording_did_by_itself_in_a_request_is_overhead_of_that_alone(shop):
    paths = [shop.build.string(f"GET /{name}") for name in "ab"]
    calls = [
        event(1000, 1000, 700, intrinsic=shop.serve, call=1, detail=paths[0], inner_wall_ns=600, inner_cpu_ns=400),
        event(3100, 300, 10, intrinsic=shop.query, call=3, parent=2),
        event(3000, 1000, 100, intrinsic=shop.serve, call=2, detail=paths[1], inner_wall_ns=300, inner_cpu_ns=10),
    ]
    made = shop.made(calls, own_wall_ns=700, own_cpu_ns=450)

    assert split(made, "GET /a") == {"logic": 400, "overhead": 600}
    assert split(made, "GET /b") == {"db": 300, "logic": 700}
    assert split(made, ".INIT") == {"logic": 900, "overhead": 100}


def test_what_is_marked_inside_of_a_request_names_it(shop):
    checkout, path = shop.build.string("checkout"), shop.build.string("POST /cart")
    made = shop.made(
        [
            event(1100, 300, intrinsic=shop.query, call=3, parent=2),
            event(1050, 500, intrinsic=shop.mark, call=2, parent=1, detail=checkout, inner_wall_ns=300),
            event(1000, 1000, intrinsic=shop.serve, call=1, detail=path, inner_wall_ns=500),
        ]
    )

    assert rows(made)["checkout"][:3] == (1, 0, 1000)
    assert split(made, "checkout") == {"db": 300, "logic": 700}


def test_batch_is_divided_by_commits(shop):
    calls = [
        each
        for n in range(1, 5)
        for each in (
            event(n * 2000 - 500, 300, intrinsic=shop.query),
            event(n * 2000, 100, intrinsic=shop.commit, stack=shop.ask),
        )
    ]
    made = shop.made(calls)

    assert rows(made)["ask"][:3] == (4, 0, 4 * 600)
    assert rows(made)[".INIT"][:3] == (1, 0, 1500)
    assert rows(made)[".IDLE"][:3] == (3, 0, 3 * 1400)
    assert rows(made)[".EXIT"][:3] == (1, 0, 1900)


@pytest.mark.parametrize("rollbacks", [[1], [1, 2]])
@pytest.mark.parametrize("is_statement", [False, True])
def test_a_transaction_after_a_rollback_that_ended_none_begins_with_its_first_call(shop, rollbacks, is_statement):
    drop = {"intrinsic": shop.build.intrinsic("sqlite3.Connection.rollback", "db")}
    if is_statement:
        drop = {"intrinsic": shop.query, "detail": shop.build.string("ROLLBACK")}
    calls = []
    for begin in range(1000, 9000, 2000):
        calls += [event(begin + 100 * number, 10, **drop) for number in rollbacks]
        calls += [event(begin + 500 + 300 * number, 200, intrinsic=shop.query) for number in range(2)]
        calls += [event(begin + 1100, 100, intrinsic=shop.commit, stack=shop.ask)]
        calls += [event(begin + 1200 + 100 * number, 10, **drop) for number in rollbacks]
    made = shop.made(calls)
    plain = transactions(Analysis(Experiment(str(shop.build.directory)), consolidator=PlainConsolidator))

    assert rows(made) == rows(plain)
    assert rows(made)["ask"][:3] == (4, 0, 4 * 700)
    assert split(made, "ask") == {"db": 4 * 500, "logic": 4 * 200}
    assert rows(made)[".INIT"][:3] == (1, 0, 1500)
    assert rows(made)[".IDLE"][:3] == (3, 0, 3 * 1300)
    assert rows(made)[".EXIT"][:3] == (1, 0, 1800)


def of_tasks(shop, begin, task):
    """What a task does with a database: a query that waits, a sleep, a commit, a rollback without effect."""
    rollback = shop.build.intrinsic("sqlite3.Connection.rollback", "db")
    return [
        event(begin, 300, 20, intrinsic=shop.query, inner_wall_ns=270, task=task),
        event(begin + 350, 50, 5, intrinsic=shop.show, task=task),
        event(begin + 500, 100, 10, intrinsic=shop.commit, inner_wall_ns=90, stack=shop.ask, task=task),
        event(begin + 610, 10, 1, intrinsic=rollback, task=task),
    ]


def in_order_of_ends(events):
    return sorted(events, key=lambda each: each["start_ns"] + each["wall_ns"])


def test_what_a_task_commits_is_a_transaction_of_the_task(shop):
    calls = [*of_tasks(shop, 1000, 1), *of_tasks(shop, 1100, 2), *of_tasks(shop, 3000, 1), *of_tasks(shop, 3005, 2)]
    left = [event(5000, 100, intrinsic=shop.query, task=task) for task in (1, 3)]
    made = shop.made(in_order_of_ends([*calls, *left]))
    plain = transactions(Analysis(Experiment(str(shop.build.directory)), consolidator=PlainConsolidator))

    assert [(row.name, row.sums, row.split) for row in made.rows] == [
        (row.name, row.sums, row.split) for row in plain.rows
    ]
    assert rows(made)["ask"] == (4, 0, 4 * 600, 4 * 35)
    assert split(made, "ask") == {"db": 4 * 400, "screen": 4 * 50, "suspended": 4 * 150}
    assert on_thread(made)["ask"] == (4 * 90, 4 * (600 - 90))
    assert rows(made)[".OTHER"][:3] == (1, 0, 10_000 - 4 * 90)
    assert made.thread_ns == 10_000


def test_what_tasks_roll_back_or_never_commit_is_in_no_transaction(shop):
    drop = {"intrinsic": shop.query, "detail": shop.build.string("ROLLBACK")}
    made = shop.made(
        [
            event(1000, 100, intrinsic=shop.query, task=1),
            event(1200, 100, task=1, **drop),
            event(1400, 100, intrinsic=shop.query, task=2),
        ]
    )

    assert on_thread(made) == {".OTHER": (10_000, 0)}


@pytest.mark.parametrize("around", ["serve", "mark"])
def test_where_requests_are_served_what_other_tasks_commit_is_no_transaction(shop, around):
    before = of_tasks(shop, 1000, 1)
    request = [
        event(2500, 100, intrinsic=shop.query, task=2, call=2, parent=1),
        event(2700, 100, intrinsic=shop.commit, stack=shop.again, task=2, call=3, parent=1),
        event(2000, 2000, 30, inner_wall_ns=300, intrinsic=getattr(shop, around), task=2, call=1),
    ]
    beside = [*of_tasks(shop, 1800, 3), *of_tasks(shop, 2200, 4), *of_tasks(shop, 3800, 5), *of_tasks(shop, 6000, 1)]
    for each in beside:
        each["stack"] = shop.again if each.get("stack") else 0
    made = shop.made(in_order_of_ends([*before, *request, *beside]))
    plain = transactions(Analysis(Experiment(str(shop.build.directory)), consolidator=PlainConsolidator))

    assert rows(made) == rows(plain)
    assert {name: row[0] for name, row in rows(made).items() if not name.startswith(".")} == {
        "ask": 1,
        {"serve": "flask.Flask.wsgi_app", "mark": "interpose.transaction"}[around]: 1,
    }
    assert made.thread_ns == 10_000


IN_TASKS = """
    import asyncio, sqlite3, time
    took = []
    async def pay(connection, times):
        for number in range(times):
            begun = time.perf_counter_ns()
            connection.execute("insert into t values (1)")
            await asyncio.sleep(0.01)
            connection.commit()
            took.append(time.perf_counter_ns() - begun)
            connection.rollback()
            await asyncio.sleep(0.02)
    async def main():
        connections = [sqlite3.connect(":memory:", isolation_level=None) for _ in range(4)]
        for each in connections:
            each.execute("create table t (a)")
        await pay(connections[0], 2)
        await asyncio.gather(*[pay(each, 3) for each in connections])
    asyncio.run(main())
    print(len(took), sum(took))
"""


@pytest.mark.parametrize("consolidates", ["0", "1"])
def test_transactions_of_tasks_take_as_long_as_the_program_measures(traced, consolidates):
    done = traced(IN_TASKS, INTERPOSE_CONSOLIDATE=consolidates)
    count, took_ns = map(int, done.stdout.split())
    analysis = Analysis(done.experiment)
    made = transactions(analysis)
    found = {row.name: row for row in made.rows}

    assert found["pay"].sums.calls == count
    assert found["pay"].response_ns == pytest.approx(took_ns, rel=0.1, abs=1_000_000)
    assert found["pay"].split["sleep"].wall_ns >= count * 10_000_000
    assert made.thread_ns == analysis.total.wall_ns
    for row in made.rows:
        assert sum(share.wall_ns for share in row.split.values()) == row.thread_ns + row.overlap_ns


BEFORE_THE_DATABASE = """
    import sqlite3, sys, time
    def atom(connection):
        begun = time.perf_counter_ns()
        connection.execute("BEGIN")
        for number in range(5):
            connection.execute("insert into t values (?)", (number,))
        connection.commit()
        return time.perf_counter_ns() - begun
    begun = time.perf_counter_ns()
    for _ in range(5):
        time.sleep(0.02)
    slept = time.perf_counter_ns() - begun
    connection = sqlite3.connect(":memory:", isolation_level=None)
    connection.execute("create table t (a)")
    for number in range(20):
        connection.execute("insert into t values (?)", (number,))
        time.sleep(0.001)
    print(slept, atom(connection) + atom(connection))
"""


@pytest.mark.parametrize("consolidates", ["0", "1"])
def test_a_transaction_that_a_commit_implies_takes_as_long_as_the_program_measures(traced, consolidates):
    done = traced(BEFORE_THE_DATABASE, INTERPOSE_CONSOLIDATE=consolidates)
    slept_ns, atoms_ns = map(int, done.stdout.split())
    analysis = Analysis(done.experiment)
    made = transactions(analysis)
    found = {row.name: row for row in made.rows}

    assert found["atom"].sums.calls == 2
    assert found["atom"].response_ns == pytest.approx(atoms_ns, rel=0.1, abs=1_000_000)
    assert found[".INIT"].sums.calls == 1
    assert found[".INIT"].response_ns > slept_ns
    assert made.thread_ns == analysis.total.wall_ns
    assert "sleep within a transaction" not in [each.rule for each in findings(Analysis(done.experiment))]


UNITS_OF_WORK = {
    "sqlite3": """
        from contextlib import closing
        def work():
            with closing(sqlite3.connect("units.db")) as connection, connection:
                connection.execute("insert into t values (1)")
    """,
    "a cursor": """
        def work():
            cursor = made.cursor()
            cursor.execute("insert into t values (1)")
            made.commit()
            cursor.close()
    """,
    "a pool": """
        def work():
            made.execute("insert into t values (1)")
            made.commit()
            made.rollback()
    """,
}
REPEATED = """
    import json, sqlite3, time
    made = sqlite3.connect("units.db")
    made.execute("create table t (a)")
    made.commit()
    {}
    took = []
    for _ in range(8):
        time.sleep(0.05)
        begun = time.perf_counter_ns()
        work()
        took.append(time.perf_counter_ns() - begun)
    print(json.dumps(took))
"""


@pytest.mark.parametrize("consolidates", ["0", "1"])
@pytest.mark.parametrize("way", UNITS_OF_WORK)
def test_no_time_between_two_units_of_work_is_in_a_transaction(traced, way, consolidates):
    program = textwrap.dedent(REPEATED).format(textwrap.dedent(UNITS_OF_WORK[way]))
    done = traced(program, INTERPOSE_CONSOLIDATE=consolidates)
    took_ns = json.loads(done.stdout)
    found = {row.name: row for row in transactions(Analysis(done.experiment)).rows if row.name[0] != "."}
    row = found["work"]

    assert len(found) == 2
    assert row.sums.calls == 8
    assert "sleep" not in row.split
    assert row.response_ns <= sum(took_ns)
    assert row.sums.wall_most_ns <= max(took_ns)


GIVEN_UP = """
    import json, sqlite3, time
    def save():
        connection = sqlite3.connect("units.db")
        cursor = connection.cursor()
        begun = time.perf_counter_ns()
        cursor.execute("insert into t values (1)")
        time.sleep(0.05)
        connection.cursor().close()
        connection.commit()
        took.append(time.perf_counter_ns() - begun)
        connection.close()
    def give_up():
        connection = sqlite3.connect("units.db")
        connection.execute("insert into t values (2)")
        connection.close()
    sqlite3.connect("units.db").execute("create table t (a)").connection.close()
    took = []
    for _ in range(4):
        give_up()
        time.sleep(0.1)
        save()
        time.sleep(0.1)
    print(json.dumps(took), sqlite3.connect("units.db").execute("select count(*) from t").fetchone()[0])
"""


@pytest.mark.parametrize("consolidates", ["0", "1"])
def test_a_unit_of_work_ends_without_a_transaction_where_its_connection_is_closed(traced, consolidates):
    done = traced(GIVEN_UP, INTERPOSE_CONSOLIDATE=consolidates)
    took, rows = done.stdout.rsplit(maxsplit=1)
    took_ns = json.loads(took)
    found = {row.name: row for row in transactions(Analysis(done.experiment)).rows if row.name[0] != "."}

    assert rows == "4"
    assert list(found) == ["save"]
    assert found["save"].sums.calls == 4
    slept = found["save"].split["sleep"].wall_ns
    assert 4 * 50_000_000 <= slept <= found["save"].response_ns
    assert slept <= sum(took_ns)


COMMITS_AS_STATEMENTS = """
    import sqlite3, time
    connection = sqlite3.connect(":memory:", isolation_level=None)
    connection.execute("create table t (a)")
    def pay(end):
        connection.execute("BEGIN IMMEDIATE")
        connection.execute("SAVEPOINT part")
        connection.execute("insert into t values (1)")
        connection.execute("RELEASE part")
        time.sleep(0.005)
        end()
    for number in range(30):
        pay(lambda: connection.execute("COMMIT"))
        if number % 3 == 0:
            pay(lambda: connection.execute("ROLLBACK"))
            pay(connection.commit)
"""


@pytest.mark.parametrize("consolidates", ["0", "1"])
def test_statements_that_commit_and_roll_back_end_transactions_as_the_methods_do(traced, consolidates):
    done = traced(COMMITS_AS_STATEMENTS, INTERPOSE_CONSOLIDATE=consolidates)
    analysis = Analysis(done.experiment)
    made = transactions(analysis)
    found = {row.name: row for row in made.rows}

    assert [found[name].sums.calls for name in ("<lambda>", "pay", ".INIT")] == [30, 10, 1]
    assert found["<lambda>"].response_ns >= 30 * 5_000_000
    assert "sleep" not in found[".INIT"].split
    assert made.thread_ns == analysis.total.wall_ns
    assert "sleep within a transaction" in [each.rule for each in findings(Analysis(done.experiment))]


def test_requests_that_overlap_have_each_their_own_calls(shop):
    first, second = shop.build.string("GET /a"), shop.build.string("GET /b")
    made = shop.made(
        [
            event(1100, 600, 5, intrinsic=shop.query, call=3, parent=1, task=1, inner_wall_ns=590),
            event(1000, 900, 50, intrinsic=shop.serve, call=1, task=1, detail=first, inner_wall_ns=850),
            event(1300, 900, 5, intrinsic=shop.query, call=4, parent=2, task=2, inner_wall_ns=890),
            event(1200, 1200, 50, intrinsic=shop.serve, call=2, task=2, detail=second, inner_wall_ns=1100),
        ]
    )

    assert rows(made)["GET /a"][:3] == (1, 0, 900)
    assert rows(made)[".OTHER"][:3] == (1, 0, 10_000 - 10 - 50 - 10 - 100)
    assert split(made, "GET /a") == {"db": 600, "logic": 50, "suspended": 850 - 600}
    assert split(made, "GET /b") == {"db": 900, "logic": 100, "suspended": 1100 - 900}
    assert made.overlapped
    assert on_thread(made) == {"GET /a": (60, 840), "GET /b": (110, 1090), ".OTHER": (9830, 0)}
    assert made.thread_ns == 10_000


def test_where_calls_were_lost_nothing_is_said_to_have_been_suspended(shop):
    pay = shop.build.string("pay")
    made = shop.made(
        [
            event(1100, 300, 5, intrinsic=shop.query, call=2, parent=1, inner_wall_ns=0),
            event(1000, 900, 50, intrinsic=shop.serve, call=1, detail=pay, inner_wall_ns=700),
        ],
        dropped=1,
    )

    assert split(made, "pay") == {"db": 300, "logic": 600}


def test_a_request_that_is_served_in_a_task_of_its_own_has_what_that_does_and_not_the_waiting_for_it(shop):
    nap = shop.build.intrinsic("asyncio.sleep", "sleep")
    made = shop.made(
        [
            event(1010, 600, 5, intrinsic=nap, call=2, parent=1, task=1, inner_wall_ns=595),
            event(1120, 300, intrinsic=shop.query, call=4, parent=3, task=2, inner_wall_ns=300),
            event(1020, 500, 200, intrinsic=shop.serve, call=3, parent=1, task=2, inner_wall_ns=300),
            event(1000, 900, 50, intrinsic=shop.serve, call=1, task=1, inner_wall_ns=855, inner_cpu_ns=5),
        ]
    )
    (row,) = [row for row in made.rows if row.is_named]

    assert (row.sums.calls, row.response_ns, row.cpu_ns) == (1, 900, 50 + 200)
    assert split(made, row.name) == {"sleep": 600 - 500, "db": 300, "logic": 45 + 200, "suspended": 255}
    assert row.split["logic"].cpu_ns == 45 + 200
    assert (row.thread_ns, row.overlap_ns) == (250, 650)
    assert sum(each.cpu_ns for each in made.rows) == 1000


def test_a_request_that_is_served_within_the_task_of_another_call_is_counted_once(shop):
    made = shop.made(
        [
            event(1020, 500, 200, intrinsic=shop.serve, call=3, parent=1, task=1, inner_wall_ns=300),
            event(1000, 900, 250, intrinsic=shop.serve, call=1, task=1, inner_wall_ns=850, inner_cpu_ns=200),
        ]
    )
    (row,) = [row for row in made.rows if row.is_named]

    assert (row.response_ns, row.cpu_ns) == (900, 250)


WORKER, MAIN = 1, 2


@pytest.fixture
def continued(shop):
    """The intrinsic of what a worker does for transactions of the main thread."""
    shop.build.thread(end_ns=START_NS + 10_000, end_cpu_ns=500, tid=10)
    return shop.build.intrinsic("contextvars.Context.run", "logic", transaction="continues")


def test_what_another_thread_does_for_a_transaction_is_in_its_split_but_not_in_its_response_time(shop, continued):
    name = shop.build.string("GET /a")
    made = shop.made(
        [
            event(2000, 700, 20, intrinsic=shop.query, call=2, parent=1, thread=WORKER),
            event(1900, 1000, 90, intrinsic=continued, call=1, detail=name, thread=WORKER, inner_wall_ns=700),
            event(1000, 2000, 100, intrinsic=shop.serve, call=1, task=1, detail=name, thread=MAIN, inner_wall_ns=1900),
        ]
    )
    (row,) = [each for each in made.rows if each.name == "GET /a"]

    assert rows(made)["GET /a"] == (1, 0, 2000, 190)
    assert split(made, "GET /a") == {"db": 700, "logic": 100 + 300, "suspended": 1900}
    assert on_thread(made)["GET /a"] == (100 + 1000, 1900)
    assert (row.sums.wall_most_ns, row.sums.wall_least_ns) == (2000, 2000)
    assert made.thread_ns == 20_000
    assert rows(made)[".INIT"][2] + rows(made)[".EXIT"][2] == 10_000 - 1000


def test_what_is_marked_in_another_thread_does_not_rename_the_transaction(shop, continued):
    path, checkout = map(shop.build.string, ("POST /cart", "checkout"))
    made = shop.made(
        [
            event(2000, 700, intrinsic=shop.mark, call=2, parent=1, detail=checkout, thread=WORKER),
            event(1900, 1000, intrinsic=continued, call=1, detail=path, thread=WORKER, inner_wall_ns=700),
            event(1000, 2000, intrinsic=shop.serve, call=1, detail=path, thread=MAIN),
        ]
    )

    assert rows(made)["POST /cart"][:3] == (1, 0, 2000)
    assert "checkout" not in rows(made)


def test_what_a_thread_did_for_a_transaction_that_has_not_ended_has_its_name_and_no_count(shop, continued):
    name = shop.build.string("GET /a")
    made = shop.made([event(1900 + 1500 * n, 1000, intrinsic=continued, detail=name, thread=WORKER) for n in range(3)])

    assert rows(made)["GET /a"] == (0, 0, 0, 0)
    assert on_thread(made)["GET /a"] == (3000, 0)
    assert transactions_table(made).values(made.by_key["GET /a", None])["least_ns"] is None
    assert Survey(Analysis(Experiment(str(shop.build.directory)))).counts[Named("GET /a")] == 3


def test_what_one_request_awaits_together_overlaps_within_it(shop):
    made = shop.made(
        [
            event(1100, 600, 5, intrinsic=shop.query, call=2, parent=1, task=1, inner_wall_ns=590),
            event(1100, 700, 5, intrinsic=shop.query, call=3, parent=1, task=1, inner_wall_ns=690),
            event(1000, 900, 50, intrinsic=shop.serve, call=1, task=1, inner_wall_ns=870),
        ]
    )
    (row,) = [row for row in made.rows if row.is_named]

    assert (row.response_ns, sum(share.wall_ns for share in row.split.values())) == (900, 1300)
    assert (row.thread_ns, row.overlap_ns) == (30 + 10 + 10, 1250)
    assert made.thread_ns == 10_000


COROUTINES = """
import asyncio, time
from interpose import transaction

async def one():
    with transaction("co"):
        await asyncio.sleep(0.1)

async def main():
    begun = time.perf_counter()
    await asyncio.gather(*[one() for _ in range(5)])
    print(time.perf_counter() - begun)

asyncio.run(main())
"""


def test_shares_of_coroutines_that_wait_together_add_up_to_the_thread_time(traced, interpose_here):
    done = traced(COROUTINES)
    told = json.loads(interpose_here("transactions", "--format", "json", done.path).stdout)
    rows = {row["transaction"]: row for row in told}
    section = json.loads(interpose_here("profile", "--section", "transaction", "--format", "json", done.path).stdout)

    waited_ns = 5 * float(done.stdout) * 1e9
    whole_ns = profile(Analysis(done.experiment), "kind").total.wall_ns
    assert sum(row["thread_ns"] + row["think_ns"] for row in told) == whole_ns
    assert 0.4e9 < rows["co"]["response_ns"] - rows["co"]["thread_ns"] <= rows["co"]["overlap_ns"] < waited_ns
    assert rows[".OTHER"]["overlap_ns"] == 0
    for row in told:
        split_ns = sum(value for name, value in row.items() if name.endswith("_wall_ns"))
        assert split_ns == row["thread_ns"] + row["overlap_ns"]
    assert {row["transaction"]: row["thread_ns"] for row in section if row["transaction"]} == {
        name: row["thread_ns"] for name, row in rows.items()
    }


IN_THREADS = """
import asyncio, json, time
from interpose import transaction

slept, used = {}, {}

def sleep(name):
    begun = time.perf_counter()
    time.sleep(0.1)
    slept[name] = slept.get(name, 0) + time.perf_counter() - begun

def compute(name):
    begun = time.thread_time()
    while time.thread_time() < begun + 0.1:
        pass
    used[name] = used.get(name, 0) + time.thread_time() - begun

async def job(name, times):
    with transaction(name):
        for _ in range(times):
            compute(name)
            await asyncio.to_thread(sleep, name)

async def executed():
    with transaction("executed"):
        await asyncio.get_running_loop().run_in_executor(None, sleep, "executed")

async def main():
    await job("alone", 3)
    await executed()
    await asyncio.gather(*[job(f"together {number}", 2) for number in range(3)])

asyncio.run(main())
print(json.dumps([slept, used]))
"""


@pytest.fixture
def in_threads(traced, interpose_here):
    """The rows of transactions that compute and await other threads, with what each slept there and computed."""
    done = traced(IN_THREADS)
    rows = json.loads(interpose_here("transactions", "--format", "json", done.path).stdout)
    slept, used = json.loads(done.stdout)
    return [(row, slept[name], used.get(name, 0)) for row in rows if (name := row["transaction"]) in slept]


@pytest.mark.long
def test_what_a_transaction_awaits_of_other_threads_is_not_its_logic(in_threads):
    assert len(in_threads) == 5
    for row, slept_s, _ in in_threads:
        assert slept_s / 2 < row["suspended_wall_ns"] / 1e9 <= row["response_ns"] / 1e9
        assert row["suspended_cpu_ns"] == 0
        split_ns = sum(value for name, value in row.items() if name.endswith("_wall_ns"))
        assert split_ns == row["thread_ns"] + row["overlap_ns"]


@pytest.mark.long
def test_what_tasks_compute_is_their_logic_also_if_others_run_meanwhile(in_threads):
    for row, _, used_s in in_threads:
        assert row["logic_cpu_ns"] / 1e9 == pytest.approx(used_s, rel=0.1, abs=0.02)
        assert 0.9 * used_s < row["logic_wall_ns"] / 1e9


def test_a_limit_of_rows_leaves_shares_as_they_are(shop, interpose_here):
    shop.made([event(1000, 4000, intrinsic=shop.serve), event(6000, 1000, intrinsic=shop.mark)])

    asked = [("transactions", *words, str(shop.build.directory)) for words in ((), ("--limit", "1"))]
    told = [interpose_here(*words, variables={"COLUMNS": "130"}).stdout for words in asked]

    assert " 40 % " in told[0].splitlines()[1]
    assert [line.splitlines()[1].split() for line in told] == [told[0].splitlines()[1].split()] * 2
    assert len(told[0].splitlines()) == len(told[1].splitlines()) + 1


def test_what_tasks_call_is_of_their_thread_s_time(shop):
    made = shop.made(
        [
            event(1000, 300, 300, intrinsic=shop.query, task=1),
            event(1500, 4000, 5, intrinsic=shop.query, call=7, task=2, inner_wall_ns=3900),
            event(6000, 100, intrinsic=shop.query, call=9, parent=8),
        ]
    )

    assert rows(made)[".OTHER"][:3] == (1, 0, 10_000)
    assert split(made, ".OTHER") == {"db": 300 + 100 + 100, "logic": 9500}


def test_recording_has_a_part_of_its_own(tmp_path):
    shop = Shop(tmp_path / "t.1.er", call_ns=40, inside_ns=10)
    made = shop.made(
        [
            event(1000, 500, intrinsic=shop.read, stack=shop.ask),
            event(1600, 200, intrinsic=shop.query),
            event(3000, 2000, intrinsic=shop.read, stack=shop.ask),
        ]
    )

    assert split(made, "ask") == {"db": 200, "overhead": 60, "logic": 1240}


def test_where_events_do_not_tell_the_cpu_time_at_their_beginning_it_is_said(shop, interpose_here):
    shop.made([event(1000, 500, intrinsic=shop.read, stack=shop.ask)])
    log = shop.build.directory / "log.xml"
    log.write_text(log.read_text().replace('name="start_cpu_ns"', 'name="unknown"'))

    told = interpose_here("transactions", str(shop.build.directory))

    assert not transactions(Analysis(Experiment(str(shop.build.directory)))).has_cpu
    assert "not recorded" in told.stderr
    assert "CPU" not in told.stdout


@pytest.mark.parametrize(
    ("name", "plain"),
    [
        ("GET /orders/17", "GET /orders/*"),
        ("/users/3f2b8c1d-0000-4000-8000-1234567890ab/x", "/users/*/x"),
        ("GET /orders/<int:number>", "GET /orders/<int:number>"),
        ("month 12 end", "month 12 end"),
        ("12", "12"),
    ],
)
def test_requests_that_differ_by_numbers_have_one_name(name, plain):
    assert plain_name(name) == plain


@st.composite
def sequences(draw):
    """Calls of a thread one after the other, some with calls inside, in the order of their ends."""
    made, now_ns, number = [], 0, 1
    for _ in range(draw(st.integers(0, 12))):
        now_ns += draw(st.integers(0, 500))
        wall_ns = draw(st.integers(1, 500))
        call, number = number, number + 1
        inner_ns = draw(st.integers(0, wall_ns)) if draw(st.booleans()) else 0
        if inner_ns:
            made.append(("db", now_ns, inner_ns, number, call))
            number += 1
        role = draw(st.sampled_from(["query", "read", "show", "commit", "serve", "mark"]))
        if draw(st.booleans()):
            around = draw(st.sampled_from([0, call]))
            made.append((f"name {draw(st.integers(0, 2))}", now_ns, 0, number, around))
            number += 1
        made.append((role, now_ns, wall_ns, call, inner_ns))
        now_ns += wall_ns
    return made, now_ns + draw(st.integers(0, 500))


@pytest.mark.long
@given(sequences())
@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], max_examples=60)
def test_all_time_is_in_one_transaction_and_adds_up_with_the_other_reports(tmp_path_factory, drawn):
    calls, end_ns = drawn
    shop = Shop(tmp_path_factory.mktemp("t") / "t.1.er", call_ns=5, inside_ns=2)
    events = []
    for role, start_ns, wall_ns, call, more in calls:
        if role.startswith("name "):
            named = {"intrinsic": shop.name, "detail": shop.names[int(role[5:])]}
            events.append(event(start_ns, 0, call=call, parent=more, **named))
        elif role == "db":
            events.append(event(start_ns, wall_ns, intrinsic=shop.query, call=call, parent=more))
        else:
            events.append(event(start_ns, wall_ns, intrinsic=getattr(shop, role), call=call, inner_wall_ns=more))
            events[-1]["stack"] = shop.ask
    made = shop.made(events, end_ns, 0)
    experiment = Experiment(str(shop.build.directory))
    whole = profile(Analysis(experiment), "kind").total

    assert sum(row.think_ns + row.response_ns for row in made.rows) == end_ns == whole.wall_ns
    for row in made.rows:
        assert sum(share.wall_ns for share in row.split.values()) == row.response_ns
        assert row.overlap_ns == 0
    plain = transactions(Analysis(experiment, consolidator=PlainConsolidator))
    assert [(row.name, row.sums, row.split) for row in plain.rows] == [
        (row.name, row.sums, row.split) for row in made.rows
    ]


class Clerk:
    """Somebody at a terminal of a program's own, who thinks for known times."""

    def __init__(self, words, directory, environment):
        self._ours, theirs = os.openpty()
        self._process = subprocess.Popen(
            words, cwd=directory, env=environment, stdin=theirs, stdout=theirs, stderr=theirs
        )
        os.close(theirs)

    def answer(self, prompt, think_s, text):
        """Wait for the prompt, think, type a line."""
        shown = b""
        while prompt not in shown:
            assert select.select([self._ours], [], [], 20)[0]
            shown += os.read(self._ours, 65536)
        time.sleep(think_s)
        os.write(self._ours, text + b"\n")

    def wait(self):
        while select.select([self._ours], [], [], 20)[0]:
            try:
                if not os.read(self._ours, 65536):
                    break
            except OSError:
                break
        os.close(self._ours)
        return self._process.wait(20)


@pytest.mark.alone
def test_a_clerk_at_a_terminal_thinks_and_waits_as_long_as_told(tmp_path, own_environment, interpose_here):
    (tmp_path / "clerk.py").write_text(CLERK)
    environment = {**own_environment, "INTERPOSE": "1"}
    clerk = Clerk([sys.executable, "clerk.py"], tmp_path, environment)
    for think_s in (0.2, 0.05, 0.1):
        clerk.answer(b"order: ", think_s, b"1")
    clerk.answer(b"order: ", 0.1, b"quit")

    assert clerk.wait() == 0
    told = json.loads(interpose_here("transactions", "--format", "json", cwd=tmp_path).stdout)
    (row,) = [row for row in told if row["transaction"] == "ask"]
    thought, answered, queried = json.loads((tmp_path / "truth.json").read_text())
    assert row["count"] == 3
    assert row["think_ns"] / 1e9 == pytest.approx(sum(thought[:3]), rel=0.01, abs=0.003)
    assert row["response_ns"] / 1e9 == pytest.approx(sum(answered), rel=0.01, abs=0.003)
    assert row["db_wall_ns"] / 1e9 == pytest.approx(sum(queried), rel=0.01, abs=0.003)
    assert 3 * 0.02 <= row["sleep_wall_ns"] / 1e9 <= sum(answered) - sum(queried) - 3 * 0.13
    assert row["logic_cpu_ns"] / 1e9 == pytest.approx(3 * 0.13, rel=0.02)
    kinds = [row[name] for name in row if name.endswith("_wall_ns") and row[name] is not None]
    assert sum(kinds) == row["response_ns"]


MARKED = """
    import os, time
    from interpose import transaction

    def compute(seconds):
        until = time.thread_time() + seconds
        while time.thread_time() < until:
            pass

    for _ in range(30):
        with transaction("order"):
            os.stat("/")
            compute(0.0005)
        compute(0.0002)
"""


@pytest.mark.parametrize("source", [MARKED, COROUTINES])
def test_the_cpu_time_of_transactions_and_of_their_parts_is_that_of_the_report(traced, source):
    experiment = traced(source).experiment
    made = transactions(Analysis(experiment))

    assert sum(row.sums.cpu_ns for row in made.rows) == profile(Analysis(experiment), "kind").total.cpu_ns
    for row in made.rows:
        assert sum(share.cpu_ns for share in row.split.values()) == row.cpu_ns


@pytest.mark.long
@pytest.mark.parametrize("names", [3, DETAILS_AT_MOST * 3 // 5])
def test_transactions_are_the_same_where_findings_have_read_the_events_before(shop, names):
    first = shop.build.string("job 0")
    shop.build.strings += [f"job {number}".encode() for number in range(1, names)]
    calls = []
    for number in range(names + 20):
        detail = first + number % names
        calls.append(event(100 * number + 10, 5, 5, intrinsic=shop.query, detail=detail, parent=2 * number + 2))
        calls.append(event(100 * number, 50, 9, intrinsic=shop.serve, detail=detail))
        calls[-2]["call"], calls[-1]["call"] = 2 * number + 1, 2 * number + 2
    alone = shop.made(calls, 100 * len(calls), 10 * len(calls))

    analysis = Analysis(Experiment(str(shop.build.directory)))
    Survey(analysis, histograms=True)
    after = transactions(analysis)

    assert len(alone.rows) == names + 3
    assert after == alone


def test_of_nested_transactions_only_the_outermost_is_listed_as_the_docstring_says(shop):
    outer, inner = shop.build.string("outer"), shop.build.string("inner")
    made = shop.made(
        [
            event(1200, 500, intrinsic=shop.mark, call=2, parent=1, detail=inner),
            event(1000, 1000, intrinsic=shop.mark, call=1, detail=outer, inner_wall_ns=500),
        ]
    )

    assert rows(made)["outer"][:3] == (1, 0, 1000)
    assert "inner" not in rows(made)
    assert "only the outermost" in " ".join(transaction.__doc__.split())


def test_a_call_in_progress_at_the_end_is_no_logic_of_what_its_thread_was_in(shop):
    wait = shop.build.intrinsic("queue.SimpleQueue.get", "idle")
    opened = [{"start_ns": START_NS + 4000, "call": 7, "intrinsic": wait}]
    made = shop.made([event(1000, 2000, intrinsic=shop.serve)], open_calls=opened)

    assert split(made, ".EXIT") == {"idle": 6000, "logic": 1000}


def test_a_call_in_progress_at_the_end_is_a_part_of_the_transaction_in_which_it_is(shop):
    opened = [
        {"start_ns": START_NS + 2000, "call": 7, "intrinsic": shop.serve},
        {"start_ns": START_NS + 3000, "call": 8, "intrinsic": shop.query},
    ]
    made = shop.made([event(1000, 500, intrinsic=shop.show)], open_calls=opened)
    (name,) = [row.name for row in made.rows if row.name.startswith(".OPEN")]

    assert split(made, name) == {"db": 7000, "logic": 1000}
    assert {kind for row in made.rows if row.name != name for kind in split(made, row.name)} == {"screen", "logic"}


KILLED = """
import os, time
from interpose import transaction

for turn in range(4):
    begun_ns = time.monotonic_ns()
    with transaction("stream"):
        with transaction("look up"):
            time.sleep(0.01)
        for part in range(2):
            time.sleep(0.02)
        if turn == 3:
            print(time.monotonic_ns() - begun_ns, flush=True)
            os.kill(os.getpid(), 9)
"""


@pytest.mark.parametrize("consolidator", [PlainConsolidator, None])
def test_what_ended_within_a_transaction_that_was_killed_is_a_part_of_it_and_does_not_count(consolidator, traced):
    done = traced(KILLED)
    rows = {row.name: row for row in transactions(Analysis(done.experiment, consolidator=consolidator)).rows}
    killed = rows[".OPEN stream"]

    assert {name: rows[name].sums.calls for name in rows if "stream" in name} == {"stream": 3, ".OPEN stream": 1}
    assert "look up" not in rows
    assert rows["stream"].sums.wall_least_ns >= 50_000_000
    assert 50_000_000 <= killed.split["sleep"].wall_ns <= int(done.stdout) <= killed.response_ns
    assert sum(row.thread_ns for row in rows.values()) == profile(Analysis(done.experiment), "kind").total.wall_ns


def test_a_killed_transaction_keeps_its_name_when_the_calls_are_consolidated(traced, interpose_here):
    done = traced(KILLED)
    before = interpose_here("transactions", "--format", "csv", done.path).stdout
    interpose_here("consolidate", done.path)

    assert ".OPEN stream,1," in before
    assert {row["transaction"]: row["mean_ns"] for row in csv.DictReader(io.StringIO(before))}[".OPEN stream"] == ""
    assert interpose_here("transactions", "--format", "csv", done.path).stdout == before
