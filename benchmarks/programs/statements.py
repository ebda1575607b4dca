"""Executes a statement whose text is always the same, and one whose literals differ at every call; prints nanoseconds a
call of each in the quickest round, while recorded and after the recording has ended.

Usage: statements.py ROUNDS CALLS

Both in one process: two of them differ, by where things come to lie in memory, more than what is looked for.
"""

import json
import sqlite3
import sys
from itertools import count, islice
from time import perf_counter_ns

from interpose.timing import shims

cursor = sqlite3.connect(":memory:").cursor()
cursor.execute("CREATE TABLE orders (id INTEGER PRIMARY KEY, customer TEXT, price INTEGER)")
numbers = count(100_000_000)  # all of one length


def fixed(calls):
    """A statement of eighty-five bytes, literals and all; a text is formatted beside it."""
    for number in islice(numbers, calls):
        f"{number} {number}"
        cursor.execute("SELECT id, price FROM orders WHERE id = 100000000 AND customer = 'customer 100000000'")


def changing(calls):
    """The same statement, its literals formatted into it."""
    for number in islice(numbers, calls):
        cursor.execute(f"SELECT id, price FROM orders WHERE id = {number} AND customer = 'customer {number}'")


def round_ns(work, calls):
    """Nanoseconds a call."""
    begun_ns = perf_counter_ns()
    work(calls)
    return (perf_counter_ns() - begun_ns) / calls


def least_ns(rounds, calls):
    """Nanoseconds a call in the quickest round, fixed and changing in turn."""
    taken = [(round_ns(fixed, calls), round_ns(changing, calls)) for _ in range(rounds)]
    return dict(zip(("fixed", "changing"), map(min, zip(*taken, strict=True)), strict=True))


rounds, calls = map(int, sys.argv[1:])
least_ns(3, calls)
recorded = least_ns(rounds, calls)
shims.end()
print(json.dumps({"recorded": recorded, "ended": least_ns(rounds, calls)}))
