"""Findings: what each rule tells, and what it must not tell."""

import ast
import inspect
import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from interpose.analysis.analysis import Analysis
from interpose.analysis.consolidation.consolidate import PlainConsolidator
from interpose.analysis.findings.engine import LEAST_SHARE, RULES, findings, found_in
from interpose.analysis.findings.finding import Finding
from interpose.analysis.findings.survey import Survey
from interpose.cli.main import main
from interpose.experiments.model.experiment import Experiment
from interpose.reports.formats.sentences import RULES_IN_WORDS, Sentences, advice_for
from interpose.reports.tables.findings import findings_table
from tests.build import SECOND, START_NS, Build, event

pytestmark = pytest.mark.any_python

MS = 1_000_000
SHOP = "/home/u/shop/orders.py"
EXAMPLES = Path(__file__).parents[2] / "examples"
REQUEST = "wsgi.request"
# Rules that have something to say of most programs, and tests of their own.
GENERAL = ("slow calls", "unexplained wait", "wait for a processor")


class Shop(Build):
    """An experiment in which the calls follow each other, each for a millisecond unless said."""

    def __init__(self, directory, *, wall_ns=SECOND, cpu_ns=0, **log):
        super().__init__(directory, **log)
        self.wall_ns, self.cpu_ns = wall_ns, cpu_ns
        self.rows, self.numbers, self.stacks_of = [], {}, {}
        self.now = {}

    def call(self, name, kind, detail="", *, line=88, times=1, each_ns=MS, thread=1, inside=0, **more):
        """Calls one after the other; gives the number of the last."""
        for _ in range(times):
            number = len(self.rows) + 1
            at = self.now.get(thread, 0)
            self.now[thread] = at + each_ns
            values = {"intrinsic": self.number_of(name, kind), "stack": self.stack_of(line), "thread": thread}
            values |= {"detail": self.string(detail) if detail else 0, "call": number, "parent": inside}
            self.rows.append(event(at, each_ns, **values | more))
        return len(self.rows)

    def ask(self, statement, **more):
        """Execute a statement."""
        self.call("sqlite3.Cursor.execute", "db", statement, **more)

    def request(self, detail, calls):
        """A request that is served, in which `calls` makes calls."""
        number, at = 10_000 + len(self.rows), self.now.get(1, 0)
        calls(number)
        wall_ns = self.now[1] - at
        values = {"intrinsic": self.number_of(REQUEST, "logic"), "detail": self.string(detail)}
        self.rows.append(event(at, wall_ns, call=number, inner_wall_ns=wall_ns, **values))

    def number_of(self, name, kind):
        if name not in self.numbers:
            self.numbers[name] = self.intrinsic(name, kind)
        return self.numbers[name]

    def stack_of(self, line):
        if line not in self.stacks_of:
            self.stacks_of[line] = self.stack(self.site(SHOP, line, f"line_{line}")) if line else 0
        return self.stacks_of[line]

    def map_xml(self):
        return super().map_xml().replace(f'name="{REQUEST}"', f'name="{REQUEST}" transaction="is"')

    def survey(self, consolidator=None):
        for thread in range(1, max(self.now, default=1) + 1):
            mine = [row for row in self.rows if row["thread"] == thread]
            self.events(mine)
            ends = {"end_ns": START_NS + self.wall_ns, "end_cpu_ns": self.cpu_ns}
            self.thread(**ends, recorded=len(mine), main=int(thread == 1), tid=800 + thread)
        self.ended(self.wall_ns, self.cpu_ns)
        return Survey(Analysis(Experiment(str(self.write())), consolidator=consolidator))

    def found(self, least_share=LEAST_SHARE):
        """Rule, calls, time and bound of each finding, without those of general rules."""
        told = found_in(self.survey(), least_share)
        return [(each.rule, each.calls, each.wall_ns, each.bound_ns) for each in told if each.rule not in GENERAL]


@pytest.fixture
def shop(tmp_path):
    return Shop(tmp_path / "t.1.er")


BY_NUMBER = "SELECT * FROM orders WHERE number = ?"


