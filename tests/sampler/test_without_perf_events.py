"""Where the kernel permits no perf events, as in most containers, no other process can read the clock of a thread."""

import json
import os
import subprocess
import sys
from collections import Counter

import pytest

from interpose.analysis.analysis import Analysis
from interpose.analysis.profile.profiled import innermost, profiled
from interpose.experiments.model.experiment import Experiment
from interpose.experiments.model.sampled import READY, RUNS, Sampled
from tests.kernel_counters import WITHOUT_PERF_EVENTS
from tests.sampler.chance import chance, samples_that_count
from tests.sampler.test_sampler import shares_of

pytestmark = [pytest.mark.any_python, pytest.mark.long, pytest.mark.alone]

COMPUTING = """
total = 0
for i in range(30_000_000): total += i
"""
# It asks for its CPU time around each function: there the kernel takes its processor away.
PROGRAM = """
import hashlib, json, time

numbers = [i * 7919 % 20011 for i in range(20_000)]
text = bytes(1_500_000)

def sort(): sorted(numbers)  # C code that calls functions
def add_up(): hashlib.sha256(text)  # C code that works in registers
def count():
    total = 0
    for i in range(15_000): total += i * i
def fill():
    found = {}
    for i in range(20_000): found[i % 97] = i

spent = dict.fromkeys(("sort", "add_up", "count", "fill"), 0.0)
while time.thread_time() < 3:
    for function in (sort, add_up, count, fill):
        began = time.thread_time()
        function()
        spent[function.__name__] += time.thread_time() - began
print(json.dumps(spent))
"""


@pytest.fixture
def record_without(work, own_environment):
    """A function that runs a program under `interpose run` without perf events: what it printed, and its experiment."""

    def recorded(program, *options):
        (work / "app.py").write_text(program)
        words = [sys.executable, "-c", WITHOUT_PERF_EVENTS, "run", *options, "app.py"]
        done = subprocess.run(words, cwd=work, env=own_environment, capture_output=True, text=True)
        assert (done.returncode, done.stderr) == (0, "")
        return json.loads(done.stdout or "null"), Experiment(str(work / "test.1.er"))

    return recorded


@pytest.fixture
def others(request):
    """So many other programs compute all the time, by the processors that this process may use."""
    number = request.param * len(os.sched_getaffinity(0))
    found = [subprocess.Popen([sys.executable, "-S", "-c", "while True: pass"]) for _ in range(number)]
    yield number
    for each in found:
        each.kill()
        each.wait()


def test_a_thread_that_computes_is_not_reported_as_waiting_for_a_processor(record_without):
    _, experiment = record_without(COMPUTING, "--profile", "1000")

    samples = list(Sampled(experiment.founder).samples())
    states = Counter()
    for each in samples:
        states[each.state] += each.samples
    waited_ns, used_ns = samples[-1].run_delay_ns, samples[-1].cpu_ns
    assert states[READY] / (states[READY] + states[RUNS]) < waited_ns / (waited_ns + used_ns) + 0.1


@pytest.mark.parametrize("others", [0, 1, 2], indirect=True)
def test_cpu_time_is_of_the_functions_that_used_it_however_many_others_want_the_processors(record_without, others):
    spent, experiment = record_without(PROGRAM, "--profile", "250")
    samples = samples_that_count(experiment.founder)
    if samples < 50:
        pytest.skip("the machine is too busy: the program was seen to run too rarely")

    code = profiled(Analysis(experiment)).code(lambda frames: innermost(frames).function)

    cpu_ns = {name: code[name].cpu_ns for name in spent}
    elsewhere_ns = sum(each.cpu_ns for each in code.values()) - sum(cpu_ns.values())
    truth, shares = shares_of(spent), shares_of(cpu_ns)
    assert {name: pytest.approx(truth[name], abs=chance(truth[name], samples)) for name in truth} == shares
    assert elsewhere_ns / sum(cpu_ns.values()) < 0.1
