"""Calls an intrinsic in short rounds; prints nanoseconds a call in the quickest, and of a bare clock read.

Usage: calls.py INTRINSIC ROUNDS CALLS [wrapt]

With `wrapt` each call goes through a wrapper that keeps wall and CPU time, as one writes it by hand.
"""

import _pyio
import json
import os
import sqlite3
import sys
from time import perf_counter_ns, thread_time_ns

from interpose.timing import clocks

SINK = os.open(os.devnull, os.O_WRONLY)


def write(calls):
    """os.write, called from one's own code."""
    for _ in range(calls):
        os.write(SINK, b"x")


def write_deep(calls):
    """os.write beneath three frames of the standard library: write, _flush_unlocked, FileIO.write."""
    writer = _pyio.BufferedWriter(_pyio.FileIO(SINK, "w", closefd=False), 1)
    for _ in range(calls):
        writer.write(b"xx")


def execute(calls):
    """sqlite3.Cursor.execute of a statement of a hundred bytes."""
    cursor = sqlite3.connect(":memory:").cursor()
    statement = (
        "SELECT 1 + ? AS the_first, 2 + ? AS the_second, 3 + ? AS the_third, 4 + ? AS fourth WHERE ? = 5"
    )
    for _ in range(calls):
        cursor.execute(statement, (1, 2, 3, 4, 5))


def wrap(records):
    """Put wrappers around the intrinsics, as one would who has wrapt and two clocks."""
    import wrapt

    def timed(wrapped, instance, args, kwargs):
        wall_ns, cpu_ns = perf_counter_ns(), thread_time_ns()
        try:
            return wrapped(*args, **kwargs)
        finally:
            records.append((wall_ns, perf_counter_ns() - wall_ns, thread_time_ns() - cpu_ns))

    wrapt.wrap_function_wrapper("os", "write", timed)


def round_ns(work, calls):
    """Nanoseconds a call."""
    begun_ns = perf_counter_ns()
    work(calls)
    return (perf_counter_ns() - begun_ns) / calls


def main():
    work = {"write": write, "write_deep": write_deep, "execute": execute}[sys.argv[1]]
    rounds, calls = int(sys.argv[2]), int(sys.argv[3])
    records = []
    if sys.argv[4:] == ["wrapt"]:
        wrap(records)
    call_ns, bare_ns = [], []
    for _ in range(rounds):
        call_ns.append(round_ns(work, calls))
        bare_ns.append(clocks.bare_reading_ns())
        records.clear()
    print(json.dumps({"call_ns": min(call_ns), "bare_ns": min(bare_ns)}))


main()
