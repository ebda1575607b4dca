"""Tasks that wait for their turn: for a semaphore, a lock, room in a queue, or a pool's connection."""

import json

import pytest

from interpose.analysis.analysis import Analysis
from interpose.analysis.findings.engine import found_in
from interpose.analysis.findings.survey import Survey
from interpose.cli.main import main
from interpose.reports.sentences.sentences import Sentences
from tests.build import SECOND

pytestmark = pytest.mark.any_python

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


TAKE = ("Pool()", "one = await limit.take()", "limit.give(one)")


@pytest.mark.parametrize(
    ("case", "also", "intrinsic"),
    [
        (("asyncio.Semaphore(1)", "await limit.acquire()", "limit.release()"), "pass", "asyncio.Semaphore.acquire"),
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


def test_an_idle_loop_is_not_idle_while_tasks_wait_for_their_turn(limited, capsys):
    done, survey = limited("asyncio.Semaphore(1)", "await limit.acquire()", "limit.release()")
    _, without = limited("None", "pass")

    assert survey.matters_ns >= 0.9 * covered_ns(json.loads(done.stdout))
    idle_ns = sum(each.wall_ns - each.cpu_ns for each in survey.of_kind("idle"))
    assert survey.idle_in_turns_ns + survey.idle_ns == idle_ns
    assert without.idle_in_turns_ns == 0
    assert main(["report", str(done.path)]) == 0
    assert " of idle in which tasks waited for a turn" in " ".join(capsys.readouterr().out.split())


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
    _, survey = limited("asyncio.Event()", "await asyncio.sleep(0.02)", also=workers)

    assert "waits for a turn" not in [each.rule for each in found_in(survey)]


def test_one_task_that_waits_is_no_crowd(limited):
    _, survey = limited("asyncio.Lock()", "await asyncio.sleep(0.001)", also="""
    await limit.acquire()
    asyncio.get_running_loop().call_later(0.2, limit.release)
    await limit.acquire()""")

    assert "waits for a turn" not in [each.rule for each in found_in(survey)]

