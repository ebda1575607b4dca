"""Findings about calls that failed: they name the error, and expected ends are none."""

import json

import pytest
from shops import MS

from interpose.analysis.analysis import Analysis
from interpose.analysis.consolidation.plain_consolidator import PlainConsolidator
from interpose.analysis.findings.engine import found_in
from interpose.analysis.findings.survey import Survey
from interpose.analysis.transactions.estimate import Population
from interpose.experiments.model.experiment import Experiment
from interpose.reports.sentences.advice import advice_for
from interpose.reports.sentences.sentences import Sentences
from tests.build import SECOND

URL = "GET https://rates.example/today"
INSERT = "INSERT INTO orders VALUES (?)"
COUNTED = """
import json, socket, sqlite3, time
took, failed = 0.0, []
def attempt(act, *arguments):
    global took
    began = time.perf_counter()
    try:
        act(*arguments)
    except Exception as error:
        failed.append(type(error).__name__)
        took += time.perf_counter() - began
"""


def fail(shop, name, kind, detail, error, **more):
    shop.call(name, kind, detail, error=shop.string(error), **more)


def told(survey):
    """Rule, calls and time of each finding, without waits for no known cause."""
    found = [each for each in found_in(survey) if each.rule not in ("unexplained wait", "wait for CPU")]
    return [(each.rule, each.calls, each.wall_ns) for each in found]


def sentences(survey):
    found = [each for each in found_in(survey) if each.rule in ("failed calls", "slow calls")]
    return [Sentences(found, "/home/u/shop", SECOND).of(each) for each in found]


def failures_in(done):
    survey = Survey(Analysis(done.experiment))
    found = [each for each in found_in(survey) if each.rule == "failed calls"]
    return [(each, Sentences(found, str(done.directory), survey.matters_ns).of(each)) for each in found]


def test_requests_that_timed_out_are_named_with_their_error(shop):
    fail(shop, "requests.Session.send", "net", URL, "ReadTimeout", times=3, each_ns=100 * MS)
    shop.call("requests.Session.send", "net", URL, each_ns=40 * MS)
    survey = shop.survey()

    assert told(survey) == [("failed calls", 3, 300 * MS)]
    assert sentences(survey) == [
        "3 of 4 calls of requests.Session.send from orders.py:88 line_88 failed with ReadTimeout, 100 ms each"
        f' (300 ms of 1.00 s): "{URL}".'
    ]


def test_many_errors_are_counted_and_system_errors_have_no_number(shop):
    for error, each_ms in (("OSError errno 113", 30), ("Refused", 20), ("Broken", 60), ("Reset", 10)):
        fail(shop, "socket.socket.connect", "net", "10.0.0.1:80", error, each_ns=each_ms * MS)

    assert sentences(shop.survey()) == [
        "4 of 4 calls of socket.socket.connect from orders.py:88 line_88 failed with Broken, OSError and 2 more,"
        ' 30.0 ms each (120 ms of 1.00 s): "10.0.0.1:80".'
    ]


@pytest.mark.parametrize("error", ["DeadlockDetected", "asyncpg.exceptions.DeadlockDetectedError"])
def test_deadlocks_of_a_database_are_for_a_common_order(shop, error):
    fail(shop, "psycopg.Cursor.execute", "db", "update t set a = ?", error, times=3, each_ns=100 * MS)
    (found,) = [each for each in found_in(shop.survey()) if each.rule == "failed calls"]

    assert advice_for(found).startswith("Lock the rows in the same order in every transaction")


def test_a_slow_statement_that_mostly_failed_is_no_matter_of_its_plan(shop):
    for line in (88, 89, 90):
        fail(shop, "psycopg.Cursor.execute", "db", "select a from t", "QueryCanceled", each_ns=80 * MS, line=line)
    (found,) = [each for each in found_in(shop.survey()) if each.rule == "slow statement"]

    assert advice_for(found) == "See why they fail: interpose events."