def test_a_statement_many_times_in_a_transaction_could_be_made_once(shop):
    for _ in range(2):
        shop.request("GET /orders", lambda inside: shop.ask(BY_NUMBER, times=20, inside=inside))

    assert shop.found() == [("N+1 statements", 40, 40 * MS, 38 * MS)]


def test_what_the_repeated_statement_fetched_is_of_it(shop):
    def calls(inside):
        for _ in range(10):
            shop.ask(BY_NUMBER, inside=inside)
            shop.call("sqlite3.Cursor.fetchone", "db", inside=inside, bytes=1)

    shop.request("GET /orders", calls)

    assert shop.found() == [("N+1 statements", 20, 20 * MS, 18 * MS)]


def test_a_statement_once_in_each_of_many_transactions_is_none(shop):
    for _ in range(50):
        shop.request("GET /orders", lambda inside: shop.ask(BY_NUMBER, inside=inside))

    assert shop.found() == []


def test_different_statements_in_a_transaction_are_none(shop):
    def calls(inside):
        for number in range(20):
            shop.ask(f"SELECT a FROM t{number} WHERE b = ?", inside=inside)

    shop.request("GET /orders", calls)

    assert shop.found() == []


def test_without_transactions_a_line_must_repeat_its_statement_very_often(shop):
    shop.ask(BY_NUMBER, times=99)
    shop.ask(BY_NUMBER, line=90, times=200)

    assert shop.found() == [("N+1 statements", 200, 200 * MS, 199 * MS)]


def test_what_a_driver_does_inside_of_its_statements_is_of_them(shop):
    def calls(inside):
        for _ in range(10):
            number = len(shop.rows) + 2
            at = shop.now.get(1, 0)
            shop.call("socket.socket.recv", "db", "db:5432", inside=number, each_ns=3 * MS)
            shop.now[1] = at
            shop.call("psycopg.Cursor.execute", "db", BY_NUMBER, inside=inside, each_ns=4 * MS, inner_wall_ns=3 * MS)

    shop.request("GET /orders", calls)

    assert shop.found() == [("N+1 statements", 10, 40 * MS, 36 * MS)]


def test_commits_in_a_batch_could_be_a_hundredth(shop):
    shop.call("sqlite3.Connection.commit", "db", times=200)

    assert shop.found() == [("commits one by one", 200, 200 * MS, 198 * MS)]


def test_one_commit_a_request_is_as_it_should_be_and_five_are_not(shop):
    for _ in range(60):
        shop.request("POST /pay", lambda inside: shop.call("sqlite3.Connection.commit", "db", inside=inside))
    shop.request("POST /all", lambda inside: shop.call("sqlite3.Connection.commit", "db", times=20, inside=inside))

    assert shop.found() == [("commits one by one", 20, 20 * MS, 19 * MS)]


def test_connecting_again_and_again_could_be_done_once_a_thread(shop):
    for thread in (1, 2):
        shop.call("psycopg2.connect", "db", "db.example:5432/shop", times=15, thread=thread)

    assert shop.found() == [("reconnects", 30, 30 * MS, 28 * MS)]


def test_one_connection_a_thread_or_each_to_another_place_or_in_memory_is_none(shop):
    for thread in range(1, 13):
        shop.call("psycopg2.connect", "db", "db.example:5432/shop", thread=thread)
    for number in range(20):
        shop.call("socket.socket.connect", "net", f"10.0.0.{number}:80")
    shop.call("sqlite3.connect", "db", ":memory:", times=20)

    assert shop.found() == []


def test_tiny_writes_could_go_through_a_buffer(shop):
    shop.call("os.write", "file", "/tmp/a.log", times=300, bytes=100)

    assert shop.found() == [("tiny reads and writes", 300, 300 * MS, 296 * MS)]


@pytest.mark.parametrize(
    ("detail", "times", "moved"),
    [("/tmp/{}.log", 300, 100), ("/tmp/a.log", 300, 4096), ("/tmp/a.log", 99, 10), ("/tmp/a.log", 300, 0)],
    ids=["each into another file", "large ones", "a few", "of unknown size"],
)
def test_other_writes_are_no_tiny_ones(shop, detail, times, moved):
    for number in range(times):
        shop.call("os.write", "file", detail.format(number), bytes=moved)

    assert shop.found() == []


