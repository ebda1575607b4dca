"""Three subprograms that take CPU time: queries, looks at the file system, none of either; prints the seconds it took.

Usage: sampled.py ROUNDS
"""

import json
import os
import sqlite3
import sys
from time import process_time


def queries(connection):
    """Queries that take some microseconds each."""
    for number in range(60):
        connection.execute("select number * number from numbers where number = ?", (number,)).fetchone()


def looks():
    """Calls that take less than two."""
    for _ in range(250):
        os.stat("/")


def plain():
    """Nothing of the outside."""
    return sum(number * number for number in range(3_000))


def main():
    connection = sqlite3.connect(":memory:")
    connection.execute("create table numbers (number integer primary key)")
    connection.executemany("insert into numbers values (?)", [(number,) for number in range(100)])
    for _ in range(int(sys.argv[1])):
        queries(connection)
        looks()
        plain()
    print(json.dumps(process_time()))


main()
