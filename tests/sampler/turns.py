"""Twelve functions of different shapes that take turns, for so long each; the program measures what each used.

    python turns.py TURN_MS TOTAL_S [main|thread|child|task]

prints the CPU seconds of each function as JSON.
"""

import asyncio
import json
import multiprocessing
import random
import re
import sys
import threading
import time


def loop():
    total = 0
    for i in range(200):
        total += i * i % 7
    return total


def generator():
    return sum(i for i in range(200))


def comprehension():
    found = [i for i in range(300) if i % 3]
    del found  # here, and not when the caller's frame goes on


def texts():
    found = [str(i) for i in range(60)]
    del found


def many_calls():
    for i in range(60):
        small(i)


def small(i):
    return i + 1


def recursion(depth=24):
    return 1 + recursion(depth - 1) if depth else 0


def dictionary():
    found = {}
    for i in range(100):
        found[i % 17] = found.get(i % 17, 0) + 1
    del found


SHUFFLED = random.Random(1).sample(range(1000), 200)


def sorting():
    found = sorted(SHUFFLED)
    del found


def pattern(text="abc 123 def 456 " * 12, found=re.compile(r"\d+")):
    numbers = found.findall(text)
    del numbers


def exceptions():
    for _ in range(20):
        try:
            int("x")
        except ValueError:
            pass


class Point:
    def __init__(self, x):
        self.x = x


def objects():
    found = [Point(i) for i in range(60)]
    del found


def encoding(value={"a": [1, 2, 3], "b": "text"}):  # noqa: B006
    for _ in range(4):
        json.dumps(value)


FUNCTIONS = (loop, generator, comprehension, texts, many_calls, recursion, dictionary, sorting, pattern, exceptions,
             objects, encoding)  # fmt: skip


def turn(function, seconds):
    began = now = time.thread_time()
    while now < began + seconds:
        for _ in range(40):
            function()
        now = time.thread_time()
    return now - began


def turns(turn_s, total_s):
    """CPU seconds by function; some have longer turns than others."""
    source, spent = random.Random(7), dict.fromkeys((each.__name__ for each in FUNCTIONS), 0.0)
    while sum(spent.values()) < total_s:
        for index, function in enumerate(source.sample(FUNCTIONS, len(FUNCTIONS))):
            spent[function.__name__] += turn(function, turn_s * (0.4 + index / 6))
    return spent


def in_thread(how):
    found = []
    thread = threading.Thread(target=lambda: found.append(turns(*how)))
    thread.start()
    thread.join()
    return found[0]


def in_child(how):
    with multiprocessing.get_context("fork").Pool(1) as pool:
        return pool.apply(turns, how)


async def in_task(how):
    async def task():
        await asyncio.sleep(0)
        return turns(*how)

    return await asyncio.create_task(task())


if __name__ == "__main__":
    how, where = (float(sys.argv[1]) / 1000, float(sys.argv[2])), sys.argv[3]
    ways = {"thread": in_thread, "child": in_child, "task": lambda how: asyncio.run(in_task(how))}
    print(json.dumps(ways[where](how) if where in ways else turns(*how)))
