"""The system library's drivers of MySQL and MariaDB: what is recorded of each call, and that nothing is missing."""

import pytest
from exercises import assert_program_is_recorded
from servers import need_server

pytestmark = [pytest.mark.packages, pytest.mark.xdist_group("servers")]


@pytest.fixture(autouse=True)
def server():
    need_server("mysql")


def test_every_call_of_mysqlclient_is_recorded_as_it_was(traced):
    pytest.importorskip("MySQLdb")
    assert_program_is_recorded(traced, "mysql", INTERPOSE_ROWS="each")


def test_every_call_of_pymysql_is_recorded_as_it_was(traced):
    pytest.importorskip("pymysql")
    assert_program_is_recorded(traced, "pymysql", INTERPOSE_ROWS="each")


COUNTED = """
import {driver}
connection = {driver}.connect(host="127.0.0.1", user="root", password="", database="test")
cursor = connection.cursor()
cursor.execute("create temporary table counted (x int)")
for number in range(40):
    cursor.execute("insert into counted values (%s)", (number,))
    cursor.execute(f"select x from counted where x = {{number}}")
    cursor.fetchall()
    if number % 4 == 0:
        connection.commit()
cursor.executemany("insert into counted values (%s)", [(number,) for number in range(500)])
cursor.executemany("update counted set x = %s where x = %s", [(number, number) for number in range(20)])
cursor.execute("show session status like 'Com_%'")
counts = dict(cursor.fetchall())
print(*(counts[f"Com_{{name}}"] for name in ("insert", "select", "update", "commit")))
"""
QUERIES = {"MySQLdb": "MySQLdb.connection", "pymysql": "pymysql.Connection"}


@pytest.mark.parametrize("driver", QUERIES)
def test_statements_are_counted_as_the_server_counts_them(traced, driver):
    pytest.importorskip(driver)
    done = traced(COUNTED.format(driver=driver)).ended_well()
    process = done.experiment.founder
    details = [process.string(event.detail) for event in done.events(f"{QUERIES[driver]}.query")]
    counts = {word: sum(1 for each in details if each.startswith(word)) for word in ("insert", "select", "update")}
    commits = len(done.events(f"{QUERIES[driver]}.commit"))

    assert [counts["insert"], counts["select"], counts["update"], commits] == [
        int(each) for each in done.stdout.split()
    ]
