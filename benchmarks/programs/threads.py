"""Four threads that query databases of their own and write; prints nanoseconds a call in the quickest round.

Usage: threads.py ROUNDS CALLS
"""

import json
import os
import sqlite3
import sys
import threading
from time import perf_counter_ns

THREADS = 4
SINK = os.open(os.devnull, os.O_WRONLY)


def work(calls):
    """Half of the calls to a database, half of them writes."""
    cursor = sqlite3.connect(":memory:").cursor()
    for number in range(calls // 2):
        cursor.execute("SELECT ? + 1", (number,))
        os.write(SINK, b"x")


def round_ns(calls):
    """Nanoseconds a call, from the start of the threads to the end of the last."""
    threads = [threading.Thread(target=work, args=(calls,)) for _ in range(THREADS)]
    begun_ns = perf_counter_ns()
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return (perf_counter_ns() - begun_ns) / (THREADS * calls)


rounds, calls = map(int, sys.argv[1:])
print(json.dumps(min(round_ns(calls) for _ in range(rounds))))