def test_failed_calls_beside_slow_ones_hide_nothing(shop):
    fail(shop, "sqlite3.Cursor.execute", "db", INSERT, "OperationalError", times=4, each_ns=30 * MS)
    shop.call("sqlite3.Cursor.execute", "db", INSERT, times=4, each_ns=60 * MS)

    assert told(shop.survey()) == [("slow calls", 8, 360 * MS), ("failed calls", 4, 120 * MS)]


def test_one_call_of_many_that_failed_is_named_once(shop):
    shop.call("sqlite3.Cursor.execute", "db", INSERT, times=9)
    fail(shop, "sqlite3.Cursor.execute", "db", INSERT, "OperationalError", each_ns=500 * MS)
    survey = shop.survey()

    assert told(survey) == [("failed calls", 1, 500 * MS)]
    assert sentences(survey) == [
        "1 of 10 calls of sqlite3.Cursor.execute from orders.py:88 line_88 failed with OperationalError"
        f' (500 ms of 1.00 s): "{INSERT}".'
    ]


def test_slow_calls_that_mostly_failed_say_so(shop):
    fail(shop, "socket.socket.connect", "net", "10.0.0.1:80", "TimeoutError", times=2, each_ns=40 * MS)
    shop.call("socket.socket.connect", "net", "10.0.0.1:80", each_ns=60 * MS)

    assert sentences(shop.survey()) == [
        "3 calls of socket.socket.connect from orders.py:88 line_88, 2 failed with TimeoutError, 46.7 ms each"
        " (140 ms of 1.00 s)."
    ]


def test_a_line_whose_calls_mostly_failed_has_no_slow_calls(shop):
    fail(shop, "requests.Session.send", "net", URL, "ReadTimeout", each_ns=120 * MS)
    for each_ms in (80, 10):
        shop.call("requests.Session.send", "net", f"{URL}/old", each_ns=each_ms * MS)
    fail(shop, "requests.Session.send", "net", f"{URL}/old", "ReadTimeout", each_ns=85 * MS)
    shop.call("requests.Session.send", "net", f"{URL}/new", each_ns=80 * MS)
    fail(shop, "requests.Session.send", "net", f"{URL}/new", "ReadTimeout", each_ns=75 * MS)

    assert told(shop.survey()) == [("failed calls", 3, 280 * MS)]


def test_statements_that_mostly_failed_say_so(shop):
    fail(shop, "sqlite3.Cursor.execute", "db", INSERT, "IntegrityError", times=150)
    found = [each for each in found_in(shop.survey()) if each.rule == "N+1 statements"]

    assert [Sentences(found, "/home/u/shop", SECOND).with_advice(each) for each in found] == [
        "150 SQL queries from orders.py:88 line_88, 150 failed with IntegrityError (150 ms of 1.00 s):"
        f' "{INSERT}". See why they fail: interpose events.'
    ]


@pytest.mark.parametrize("name", ["requests.Session.send", "socket.socket.connect"])
def test_what_failed_again_and_again_could_not_be_kept(shop, name):
    fail(shop, name, "net", URL, "ConnectTimeout", times=40, each_ns=10 * MS)

    assert told(shop.survey()) == [("failed calls", 40, 400 * MS)]


def test_what_a_failed_request_does_inside_is_its_time(shop):
    number = len(shop.rows) + 2
    shop.call("socket.socket.recv", "net", "10.0.0.1:80", inside=number, each_ns=300 * MS)
    shop.now[1] = 0
    more = {"each_ns": 310 * MS, "inner_wall_ns": 300 * MS}
    fail(shop, "requests.Session.send", "net", URL, "ReadTimeout", **more)

    assert told(shop.survey()) == [("failed calls", 1, 310 * MS)]


def retry(shop, name, kind, error, *, times=6, sleep_line=88, inner=0):
    """Calls that sleep twice for 50 ms, and take 1 ms more; with `inner`, another one of them is around the sleeps."""
    for _ in range(times):
        number, at = len(shop.rows) + 3 + (inner > 0), shop.now.get(1, 0)
        for _ in range(2):
            shop.call("time.sleep", "sleep", line=sleep_line, inside=number - (inner > 0), each_ns=50 * MS)
        if inner:
            shop.now[1] = at
            fail(shop, name, kind, "", error, inside=number, each_ns=100 * MS, inner_wall_ns=100 * MS)
        shop.now[1] = at
        more = {"error": shop.string(error)} if error else {}
        shop.call(name, kind, each_ns=101 * MS, inner_wall_ns=100 * MS, **more)


