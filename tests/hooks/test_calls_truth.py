"""Times of calls, and what recording took, are those that the program measures itself.

It makes the same calls in turns while nothing is recorded, and while they are.
"""

from __future__ import annotations

import json
from statistics import median

import pytest
from tracing import Traced

from interpose.analysis.analysis import Analysis
from interpose.analysis.calls.profile import profile
from interpose.analysis.calls.rows import OVERHEAD

# Calls of 200 ns to 1 ms, of each kind some: what is called how often in a turn.
PLANTED = """
import json, os, socket, sqlite3, sys, time
from time import thread_time_ns
import interpose

null, zero = os.open("/dev/null", os.O_WRONLY), os.open("/dev/zero", os.O_RDONLY)
here, there = socket.socketpair()
database = sqlite3.connect(":memory:").cursor()
COUNT = "with recursive n(i) as (select 1 union all select i + 1 from n where i < ?) select sum(i) from n"

def write_byte(): os.write(null, b"x")
def see_file(): os.stat("/etc")
def read_some(): os.read(zero, 1 << 16)
def read_much(): os.read(zero, 1 << 22)
def send_and_get():
    here.send(b"x" * 2000)
    there.recv(4096)
def select_one(): database.execute("select 1")
def count_few(): database.execute(COUNT, (200,)).fetchone()
def count_many(): database.execute(COUNT, (4000,)).fetchone()
def sleep_shortly(): time.sleep(0.0005)

CALLS = {write_byte: 4000, see_file: 2000, read_some: 300, read_much: 8, send_and_get: 1000, select_one: 1500,
         count_few: 60, count_many: 6, sleep_shortly: 20}

def took_ns(call, times):
    begin = thread_time_ns()
    for _ in range(times):
        call()
    return thread_time_ns() - begin

turns = int(sys.argv[1])
ns = {call: [0, 0] for call in CALLS}
for call, times in CALLS.items():
    interpose.pause()
    took_ns(call, times)
    for _ in range(turns):
        interpose.pause()
        ns[call][0] += took_ns(call, times)
        interpose.resume()
        ns[call][1] += took_ns(call, times)
print(json.dumps({call.__name__: [turns * CALLS[call], *ns[call]] for call in CALLS}))
"""
LOOP_NS = 60  # a loop, and a call of a function in Python, are the program's
PERCENT = 8


def self_ns(done: Traced) -> dict[str, float]:
    """The self CPU time of the calls that each function of the program makes, for each time that it is called."""
    measured = json.loads(done.stdout)
    found = dict.fromkeys(measured, 0.0)
    for row in profile(Analysis(done.experiment), "function").rows:
        name = row.labels.get("function", "")
        if row.is_of_calls and name in found:
            found[name] += row.sums.self_cpu_ns / measured[name][0]
    return found


def own_ns(done: Traced) -> int:
    """What recording took of the CPU."""
    rows = profile(Analysis(done.experiment), "kind").rows
    return next(row.sums.self_cpu_ns for row in rows if row.kind == OVERHEAD)


@pytest.mark.slow
@pytest.mark.truth
def test_self_times_of_calls_are_those_that_they_take_while_nothing_is_recorded(traced):
    done = traced(PLANTED, "30", INTERPOSE="1")

    measured = json.loads(done.stdout)
    expected = {name: figures[1] / figures[0] for name, figures in measured.items()}
    assert self_ns(done) == {
        name: pytest.approx(ns - LOOP_NS / 2, abs=LOOP_NS + ns * PERCENT / 100) for name, ns in expected.items()
    }


@pytest.mark.slow
@pytest.mark.truth
def test_what_recording_takes_is_what_the_calls_take_longer(traced):
    few, many = (traced(PLANTED, turns, INTERPOSE="1") for turns in ("5", "45"))

    longer = [sum(figures[2] - figures[1] for figures in json.loads(done.stdout).values()) for done in (few, many)]
    assert own_ns(many) - own_ns(few) == pytest.approx(longer[1] - longer[0], rel=0.4)


PATHS = """
import json, os, sys
from time import thread_time_ns
import interpose

def took_ns():
    begin = thread_time_ns()
    for _ in range(2000):
        os.stat("/usr/lib")
    return thread_time_ns() - begin

longer_ns, turns = 0, int(sys.argv[1])
interpose.pause()
took_ns()
for _ in range(turns):
    interpose.pause()
    unrecorded_ns = took_ns()
    interpose.resume()
    longer_ns += took_ns() - unrecorded_ns
print(json.dumps([longer_ns, 2000 * turns]))
"""


@pytest.mark.slow
@pytest.mark.truth
def test_calls_about_paths_cost_what_they_take_longer(traced):
    ratios = []
    for _ in range(5):  # what a call costs is measured once a run, and this machine may be slower just then
        few, many = (traced(PATHS, turns, INTERPOSE="1") for turns in ("5", "100"))
        longer_ns, calls = (b - a for a, b in zip(json.loads(few.stdout), json.loads(many.stdout), strict=True))
        inside_ns = many.experiment.founder.log.inside_ns
        ratios.append(((own_ns(many) - own_ns(few)) / calls + inside_ns) / (longer_ns / calls))

    print(ratios)
    assert median(ratios) == pytest.approx(1, rel=0.3)
