"""Programs of many short lines, one chosen by name; prints the seconds of the quickest round.

Usage: lines.py NAME ROUNDS [PROFILER [DIRECTORY]]

PROFILER, what else looks at each line, is nothing, `line_profiler`, `coverage` (its tracer in C), or `floor` in
its DIRECTORY, which does nothing, or `reading`, which is the same and reads the time.
"""

import json
import os
import sys
from time import perf_counter


class Order:
    """Lines of an order, as short as methods are."""

    def __init__(self, lines):
        self.lines = lines
        self.total = 0

    def add_up(self):
        """The sum of what is not free."""
        self.total = 0
        for price in self.lines:
            if price > 0:
                self.total += price
        return self.total


def orders():
    """Many small objects, short methods."""
    total = 0
    for number in range(300):
        order = Order([number % 7, number % 5, number % 3])
        total += order.add_up()
    return total


def words():
    """Words of a text, found letter by letter, by a generator."""
    count = 0
    for _ in split("the quick brown fox jumps over the lazy dog " * 60):
        count += 1
    return count


def split(text):
    """Each word."""
    word = ""
    for letter in text:
        if letter.isalpha():
            word += letter
        elif word:
            yield word
            word = ""


def primes():
    """A sieve: nested loops, arithmetic."""
    limit = 2000
    sieve = [True] * limit
    for number in range(2, limit):
        if sieve[number]:
            multiple = number * number
            while multiple < limit:
                sieve[multiple] = False
                multiple += number
    return sum(sieve)


def ackermann():
    """Deep recursion of a function of three lines."""
    return climb(2, 40)


def climb(m, n):
    """Ackermann's."""
    if m == 0:
        return n + 1
    if n == 0:
        return climb(m - 1, 1)
    return climb(m - 1, climb(m, n - 1))


PROGRAMS = {"orders": orders, "words": words, "primes": primes, "ackermann": ackermann}
FUNCTIONS = (orders, words, split, primes, ackermann, climb, Order.__init__, Order.add_up)


def seconds(program):
    """How long a round takes."""
    begun = perf_counter()
    program()
    return perf_counter() - begun


def look(profiler):
    """Have somebody else look at each line."""
    if profiler == "line_profiler":
        import line_profiler

        watching = line_profiler.LineProfiler()
        for function in FUNCTIONS:
            watching.add_function(function)
        watching.enable()
    elif profiler == "coverage":
        os.environ["COVERAGE_CORE"] = "ctrace"
        import coverage

        watching = coverage.Coverage(data_file=None, config_file=False)
        watching.start()
    elif profiler in ("floor", "reading"):
        sys.path.append(sys.argv[4])
        look_and_do_nothing(profiler == "reading")


def look_and_do_nothing(reads):
    """Be told of the events that line trace asks for, and read the time or not even that."""
    import floor

    callback = floor.begin(reads)
    if sys.version_info < (3, 12):
        return
    told = sys.monitoring
    told.use_tool_id(told.PROFILER_ID, "floor")
    events = ("LINE", "PY_START", "PY_RETURN", "PY_RESUME", "PY_YIELD")
    numbers = [getattr(told.events, event) for event in events]
    for number in numbers:
        told.register_callback(told.PROFILER_ID, number, callback)
    for function in FUNCTIONS:
        told.set_local_events(told.PROFILER_ID, function.__code__, sum(numbers))


look(sys.argv[3] if len(sys.argv) > 3 else "")
print(json.dumps(min(seconds(PROGRAMS[sys.argv[1]]) for _ in range(int(sys.argv[2])))))
