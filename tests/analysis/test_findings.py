"""Findings: what each rule tells, and what it must not tell."""

from random import Random

import pytest
from shops import BY_NUMBER, MS, REQUEST, SHOP, Shop

from interpose.analysis.analysis import Analysis
from interpose.analysis.calls.profile import by_kind, profile
from interpose.analysis.consolidation.plain_consolidator import PlainConsolidator
from interpose.analysis.findings.engine import findings, found_in
from interpose.analysis.findings.survey import Survey
from interpose.experiments.model.experiment import Experiment
from interpose.reports.sentences.advice import advice_for
from interpose.reports.sentences.sentences import Sentences
from interpose.reports.tables.findings import findings_table
from tests.build import SECOND, START_NS, Build
from tests.schedules import Schedule, put_thread


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

    assert shop.found() == [("N+1 statements", 10, 20 * MS, 18 * MS)]


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


@pytest.mark.parametrize(
    ("intrinsic", "kind", "detail"),
    [
        ("os.write", "file", "(other)"),
        ("os.write", "file", "/tmp/*.log"),
        ("os.fsync", "file", "(other)"),
        ("os.stat", "file", "(other)"),
        ("io.FileIO", "file", "/tmp/*.log"),
        ("sqlite3.Connection.execute", "db", "(other)"),
        ("psycopg2.connect", "db", "(other)"),
    ],
)
def test_calls_whose_details_had_no_room_are_not_about_one(shop, intrinsic, kind, detail):
    shop.call(intrinsic, kind, detail, times=2000, bytes=10)

    assert shop.found() == []


def test_a_file_that_is_forced_at_each_write_could_be_forced_once(shop):
    for _ in range(25):
        shop.call("os.write", "file", "/tmp/a.log", bytes=9000)
        shop.call("os.fsync", "file", "/tmp/a.log", line=89)

    assert shop.found() == [("fsync storm", 25, 25 * MS, 24 * MS)]


def test_a_file_that_is_forced_once_a_request_is_none(shop):
    for _ in range(25):
        shop.request("POST /pay", lambda inside: shop.call("os.fsync", "file", "/tmp/a.log", inside=inside))
    for number in range(25):
        shop.call("os.fsync", "file", f"/tmp/{number}.pdf", line=90)

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


def test_a_file_that_is_read_again_and_again_could_be_kept(shop):
    for _ in range(20):
        shop.call("os.open", "file", "/etc/shop.ini")
        shop.call("os.read", "file", "/etc/shop.ini", bytes=4000)

    assert shop.found() == [("repeated work", 20, 40 * MS, 38 * MS)]


def test_a_file_that_is_opened_again_is_told_by_who_opens_it_with_the_calls_on_it(shop):
    for _ in range(20):
        shop.call("io.open", "file", "/etc/shop.ini")
        shop.call("io.FileIO.read", "file", "/etc/shop.ini", line=89, times=2, bytes=4000)
    (one,) = [each for each in found_in(shop.survey()) if each.rule == "repeated work"]
    row = findings_table([one], SECOND, "/").values(one)

    assert Sentences([one], "/home/u/shop", SECOND).of(one) == (
        'io.open was called 20 times for "/etc/shop.ini" from orders.py:88 line_88, with 40 more calls on it'
        " (60.0 ms of 1.00 s)."
    )
    assert (row["calls"], row["intrinsic"], row["site"], row["wall_ns"]) == (20, "io.open", f"{SHOP}:88", 60 * MS)


