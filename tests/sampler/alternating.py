"""Two functions take turns, the first called in one of several ways; prints the share of CPU time of each, by itself.

Usage: alternating.py MICROSECONDS SECONDS [WAY]: how long a call of the first takes; the second takes three times as
long, and is called through another function. What a call costs that has nothing to do is left out.
"""

import json
import re
import sys
import time

EACH = re.compile(".")


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


def by_c(numbers):
    return max((numbers,), key=first)


def by_sorting(numbers):
    return sorted((numbers,) * 8, key=first)


def by_pattern(numbers):
    return EACH.sub(lambda found: str(first(numbers)), "abcdefgh")


def by_map(numbers):
    return list(map(first, (numbers,) * 8))


class Generators:
    """The same as a generator, a new one for each call."""

    @staticmethod
    def first(numbers):
        total = 0
        for number in numbers:
            total += number
        yield total

    @classmethod
    def by_loop(cls, numbers):
        for _ in cls.first(numbers):
            pass

    @classmethod
    def by_c(cls, numbers):
        return sum(cls.first(numbers))

    @classmethod
    def delegating(cls, numbers):
        yield from cls.first(numbers)

    @classmethod
    def by_another(cls, numbers):
        for _ in cls.delegating(numbers):
            pass


class Endless:
    """The same as one generator for all calls."""

    def __init__(self):
        self.numbers = range(100)
        self.running = self.first()

    def first(self):
        while True:
            total = 0
            for number in self.numbers:
                total += number
            yield total

    def resume(self, numbers):
        self.numbers = numbers
        return next(self.running)


class Coroutines:
    """The same as a coroutine that another one awaits."""

    @staticmethod
    async def first(numbers):
        total = 0
        for number in numbers:
            total += number
        return total

    @classmethod
    async def awaiting(cls, numbers):
        return await cls.first(numbers)

    @classmethod
    def run(cls, numbers):
        try:
            cls.awaiting(numbers).send(None)
        except StopIteration as end:
            return end.value


WAYS = {
    "direct": first,
    "by_c": by_c,
    "by_sorting": by_sorting,
    "by_pattern": by_pattern,
    "by_map": by_map,
    "by_loop": Generators.by_loop,
    "sum": Generators.by_c,
    "by_another": Generators.by_another,
    "resume": Endless().resume,
    "await": Coroutines.run,
}


def cpu_s(function, numbers, calls):
    """The CPU time of so many calls."""
    began = time.thread_time()
    for _ in range(calls):
        function(numbers)
    return time.thread_time() - began


class Timed:
    """A function, and what calls of it took: with numbers, and without any."""

    def __init__(self, function, wanted_s, calls):
        self.function = function
        self.numbers = range(100)
        self.full_s, self.empty_s = [], []
        self.calls = calls
        for _ in range(6):  # the function is specialised by then, and the processor at its speed
            self.measure()
            net_s = self.full_s[-1] - self.empty_s[-1]
            self.numbers = range(max(round(len(self.numbers) * wanted_s / net_s), 1))
        self.full_s.clear()
        self.empty_s.clear()

    def measure(self):
        """Call it many times each way."""
        self.full_s.append(cpu_s(self.function, self.numbers, self.calls) / self.calls)
        self.empty_s.append(cpu_s(self.function, range(0), self.calls) / self.calls)

    def net_s(self):
        """What calls with numbers took more."""
        return sum(self.full_s) - sum(self.empty_s)


def take_turns(call, some, more, seconds):
    """Call the two in turns for so long."""
    end = time.thread_time() + seconds
    while time.thread_time() < end:
        for _ in range(200):
            call(some)
            around(more)


def main():
    wanted_s, seconds = float(sys.argv[1]) / 1e6, float(sys.argv[2])
    call = WAYS[sys.argv[3] if sys.argv[3:] else "direct"]
    calls = int(0.02 / wanted_s)  # the same for both: while they are measured, their shares are those of the turns
    one, other = Timed(call, wanted_s, calls), Timed(around, 3 * wanted_s, calls)
    for _ in range(20):
        one.measure()
        other.measure()
        take_turns(call, one.numbers, other.numbers, seconds / 20)
    both_s = sum(one.full_s) + sum(other.full_s)
    print(json.dumps({"first": one.net_s() / both_s, "second": other.net_s() / both_s}))


main()
