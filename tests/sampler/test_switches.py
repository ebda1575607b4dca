"""Perf events cost a thread time at each switch: one that often gets a processor has none, and right shares."""

import pytest

from tests.sampler.chance import chance, samples_that_count
from tests.sampler.test_sampler import chosen, cpu_by, shares_of

# One of three functions, for 0.03 to 0.12 ms, then a wait; before and after that it computes without a wait.
PROGRAM = """
import json, os, random, time

def perf_events():
    files = f"/proc/{os.getppid()}/fd"  # of `interpose run`
    found = 0
    for each in os.listdir(files):
        try: found += "perf_event" in os.readlink(f"{files}/{each}")
        except FileNotFoundError: pass
    return found

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
print(json.dumps({"spent": spent, "events": events}))
"""


@pytest.mark.long
@pytest.mark.alone
def test_a_thread_that_often_gets_a_processor_has_no_perf_event_and_right_shares(record):
    found, experiment = record(PROGRAM, "--profile", "250")
    (before, between, after), spent = found["events"], found["spent"]
    if not before:
        pytest.skip("the kernel permits no perf events")

    cpu = cpu_by(experiment.founder, lambda frames: chosen(frames, spent))

    truth, shares = shares_of(spent), shares_of({name: cpu[name] for name in spent})
    samples = samples_that_count(experiment.founder)
    assert (between, after > 0) == (0, True)
    assert {name: pytest.approx(truth[name], abs=chance(truth[name], samples)) for name in truth} == shares
