"""Call a tiny function, or resume a generator, for each of a thousand numbers; print its share of CPU time.

Usage: tiny_calls.py SECONDS WAY [PAUSE]. It sleeps PAUSE seconds after each thousand.
Where such a call begins and ends is a matter of opinion, so the share has two bounds.
The lower bound counts only the work: the time saved by a function that does nothing instead.
The upper bound also counts the call: the time saved if C code does the work instead.
"""

import json
import operator
import sys
import time
from functools import partial, reduce

NUMBERS = list(range(1000, 0, -1))


def work(number):
    return number * number + number - 3 * number


def nothing(number):
    return number


def add_work(total, number):
    return total + number * number % 7


def add_nothing(total, number):
    return number


def each_work(numbers):
    for number in numbers:
        yield number * number + number - 3 * number


def each_nothing(numbers):
    for number in numbers:  # noqa: UP028 (`yield from` takes less time)
        yield number


def total_of(function):
    return sum(function(NUMBERS))


def exhaust(numbers):
    for _ in numbers:
        pass


def exhausted(function):
    exhaust(function(NUMBERS))


def mapped(function):
    return list(map(function, NUMBERS))


def iterated(numbers):
    return numbers


def in_order(function):
    return sorted(NUMBERS, key=function)


def reduced(function):
    return reduce(function, NUMBERS)


WAYS = {  # the caller; then what it calls: a function that works, one that does nothing, C code that does the work
    "sorted": (in_order, work, nothing, operator.neg),
    "map": (mapped, work, nothing, operator.neg),
    "reduce": (reduced, add_work, add_nothing, operator.add),
    "sum": (total_of, each_work, each_nothing, iterated),
    "loop": (exhausted, each_work, each_nothing, iterated),
}


def cpu_s(call):
    """The CPU time of twenty calls."""
    began = time.thread_time()
    for _ in range(20):
        call()
    return time.thread_time() - began


def repeat(call, seconds, pause_s):
    """Repeat the call for so many seconds of CPU time."""
    end = time.thread_time() + seconds
    while time.thread_time() < end:
        if pause_s:
            call()
            time.sleep(pause_s)
        else:
            cpu_s(call)


def main():
    seconds, (call, *functions) = float(sys.argv[1]), WAYS[sys.argv[2]]
    pause_s = float(sys.argv[3]) if sys.argv[3:] else 0.0
    ways = [partial(call, function) for function in functions]
    for way in ways * 20:  # specialised from then on
        cpu_s(way)
    took_s = [0.0, 0.0, 0.0]
    for _ in range(20):
        took_s = [before_s + cpu_s(way) for before_s, way in zip(took_s, ways, strict=True)]
        repeat(ways[0], seconds / 20, pause_s)
    works_s, does_nothing_s, without_s = took_s
    print(json.dumps({"least": 1 - does_nothing_s / works_s, "most": 1 - without_s / works_s}))


main()
