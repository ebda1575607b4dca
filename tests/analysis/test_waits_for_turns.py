"""Tasks that wait for their turn: for a semaphore, a lock, room in a queue, or a pool's connection."""

import json
import shutil

import pytest
from hypothesis import given
from hypothesis import strategies as st

from interpose.analysis.analysis import Analysis
from interpose.analysis.findings.engine import found_in
from interpose.analysis.findings.survey import Survey
from interpose.analysis.time.turns import Call
from interpose.analysis.time.waits_for_turns import WaitsAtLine, large
from interpose.cli.main import main
from interpose.reports.formats.units import duration
from interpose.reports.sentences.sentences import Sentences
from tests.build import SECOND

LIMITED = """
import asyncio, json, time
from pool import Pool
async def drain(orders):
    while True:
        await asyncio.sleep(0.02)
        await orders.get()
async def work(limit):
    begun_ns = time.monotonic_ns()
    {begins}
    waits.append([begun_ns, time.monotonic_ns()])
    await asyncio.sleep(0.02)
    {ends}
async def main():
    limit = {limit}
    {also}
    await asyncio.gather(*(work(limit) for _ in range(10)))
waits = []
asyncio.run(main())
print(json.dumps(waits))
"""
POOL = """
import asyncio
class Pool:
    def __init__(self):
        self.free = asyncio.Queue()
        self.free.put_nowait(1)
    async def take(self):
        return await self.free.get()
    async def work(self):
        await self.free.get()
    def give(self, one):
        self.free.put_nowait(one)
"""
LINE = 10


def covered_ns(waits):
    """How much time is in one of these waits, or in more."""
    covered, latest_ns = 0, 0
    for begun_ns, ended_ns in sorted(waits):
        covered += max(ended_ns - max(begun_ns, latest_ns), 0)
        latest_ns = max(latest_ns, ended_ns)
    return covered


@pytest.fixture
def limited(traced, tmp_path):
    """Runs tasks that wait at one line."""
    library = tmp_path / "site-packages"
    library.mkdir()
    (library / "pool.py").write_text(POOL)

    def run(limit, begins, ends="pass", also="pass", **settings):
        source = LIMITED.format(limit=limit, begins=begins, ends=ends, also=also)
        done = traced(source, PYTHONPATH=str(library), **settings)
        assert done.stderr == ""
        return done, Survey(Analysis(done.experiment))

    return run


SEMAPHORE = ("asyncio.Semaphore(1)", "await limit.__aenter__()", "await limit.__aexit__(None, None, None)")
TAKE = ("Pool()", "one = await limit.take()", "limit.give(one)")


@pytest.mark.parametrize(
    ("case", "also", "intrinsic"),
    [
        (SEMAPHORE, "pass", "asyncio.Semaphore.acquire"),
        (("asyncio.Lock()", "await limit.acquire()", "limit.release()"), "pass", "asyncio.Lock.acquire"),
        (("asyncio.Queue(1)", "await limit.put(1)"), "asyncio.ensure_future(drain(limit))", "asyncio.Queue.put"),
        (TAKE, "pass", "asyncio.Queue.get"),
    ],
)
def test_tasks_that_wait_for_their_turn_are_told_with_the_time_that_one_waited(limited, case, also, intrinsic):
    done, survey = limited(*case, also=also)
    waits = json.loads(done.stdout)

    found = found_in(survey)

    (turns,) = (each for each in found if each.rule == "waits for a turn")
    assert (turns.first.intrinsic, turns.first.site.line) == (intrinsic, LINE)
    assert 8 <= turns.units == turns.calls <= 10
    assert 0.9 * covered_ns(waits) < turns.bound_ns == turns.wall_ns <= covered_ns(waits)
    assert turns.each_ns * turns.calls <= sum(end - start for start, end in waits)
    words = Sentences(found, done.experiment.founder.log.cwd, SECOND).of(turns)
    assert words.startswith(f"{turns.units} tasks waited {turns.calls} times in {intrinsic} from ")
    assert " each (at least one of them for " in words


def test_waits_for_other_things_at_the_same_line_do_not_count_as_waits_for_a_turn(limited):
    begins = "asyncio.get_running_loop().call_later(0.02, limit.give, await limit.take()); await limit.work()"
    done, survey = limited("Pool()", begins, "limit.give(1)")
    waits = json.loads(done.stdout)

    (turns,) = (each for each in found_in(survey) if each.rule == "waits for a turn")
    assert sum(each.calls for each in turns.rows) > 10 >= turns.calls
    assert turns.each_ns * turns.calls <= sum(end - start for start, end in waits)


def test_an_idle_loop_is_not_idle_while_tasks_wait_for_their_turn(limited, capsys):
    done, survey = limited(*SEMAPHORE)
    _, without = limited("None", "pass")

    assert survey.matters_ns >= 0.9 * covered_ns(json.loads(done.stdout))
    idle_ns = sum(each.wall_ns - each.cpu_ns for each in survey.of_kind("idle"))
    assert survey.idle_in_turns_ns + survey.idle_ns == idle_ns
    assert without.idle_in_turns_ns == 0
    assert main(["report", str(done.path)]) == 0
    told = " ".join(capsys.readouterr().out.split())
    assert " of idle time while tasks waited for a turn" in told
    assert f"({duration(survey.times.not_idle_ns)} not idle)" in told
    copy = shutil.copytree(done.path, f"{done.path}.copy.er")
    assert main(["report", str(done.path), str(copy)]) == 0
    told = " ".join(capsys.readouterr().out.split())
    assert f"({duration(2 * survey.times.not_idle_ns)} not idle)" in told
    assert f"including {duration(2 * survey.idle_in_turns_ns)} of idle time while tasks waited for a turn" in told


