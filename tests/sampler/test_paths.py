"""Functions of a sampled stack called each other, also in calls of microseconds.

Some seconds on a quiet machine: `tox -e truth`. The program keeps running while its frames are read, so a few stacks
mix two instants, and others cannot be read.
"""

from collections import Counter
from itertools import pairwise

import pytest

from interpose.experiments.model.sampled import Sampled

pytestmark = [pytest.mark.truth, pytest.mark.slow, pytest.mark.alone]

PROGRAM = '''
import asyncio, functools, json, time

def leaf(count):
    total = 0
    for number in range(count): total += number
    return total

def direct(): return leaf(10)
def twice(): return direct() + leaf(20)
def key(item): return leaf(item)
def by_c(): return max((5, 30, 10), key=key)
def adding(one, other): return one + leaf(other)
def reduced(): return functools.reduce(adding, (5, 50, 100))

class Thing:
    def __init__(self): self.kept = leaf(40)
    @property
    def value(self): return leaf(15)
    def __eq__(self, other): return self.value == other.value

def objects(): return Thing().value
def compared(): return [Thing()].index(Thing())

def numbers():
    for _ in range(4): yield leaf(100)
def delegating(): yield from numbers()
def in_a_loop():
    for _ in numbers(): pass
    return direct()
def summed(): return sum(delegating())

def failing(): raise ValueError(leaf(5))
def handled():
    try: failing()
    except ValueError: return leaf(10)

def recursive(depth): return leaf(3) + (recursive(depth - 1) if depth else 0)
def deep(): return recursive(30)

async def step(): return leaf(300)
async def steps():
    for _ in range(3):
        await step()
        await asyncio.sleep(0)

def work(until_s):
    while time.thread_time() < until_s:
        for _ in range(20):
            twice(); by_c(); reduced(); objects(); compared(); in_a_loop(); summed(); handled(); deep()

async def main():
    while time.thread_time() < SECONDS: await steps()

work(SECONDS / 2)
asyncio.run(main())
print(json.dumps(0))
'''

CALLS = {
    "<module>": {"work", "main"},
    "work": {"twice", "by_c", "reduced", "objects", "compared", "in_a_loop", "summed", "handled", "deep"},
    "twice": {"direct", "leaf"},
    "direct": {"leaf"},
    "by_c": {"key"},
    "key": {"leaf"},
    "reduced": {"adding"},
    "adding": {"leaf"},
    "objects": {"Thing.__init__", "Thing.value"},
    "compared": {"Thing.__init__", "Thing.__eq__"},
    "Thing.__init__": {"leaf"},
    "Thing.__eq__": {"Thing.value"},
    "Thing.value": {"leaf"},
    "in_a_loop": {"numbers", "direct"},
    "summed": {"delegating"},
    "delegating": {"numbers"},
    "numbers": {"leaf"},
    "handled": {"failing", "leaf"},
    "failing": {"leaf"},
    "deep": {"recursive"},
    "recursive": {"recursive", "leaf"},
    "main": {"steps"},
    "steps": {"step"},
    "step": {"leaf"},
    "leaf": set(),
}
SECONDS = 8


def stacks(process) -> Counter[tuple[str, ...]]:
    """How many samples were in each stack of own functions, from the outermost inward; () if it was not readable."""
    sampled, found = Sampled(process), Counter[tuple[str, ...]]()
    for each in sampled.samples():
        own = tuple(site.function for site in sampled.frames(each.stack) if site.own)
        found[own[::-1]] += each.samples
    return found


def test_each_function_of_a_stack_was_called_from_the_one_around_it(record):
    _, experiment = record(PROGRAM.replace("SECONDS", str(SECONDS)), "--profile", "250")

    found = stacks(experiment.founder)

    functions = {name for stack in found for name in stack}
    pairs = {stack: list(pairwise(stack)) for stack in found}
    mixed = {stack: found[stack] for stack in found if any(inner not in CALLS[outer] for outer, inner in pairs[stack])}
    print(found.total(), sum(mixed.values()), found[()])
    assert {"direct", "Thing.value", "numbers", "recursive", "step"} < functions <= set(CALLS)
    assert sum(mixed.values()) <= 0.05 * found.total(), mixed
    assert found[()] <= found.total() / 5
