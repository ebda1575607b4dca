"""Samples say which asynchronous task, or which greenlet, a thread ran: by its name, else by its function."""

import json
from collections import Counter

import pytest

from interpose.analysis.analysis import Analysis
from interpose.analysis.calls.calltree import calls_of
from interpose.analysis.profile.flame import WALL, folded
from interpose.analysis.profile.profiled import innermost, profiled
from interpose.experiments.model.experiment import Experiment
from interpose.experiments.model.sampled import WAITS, Sampled
from tests.sampler.chance import chance, samples_that_count
from tests.sampler.test_sampler import shares_of

SPIN = """
import json, sys, time
def spin(seconds):
    began = time.thread_time()
    while time.thread_time() < began + seconds: sum(range(300))
    return time.thread_time() - began
spent = {}
def turn(name, seconds):
    spent[name] = spent.get(name, 0) + spin(seconds)
"""

TASKS = """
import asyncio
async def work(name, seconds):
    for _ in range(30):
        turn(name, seconds)
        await asyncio.sleep(0)
async def nameless(seconds): await work("nameless", seconds)
async def main():
    await asyncio.gather(asyncio.create_task(work("alpha", 0.02), name="alpha"),
                         asyncio.create_task(work("größe", 0.01), name="größe"),
                         asyncio.create_task(nameless(0.01)))
asyncio.run(main())
turn("", 0.2)
"""

TRIO = """
import trio
async def alpha():
    for _ in range(30):
        turn("alpha", 0.02)
        await trio.sleep(0)
async def beta():
    for _ in range(30):
        turn("beta", 0.01)
        await trio.sleep(0)
async def main():
    async with trio.open_nursery() as nursery:
        nursery.start_soon(alpha)
        nursery.start_soon(beta)
trio.run(main)
turn("", 0.2)
"""

GREENLETS = """
import greenlet
hub = greenlet.getcurrent()
def alpha():
    while True:
        turn("alpha", 0.02)
        hub.switch()
def beta():
    while True:
        turn("beta", 0.01)
        hub.switch()
both = [greenlet.greenlet(alpha), greenlet.greenlet(beta)]
for _ in range(30):
    for each in both: each.switch()
turn("", 0.2)
"""


@pytest.fixture
def sampled(record):
    """What a program says that its tasks used, and its experiment."""
    return lambda program: record(f"{SPIN}{program}\nprint(json.dumps(spent))\n", "--profile", "400")


def cpu_by_task(experiment: Experiment) -> Counter:
    """CPU time of turns, by the task."""
    sampled, found = Sampled(experiment.founder), Counter()
    before = carried = 0
    for record in sampled.samples():
        carried += record.cpu_ns - (before or record.cpu_ns)
        before = record.cpu_ns
        if record.state != WAITS:
            in_turn = any(site.function == "turn" for site in sampled.frames(record.stack))
            found[sampled.task_name(record.task) if in_turn else None] += carried
            carried = 0
    del found[None]
    return found


def check(spent, experiment):
    found = cpu_by_task(experiment)
    samples = samples_that_count(experiment.founder)
    if samples < 100:
        pytest.skip("the machine is too busy: the program was seen to run too rarely")
    margins = dict.fromkeys(spent, chance(50, samples))
    assert set(found) <= set(spent)
    assert shares_of({name: found[name] for name in spent}) == {
        name: pytest.approx(share, abs=margins[name]) for name, share in shares_of(spent).items()
    }


@pytest.mark.long
@pytest.mark.alone
def test_tasks_of_asyncio_are_told_by_name_or_by_coroutine(sampled):
    check(*sampled(TASKS))


@pytest.mark.alone
def test_tasks_of_trio_are_told_by_their_functions(sampled):
    pytest.importorskip("trio")
    check(*sampled(TRIO))


@pytest.mark.alone
def test_greenlets_are_told_by_their_functions(sampled):
    pytest.importorskip("greenlet")
    check(*sampled(GREENLETS))


@pytest.mark.long
def test_a_loop_in_a_thread_has_its_own_task(sampled):
    program = """
import threading
async def outside(): turn("outside", 0.4)
import asyncio
async def inside(): turn("inside", 0.4)
thread = threading.Thread(target=lambda: asyncio.run(outside()))
thread.start()
asyncio.run(inside())
thread.join()
"""
    _, experiment = sampled(program)
    found = Sampled(experiment.founder)

    tasks = {
        (found.task_name(each.task), site.function)
        for each in found.samples()
        for site in found.frames(each.stack)
        if site.function in ("inside", "outside")
    }

    assert tasks == {("inside", "inside"), ("outside", "outside")}


@pytest.mark.long
def test_flame_and_report_name_the_tasks(interpose, sampled):
    spent, experiment = sampled(TASKS.replace("asyncio.sleep(0)", "asyncio.sleep(0.001)"))

    calls = calls_of(Analysis(experiment), with_tasks=True)
    stacks = [[each.name for each in stack] for stack, _ in folded(calls, WALL)]
    rows = json.loads(interpose("report", "--by", "function", "--format", "json").stdout)

    assert any(stack[0] == "task alpha" and stack[-1] == "asyncio.sleep" for stack in stacks)
    assert any(stack[0] == "task alpha" and stack[-1] == "spin" for stack in stacks)
    spin = next(row for row in rows if row["function"] == "spin")
    assert set(spin["tasks"]) == set(spent) - {""}
    assert 0 < sum(spin["tasks"].values()) < spin["self_cpu_ns"]
    assert next(row for row in rows if row["kind"] != "code")["tasks"] is None


# One coroutine awaits the next, more of them than are read at once, as in web frameworks; the innermost one works.
DEEP = """
import asyncio, json, time

def work():
    total = 0
    for i in range(100_000): total += i

def timed():
    began = time.thread_time()
    work()
    return time.thread_time() - began

async def serve(depth):
    if depth: return await serve(depth - 1)
    spent = inside = 0.0
    for _ in range(250):
        began = time.thread_time()
        spent += timed()
        inside += time.thread_time() - began
        await asyncio.sleep(0.001)
    return {"work": spent, "inside": inside}

began = time.thread_time()
spent = asyncio.run(serve(40))
print(json.dumps({**spent, "whole": time.thread_time() - began}))
"""


@pytest.mark.long
@pytest.mark.alone
def test_a_function_below_many_coroutines_has_its_own_time(record):
    spent, experiment = record(DEEP, "--profile", "400")

    code = profiled(Analysis(experiment)).code(lambda frames: innermost(frames).function)

    ours = {name: code[name].cpu_ns if name in code else 0 for name in ("work", "timed", "serve")}
    samples = samples_that_count(experiment.founder)
    # The three functions used more than what is within the clocks, and less than the whole with the loop's work.
    least, most = (100 * spent["work"] / spent[name] for name in ("whole", "inside"))
    share = 100 * ours["work"] / sum(ours.values())
    assert least - chance(least, samples) <= share <= most + chance(most, samples)
