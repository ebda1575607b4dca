"""Marks transactions, with and without a recording; prints nanoseconds each in the quickest round.

Usage: marks.py ROUNDS TIMES
"""

import asyncio
import json
import sys
from time import perf_counter_ns

from interpose import transaction


def nothing():
    pass


@transaction("decorated")
def decorated():
    pass


def call_ns(function, times):
    """Nanoseconds a call, the loop around it included."""
    begun_ns = perf_counter_ns()
    for _ in range(times):
        function()
    return (perf_counter_ns() - begun_ns) / times


def loop_ns(_, times):
    """Nanoseconds of a loop that does nothing."""
    begun_ns = perf_counter_ns()
    for _ in range(times):
        pass
    return (perf_counter_ns() - begun_ns) / times


def block_ns(made, times):
    """Nanoseconds a block."""
    begun_ns = perf_counter_ns()
    for _ in range(times):
        with made:
            pass
    return (perf_counter_ns() - begun_ns) / times


def awaited_ns(made, times):
    """The same in a coroutine."""

    async def run():
        return block_ns(made, times)

    return asyncio.run(run())


rounds, times = map(int, sys.argv[1:])
made = transaction("block")
acts = {
    "call, bare": (call_ns, nothing),
    "call, decorated": (call_ns, decorated),
    "loop": (loop_ns, None),
    "block": (block_ns, made),
    "block in a coroutine": (awaited_ns, made),
}
least = dict.fromkeys(acts, float("inf"))
for _ in range(rounds):
    for name, (measure, subject) in acts.items():
        least[name] = min(least[name], measure(subject, times))
print(json.dumps(least))