def test_a_file_that_is_forced_at_each_write_could_be_forced_once(shop):
    for _ in range(25):
        shop.call("os.write", "file", "/tmp/a.log", bytes=9000)
        shop.call("os.fsync", "file", "/tmp/a.log", line=89)

    assert shop.found() == [("fsync storm", 25, 25 * MS, 24 * MS)]


def with_native_calls(shop, *, name, kind, native_ns, native_cpu_ns, cpu_ns):
    """Twenty calls of a database of 10 ms each, with a native call in each."""
    for _ in range(20):
        at, outer = shop.now.get(1, 0), len(shop.rows) + 2
        shop.call(name, kind, "/tmp/a.db", each_ns=native_ns, inside=outer, cpu_ns=native_cpu_ns)
        shop.now[1] = at
        inner = {"inner_wall_ns": native_ns, "inner_cpu_ns": native_cpu_ns}
        shop.call("psycopg2.cursor.fetchall", "db", each_ns=10 * MS, cpu_ns=cpu_ns, **inner)


def test_a_database_that_waits_for_the_disk_is_told(shop):
    with_native_calls(shop, name="libc.fdatasync", kind="file", native_ns=8 * MS, native_cpu_ns=MS, cpu_ns=3 * MS)

    assert shop.found() == [("database waits for the disk", 20, 200 * MS, 140 * MS)]


def test_a_database_that_sleeps_until_others_let_go_is_told(shop):
    with_native_calls(shop, name="libc.usleep", kind="sleep", native_ns=9 * MS, native_cpu_ns=0, cpu_ns=MS)

    assert shop.found() == [("database waits for a lock", 20, 200 * MS, 180 * MS)]


def test_a_driver_that_computes_while_its_server_does_not_is_told(shop):
    with_native_calls(shop, name="libc.recv", kind="net", native_ns=2 * MS, native_cpu_ns=MS, cpu_ns=8 * MS)

    assert shop.found() == [("driver computes", 20, 200 * MS, 140 * MS)]


def test_a_driver_that_computes_what_was_received_before_is_told(shop):
    shop.call("libc.recv", "net", "db:5432", each_ns=10, inside=2)
    shop.now[1] = 0
    shop.call("psycopg2.cursor.execute", "db", inner_wall_ns=10)
    shop.call("psycopg2.cursor.fetchall", "db", line=89, each_ns=200 * MS, cpu_ns=180 * MS)

    assert shop.found() == [("driver computes", 1, 200 * MS, 180 * MS)]


def test_a_server_that_takes_its_time_is_neither(shop):
    with_native_calls(shop, name="libc.recv", kind="net", native_ns=8 * MS, native_cpu_ns=MS, cpu_ns=2 * MS)

    assert shop.found() == []


def test_a_database_in_the_process_may_compute(shop):
    with_native_calls(shop, name="libc.pread64", kind="file", native_ns=2 * MS, native_cpu_ns=MS, cpu_ns=8 * MS)

    assert shop.found() == []


def test_native_calls_of_a_database_are_no_files_of_the_program(shop):
    for _ in range(200):
        outer = len(shop.rows) + 3
        shop.call("libc.pread64", "file", "/tmp/a.db", bytes=16, inside=outer, each_ns=10)
        shop.call("libc.fdatasync", "file", "/tmp/a.db", inside=outer, each_ns=10)
        shop.call("sqlite3.Cursor.execute", "db", cpu_ns=MS, inner_wall_ns=20)

    assert shop.found() == []


def test_a_file_that_is_forced_once_a_request_is_none(shop):
    for _ in range(25):
        shop.request("POST /pay", lambda inside: shop.call("os.fsync", "file", "/tmp/a.log", inside=inside))
    for number in range(25):
        shop.call("os.fsync", "file", f"/tmp/{number}.pdf", line=90)

    assert shop.found() == []


def test_a_sleep_in_a_transaction_is_told(shop):
    shop.request("GET /slow", lambda inside: shop.call("time.sleep", "sleep", inside=inside, each_ns=50 * MS))

    assert shop.found() == [("sleep within a transaction", 1, 50 * MS, 50 * MS)]


