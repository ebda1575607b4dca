"""Writes that SQLite commits one by one: told where the order of calls proves it, and only there."""

import pytest

from interpose.analysis.analysis import Analysis
from interpose.analysis.findings.engine import findings

PROGRAM = """
    import sqlite3
    def create(connection):
        return connection.cursor().execute("insert into t (b) values (?) returning a", ("text",)).fetchall()
    def opened(path="some.db", **arguments):
        connection = sqlite3.connect(path, **arguments)
        connection.execute("create table t (a integer primary key, b text)")
        return connection
"""
BY_THEMSELVES = {
    "each": """
    connection = opened(isolation_level=None)
    for _ in range(60):
        create(connection)
    """,
    "before and after a transaction": """
    connection = opened(isolation_level=None)
    for part in range(2):
        for _ in range(30):
            create(connection)
        connection.execute("begin")
        connection.execute("update t set b = 'x'")
        connection.commit()
    """,
}
TOGETHER = {
    "a commit at the end": """
    connection = opened()
    for _ in range(60):
        create(connection)
    connection.commit()
    """,
    "a block": """
    connection = opened()
    with connection:
        for _ in range(60):
            create(connection)
    """,
    "an explicit transaction": """
    connection = opened(isolation_level=None)
    connection.execute("BEGIN IMMEDIATE")
    for _ in range(60):
        create(connection)
    connection.execute("COMMIT")
    """,
    "a savepoint within one": """
    connection = opened(isolation_level=None)
    connection.execute("begin")
    for _ in range(60):
        connection.execute("savepoint inner")
        create(connection)
        connection.execute("rollback to inner")
        connection.execute("release inner")
    connection.commit()
    """,
    "in memory": """
    connection = opened(":memory:")
    for _ in range(60):
        create(connection)
    """,
}


def commits(done):
    assert (done.returncode, done.stderr) == (0, "")
    return [each for each in findings(Analysis(done.experiment)) if each.rule == "commits one by one"]


@pytest.mark.parametrize("how", BY_THEMSELVES)
def test_writes_outside_of_transactions_are_commits(traced, how):
    done = traced(PROGRAM + BY_THEMSELVES[how])
    (finding,) = commits(done)

    assert (finding.calls, finding.about) == (60, "insert into t (b) values (?) returning a")
    assert {row.verb for row in finding.rows} >= {"execute", "fetchall"}


@pytest.mark.parametrize("how", TOGETHER)
def test_writes_that_are_committed_together_are_not(traced, how):
    assert commits(traced(PROGRAM + TOGETHER[how])) == []
