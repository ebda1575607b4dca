"""Functions of every shape, about a millisecond each; the program itself measures how long each takes.

Usage: shapes.py ROUNDS SCALE; prints, for each round, the CPU time of each function with what it calls, in nanoseconds.
Each round imports this file under another name, so it has code objects, and rows under line trace, of its own.
"""

import asyncio
import contextlib
import importlib.util
import json
import math
import sys
from time import thread_time_ns

SCALE = 1
marks = {}


def hot_loop():
    s = 0
    for i in range(30_000 * SCALE):
        s += i * i % 7
    return s


def calls_into_c():
    s = 0
    for i in range(12_000 * SCALE):
        s ^= len(str(i))
    return s


def one():
    return 1


def add(a, b):
    c = a + b
    return c


def small_functions():
    s = 0
    for _ in range(12_000 * SCALE):
        s = add(s, one())
    return s


def numbers(n):
    a = 0
    while a < n:
        yield a
        a += 1


def generators():
    s = 0
    for i in numbers(15_000 * SCALE):
        s += i
    return s


def fibonacci(n):
    if n < 2:
        return n
    return fibonacci(n - 1) + fibonacci(n - 2)


def recursion():
    for _ in range(SCALE):
        fibonacci(19)


def down(n):
    if n:
        down(n - 1)


def deep_recursion():
    for _ in range(60 * SCALE):
        down(200)


def comprehensions():
    for _ in range(40 * SCALE):
        squares = [i * i for i in range(500)]
        evens = {i: i + 1 for i in squares if i % 2 == 0}
        sum(i for i in evens)


def fails(i):
    if i % 4 == 0:
        raise ValueError(i)
    return i


def try_except():
    s = 0
    for i in range(8_000 * SCALE):
        try:
            s += fails(i)
        except ValueError as error:
            s += error.args[0]
        finally:
            s -= 1
    return s


def raised_often():
    s = 0
    names = {}
    for i in range(8_000 * SCALE):
        try:
            names[i]
        except KeyError:
            s += 1
    return s


@contextlib.contextmanager
def nothing_around():
    yield 1


class Around:
    def __enter__(self):
        return self

    def __exit__(self, *error):
        return False


def with_blocks():
    s = 0
    for i in range(6_000 * SCALE):
        with Around() as around:
            s += i
        if i % 8 == 0:
            with nothing_around() as number:
                s += number
    return around, s


def while_loop():
    n, steps = 27, 0
    while steps < 25_000 * SCALE:
        n = n // 2 if n % 2 == 0 else 3 * n + 1
        if n == 1:
            n = 27 + steps
        steps += 1
    return n


def nested_loops():
    s = 0
    for a in range(40 * SCALE):
        for b in range(20):
            for c in range(40):
                s += a ^ c
            s -= b
    return s


def string_building():
    out = []
    for i in range(8_000 * SCALE):
        name = f"{i}-abc"
        name = name.upper() + "x"
        out.append(name)
    text = ",".join(out)
    return text


def dictionaries():
    counts = {}
    words = ["a", "bb", "ccc", "dd", "e"] * 4_000
    for _ in range(SCALE):
        for word in words:
            counts[word] = counts.get(word, 0) + 1
    return counts


def lists():
    kept = []
    for i in range(15_000 * SCALE):
        kept.append(i)
        if len(kept) > 100:
            kept.pop()
            kept[i % 50] = i
    return kept


def closures():
    total = 0

    def count(by):
        nonlocal total
        total += by

    for i in range(15_000 * SCALE):
        count(i)
    return total


class Account:
    def __init__(self, owner):
        self.owner = owner
        self.cents = 0

    def pay(self, cents):
        if cents < 0:
            raise ValueError(cents)
        self.cents += cents

    @property
    def euros(self):
        return self.cents // 100

    @euros.setter
    def euros(self, number):
        self.cents = number * 100


def methods():
    account = Account("me")
    for i in range(12_000 * SCALE):
        account.pay(i)
    return account.cents


def objects():
    for i in range(6_000 * SCALE):
        account = Account(i)
        account.pay(i)
    return account


def properties():
    account = Account("me")
    for i in range(10_000 * SCALE):
        account.euros = i
        account.cents = account.euros
    return account


