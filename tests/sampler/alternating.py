"""Two functions take turns, one directly, one through another; prints their shares by themselves, in percent.

Usage: alternating.py MICROSECONDS SECONDS: how long a call of the first takes; the second takes three times as long.
"""

import json
import sys
import time
from statistics import median


def first(numbers):
    total = 0
    for number in numbers:
        total += number
    return total


def second(numbers):
    total = 0
    for number in numbers:
        total += number
    return total


def around(numbers):
    return second(numbers)


def cpu_s(function, numbers, calls):
    """The CPU time of a call."""
    began = time.thread_time()
    for _ in range(calls):
        function(numbers)
    return (time.thread_time() - began) / calls


def main():
    wanted_s, seconds = float(sys.argv[1]) / 1e6, float(sys.argv[2])
    some = range(1000)
    for _ in range(4):  # specialised, and the processor at its speed
        taken_s = cpu_s(first, some, int(0.2 / wanted_s))
        some = range(max(round(len(some) * wanted_s / taken_s), 1))
    more = range(3 * len(some))
    calls = int(0.1 / wanted_s)
    measured = []
    for _ in range(9):  # in turns: the machine may be slower for a while
        measured.append([cpu_s(first, some, calls), cpu_s(around, more, calls // 3)])
    spent = dict(zip(("first", "second"), map(median, zip(*measured, strict=True)), strict=True))
    end = time.thread_time() + seconds
    while time.thread_time() < end:
        for _ in range(200):
            first(some)
            around(more)
    print(json.dumps(spent))


main()