@pytest.mark.parametrize("inner", [0, 1])
@pytest.mark.parametrize("transaction", [False, True])
def test_sleeps_of_a_package_in_its_calls_that_failed_are_theirs(shop, inner, transaction):
    def calls(_):
        retry(shop, "redis.Redis.execute_command", "db", "ConnectionError", inner=inner)

    shop.request("GET /", calls) if transaction else calls(0)
    survey = shop.survey()

    assert told(survey) == [("failed calls", 6, 606 * MS)]
    assert "sleep" not in [row.kind for each in found_in(survey) for row in each.rows]
    assert sum(row.wall_ns for row in survey.calls) == 606 * MS
    assert sentences(survey) == [
        "6 of 6 calls of redis.Redis.execute_command from orders.py:88 line_88 failed with ConnectionError,"
        " 101 ms each, 600 ms in sleeps of the package (606 ms of 1.00 s)."
    ]


@pytest.mark.parametrize(
    ("error", "line"), [("", 88), ("ConnectionError", 90), ("KeyboardInterrupt", 88)], ids=["ends well", "own", "told"]
)
def test_other_sleeps_in_calls_are_not_theirs(shop, error, line):
    retry(shop, "redis.Redis.execute_command", "db", error, sleep_line=line)

    assert told(shop.survey()) == [("slow calls", 12, 600 * MS)]


@pytest.mark.parametrize("line", [88, 90])
@pytest.mark.parametrize("transaction", [False, True])
def test_sleeps_of_a_library_inside_calls_that_end_well_are_as_between_attempts(shop, line, transaction):
    def calls(_):
        retry(shop, "redis.Redis.execute_command", "db", "", sleep_line=line)

    shop.request("GET /", calls) if transaction else calls(0)

    (sentence,) = [each for each in told_with_advice(shop.survey()) if "sleep" in each]

    assert ("as between attempts: see what failed before, interpose events." in sentence) == (line == 88)


def test_sleeps_in_calls_that_failed_are_estimated_with_them(shop):
    retry(shop, "redis.Redis.execute_command", "db", "ConnectionError", times=2)
    (calls,) = shop.survey().calls
    calls.stand_for_all(Population(kept=1, seen=2, kept_wall_ns=SECOND, passed_wall_ns=SECOND))

    assert (calls.slept_ns, calls.wall_ns) == (400 * MS, 404 * MS)


def sleep_after(shop, line, kind="net", error="URLError", ended_well=0):
    for number in range(6):
        shop.call("time.sleep", "sleep", line=88, each_ns=50 * MS)
        attempt = {} if number < ended_well else {"error": shop.string(error)}
        shop.call("urllib.request.urlopen", kind, "GET /", line=line, **attempt)


def told_with_advice(survey):
    found = [each for each in found_in(survey) if each.rule in ("slow calls", "sleep within a transaction")]
    return [Sentences(found, "/home/u/shop", SECOND).with_advice(each) for each in found]


def test_a_function_that_sleeps_and_whose_calls_failed_says_so(shop):
    sleep_after(shop, 88)

    assert told_with_advice(shop.survey()) == [
        "6 calls of time.sleep from orders.py:88 line_88, 50.0 ms each (300 ms of 1.00 s)."
        " In the same function, 6 of 6 calls of urllib.request.urlopen failed with URLError."
        " See why they fail: interpose events."
    ]


def test_a_transaction_that_sleeps_and_whose_calls_failed_says_so(shop):
    shop.request("GET /", lambda _: sleep_after(shop, 88))

    (sentence,) = told_with_advice(shop.survey())

    assert sentence.endswith(
        " In the same function, 6 of 6 calls of urllib.request.urlopen failed with URLError."
        " See why they fail: interpose events."
    )


