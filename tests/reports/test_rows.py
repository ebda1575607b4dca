"""Fetches of rows: each an event, or those of a cursor put together, with nothing lost of them."""

import json

import pytest
from tracing import events_of

FETCHES = """
    import sqlite3
    connection = sqlite3.connect(":memory:", isolation_level=None)
    connection.execute("create table source (x)")
    connection.execute("create table target (x)")
    connection.executemany("insert into source values (?)", [(number,) for number in range(3000)])
    cursor = connection.cursor()
    cursor.execute("select x from source")
    connection.executemany("insert into target values (?)", cursor)
    cursor.execute("select x from source")
    while cursor.fetchone():
        pass
    cursor.execute("select x from source")
    while cursor.fetchmany(7):
        pass
    for row in connection.execute("select x from source"):
        for other in connection.execute("select x from source where x < ?", row):
            if other[0] >= 2:
                break
"""
NUMBERS = """
        NUMBERS = "with recursive n (x) as (values (1) union all select x + 1 from n limit {}) select {} from n"
"""
NAMES = ("fetchone", "fetchmany", "__next__")


def fetched(done, name):
    return done.events(f"sqlite3.Cursor.{name}")


@pytest.mark.parametrize("rows", ["each", "cursor", "auto"])
def test_every_row_is_counted_once_and_times_are_those_of_the_fetches(traced, rows):
    done = traced(FETCHES, INTERPOSE_ROWS=rows).ended_well()
    process = done.experiment.founder
    inserting = done.events("sqlite3.Connection.executemany")[1]
    inside = [event for event in fetched(done, "__next__") if event.parent == inserting.call]

    assert sum(event.bytes for event in fetched(done, "fetchone")) == 3000
    assert sum(event.bytes for event in fetched(done, "fetchmany")) == 3000
    assert sum(event.bytes for event in inside) == 3000
    assert sum(event.bytes for event in fetched(done, "__next__")) == 3000 + 3000 + 1 + 2 + 3 * 2997
    # What the call around them was told of each fetch is what the events say in sum, to the nanosecond.
    assert sum(event.wall_ns for event in inside) == inserting.inner_wall_ns
    assert sum(event.cpu_ns for event in inside) == inserting.inner_cpu_ns
    assert all(0 <= event.cpu_ns <= event.wall_ns for event in events_of(process))
    assert all(thread.adds_up for thread in process.threads)


def test_as_many_fetches_are_made_whichever_way_they_are_recorded(traced):
    made = {}
    for rows in ("each", "cursor", "auto"):
        done = traced(FETCHES, INTERPOSE_ROWS=rows, INTERPOSE_NAME=rows)
        events = sum(len(fetched(done, name)) for name in NAMES)
        made[rows] = events + sum(thread.record.gathered for thread in done.experiment.founder.threads)
        assert (rows == "each") == (events == made[rows])

    assert made["cursor"] == made["auto"] == made["each"]


def test_a_cursors_iteration_is_one_event(traced):
    done = traced(
        NUMBERS
        + """
        import sqlite3
        connection = sqlite3.connect(":memory:")
        cursor = connection.execute(NUMBERS.format(500, "x"))
        for row in cursor:
            pass
        """,
        INTERPOSE_ROWS="cursor",
    )
    events = fetched(done, "__next__")

    assert sum(event.bytes for event in events) == 500
    assert len(events) <= 2  # a block may have become full


def test_iterations_of_one_statement_after_the_other_are_not_put_together(traced):
    done = traced(
        """
        import sqlite3
        connection = sqlite3.connect(":memory:")
        cursor = connection.cursor()
        for number in range(50):
            cursor.execute("select ?", (number,)).fetchone()
            connection.execute("select ?", (number,)).fetchone()
        """,
        INTERPOSE_ROWS="cursor",
    )

    assert [event.bytes for event in fetched(done, "fetchone")] == [1] * 100


def test_slow_fetches_are_events_of_their_own(traced):
    done = traced(
        NUMBERS
        + """
        import sqlite3, time
        connection = sqlite3.connect(":memory:")
        for row in connection.execute(NUMBERS.format(30, "x")):
            time.sleep(0.003)
        """
    )

    assert len(fetched(done, "__next__")) == 31


def test_a_fetch_with_calls_inside_is_an_event_that_they_are_in(traced):
    done = traced(
        NUMBERS
        + """
        import os, sqlite3
        connection = sqlite3.connect(":memory:")
        connection.create_function("own", 1, lambda number: os.getcwd() and number)
        for row in connection.execute(NUMBERS.format(30, "own(x)")):
            pass
        """,
        INTERPOSE_ROWS="cursor",
    )
    numbers = {event.call for event in done.events()}

    assert len(fetched(done, "__next__")) >= 29  # the first row is had with the statement
    assert {event.parent for event in done.events("os.getcwd")} <= numbers


def test_a_fetch_that_fails_is_an_event_with_its_error(traced):
    done = traced(
        NUMBERS
        + """
        import sqlite3
        connection = sqlite3.connect(":memory:")
        cursor = connection.execute(NUMBERS.format(60, "x"))
        for _ in range(40):
            cursor.fetchone()
        cursor.close()
        try:
            cursor.fetchone()
        except sqlite3.ProgrammingError:
            pass
        """,
        INTERPOSE_ROWS="cursor",
    )
    process = done.experiment.founder
    *fetches, failed = fetched(done, "fetchone")

    assert sum(event.bytes for event in fetches) == 40
    assert (failed.bytes, process.string(failed.error)) == (0, "ProgrammingError")
    assert len(fetches) <= 2  # a block may have become full


def test_the_report_counts_rows_apart_from_bytes(traced, interpose_here):
    done = traced(FETCHES)
    rows = json.loads(interpose_here("report", done.path, "--by", "kind", "--format", "json").stdout)
    [db] = [row for row in rows if row["kind"] == "db"]

    assert (db["rows"], db["bytes"]) == (3 * 3000 + 3000 + 1 + 2 + 3 * 2997, 0)
