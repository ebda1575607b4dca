"""Findings about statements that waited for locks of rows, which other transactions had."""

import time

import pytest
from shops import MS

from interpose.analysis.analysis import Analysis
from interpose.analysis.findings.engine import found_in
from interpose.analysis.findings.survey import Survey
from interpose.analysis.time.row_locks import RowLocks
from interpose.reports.sentences.advice import advice_for
from interpose.reports.sentences.sentences import Sentences
from tests.build import SECOND

EXECUTE = "psycopg.Cursor.execute"
SELECT = 'SELECT a FROM "shop"."orders" WHERE id = %s FOR UPDATE'
UPDATE = "update orders set a = ?"
HELD = " Until the statement returned, a transaction was in progress that took locks at "


def hold(shop, since_ms, until_ms, *, thread=2, line=10, statement=UPDATE, ends="COMMIT"):
    """A transaction of another thread: its first lock is taken at `since_ms`, its end begins at `until_ms`."""
    shop.now[thread] = (since_ms - 1) * MS
    shop.call(EXECUTE, "db", statement, thread=thread, line=line)
    shop.now[thread] = until_ms * MS
    shop.call(EXECUTE, "db", ends, thread=thread, line=line + 1)


def wait(shop, since_ms, until_ms, statement=SELECT, name=EXECUTE, **more):
    shop.now[1] = since_ms * MS
    shop.call(name, "db", statement, line=88, each_ns=(until_ms - since_ms) * MS, **more)


def told(shop):
    (found,) = [each for each in found_in(shop.survey()) if each.first and each.first.site.line == 88]
    return Sentences([found], "/home/u/shop", SECOND).of(found), advice_for(found)


def test_a_statement_that_returns_as_another_transaction_ends_waited_for_it(shop):
    hold(shop, 100, 500)
    wait(shop, 200, 501)

    words, advice = told(shop)

    assert words.endswith(f'FOR UPDATE".{HELD}orders.py:10 line_10 (301 ms).')
    assert advice.startswith("That transaction probably had the lock")


def test_those_who_had_the_lock_one_after_another_are_all_named(shop):
    hold(shop, 100, 300)
    hold(shop, 301, 500, thread=3, line=20)
    wait(shop, 200, 501)

    words, _ = told(shop)

    assert words.endswith(f"{HELD}orders.py:20 line_20, orders.py:10 line_10 (301 ms).")


def test_where_transactions_end_all_the_time_one_that_ends_then_is_chance(shop):
    for begun_ms in range(100, 600, 5):
        hold(shop, begun_ms, begun_ms + 3)
    wait(shop, 200, 502)

    words, _ = told(shop)

    assert HELD not in words


@pytest.mark.parametrize(
    ("held", "waited"),
    [
        ({"until_ms": 400}, {}),
        ({"until_ms": 600}, {}),
        ({"statement": "update prices set a = ?"}, {}),
        ({"statement": "select a from orders"}, {}),
        ({"ends": "ROLLBACK TO s"}, {}),
        ({"thread": 1}, {}),
        ({}, {"statement": "select a from orders"}),
        ({}, {"statement": "insert into orders values (?)"}),
    ],
    ids=["before", "after", "another table", "no lock", "savepoint", "same thread", "a plain read", "an insert"],
)
def test_other_statements_are_not_said_to_wait_for_it(shop, held, waited):
    hold(shop, **{"since_ms": 100, "until_ms": 500} | held)
    wait(shop, 200, 501, **waited)

    words, advice = told(shop)

    assert HELD not in words
    assert "It probably had" not in advice


def test_of_transactions_that_explain_little_more_than_half_nothing_is_said(shop):
    hold(shop, 300, 500)
    wait(shop, 150, 501)

    assert HELD not in told(shop)[0]


def test_a_rollback_ends_a_transaction_too(shop):
    hold(shop, 100, 500, ends="ROLLBACK")
    wait(shop, 200, 501)

    assert HELD in told(shop)[0]


def test_sqlite_has_one_lock_for_all_tables_and_looks_at_it_now_and_then(shop):
    hold(shop, 100, 500, statement="begin immediate")
    for row in shop.rows:
        row["intrinsic"] = shop.number_of("sqlite3.Connection.execute", "db")
    wait(shop, 200, 580, "insert into prices values (?)", "sqlite3.Connection.execute")

    assert HELD in told(shop)[0]


@pytest.mark.parametrize(("since_ms", "is_held"), [(100, True), (300, False)])
def test_a_call_that_failed_waited_for_who_had_locks_all_the_time(shop, since_ms, is_held):
    hold(shop, since_ms, 700)
    wait(shop, 200, 501, error=shop.string("LockNotAvailable"))

    words, advice = told(shop)

    assert "failed with LockNotAvailable" in words
    assert words.endswith(f"{HELD}orders.py:10 line_10 (301 ms).") == is_held
    assert advice.startswith("That transaction probably had the lock") == is_held


WAITS = """
import sqlite3, threading, time
def connect():
    return sqlite3.connect("shop.db", timeout=30, isolation_level=None)
def hold(begun):
    mine = connect()
    mine.execute("begin immediate")
    mine.execute("insert into orders values (1)")  # has it
    begun.set()
    time.sleep(0.3)
    mine.execute("commit")
connect().execute("create table orders (number)")
other = connect()
for _ in range(2):
    begun = threading.Event()
    thread = threading.Thread(target=hold, args=(begun,))
    thread.start()
    begun.wait()
    other.execute("update orders set number = 2")  # waits
    thread.join()
"""


def test_a_statement_of_sqlite_that_waits_names_the_line_that_has_the_lock(traced):
    done = traced(WAITS).ended_well()
    survey = Survey(Analysis(done.experiment))
    found = found_in(survey)
    sentences = Sentences(found, done.experiment.founder.log.cwd, survey.matters_ns)
    lines = {mark: number for number, line in enumerate(WAITS.splitlines(), 1) for mark in line.split("# ")[1:]}

    (words,) = [sentences.of(each) for each in found if each.first and each.first.site.line == lines["waits"]]

    assert f"{HELD}program.py:{lines['has it'] - 1} hold (" in words


def test_many_statements_that_failed_and_many_short_transactions_are_compared_soon(shop):
    for number in range(12_000):
        hold(shop, 100 + 20 * number, 101 + 20 * number)
    hold(shop, 50, 12_000 * 20, thread=3, line=30)
    for number in range(6_000):
        wait(shop, 200 + 20 * number, 212 + 20 * number, error=110)
    (account,) = shop.survey().analysis.accounts
    locks = RowLocks({0: account})
    (site,) = [site for _, site, has_failed in locks._waits if has_failed]
    before = time.process_time()

    found = locks.holders(EXECUTE, site, has_failed=True)

    assert [(each.line, held_ns) for each, held_ns in found.items()] == [(30, 6_000 * 12 * MS)]
    assert time.process_time() - before < 3  # it took a minute