def kinds_of_get(done):
    process = done.experiment.founder
    return {process.intrinsic(event.intrinsic).kind for event in done.events("asyncio.Queue.get")}


def test_a_pool_of_a_package_waits_for_what_others_have_and_is_not_idle(limited):
    done, _ = limited(*TAKE)

    assert kinds_of_get(done) == {"sync"}


def test_a_worker_that_waits_for_its_queue_is_idle_and_waits_for_no_turn(limited):
    feeding = "asyncio.get_running_loop().call_later(0.2, lambda: [limit.put_nowait(1) for _ in range(10)])"
    done, survey = limited("asyncio.Queue()", "await limit.get()", also=feeding)

    assert kinds_of_get(done) == {"idle"}
    assert "waits for a turn" not in [each.rule for each in found_in(survey)]


@pytest.mark.parametrize(
    ("limit", "also"),
    [
        ("asyncio.Event()", "asyncio.get_running_loop().call_later(0.2, limit.set)"),
        ("asyncio.Barrier(10) if hasattr(asyncio, 'Barrier') else asyncio.Event()", "limit.__dict__.update(_value=1)"),
    ],
)
def test_tasks_that_wait_for_what_others_do_wait_for_no_turn(limited, limit, also):
    _, survey = limited(limit, "await limit.wait()", also=also)

    assert "waits for a turn" not in [each.rule for each in found_in(survey)]


def test_a_task_of_a_pool_that_waits_for_work_waits_for_no_turn(limited):
    workers = "pool = Pool(); idle = [asyncio.ensure_future(pool.work()) for _ in range(4)]"
    done, survey = limited("asyncio.Event()", "await asyncio.sleep(0.02)", also=workers)

    assert kinds_of_get(done) == {"idle"}
    assert "waits for a turn" not in [each.rule for each in found_in(survey)]


def test_one_task_that_waits_is_no_crowd(limited):
    _, survey = limited("asyncio.Lock()", "await asyncio.sleep(0.001)", also="""
    await limit.acquire()
    asyncio.get_running_loop().call_later(0.2, limit.release)
    await limit.acquire()""")

    assert "waits for a turn" not in [each.rule for each in found_in(survey)]



def test_a_semaphore_that_counts_work_is_no_turn_and_its_loop_is_idle(limited):
    feeding = "asyncio.get_running_loop().call_later(0.2, lambda: [limit.release() for _ in range(10)])"
    _, survey = limited("asyncio.Semaphore(0)", "await limit.acquire()", also=feeding)

    assert "waits for a turn" not in [each.rule for each in found_in(survey)]
    assert survey.idle_in_turns_ns == 0


SEVERAL_LOOPS = """
import asyncio, json, threading, time
async def work(limit, waits):
    begun_ns = time.monotonic_ns()
    async with limit:
        waits.append([begun_ns, time.monotonic_ns()])
        await asyncio.sleep(0.02)
async def main(waits):
    limit = asyncio.Semaphore(1)
    await asyncio.gather(*(work(limit, waits) for _ in range(10)))
loops = [[] for _ in range(12)]
threads = [threading.Thread(target=lambda mine=mine: asyncio.run(main(mine))) for mine in loops]
for each in threads:
    each.start()
for each in threads:
    each.join()
print(json.dumps(loops))
"""


def test_waits_in_several_loops_add_up_as_their_idle_time_does(traced):
    done = traced(SEVERAL_LOOPS)
    truth_ns = sum(covered_ns(waits) for waits in json.loads(done.stdout))
    survey = Survey(Analysis(done.experiment))

    [turns] = [each for each in found_in(survey) if each.rule == "waits for a turn"]

    assert 0.9 * truth_ns < turns.bound_ns <= truth_ns
    assert 0 < survey.idle_in_turns_ns <= turns.bound_ns


def waits_at(line, *spans, idle=()):
    waits = WaitsAtLine("asyncio.Lock.acquire", line)
    for task, (start_ns, end_ns) in enumerate(spans, 1):
        waits.add(Call(start_ns, 0, end_ns - start_ns, 0, 0, 1, 0, 1, 1, 0, 0, task))
    waits.idle = list(idle)
    return waits


def least_tenth(matters_ns):
    return 0.1 * matters_ns


def test_idle_time_only_counts_for_lines_that_reach_the_floor_with_it():
    once = [[waits_at("one", (0, 100), idle=[(0, 100)])]]
    many = [[waits_at(number, (0, 100), idle=[(0, 100)])] for number in range(12)]

    assert large(once, 900, least_tenth) == (once[0], 100)
    assert large(once, 901, least_tenth) == ([], 0)
    told, idle_ns = large(many, 50, least_tenth)
    assert (len(told), idle_ns) == (9, 900)


def test_waits_that_began_before_a_ring_are_no_longer_than_what_matters():
    begun_before = [[waits_at("one", (0, 100), idle=[(98, 100)])]]

    assert large(begun_before, 40, lambda matters_ns: max(50, matters_ns // 10)) == ([], 0)


def test_the_idle_time_of_a_loop_counts_once_for_several_lines():
    loop = [waits_at(line, (0, 100), idle=[(0, 80)]) for line in ("one", "two")]

    assert large([loop, loop], 0, least_tenth) == ([*loop, *loop], 160)


@given(st.lists(st.tuples(st.integers(0, 50), st.integers(0, 50)).map(sorted), min_size=1))
def test_waits_are_joined_whatever_their_order(spans):
    waits = waits_at("one", *spans)

    assert waits.wall_ns == len({at for start, end in spans for at in range(start, end)})
    assert waits.sum_ns == sum(end - start for start, end in spans)