def test_attempts_that_failed_inside_calls_that_ended_well_are_named(shop):
    for _ in range(4):
        number, at = len(shop.rows) + 4, shop.now.get(1, 0)
        fail(shop, "socket.socket.connect", "net", "10.0.0.1:80", "ConnectionRefusedError", inside=number)
        shop.call("time.sleep", "sleep", inside=number, each_ns=50 * MS)
        shop.call("socket.socket.connect", "net", "10.0.0.1:80", inside=number)
        shop.now[1] = at
        shop.call("requests.Session.send", "net", URL, each_ns=60 * MS, inner_wall_ns=52 * MS)

    assert told_with_advice(shop.survey()) == [
        "4 calls of time.sleep from orders.py:88 line_88, 50.0 ms each (200 ms of 1.00 s)."
        " In the same function, 4 of 8 calls of socket.socket.connect failed with ConnectionRefusedError."
        " See why they fail: interpose events."
    ]


@pytest.mark.parametrize(
    "other",
    [{"line": 90}, {"line": 88, "ended_well": 4}, {"line": 88, "kind": "file", "error": "FileNotFoundError errno 2"}],
    ids=["another function", "most end well", "expected"],
)
def test_sleeps_without_failures_are_to_be_shorter(shop, other):
    sleep_after(shop, **other)

    (sentence,) = told_with_advice(shop.survey())

    assert sentence.endswith("(300 ms of 1.00 s). Wait for the event itself, or for a shorter time.")


@pytest.mark.long
def test_what_a_package_slept_between_its_attempts_is_in_the_failed_request(traced):
    pytest.importorskip("urllib3")
    done = traced(
        COUNTED
        + """
import urllib3
closed = socket.create_server(("127.0.0.1", 0))
url = f"http://127.0.0.1:{closed.getsockname()[1]}/today"
closed.close()
pool = urllib3.PoolManager(retries=urllib3.Retry(3, backoff_factor=0.2))
def load():
    attempt(pool.request, "GET", url)
load()
print(json.dumps([took, failed]))
"""
    )
    took, failed = json.loads(done.stdout)
    ((found, sentence),) = failures_in(done)

    assert failed == ["MaxRetryError"]
    assert 1.2 * SECOND <= found.rows[0].slept_ns <= found.wall_ns <= took * SECOND
    assert "failed with MaxRetryError, 1." in sentence
    assert [each for each in found_in(Survey(Analysis(done.experiment))) if each.rule == "slow calls"] == []


def test_failures_inside_a_call_that_succeeded_are_none(shop):
    number = len(shop.rows) + 2
    fail(shop, "socket.socket.connect", "net", "10.0.0.1:80", "TimeoutError", inside=number, each_ns=300 * MS)
    shop.now[1] = 0
    shop.call("requests.Session.send", "net", URL, each_ns=310 * MS, inner_wall_ns=300 * MS)

    assert told(shop.survey()) == [("slow calls", 1, 310 * MS)]


@pytest.mark.parametrize(
    ("name", "kind", "error"),
    [
        ("sqlite3.Cursor.__next__", "db", "StopIteration"),
        ("socket.socket.recv", "net", "BlockingIOError errno 11"),
        ("socket.socket.recv", "net", "TimeoutError"),
        ("socket.socket.recv_into", "db", "TimeoutError"),
        ("ssl.SSLSocket.read", "net", "TimeoutError"),
        ("ssl.SSLSocket.read", "net", "SSLWantReadError errno 2"),
        ("aiohttp.ClientSession._request", "net", "CancelledError"),
        ("queue.Queue.get", "sync", "Empty"),
        ("select.epoll.poll", "idle", "TimeoutError"),
        ("time.sleep", "sleep", "KeyboardInterrupt"),
        ("subprocess.Popen.wait", "process", "TimeoutExpired"),
        ("os.stat", "file", "FileNotFoundError errno 2"),
    ],
)
def test_expected_ends_are_no_failures(shop, name, kind, error):
    fail(shop, name, kind, "", error, times=3, each_ns=100 * MS)
    survey = shop.survey()

    assert "failed calls" not in [rule for rule, *_ in told(survey)]
    assert not any("failed" in each for each in sentences(survey))


