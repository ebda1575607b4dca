"""Perf events cost a thread time at each switch: one that often gets a processor has none, and right shares."""


import pytest

from interpose.analysis.analysis import Analysis
from interpose.analysis.profile.profiled import profiled
from tests.kernel_counters import can_count
from tests.sampler.chance import chance, samples_that_count
from tests.sampler.test_sampler import chosen, shares_of

pytestmark = pytest.mark.any_python

PERF_EVENTS = """
def perf_events():
    files = f"/proc/{os.getppid()}/fd"  # of `interpose run`
    found = 0
    for each in os.listdir(files):
        try: found += "perf_event" in os.readlink(f"{files}/{each}")
        except FileNotFoundError: pass
    return found
"""

# One of three functions, for 0.03 to 0.12 ms, then a wait; before and after that it computes without a wait.
PROGRAM = """
import json, os, random, time
PERF_EVENTS
def first():
    s = 0
    for i in range(some): s += i * i % 7

def second():
    s = 0
    for i in range(2 * some): s += i * i % 7

def third():
    s = 0
    for i in range(4 * some): s += i * i % 7

def compute():
    until_s = time.thread_time() + 0.3
    while time.thread_time() < until_s: sum(i * i for i in range(1000))

some, began = 100_000, time.thread_time()
first()
some = int(some * 30e-6 / (time.thread_time() - began))
compute()
events, spent = [perf_events()], dict.fromkeys(("first", "second", "third"), 0.0)
source, until_s = random.Random(1), time.monotonic() + 4
while time.monotonic() < until_s:
    function = source.choice((first, second, third))
    began = time.thread_time()
    function()
    spent[function.__name__] += time.thread_time() - began
    time.sleep(50e-6)
events.append(perf_events())
compute()
events.append(perf_events())
print(json.dumps(dict(spent=spent, events=events)))
"""


# It gets a processor some 25 times in 50 ms of CPU time; at last it counts its perf events.
SELDOM = """
import json, os, time
PERF_EVENTS
until_s = time.monotonic() + 3
while time.monotonic() < until_s:
    sum(i * i for i in range(50_000))
    time.sleep(1e-3)
print(json.dumps(perf_events()))
"""


@pytest.mark.long
@pytest.mark.alone
def test_a_thread_that_often_gets_a_processor_has_no_perf_event_and_right_shares(record):
    found, experiment = record(PROGRAM.replace("PERF_EVENTS", PERF_EVENTS), "--profile", "250")
    (before, between, after), spent = found["events"], found["spent"]
    if not before:
        pytest.skip("the kernel permits no perf events")

    code = profiled(Analysis(experiment)).code(lambda frames: chosen(frames, spent))

    cpu_s = {name: code[name].cpu_ns / 1e9 for name in spent}
    truth, shares = shares_of(spent), shares_of(cpu_s)
    samples = samples_that_count(experiment.founder)
    assert (between, after > 0) == (0, True)
    assert {name: pytest.approx(truth[name], abs=chance(truth[name], samples)) for name in truth} == shares
    assert sum(cpu_s.values()) == pytest.approx(sum(spent.values()), rel=0.3)


@pytest.mark.long
def test_a_thread_that_seldom_gets_a_processor_keeps_its_perf_events_at_a_low_rate(record):
    events, _ = record(SELDOM.replace("PERF_EVENTS", PERF_EVENTS), "--profile", "2")
    if not can_count():
        pytest.skip("the kernel permits no perf events")

    assert events > 0

