"""Gives up the interpreter lock and takes it again; prints nanoseconds a time in the quickest round.

Usage: gil.py ROUNDS TIMES THREADS

With one thread the lock is always free. Several threads take it from each other.
"""

import ctypes
import json
import sys
import threading
from time import perf_counter_ns

without_lock = ctypes.CDLL(None).getppid


def give_up(times):
    for _ in range(times):
        without_lock()


def round_ns(times, count):
    """Nanoseconds a time, the loop around it included."""
    working = [threading.Thread(target=give_up, args=(times,)) for _ in range(count - 1)]
    begun_ns = perf_counter_ns()
    for each in working:
        each.start()
    give_up(times)
    for each in working:
        each.join()
    return (perf_counter_ns() - begun_ns) / (times * count)


rounds, times, count = map(int, sys.argv[1:])
print(json.dumps(min(round_ns(times, count) for _ in range(rounds))))
