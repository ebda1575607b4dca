"""Calls intrinsics that take little themselves; prints nanoseconds a call in the quickest of the rounds, by name.

Usage: control.py ROUNDS CALLS [within]

`within`: all of it is one transaction.
"""

import json
import os
import sqlite3
import sys
from contextlib import nullcontext
from time import perf_counter_ns

SINK = os.open(os.devnull, os.O_WRONLY)
CURSOR = sqlite3.connect(":memory:").cursor()


def fetch(calls):
    """sqlite3.Cursor.fetchone of a cursor that has no rows left."""
    fetchone = CURSOR.fetchone
    for _ in range(calls):
        fetchone()


def write(calls):
    """os.write of a byte to where nothing is kept."""
    write_one = os.write
    for _ in range(calls):
        write_one(SINK, b"x")


def round_ns(work, calls):
    """Nanoseconds a call."""
    begun_ns = perf_counter_ns()
    work(calls)
    return (perf_counter_ns() - begun_ns) / calls


def around(words):
    """What the rounds are made within."""
    if "within" not in words:
        return nullcontext()
    import interpose

    return interpose.transaction("rounds")


def main():
    rounds, calls = int(sys.argv[1]), int(sys.argv[2])
    with around(sys.argv[3:]):
        least = {work.__name__: min(round_ns(work, calls) for _ in range(rounds)) for work in (fetch, write)}
    print(json.dumps(least))


main()
