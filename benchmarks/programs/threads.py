"""Threads that query databases of their own and write; prints nanoseconds a call in the quickest round.

Where no interpreter lock has them take turns, they are of CPU time: so it stays what it is as threads are added, unless
these hinder each other.

Usage: threads.py ROUNDS CALLS THREADS
"""

import json
import os
import sqlite3
import sys
import threading
from time import perf_counter_ns, process_time_ns

SINK = os.open(os.devnull, os.O_WRONLY)


def work(calls):
    """Half of the calls to a database, half of them writes."""
    cursor = sqlite3.connect(":memory:").cursor()
    for number in range(calls // 2):
        cursor.execute("SELECT ? + 1", (number,))
        os.write(SINK, b"x")


def now_ns():
    has_lock = getattr(sys, "_is_gil_enabled", lambda: True)()
    return perf_counter_ns() if has_lock else process_time_ns()


def round_ns(calls, count):
    """Nanoseconds a call, from the start of the threads to the end of the last."""
    threads = [threading.Thread(target=work, args=(calls,)) for _ in range(count)]
    begun_ns = now_ns()
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return (now_ns() - begun_ns) / (count * calls)


rounds, calls, count = map(int, sys.argv[1:])
print(json.dumps(min(round_ns(calls, count) for _ in range(rounds))))
