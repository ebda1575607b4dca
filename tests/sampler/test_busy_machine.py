"""Other programs want the processors as well: a thread often loses its own where it, or the recorder, asks for its CPU
time. That is not where it uses it."""

import os
import subprocess
import sys

import pytest

from interpose.analysis.analysis import Analysis
from interpose.analysis.profile.profiled import innermost, profiled
from tests.sampler.chance import samples_that_count
from tests.sampler.test_sampler import chosen

pytestmark = pytest.mark.any_python

# The program says what it takes in all, and what the same calls take without the work.
PROGRAM = """
import json, os, time

def work():
    s = 0
    for i in range(3000): s += i * i
    return s

def with_calls():
    for i in range(4000):
        work()
        os.stat("/")

began = time.thread_time()
with_calls()
whole = time.thread_time() - began
began = time.thread_time()
for i in range(4000): os.stat("/")
print(json.dumps({"whole": whole, "calls": time.thread_time() - began}))
"""
# It asks for its own CPU time again and again.
ASKS = """
import json, time

def work():
    return sum(range(20_000))

spent = 0
while (began := time.thread_time()) < 1.5:
    work()
    spent += time.thread_time() - began
print(json.dumps({"work": spent, "whole": time.thread_time()}))
"""
# Two functions run for tenths of a second each, with short waits in between.
PHASES = """
import hashlib, json, time

def hashing():
    for i in range(100): hashlib.sha256(bytes(1_000_000)).digest()

def pure():
    s = 0
    for i in range(2_000_000): s += i * i % 7

spent = {}
for function in (hashing, pure):
    began = time.thread_time()
    function()
    spent[function.__name__] = time.thread_time() - began
    for i in range(20): time.sleep(0.004)
print(json.dumps(spent))
"""
BUSY = "while True: pass"


@pytest.fixture
def busy_machine():
    """On each processor that this process may use, one other program and more computes all the time."""
    others = [subprocess.Popen([sys.executable, "-S", "-c", BUSY]) for _ in range(len(os.sched_getaffinity(0)) + 1)]
    yield
    for each in others:
        each.kill()
        each.wait()


@pytest.fixture
def one_processor():
    """What this process starts has one processor, on which two others compute all the time, one at a low priority."""
    allowed = os.sched_getaffinity(0)
    os.sched_setaffinity(0, {min(allowed)})
    others = [subprocess.Popen([*nice, sys.executable, "-S", "-c", BUSY]) for nice in ([], ["nice"])]
    yield
    for each in others:
        each.kill()
        each.wait()
    os.sched_setaffinity(0, allowed)


@pytest.mark.alone
@pytest.mark.slow
@pytest.mark.usefixtures("one_processor")
@pytest.mark.parametrize("attempt", range(5))
def test_each_phase_has_its_cpu_time_within_its_margin(record, attempt):
    spent, experiment = record(PHASES)

    code = profiled(Analysis(experiment)).code(lambda frames: chosen(frames, spent))

    off_ns = {name: abs(code[name].cpu_ns - spent[name] * 1e9) for name in spent}
    assert {name: (ns, code[name]) for name, ns in off_ns.items() if ns > code[name].margin_ns} == {}


@pytest.mark.alone
@pytest.mark.usefixtures("busy_machine")
def test_where_a_thread_loses_its_processor_as_a_call_begins_it_used_no_time(record):
    spent, experiment = record(PROGRAM, "--profile", "250")
    if samples_that_count(experiment.founder) < 50:
        pytest.skip("the machine is too busy: the program was seen to run too rarely")

    code = profiled(Analysis(experiment)).code(lambda frames: innermost(frames).function)
    cpu_ns = {name: code[name].cpu_ns if name in code else 0 for name in ("work", "with_calls", "[vdso]")}

    share = 100 * cpu_ns["with_calls"] / (cpu_ns["with_calls"] + cpu_ns["work"])
    assert 100 * cpu_ns["[vdso]"] / sum(cpu_ns.values()) == pytest.approx(0, abs=5)  # it has the wall clock
    assert share == pytest.approx(100 * spent["calls"] / spent["whole"], abs=15)


@pytest.mark.alone
@pytest.mark.usefixtures("busy_machine")
def test_where_a_thread_asks_for_its_cpu_time_it_used_none(record):
    spent, experiment = record(ASKS, "--profile", "250")
    if samples_that_count(experiment.founder) < 50:
        pytest.skip("the machine is too busy: the program was seen to run too rarely")

    code = profiled(Analysis(experiment)).code(lambda frames: innermost(frames).function)

    assert code["work"].cpu_ns / 1e9 == pytest.approx(spent["work"], rel=0.1)
