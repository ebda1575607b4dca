"""Calls a method of a package, and awaits one, with and without a wrapper of wrapt's; prints nanoseconds a call and a
step in the quickest round.

Usage: wrapped.py ROUNDS TIMES
"""

import json
import os
import sys
import tempfile
from time import perf_counter_ns

from interpose import library
from interpose.capture import session
from interpose.config import precedence

PACKAGE = """
class Plain:
    def call(self, statement):
        return statement

    async def wait(self, steps):
        for _ in range(steps):
            await Step()

class Wrapped(Plain):
    def call(self, statement):
        return statement

    async def wait(self, steps):
        for _ in range(steps):
            await Step()

class Step:
    def __await__(self):
        yield
"""


def begin():
    """Record calls of `Wrapped`, and give the package."""
    os.mkdir("wrapped.1.er", 0o700)
    with open("packaged.py", "w") as file:
        file.write(PACKAGE)
    sys.path.insert(0, os.getcwd())
    wanted = precedence.resolve({}, {"INTERPOSE": "1"}, {})
    declared = [
        library.Intrinsic("call", "packaged:Wrapped.call", "db", detail="statement"),
        library.Intrinsic("wait", "packaged:Wrapped.wait", "db"),
    ]
    directory = os.path.abspath("wrapped.1.er")
    session.record(wanted, directory, "", directory, library.resolve([("benchmark", declared)]))
    import packaged

    return packaged


def call_ns(subject, times):
    """Nanoseconds a call, the loop around it included."""
    begun_ns = perf_counter_ns()
    for _ in range(times):
        subject.call("select 1")
    return (perf_counter_ns() - begun_ns) / times


def step_ns(subject, times):
    """Nanoseconds a step of one coroutine."""
    coroutine = subject.wait(times)
    step = coroutine.send
    begun_ns = perf_counter_ns()
    for _ in range(times):
        step(None)
    took_ns = perf_counter_ns() - begun_ns
    coroutine.close()
    return took_ns / times


rounds, times = map(int, sys.argv[1:])
with tempfile.TemporaryDirectory() as directory:
    os.chdir(directory)
    packaged = begin()
    subjects = {"bare": packaged.Plain(), "wrapped": packaged.Wrapped()}
    acts = {"call": call_ns, "step": step_ns}
    least = {f"{name} {act}": float("inf") for act in acts for name in subjects}
    for _ in range(rounds):
        for act, measure in acts.items():
            for name, subject in subjects.items():
                least[f"{name} {act}"] = min(least[f"{name} {act}"], measure(subject, times))
    os.chdir("/")
print(json.dumps(least))