def test_what_is_requested_again_from_several_lines_is_one_finding_at_the_line_with_the_most_time(shop):
    shop.call("httpx.Client.send", "net", "GET https://rates.example/today", times=30)
    shop.call("requests.Session.send", "net", "GET https://rates.example/today", line=90, times=9, each_ns=4 * MS)
    shop.call("requests.Session.send", "net", "GET https://rates.example/today", line=91, times=1, each_ns=4 * MS)
    (told,) = [each for each in found_in(shop.survey()) if each.rule == "repeated work"]
    row = findings_table([told], SECOND, "/").values(told)

    assert Sentences([told], "/home/u/shop", SECOND).of(told) == (
        'requests.Session.send was called 9 times for "GET https://rates.example/today" from orders.py:90 line_90'
        ", 4.00 ms each (36.0 ms of 1.00 s), and 31 more calls from 2 other lines (34.0 ms)."
    )
    assert advice_for(told).startswith("Cache the response if the query of the URL, which is not recorded, is")
    assert (row["calls"], row["intrinsic"], row["site"]) == (9, "requests.Session.send", f"{SHOP}:90")
    assert (row["wall_ns"], row["bound_ns"]) == (36 * MS, 70 * MS * 39 // 40)


def test_a_statement_repeated_at_many_lines_that_matters_only_in_all_is_found(shop):
    for line in range(100, 112):
        shop.ask("SELECT rate FROM rates", line=line, times=30, each_ns=MS // 5)

    assert shop.found() == [("repeated work", 30, 72 * MS, 72 * MS * 359 // 360)]


def test_to_close_a_file_again_is_not_the_work_that_could_be_kept(shop):
    for _ in range(20):
        shop.call("os.open", "file", "/etc/shop.ini")
        shop.call("os.close", "file", "/etc/shop.ini", each_ns=9 * MS)

    assert shop.found() == [("repeated work", 20, 20 * MS, 19 * MS)]


def test_looking_for_a_file_again_does_not_take_the_time_of_what_writes_it(shop):
    shop.call("io.open", "file", "/tmp/journal")
    for _ in range(60):
        shop.call("io.FileIO.write", "file", "/tmp/journal", line=89, bytes=5000)
        shop.call("os.fsync", "file", "/tmp/journal", line=90)
    shop.call("os.stat", "file", "/tmp/journal", line=91, times=3000, each_ns=3000)

    assert shop.found(least_share=0) == [
        ("fsync storm", 60, 60 * MS, 59 * MS),
        ("repeated work", 3000, 9 * MS, 9 * MS * 2940 // 3000),
    ]


def test_a_file_that_is_opened_once_is_not_read_again_where_others_look_for_it(shop):
    shop.call("os.open", "file", "/tmp/data")
    shop.call("os.read", "file", "/tmp/data", times=20, bytes=4_000_000, each_ns=10 * MS)
    shop.call("os.stat", "file", "/tmp/data", times=60)

    assert shop.found() == [("repeated work", 60, 60 * MS, 59 * MS)]


def test_what_is_read_after_each_change_could_not_be_kept(shop):
    for _ in range(20):
        shop.call("os.open", "file", "/tmp/state")
        shop.call("os.read", "file", "/tmp/state", each_ns=9 * MS)
        shop.call("os.write", "file", "/tmp/state", bytes=4000)
    shop.call("os.stat", "file", "/tmp/state", times=200)

    assert shop.found() == [("repeated work", 200, 200 * MS, 180 * MS)]


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


def test_what_a_slow_statement_fetched_is_none_of_its_calls(shop):
    for _ in range(3):
        shop.ask("SELECT ? FROM a, b", each_ns=10 * MS)
        shop.call("sqlite3.Cursor.fetchone", "db", each_ns=90 * MS)

    (finding,) = [each for each in found_in(shop.survey()) if each.rule == "slow statement"]
    assert (finding.calls, finding.wall_ns) == (3, 300 * MS)
    told = Sentences([finding], "/", SECOND).of(finding)
    assert told.startswith("3 calls of one SQL statement from ") and ", 100 ms each (300 ms of 1.00 s)" in told


@pytest.mark.parametrize(
    ("name", "statement"),
    [
        ("asyncpg.CursorIterator.__anext__", "SELECT * FROM orders"),
        ("asyncpg.Cursor.fetchrow", "SELECT * FROM orders"),
        ("psycopg.Copy.finish", "COPY orders FROM STDIN"),
        ("psycopg.AsyncCopy.finish", "COPY (SELECT * FROM orders) TO STDOUT"),
    ],
)
def test_to_go_on_with_a_statement_is_not_to_make_it_again(shop, name, statement):
    def calls(inside):
        shop.call(name, "db", statement, times=30, each_ns=12 * MS, inside=inside)

    shop.request("GET /orders", calls)

    assert shop.found() == []


def test_a_slow_copy_has_what_its_line_waited(shop):
    shop.call("psycopg.Cursor.copy", "db", "copy (select ? from a, b) to stdout", each_ns=0)
    shop.call("psycopg.Connection.wait", "db", each_ns=300 * MS)

    assert shop.found() == [("slow statement", 1, 300 * MS, 300 * MS)]


def test_a_slow_statement_among_others_that_take_more_is_none(shop):
    for number in range(3):
        shop.ask(f"SELECT ? FROM a{number}", line=90 + number, each_ns=100 * MS)

    assert shop.found() == []


UPDATE = "UPDATE orders SET a = ? WHERE number = ?"


def test_a_statement_that_waited_once_is_told_apart_from_those_that_could_be_made_together(shop):
    def calls(inside):
        for number in range(20):
            shop.ask(UPDATE, each_ns=400 * MS if number == 5 else MS, inside=inside)

    shop.request("POST /pay", calls)

    told = {each.rule: each for each in found_in(shop.survey()) if each.rule in ("N+1 statements", "slow calls")}
    repeated, waited = told["N+1 statements"], told["slow calls"]
    words = Sentences(told.values(), "/home/u/shop", SECOND)
    assert (repeated.calls, repeated.wall_ns, repeated.bound_ns) == (20, 19 * MS, 18 * MS)
    assert words.of(repeated) == (
        "20 SQL queries from orders.py:88 line_88, 20 per POST /pay (19.0 ms of 1.00 s, without one of 400 ms):"
        f' "{UPDATE}".'
    )
    assert (waited.calls, waited.wall_ns, waited.bound_ns) == (1, 400 * MS, 400 * MS)
    assert words.of(waited) == (
        "1 of 20 calls of sqlite3.Cursor.execute from orders.py:88 line_88 took far longer than the others"
        f' (400 ms of 1.00 s): "{UPDATE}".'
    )
    assert advice_for(waited) == "It probably waited for a lock of another transaction. See when: interpose events."


@pytest.mark.parametrize(("each_ns", "slow"), [(MS, []), (20 * MS, [("slow statement", 9, 180 * MS, 180 * MS)])])
def test_a_statement_is_slow_only_if_it_is_so_without_the_call_that_waited(shop, each_ns, slow):
    shop.ask(UPDATE, each_ns=250 * MS)
    shop.ask(UPDATE, times=9, each_ns=each_ns)

    assert shop.found() == slow


@pytest.mark.parametrize("lengths_ms", [[45, *[1] * 9], [205, 200, *[1] * 9], [300, *[40] * 7], [300]])
def test_one_call_among_others_that_are_as_long_is_not_told_apart(shop, lengths_ms):
    for length_ms in lengths_ms:
        shop.ask(UPDATE, each_ns=length_ms * MS)

    assert [each.calls for each in shop.survey().calls] == [len(lengths_ms)]


def test_a_call_that_waited_is_not_one_of_a_driver_whose_inner_calls_are_of_another_kind(shop):
    for each_ns in (300 * MS, *[MS] * 9):
        number, at = len(shop.rows) + 2, shop.now.get(1, 0)
        shop.call("time.sleep", "sleep", inside=number, each_ns=each_ns)
        shop.now[1] = at
        shop.call("sqlite3.Cursor.execute", "db", UPDATE, each_ns=each_ns + MS, inner_wall_ns=each_ns)

    assert [(each.kind, each.calls) for each in shop.survey().calls] == [("sleep", 10), ("db", 10)]


def test_commits_do_not_save_what_one_of_them_waited(shop):
    shop.call("sqlite3.Connection.commit", "db", times=199)
    shop.call("sqlite3.Connection.commit", "db", each_ns=300 * MS)

    assert shop.found() == [("commits one by one", 200, 199 * MS, 197 * MS)]


def test_a_program_that_works_by_itself_is_to_be_profiled_by_line(tmp_path):
    busy = Shop(tmp_path / "t.1.er", cpu_ns=900 * MS, arguments=["orders.py", "x"])

    (finding,) = [each for each in found_in(busy.survey()) if each.rule == "computing"]

    assert finding.about == "orders.py"
    assert 0.85 * SECOND < finding.bound_ns <= SECOND
    assert "computing" not in [rule for rule, *_ in Shop(tmp_path / "t.2.er", cpu_ns=100 * MS).found()]


def computed_in(survey):
    """The finding about code that computes, and the CPU time in the table's rows `code` and `logic`."""
    (finding,) = [each for each in found_in(survey) if each.rule == "computing"]
    rows = by_kind(profile(survey.analysis, "kind"))
    return finding, sum(row.sums.self_cpu_ns for row in rows if row.kind in ("code", "logic"))


@pytest.mark.parametrize("in_request_ms", [300, 800])
def test_code_in_requests_computes_like_other_code(tmp_path, in_request_ms):
    shop = Shop(tmp_path / "t.1.er", cpu_ns=850 * MS, arguments=["orders.py"])
    shop.call("sqlite3.Cursor.execute", "db", inside=2, each_ns=40 * MS, cpu_ns=20 * MS)
    shop.now[1] = 0
    inside = {"inner_wall_ns": 40 * MS, "inner_cpu_ns": 20 * MS}
    shop.call(REQUEST, "logic", each_ns=860 * MS, cpu_ns=(in_request_ms + 20) * MS, **inside)

    finding, in_table_ns = computed_in(shop.survey())

    assert finding.bound_ns == in_table_ns
    assert finding.about == "orders.py"


def test_code_of_a_request_in_progress_is_counted_once(tmp_path):
    build = Build(tmp_path / "t.1.er", call_ns=0, inside_ns=0)
    request, stack = build.intrinsic(REQUEST, "logic", transaction="is"), build.stack(build.site(SHOP, 3, "serve"))
    there = [{"start_ns": START_NS, "start_cpu_ns": 0, "call": 1, "intrinsic": request, "stack": stack}]
    build.thread(end_ns=START_NS + SECOND, end_cpu_ns=900 * MS, open_calls=there, main=1, tid=812, made=1)
    build.ended(SECOND, 900 * MS)

    finding, in_table_ns = computed_in(Survey(Analysis(Experiment(str(build.write())))))

    assert finding.bound_ns == in_table_ns == 900 * MS


def test_functions_that_compute_in_requests_are_named(tmp_path):
    build = Build(tmp_path / "t.1.er", call_ns=0, inside_ns=0)
    build.intrinsic(REQUEST, "logic", transaction="is")
    schedule = Schedule([("call", "burn", 60 * MS), ("run", "rest", 2 * MS)] * 60)
    put_thread(build, schedule, Random(0))
    build.ended(schedule.wall_ns, schedule.wall_ns)

    finding, in_table_ns = computed_in(Survey(Analysis(Experiment(str(build.write())))))

    assert in_table_ns == schedule.wall_ns
    assert finding.about == "app.py:burn"
    assert 0.9 * in_table_ns < finding.bound_ns <= 60 * 60 * MS


def test_calls_from_one_line_that_take_a_tenth_of_the_time_are_slow(shop):
    shop.call("requests.get", "net", times=3, each_ns=50 * MS)
    shop.call("requests.get", "net", line=90, each_ns=99 * MS)
    shop.call("threading.Lock.acquire", "sync", line=91, each_ns=300 * MS)

    (slow,) = [each for each in found_in(shop.survey()) if each.rule == "slow calls"]

    assert Sentences([slow], "/home/u/shop", SECOND).of(slow) == (
        "3 calls of requests.get from orders.py:88 line_88, 50.0 ms each (150 ms of 1.00 s)."
    )
    assert advice_for(slow) == "Send requests at the same time, cache the responses, or set a timeout."


def test_the_advice_about_slow_sending_is_about_who_receives(shop):
    shop.call("socket.socket.sendall", "net", times=3, each_ns=50 * MS)

    (slow,) = [each for each in found_in(shop.survey()) if each.rule == "slow calls"]

    assert advice_for(slow) == "Send less data, or look at the receiver, and at how busy the machine is."


def test_the_same_in_several_transactions_is_one_finding(shop):
    for name in ("GET /a", "GET /b"):
        shop.request(name, lambda inside: shop.ask(BY_NUMBER, times=20, inside=inside))

    (one,) = [each for each in found_in(shop.survey()) if each.rule == "N+1 statements"]

    assert (one.calls, one.units, one.bound_ns) == (40, 2, 38 * MS)
    assert Sentences([one], "/", SECOND).of(one) == (
        "40 SQL queries from home/u/shop/orders.py:88 line_88, 20 per transaction, in GET /a, GET /b"
        f' (40.0 ms of 1.00 s): "{BY_NUMBER}".'
    )


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


UNPICKLING = """
import json, multiprocessing, os, time
def made(number):
    begun = time.thread_time()
    while time.thread_time() - begun < 0.05:
        pass
    return number, time.thread_time() - begun
class Slow:
    def __init__(self, number):
        self.number = number
    def __reduce__(self):
        return made, (self.number,)
def same(taken):
    return taken
if __name__ == "__main__":
    with multiprocessing.get_context("fork").Pool(2) as pool:
        print(sum(seconds for _, seconds in pool.map(same, [Slow(number) for number in range(8)], chunksize=1)))
"""


def test_what_a_worker_computes_while_it_fetches_its_work_is_not_idle(traced):
    done = traced(UNPICKLING)
    computed_ns = float(done.stdout) * SECOND
    survey = Survey(Analysis(done.experiment))
    [found] = [each for each in found_in(survey) if each.rule == "computing while idle"]

    assert found.intrinsic == "multiprocessing.SimpleQueue.get"
    assert found.wall_ns == pytest.approx(computed_ns, rel=0.1)
    assert survey.matters_ns >= found.wall_ns


@pytest.mark.parametrize(
    ("intrinsic", "rule"),
    [("multiprocessing.connection.Connection.send", "slow calls"), ("os.waitpid", "child processes")],
)
def test_what_waits_at_a_channel_where_there_is_no_child_may_wait_for_a_thread(shop, intrinsic, rule):
    shop.call(intrinsic, "process", times=100, each_ns=20 * MS)

    rules = {each.rule for each in found_in(shop.survey())}

    assert rules & {"slow calls", "child processes"} == {rule}


@pytest.mark.parametrize(
    ("cpu_ns", "told"), [(MS // 2, []), (5 * MS, [("computing while idle", 100, 500 * MS, 500 * MS)])]
)
def test_short_turns_of_waits_for_work_are_no_computing(shop, cpu_ns, told):
    shop.call("queue.Queue.get", "idle", times=100, each_ns=20 * MS, cpu_ns=cpu_ns)

    assert shop.found() == told


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


@pytest.mark.parametrize(
    ("intrinsic", "detail", "words", "advice"),
    [
        ("redis.Redis.execute_command", "GET", "300 Redis commands", "Send them together: a pipeline,"),
        ("redis.Redis.execute_command", "SET", "300 Redis commands", "Send them together: a pipeline,"),
        ("redis.asyncio.Redis.execute_command", "GET", "300 Redis commands", "Send them together: a pipeline,"),
        ("confluent_kafka.Consumer.seek", "orders", "300 calls of confluent_kafka.Consumer.seek", "Make one call"),
        ("dbm.gnu.open", "/srv/prices.db", "300 calls of dbm.gnu.open", "Make one call"),
        ("duckdb.Connection.execute", "insert into t values (?)", "300 SQL queries", "Write them together:"),
        ("duckdb.Connection.execute", "select a from t", "300 SQL queries", "Load them together: a join,"),
        ("psycopg2.cursor.execute", "insert into t values (%s)", "300 SQL queries", "Write them together: psycopg2"),
        ("psycopg2.cursor.execute", "select a from t", "300 SQL queries", "Load them together: a join,"),
        ("shop.Documents.find", "orders", "300 calls of shop.Documents.find", "Make one call"),
    ],
)
def test_what_is_repeated_is_named_and_advised_on_by_its_language(shop, intrinsic, detail, words, advice):
    shop.call(intrinsic, "db", detail, times=300)
    (told,) = [each for each in found_in(shop.survey()) if each.rule == "N+1 statements"]
    sentence = Sentences([told], "/home/u/shop", SECOND).of(told)

    assert sentence == f'{words} from orders.py:88 line_88 (300 ms of 1.00 s): "{detail}".'
    assert advice_for(told).startswith(advice)


@pytest.mark.parametrize(
    "statement",
    ["insert into orders values (?, ?), … on conflict do nothing", "update orders set a = ?; update orders set a = ?;"],
)
def test_writes_of_many_rows_are_together_already(shop, statement):
    shop.ask(statement, times=300)

    assert "N+1 statements" not in [rule for rule, *_ in shop.found()]


def test_one_write_with_a_semicolon_is_repeated(shop):
    shop.ask("insert into orders values (?);", times=300)

    assert [rule for rule, *_ in shop.found()] == ["N+1 statements"]


def test_executemany_of_psycopg2_sends_each_row(shop):
    shop.call("psycopg2.cursor.executemany", "db", "insert into orders values (%s)", each_ns=500 * MS)
    (told,) = [each for each in found_in(shop.survey()) if each.rule == "slow calls"]

    assert "psycopg2.extras.execute_values" in advice_for(told)


def test_setting_something_in_sql_is_not_a_repeated_statement(shop):
    shop.ask("SET search_path TO ?", times=300)

    assert "N+1 statements" not in [rule for rule, *_ in shop.found()]


@pytest.mark.parametrize(
    ("package", "cpu_ms", "advice"),
    [
        ("psycopg", 200, "Fetch fewer rows and columns"),
        ("psycopg", 100, "Look at what the database does"),
        ("sqlite3", 200, "Look at its query plan"),
        ("sqlite3", 100, "Look at what the database does"),
    ],
)
def test_combined_fetches_are_told_as_rows_and_advised_on_by_who_computed(shop, package, cpu_ms, advice):
    name = f"{package}.Cursor.__next__"
    shop.numbers[name] = shop.intrinsic(name, "db", moves="rows")
    shop.call(name, "db", times=3, each_ns=100 * MS, cpu_ns=cpu_ms * MS // 3, bytes=50_000)
    (told,) = [each for each in found_in(shop.survey()) if each.rule == "slow calls"]

    assert Sentences([told], "/home/u/shop", SECOND).of(told) == (
        f"150,000 rows fetched by {name} from orders.py:88 line_88, 2.00 us each (300 ms of 1.00 s)."
    )
    assert advice_for(told).startswith(advice)


@pytest.mark.parametrize(
    ("name", "statement", "advice"),
    [
        ("psycopg.Cursor.execute", "update orders set paid = ?", "Look at its query plan (an index, fewer rows), or"),
        ("psycopg.Cursor.execute", "insert into t values (?)", "Look at what the database does during these calls, or"),
        ("psycopg.Cursor.execute", "select paid from orders", "Look at its query plan: an index"),
        ("psycopg.Cursor.execute", "select a from t FOR UPDATE", "Look at its query plan (an index, fewer"),
        ("psycopg.Cursor.execute", "select a from t for no key update", "Look at its query plan (an index, fewer"),
        ("pymysql.Connection.query", "select a from t LOCK IN SHARE MODE", "Look at its query plan (an index, fewer"),
        ("pymysql.Connection.query", "select GET_LOCK(?, ?)", "Look at its query plan (an index, fewer"),
        ("psycopg.Cursor.execute", "select for_update from t", "Look at its query plan: an index"),
        ("psycopg.Cursor.execute", "alter table t add b int", "Look at what the database does during these calls, or"),
        ("sqlite3.Cursor.execute", "update orders set paid = ?", "Look at its query plan: an index"),
    ],
)
def test_a_slow_statement_that_takes_locks_on_a_server_may_have_waited_for_a_lock(shop, name, statement, advice):
    shop.call(name, "db", statement, each_ns=800 * MS)
    (told,) = [each for each in found_in(shop.survey()) if each.rule in ("slow statement", "slow calls")]

    assert advice_for(told).startswith(advice)


@pytest.mark.parametrize("statement", ["update orders set paid = ?", "insert into orders values (?)"])
@pytest.mark.parametrize(("cpu_ms", "is_asked"), [(100, True), (700, False)])
def test_what_sqlite_waits_for_is_to_be_recorded(shop, statement, cpu_ms, is_asked):
    shop.ask(statement, each_ns=800 * MS, cpu_ns=cpu_ms * MS)
    (told,) = [each for each in found_in(shop.survey()) if each.rule in ("slow statement", "slow calls")]

    assert ("INTERPOSE=calls,native shows waits for the disk or locks" in advice_for(told)) == is_asked


@pytest.mark.parametrize("package", ["sqlite3", "psycopg"])
@pytest.mark.parametrize(("cpu_ms", "is_told"), [(700, True), (100, False)])
def test_a_call_that_computes_for_many_rows_may_make_them(shop, package, cpu_ms, is_told):
    statement = "insert into t values (?)"
    shop.call(f"{package}.Cursor.executemany", "db", statement, each_ns=800 * MS, cpu_ns=cpu_ms * MS)
    (told,) = [each for each in found_in(shop.survey()) if each.rule == "slow calls"]

    assert advice_for(told).startswith("This time includes the code that makes the rows") == is_told


def test_fetches_of_one_row_each_are_calls(shop):
    name = "psycopg.Cursor.fetchone"
    shop.numbers[name] = shop.intrinsic(name, "db", moves="rows")
    shop.call(name, "db", times=3, each_ns=100 * MS, bytes=1)
    (told,) = [each for each in found_in(shop.survey()) if each.rule == "slow calls"]

    assert Sentences([told], "/home/u/shop", SECOND).of(told).startswith(f"3 calls of {name} from ")


def within(shop, outer, inner, times):
    """Calls `outer` that begin with one of `inner`; both are name, kind, detail and milliseconds."""
    for _ in range(times):
        at, number = shop.now.get(1, 0), len(shop.rows) + 2
        name, kind, detail, inner_ms = inner
        shop.call(name, kind, detail, each_ns=inner_ms * MS, inside=number)
        shop.now[1] = at
        name, kind, detail, outer_ms = outer
        shop.call(name, kind, detail, each_ns=outer_ms * MS, inner_wall_ns=inner_ms * MS)


def test_what_connecting_does_inside_is_of_it(shop):
    certificates = ("ssl.SSLContext.set_default_verify_paths", "file", "", 9)
    within(shop, ("pymysql.connect", "db", "db/shop", 10), certificates, times=40)

    assert [(each.rule, each.calls, each.wall_ns) for each in found_in(shop.survey()) if each.rows] == [
        ("reconnects", 40, 400 * MS)
    ]


@pytest.mark.parametrize(
    ("outer", "kind", "detail", "first"),
    [
        ("http.client.HTTPConnection.request", "net", "GET /", ""),
        ("urllib.request.urlopen", "net", "GET http://shop/", "repeated work"),
        ("redis.Redis.execute_command", "db", "SET", "N+1 statements"),
    ],
)
def test_connections_that_requests_make_inside_are_reconnects_as_well(shop, outer, kind, detail, first):
    within(shop, (outer, kind, detail, 5), ("socket.socket.connect", kind, "10.0.0.1:80", 2), times=100)

    found = shop.found()

    assert found[-1] == ("reconnects", 100, 200 * MS, 198 * MS)
    assert [rule for rule, *_ in found[:-1]] == ([first] if first else [])


def test_what_a_connection_inside_another_takes_counts_once(shop):
    for _ in range(30):
        number = len(shop.rows) + 3
        shop.call("socket.socket.connect", "db", "10.0.0.1:6379", each_ns=MS, inside=number - 1)
        shop.now[1] -= MS
        shop.call("redis.Connection.connect", "db", "cache", each_ns=3 * MS, inside=number, inner_wall_ns=MS)
        shop.now[1] -= 3 * MS
        shop.call("redis.Redis.execute_command", "db", "SET", each_ns=5 * MS, inner_wall_ns=3 * MS)

    assert [each for each in shop.found() if each[0] == "reconnects"] == [("reconnects", 30, 90 * MS, 87 * MS)]


def test_a_pool_that_opens_its_connections_and_a_crawler_do_not_reconnect(shop):
    within(shop, ("requests.get", "net", "GET /", 5), ("socket.socket.connect", "net", "10.0.0.1:80", 4), times=10)
    shop.call("asyncpg.connect", "db", "db/shop", times=10, each_ns=9 * MS)
    for number in range(100):
        host = ("socket.socket.connect", "net", f"10.0.1.{number}:80", 1)
        within(shop, ("requests.get", "net", f"GET http://host{number}/", 2), host, times=1)
    shop.call("socket.socket.accept", "net", "10.0.0.1:80", times=100)

    assert "reconnects" not in [rule for rule, *_ in shop.found()]


@pytest.mark.parametrize(
    ("times", "each", "empty", "mean"),
    [
        (3_000, 1, 3, "1 B"),
        (300, 2, 3, "2 B"),
        (200, 3, 200, "1.5 B"),
        (100, 99, 150, "40 B"),
        (300, 100, 0, "100 B"),
        (1, 1, 400, "less than 0.1 B"),
    ],
)
def test_the_mean_of_tiny_transfers_is_rounded_and_not_cut_off(shop, times, each, empty, mean):
    for moved, number in ((each, times), (0, empty)):
        shop.call("os.read", "file", "/tmp/a.log", times=number, bytes=moved, each_ns=MS // 20)
    (told,) = [each for each in found_in(shop.survey()) if each.rule == "tiny reads and writes"]

    assert f"{times + empty:,} calls of read with {mean} each on " in Sentences([told], "/", SECOND).of(told)