def test_a_sleep_outside_of_any_is_none(shop):
    shop.request("GET /fast", lambda inside: shop.call("os.stat", "file", "/a", inside=inside))
    shop.call("time.sleep", "sleep", each_ns=50 * MS)

    assert shop.found() == []


HELD = "held by thread 3 at /home/u/shop/stock.py:17 Stock.take"


def test_a_convoy_names_the_line_that_holds_the_lock(shop):
    for thread in (1, 2):
        shop.call("threading.Lock.acquire", "sync", HELD, times=6, each_ns=5 * MS, thread=thread, line=88 + thread)

    found = [each for each in found_in(shop.survey()) if each.rule == "lock convoy"]

    (finding,) = found
    assert (finding.calls, finding.bound_ns, finding.units) == (12, 60 * MS, 2)
    words = findings_table(found, SECOND, "/home/u/shop").values(finding)["words"]
    assert words == (
        "2 threads waited 12 times at orders.py:89 line_89, orders.py:90 line_90 for a lock held at"
        " stock.py:17 Stock.take (60.0 ms of 1.00 s)."
    )


def test_a_few_waits_or_an_unknown_holder_are_no_convoy(shop):
    shop.call("threading.Lock.acquire", "sync", HELD, times=9)
    shop.call("threading.Lock.acquire", "sync", "held by thread 3", times=50)

    assert shop.found() == []


def test_one_thread_that_waits_and_who_waits_for_threads_to_end_are_no_convoy(shop):
    shop.call("threading.Lock.acquire", "sync", HELD, times=30)
    for thread in (1, 2):
        joined = "held by thread 4 at /usr/lib/python3.12/threading.py:1030 Thread._bootstrap"
        shop.call("threading.Thread.join", "sync", joined, times=30, thread=thread)

    assert shop.found() == []


