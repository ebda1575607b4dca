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
    """The CPU time of so many calls."""
    began = time.thread_time()
    for _ in range(calls):
        function(numbers)
    return time.thread_time() - began


class Timed:
    """A function, and the CPU time that it has used in calls that were measured."""

    def __init__(self, function):
        self.function = function
        self.measured_s = []
        self.all_s = 0.0

    def measure(self, numbers, calls):
        """Call it; the CPU time of a call."""
        spent_s = cpu_s(self.function, numbers, calls)
        self.measured_s.append(spent_s / calls)
        self.all_s += spent_s
        return self.measured_s[-1]

    def in_all_s(self, calls):
        """With so many more calls, which take as long as those of the median."""
        return self.all_s + calls * median(self.measured_s)


def numbers_for(timed, wanted_s):
    """As many as take so long; the function is specialised by then, and the processor at its speed."""
    some = range(100)
    for _ in range(5):
        taken_s = timed.measure(some, int(0.05 / wanted_s))
        some = range(max(round(len(some) * wanted_s / taken_s), 1))
    timed.measured_s.clear()
    return some


def take_turns(some, more, seconds):
    """Call the two in turns for so long; how often."""
    calls, end = 0, time.thread_time() + seconds
    while time.thread_time() < end:
        for _ in range(200):
            first(some)
            around(more)
        calls += 200
    return calls


def main():
    wanted_s, seconds = float(sys.argv[1]) / 1e6, float(sys.argv[2])
    one, other = Timed(first), Timed(around)
    some = numbers_for(one, wanted_s)
    more = range(3 * len(some))
    for _ in range(9):  # in turns: the machine may be slower for a while
        one.measure(some, int(0.1 / wanted_s))
        other.measure(more, int(0.1 / wanted_s) // 3)
    calls = take_turns(some, more, seconds)
    spent = {name: each.in_all_s(calls) for name, each in (("first", one), ("second", other))}
    print(json.dumps(spent))


main()