async def part(i):
    return i + 1


async def turns():
    s = 0
    for i in range(8_000 * SCALE):
        s += await part(i)
    for _ in range(40 * SCALE):
        await asyncio.sleep(0)
    return s


def coroutines():
    return asyncio.run(turns())


def kind_of(i):
    match i % 9:
        case 0:
            return "none"
        case 1 | 2:
            return "few"
        case 3:
            return "three"
        case n if n > 6:
            return "many"
        case _:
            return "some"


def size_of(i):
    n = i % 100
    if n < 5:
        size = 1
    elif n < 10:
        size = 2
    elif n < 20:
        size = 3
    elif n < 40:
        size = 4
    elif n < 70:
        size = 5
    else:
        size = 6
    return size


def match_chains():
    for i in range(8_000 * SCALE):
        kind_of(i)


def if_chains():
    for i in range(8_000 * SCALE):
        size_of(i)


class Point:
    def __init__(self):
        self.x = self.y = 1.0


def attributes():
    p = Point()
    q = Point()
    for _ in range(12_000 * SCALE):
        p.x = q.y + p.y
        q.y = p.x - q.x
        p.y = q.y
    return p, q


def slices():
    data = list(range(50))
    for i in range(10_000 * SCALE):
        part = data[i % 20 : i % 20 + 9]
        part[1:3] = data[3:6]
        data = part[::-1] + data[10:]
    return data


def floats():
    x = 0.5
    for i in range(12_000 * SCALE):
        x = math.sin(x) + x * 1.0000001
        x = x - math.floor(x)
        y = x * x + 3.0 * x - i / 7.0
    return x, y


LIMIT = 7
OFFSET = 3


def module_names():
    s = 0
    for i in range(15_000 * SCALE):
        if LIMIT > OFFSET:
            s += LIMIT * i
        OFFSET.bit_length()
    return s


def long_lines():
    s = 0
    for i in range(3_000 * SCALE):
        s += (
            sum((i, i + 1, i * 2))
            + max(i, 3, s % 7)
            + len((i, s, i))
            + abs(-i)
            + (i * 3 + s * 5 - i // 3) % 11
            + min(s, i)
        )
    return s


def inner(n):
    s = 0
    for i in range(n):
        s += i
    return s


def middle(n):
    begin = thread_time_ns()
    inner(n)
    inner(n)
    took = thread_time_ns() - begin
    marks["inner"] = marks.get("inner", 0) + took
    t = 0
    for i in range(n):
        t ^= i
    return t


def nested_calls():
    begin = thread_time_ns()
    for _ in range(SCALE):
        middle(5_000)
    marks["middle"] = thread_time_ns() - begin
    s = []
    for i in range(15_000 * SCALE):
        s.append(i)
    return s


def one_line_loops():
    s = [i + 1 for i in range(5_000 * SCALE)]
    total = sum(i * 2 for i in s)
    s = sorted(s, key=lambda i: -i)
    return total, "".join(map(str, s))


def mostly_c():
    for _ in range(30 * SCALE):
        sum(range(4_000))


SHAPES = [
    *(
        hot_loop,
        calls_into_c,
        small_functions,
        generators,
        recursion,
        deep_recursion,
        comprehensions,
        try_except,
        raised_often,
    ),
    *(
        with_blocks,
        while_loop,
        nested_loops,
        string_building,
        dictionaries,
        lists,
        closures,
        methods,
        objects,
        properties,
    ),
    *(coroutines, match_chains, if_chains, attributes, slices, floats, module_names, long_lines, nested_calls),
    *(one_line_loops, mostly_c),
]


def took_ns(function):
    begin = thread_time_ns()
    function()
    return thread_time_ns() - begin


def measure():
    """How long each function takes."""
    marks.clear()
    return {function.__name__: took_ns(function) for function in SHAPES} | marks


def load(name):
    """This file as a module of another name, in a file of that name."""
    spec = importlib.util.spec_from_file_location(name, f"{name}.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def main(rounds, scale):
    modules = [load(f"round_{number}") for number in range(rounds)]
    for module in modules:
        module.SCALE = scale
    print(json.dumps([module.measure() for module in modules]))


if __name__ == "__main__":
    main(int(sys.argv[1]), int(sys.argv[2]))