def test_a_convoy_for_the_interpreter_lock_names_the_line_that_gave_it_up(shop):
    for thread in (1, 2):
        shop.call("interpreter lock", "gil", HELD, times=6, each_ns=30 * MS, thread=thread, line=88 + thread)
    shop.call("interpreter lock", "gil", "", times=100, each_ns=MS // 1000)

    (finding,) = [each for each in found_in(shop.survey()) if each.rule == "lock convoy"]

    assert (finding.calls, finding.bound_ns, finding.units) == (12, 360 * MS, 2)
    assert Sentences([finding], "/home/u/shop", SECOND).of(finding) == (
        "2 threads waited 12 times at orders.py:89 line_89, orders.py:90 line_90 for Python's interpreter lock, which"
        " was held at stock.py:17 Stock.take (360 ms of 1.00 s)."
    )
    assert advice_for(finding).startswith("Only one thread at a time runs Python code.")


def test_short_waits_for_the_interpreter_lock_are_no_convoy(shop):
    for thread in (1, 2):
        shop.call("interpreter lock", "gil", HELD, times=20, each_ns=MS, thread=thread)

    assert shop.found() == []


@pytest.mark.parametrize("statement", ["BEGIN", "begin immediate", "SAVEPOINT a", "ROLLBACK", "PRAGMA user_version"])
def test_what_begins_or_ends_transactions_is_not_asked_again_and_again(shop, statement):
    shop.ask(statement, times=200, each_ns=20 * MS)

    assert shop.found() == []


def test_commits_that_are_sent_as_statements_are_commits(shop):
    shop.ask("COMMIT", times=200)

    assert [rule for rule, *_ in shop.found()] == ["commits one by one"]


def test_what_no_index_would_help_is_no_slow_statement(shop):
    shop.ask("CREATE TABLE orders (number INTEGER)", each_ns=300 * MS)

    assert shop.found() == []


def test_where_calls_were_not_recorded_nothing_is_said_of_waits(tmp_path):
    shop = Shop(tmp_path / "l.1.er", settings={"INTERPOSE": "lines"})

    assert shop.found() == []


def test_a_file_that_is_read_again_and_again_could_be_kept(shop):
    for _ in range(20):
        shop.call("os.open", "file", "/etc/shop.ini")
        shop.call("os.read", "file", "/etc/shop.ini", bytes=4000)

    assert shop.found() == [("repeated work", 40, 40 * MS, 38 * MS)]


def test_a_log_that_is_opened_for_each_line_is_not_repeated_work(shop):
    for _ in range(20):
        shop.call("os.open", "file", "/tmp/shop.log")
        shop.call("os.write", "file", "/tmp/shop.log", bytes=4000)

    assert shop.found() == []


@pytest.mark.parametrize(
    ("name", "kind", "detail", "is_told"),
    [
        ("sqlite3.Cursor.execute", "db", "SELECT rate FROM rates", True),
        ("sqlite3.Cursor.execute", "db", "SELECT rate FROM rates WHERE currency = ?", False),
        ("sqlite3.Cursor.execute", "db", "UPDATE rates SET rate = rate + rate", False),
        ("requests.Session.send", "net", "GET https://rates.example/today", True),
        ("requests.Session.send", "net", "POST https://rates.example/today", False),
    ],
)
def test_a_request_without_parameters_that_is_made_again_is_repeated_work(shop, name, kind, detail, is_told):
    shop.call(name, kind, detail, times=20)

    assert shop.found() == ([("repeated work", 20, 20 * MS, 19 * MS)] if is_told else [])


def test_a_slow_statement_that_dominates_is_told(shop):
    shop.ask("SELECT ? FROM a, b", times=3, each_ns=100 * MS)
    shop.ask(BY_NUMBER, line=90, times=30)

    assert shop.found() == [("slow statement", 3, 300 * MS, 300 * MS)]


def test_a_slow_statement_among_others_that_take_more_is_none(shop):
    for number in range(3):
        shop.ask(f"SELECT ? FROM a{number}", line=90 + number, each_ns=100 * MS)

    assert shop.found() == []


def test_a_program_that_works_by_itself_is_to_be_profiled_by_line(tmp_path):
    busy = Shop(tmp_path / "t.1.er", cpu_ns=900 * MS, arguments=["orders.py", "x"])

    (finding,) = [each for each in found_in(busy.survey()) if each.rule == "computing"]

    assert finding.about == "orders.py"
    assert 0.85 * SECOND < finding.bound_ns <= SECOND
    assert "computing" not in [rule for rule, *_ in Shop(tmp_path / "t.2.er", cpu_ns=100 * MS).found()]


def test_calls_from_one_line_that_take_a_tenth_of_the_time_are_slow(shop):
    shop.call("requests.get", "net", times=3, each_ns=50 * MS)
    shop.call("requests.get", "net", line=90, each_ns=99 * MS)
    shop.call("threading.Lock.acquire", "sync", line=91, each_ns=300 * MS)

    (slow,) = [each for each in found_in(shop.survey()) if each.rule == "slow calls"]

    assert Sentences([slow], "/home/u/shop", SECOND).of(slow) == (
        "3 calls of requests.get from orders.py:88 line_88, 50.0 ms each (150 ms of 1.00 s)."
    )
    assert advice_for(slow) == "Send requests at the same time, cache the responses, or set a timeout."


def test_the_same_in_several_transactions_is_one_finding(shop):
    for name in ("GET /a", "GET /b"):
        shop.request(name, lambda inside: shop.ask(BY_NUMBER, times=20, inside=inside))

    (one,) = [each for each in found_in(shop.survey()) if each.rule == "N+1 statements"]

    assert (one.calls, one.units, one.bound_ns) == (40, 2, 38 * MS)
    assert Sentences([one], "/", SECOND).of(one) == (
        "40 SQL queries from home/u/shop/orders.py:88 line_88, 20 per transaction, in GET /a, GET /b"
        f' (40.0 ms of 1.00 s): "{BY_NUMBER}".'
    )


def test_threads_that_compute_at_a_time_wait_for_the_interpreter_lock_most_likely(tmp_path):
    shop = Shop(tmp_path / "t.1.er", cpu_ns=450 * MS)
    shop.now = {1: 0, 2: 0}

    (wait,) = [each for each in found_in(shop.survey()) if each.rule == "unexplained wait"]

    assert Sentences([wait], "/", 2 * SECOND).of(wait).startswith(
        "2 threads computed at the same time and probably waited for Python's interpreter lock (1."
    )
    assert advice_for(wait).startswith("Only one thread at a time runs Python code.")


def test_what_is_left_where_waits_for_the_interpreter_lock_are_known_is_none(tmp_path):
    shop = Shop(tmp_path / "t.1.er", cpu_ns=450 * MS)
    shop.now = {1: 0, 2: 0}
    shop.call("interpreter lock", "gil", "", each_ns=MS)

    (wait,) = [each for each in found_in(shop.survey()) if each.rule == "unexplained wait"]

    assert "interpreter lock" not in Sentences([wait], "/", 2 * SECOND).of(wait)


def test_waiting_that_nobody_saw_is_told(tmp_path):
    waiting = Shop(tmp_path / "t.1.er", cpu_ns=10 * MS).survey()

    assert [each.rule for each in found_in(waiting)] == ["unexplained wait"]

    busy = Shop(tmp_path / "t.2.er", cpu_ns=SECOND)
    assert "unexplained wait" not in [each.rule for each in found_in(busy.survey())]


@pytest.mark.parametrize(("stack", "told"), [("none", ["no lines"]), ("own", [])])
def test_calls_without_lines_are_told_where_they_were_not_asked_for(tmp_path, stack, told):
    shop = Shop(tmp_path / "t.1.er", settings={"INTERPOSE_STACK": stack})
    shop.call("os.stat", "file", "/a", line=0, each_ns=300 * MS)

    assert [rule for rule, *_ in shop.found()] == told


def test_nothing_is_told_below_a_share_of_the_time(tmp_path):
    def commits(name, wall_ns):
        shop = Shop(tmp_path / name, wall_ns=wall_ns)
        shop.call("sqlite3.Connection.commit", "db", times=100)
        return shop.found()

    assert commits("t.1.er", 9 * SECOND)
    assert not commits("t.2.er", 11 * SECOND)


def test_time_that_waited_for_work_does_not_matter(shop):
    shop.wall_ns = 100 * SECOND
    shop.call("queue.Queue.get", "idle", each_ns=99 * SECOND)
    shop.call("sqlite3.Connection.commit", "db", times=100)

    assert [rule for rule, *_ in shop.found()] == ["commits one by one"]


def test_what_one_rule_told_another_does_not_tell_again(shop):
    shop.ask("SELECT rate FROM rates", times=200, each_ns=12 * MS)

    assert [rule for rule, *_ in shop.found()] == ["N+1 statements"]


def test_an_empty_experiment_has_none(shop):
    assert shop.found(least_share=0) == []


def test_no_bound_is_more_than_the_evidence_and_both_consolidators_find_the_same(shop):
    test_a_statement_many_times_in_a_transaction_could_be_made_once(shop)
    experiment = Experiment(str(shop.directory))

    told = findings(Analysis(experiment))

    assert [each.rule for each in told] == ["unexplained wait", "N+1 statements"]
    assert all(0 < each.bound_ns <= each.wall_ns for each in told)
    plain = findings(Analysis(experiment, consolidator=PlainConsolidator))
    assert [shown(each) for each in told] == [shown(each) for each in plain]


def shown(finding):
    return finding.rule, finding.bound_ns, finding.wall_ns, finding.calls, finding.units, finding.about


def test_every_rule_has_its_words_and_its_advice():
    trees = [ast.parse(Path(inspect.getfile(rule)).read_text()) for rule in RULES]
    calls = [node for tree in trees for node in ast.walk(tree) if isinstance(node, ast.Call)]
    told = {call.args[0].value for call in calls if isinstance(call.func, ast.Name) and call.func.id == "found"}

    assert told == RULES_IN_WORDS
    assert all(advice_for(Finding(rule, (), 1)).endswith(".") for rule in told - {"slow calls"})


@pytest.mark.parametrize("format", ["text", "json", "csv", "markdown"])
def test_findings_come_in_every_format(shop, place, capsys, format):
    shop.call("sqlite3.Connection.commit", "db", times=200)
    shop.survey()

    assert main(["report", str(shop.directory), "--by", "finding", "--format", format]) == 0

    out = capsys.readouterr().out
    assert "commits one by one" in out.replace("\\", "")
    if format == "json":
        first = next(each for each in json.loads(out) if each["finding"] == "commits one by one")
        assert (first["bound_ns"], first["calls"], first["site"]) == (198 * MS, 200, f"{SHOP}:88")


def test_the_first_screen_has_at_most_three_findings_and_says_where_more_are(shop, place, capsys):
    for line in range(5):
        shop.ask(f"SELECT a{line} FROM t WHERE b = ?", line=line + 1, times=100)
    shop.survey()

    main(["report", str(shop.directory)])

    _, verdict, *_ = capsys.readouterr().out.split("\n\n")
    first, second, third, more = " ".join(verdict.split("\n  ")).splitlines()
    assert first.startswith("Slowest: The program waited outside all recorded calls (500 ms of 1.00 s).")
    assert second == (
        'Also: 100 SQL queries from orders.py:1 line_1 (100 ms of 1.00 s): "SELECT a0 FROM t WHERE b = ?".'
        " Load them together: a join, IN (...), executemany, or the ORM's eager loading."
    )
    assert third.startswith("Also: 100 SQL queries from orders.py:2 line_2 (100 ms of 1.00 s): ")
    assert more == "3 more findings: interpose report --by finding"
    assert all(len(line) <= 80 for line in verdict.splitlines())


def test_findings_are_of_the_whole_experiment(shop, place, capsys):
    shop.survey()

    assert main(["report", str(shop.directory), "--by", "finding", "--sort", "calls"]) == 2
    assert "whole experiment" in capsys.readouterr().err


def test_the_credit_check_of_the_orders_is_found(tmp_path, own_environment):
    directory = "/dev/shm" if os.path.isdir("/dev/shm") else str(tmp_path)  # where commits take no time
    subprocess.run(
        [sys.executable, str(EXAMPLES / "orders.py"), str(EXAMPLES / "orders.txt")],
        cwd=tmp_path,
        env={**own_environment, "INTERPOSE": "1", "TMPDIR": directory},
        stdout=subprocess.DEVNULL,
        check=True,
        timeout=120,
    )
    (path,) = tmp_path.glob("*.er")

    done = subprocess.run(
        [sys.executable, "-m", "interpose", "report", str(path), "--by", "finding", "--format", "json"],
        cwd=tmp_path,
        env=own_environment,
        capture_output=True,
        text=True,
        check=True,
    )

    told = [each for each in json.loads(done.stdout) if each["finding"] == "N+1 statements"]
    checks = [each for each in told if "WHERE number = ?" in each["about"]]
    assert {each["function"] for each in checks} >= {"Orders.get", "Orders.due"}
    assert all(each["calls"] > 1000 and 0 < each["bound_ns"] <= each["wall_ns"] for each in checks)


def test_what_is_marked_within_a_request_names_it(tmp_path):
    class Marked(Shop):
        def map_xml(self):
            mark = 'name="interpose.transaction"'
            return super().map_xml().replace(mark, f'{mark} transaction="is"')

    shop = Marked(tmp_path / "t.1.er")

    def calls(inside):
        number = shop.call("interpose.transaction", "logic", "checkout", inside=inside, each_ns=0)
        shop.ask(BY_NUMBER, times=20, inside=number)

    shop.request("POST /pay", calls)
    survey = shop.survey()

    assert set(survey.counts) == {"checkout"}


def test_commits_that_end_transactions_name_the_batch(tmp_path):
    class Batch(Shop):
        def map_xml(self):
            commit = 'name="sqlite3.Connection.commit"'
            return super().map_xml().replace(commit, f'{commit} transaction="ends"')

    shop = Batch(tmp_path / "t.1.er")
    for _ in range(60):
        shop.ask(BY_NUMBER, times=6)
        shop.call("sqlite3.Connection.commit", "db", line=90)
    survey = shop.survey()

    assert (survey.counts, survey.batches) == ({"line_90": 60}, {"line_90"})
    told = [(each.rule, each.units) for each in found_in(survey)]
    assert told[1:] == [("N+1 statements", 60), ("commits one by one", 1)]
