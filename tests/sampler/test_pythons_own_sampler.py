"""The sampling profiler of CPython 3.15 and a recording of ours run at once; neither disturbs the other."""

import json
import subprocess
import sys
from importlib.util import find_spec

import pytest
from tracing import events_of

from interpose.experiments.model.experiment import Experiment
from tests.sampler.test_sampler import chosen, cpu_by, seen, shares_of

pytestmark = pytest.mark.skipif(
    not (find_spec("profiling") and find_spec("profiling.sampling")), reason="this Python has no sampling profiler"
)
NAMES = ("squares", "texts")
# Two functions take turns; each says what it used. Between them are calls that are counted.
PROGRAM = """
import json, os, time

def squares():
    s = 0
    for i in range(300_000): s += i * i % 7

def texts():
    for i in range(60_000): str(i)

def look():
    for _ in range(250): os.stat("/")

spent = dict.fromkeys(("squares", "texts"), 0.0)
for _ in range(20):
    for function in (squares, texts):
        began = time.thread_time()
        function()
        spent[function.__name__] += time.thread_time() - began
    look()
print(json.dumps(spent))
"""


def profiled(work, *before):
    """What the program said, under CPython's profiler, and in how many of its samples each function stood innermost."""
    (work / "app.py").write_text(PROGRAM)
    command = [sys.executable, "-m", "profiling.sampling", "run", "--collapsed", "-o", "stacks", "app.py"]
    done = subprocess.run([*before, *command], cwd=work, capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stderr
    found = {}
    for line in (work / "stacks").read_text().splitlines():
        stack, _, count = line.rpartition(" ")
        function = stack.rpartition(";")[2].split(":")[1]
        found[function] = found.get(function, 0) + int(count)
    said = next(line for line in done.stdout.splitlines() if line.startswith("{"))
    return json.loads(said), found, (work / "stacks").read_text()


def test_both_see_what_they_see_alone(work):
    spent, its, stacks = profiled(work, sys.executable, "-m", "interpose", "run", "--")

    experiment = Experiment(str(work / "test.1.er"))
    (program,) = (each for each in experiment.processes if len(list(events_of(each, "os.stat"))) >= 5000)
    looks = [each for each in events_of(program, "os.stat") if "look" in functions(program, each)]
    ours = shares_of(cpu_by(program, lambda frames: chosen(frames, NAMES)))
    used = shares_of(spent)
    assert len(looks) == 5000
    assert ("squares", "<module>") in seen(program)
    assert set(NAMES) < set(its)
    assert "site-packages/interpose/" not in stacks
    assert ours["squares"] / (ours["squares"] + ours["texts"]) * 100 == pytest.approx(used["squares"], abs=15)
    assert its["squares"] / (its["squares"] + its["texts"]) * 100 == pytest.approx(used["squares"], abs=15)


def functions(process, event):
    return {site.function for site in process.frames(event.stack)}