@pytest.mark.parametrize("error", ["ConnectionResetError errno 104", "TimeoutError errno 110"])
def test_a_connection_that_breaks_while_it_receives_has_failed(shop, error):
    fail(shop, "socket.socket.recv", "net", "10.0.0.1:80", error, each_ns=300 * MS)

    assert told(shop.survey()) == [("failed calls", 1, 300 * MS)]


def test_short_failures_are_not_told(shop):
    fail(shop, "os.open", "file", "/etc/shadow", "PermissionError errno 13", times=40)

    assert "failed calls" not in [rule for rule, *_ in told(shop.survey())]


def test_both_consolidators_find_the_same_failures(shop):
    fail(shop, "requests.Session.send", "net", URL, "ReadTimeout", times=3, each_ns=100 * MS)
    shop.survey()

    plain = Survey(Analysis(Experiment(str(shop.directory)), consolidator=PlainConsolidator))

    assert told(plain) == told(Survey(Analysis(Experiment(str(shop.directory))))) == [("failed calls", 3, 300 * MS)]


def test_failures_are_estimated_with_the_calls(shop):
    fail(shop, "requests.Session.send", "net", URL, "ReadTimeout", times=3, each_ns=100 * MS)
    (calls,) = shop.survey().calls
    calls.stand_for_all(Population(kept=1, seen=2, kept_wall_ns=SECOND, passed_wall_ns=SECOND))

    assert calls.failures == {"ReadTimeout": (6, 600 * MS)} == {"ReadTimeout": (calls.calls, calls.wall_ns)}


@pytest.mark.parametrize("consolidate", ["0", "1"])
def test_a_locked_database_is_named(traced, consolidate):
    done = traced(
        COUNTED
        + """
mine, other = (sqlite3.connect("shop.db", timeout=0.25, isolation_level=None) for _ in range(2))
mine.execute("create table orders (number)")
other.execute("begin immediate")
def insert(number):
    attempt(mine.execute, "insert into orders values (?)", (number,))
for number in range(4):
    insert(number)
other.execute("commit")
insert(5)
print(json.dumps([took, failed]))
""",
        INTERPOSE_CONSOLIDATE=consolidate,
    )
    took, failed = json.loads(done.stdout)
    ((found, sentence),) = failures_in(done)

    assert failed == 4 * ["OperationalError"]
    assert "4 of 5 calls of sqlite3.Connection.execute from " in sentence
    assert " failed with OperationalError, " in sentence
    assert 0.5 * took <= found.wall_ns / SECOND <= took


def test_an_answer_that_does_not_come_is_named(traced):
    done = traced(
        COUNTED
        + """
import http.client
with socket.create_server(("127.0.0.1", 0)) as server:
    for _ in range(3):
        client = http.client.HTTPConnection(*server.getsockname(), timeout=0.35)
        client.request("GET", "/")
        attempt(client.getresponse)
        client.close()
print(json.dumps([took, failed]))
"""
    )
    took, failed = json.loads(done.stdout)
    ((found, sentence),) = failures_in(done)

    assert failed == 3 * ["TimeoutError"]
    assert "3 of 3 calls of http.client.HTTPConnection.getresponse from " in sentence
    assert 0.5 * took <= found.wall_ns / SECOND <= took


def test_a_program_that_expects_its_exceptions_has_no_failures(traced):
    done = traced(
        COUNTED
        + """
import os, queue, subprocess
child = subprocess.Popen(["sleep", "0.6"])
jobs, (left, right) = queue.Queue(), socket.socketpair()
left.setblocking(False)
right.settimeout(0.1)
for number in range(5):
    attempt(child.wait, 0.1)
    attempt(jobs.get, True, 0.1)
    attempt(left.recv, 10)
    attempt(right.recv, 10)
    attempt(os.stat, "none")
child.wait()
print(json.dumps([took, sorted(set(failed))]))
"""
    )
    _, failed = json.loads(done.stdout)

    assert failed == ["BlockingIOError", "Empty", "FileNotFoundError", "TimeoutError", "TimeoutExpired"]
    assert failures_in(done) == []
