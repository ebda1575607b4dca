"""Programs under statement coverage, one chosen by name; prints the CPU seconds of the quickest round and of the first.

Usage: covering.py NAME ROUNDS DIRECTORY

DIRECTORY is where `imports` and `suite` find the package that they import and test.
"""

import json
import sys
from time import process_time


def short(count=6000):
    """Short functions, called from a loop."""
    total = 0
    for number in range(count):
        total = add(total, number)
        if is_odd(total):
            total = halve(total)
    return total


def add(first, second):
    """Their sum."""
    return first + second


def is_odd(number):
    """Whether it is."""
    return number & 1


def halve(number):
    """Half of it."""
    return number >> 1


def loops(limit=6000):
    """A sieve: long loops of short lines."""
    sieve = [True] * limit
    for number in range(2, limit):
        if sieve[number]:
            multiple = number * number
            while multiple < limit:
                sieve[multiple] = False
                multiple += number
    return sum(sieve)


def recursion():
    """Ackermann's function: deep recursion."""
    return ackermann(2, 45)


def ackermann(m, n):
    """Of two numbers."""
    if m == 0:
        return n + 1
    if n == 0:
        return ackermann(m - 1, 1)
    return ackermann(m - 1, ackermann(m, n - 1))


def generators():
    """Words of a text, found letter by letter, through two generators."""
    count = 0
    for word in long_words(split("the quick brown fox jumps over the lazy dog " * 120)):
        count += len(word)
    return count


def split(text):
    """Each word."""
    word = ""
    for letter in text:
        if letter != " ":
            word += letter
        elif word:
            yield word
            word = ""


def long_words(words):
    """Those of more than three letters."""
    for word in words:
        if len(word) > 3:
            yield word


def exceptions(count=6000):
    """What is raised is caught one function up."""
    caught = 0
    for number in range(count):
        try:
            check(number)
        except ValueError:
            caught += 1
        finally:
            caught += 0
    return caught


def check(number):
    """Raise ValueError for every third."""
    if number % 3 == 0:
        raise ValueError(number)
    return number


class Shape:
    """Something with an area."""

    def __init__(self, width, height):
        self.width = width
        self.height = height

    @property
    def area(self):
        """In square units."""
        return self.width * self.height

    def grow(self, by):
        """Make it larger."""
        self.width += by
        self.height += by
        return self


class Square(Shape):
    """As wide as high."""

    def __init__(self, side):
        super().__init__(side, side)


def classes(count=3000):
    """Objects that are made and changed, with inheritance and properties."""
    total = 0
    for number in range(count):
        shape = Square(number).grow(1)
        total += shape.area
        if isinstance(shape, Shape):
            total -= 1
    return total


def closures(count=3000):
    """Comprehensions, lambdas, closures, sorting by key."""
    total = 0
    for number in range(0, count, 10):
        scaled = [each * number for each in range(10)]
        scaled.sort(key=lambda each: -each)
        adder = make_adder(number)
        total += sum(adder(each) for each in scaled if each % 2)
    return total


def make_adder(number):
    """What adds it."""

    def adder(other):
        return other + number

    return adder


def imports():
    """A package of many modules, imported once."""
    import imported

    return imported.total()


def suite():
    """Its tests, by unittest."""
    import unittest

    import imported.tests

    result = unittest.TestResult()
    unittest.defaultTestLoader.loadTestsFromModule(imported.tests).run(result)
    if not result.wasSuccessful() or not result.testsRun:
        raise RuntimeError(f"{result.testsRun} tests run, {result.failures}, {result.errors}")


PROGRAMS = {
    program.__name__: program
    for program in (short, loops, recursion, generators, exceptions, classes, closures, imports, suite)
}


def cpu_seconds(program):
    """How much CPU time a round takes."""
    begun = process_time()
    program()
    return process_time() - begun


if __name__ == "__main__":
    sys.path.insert(0, sys.argv[3])
    rounds = [cpu_seconds(PROGRAMS[sys.argv[1]]) for _ in range(int(sys.argv[2]))]
    print(json.dumps({"first": rounds[0], "least": min(rounds)}))
