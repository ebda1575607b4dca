"""Numbers of tasks: each has one, whatever records it."""

from __future__ import annotations

import json
from collections.abc import Iterable

import pytest
from line_events import ON, statements
from tracing import Traced

from interpose.analysis.analysis import Analysis
from interpose.analysis.calls.profile import profile
from interpose.analysis.transactions.response_times import transactions
from interpose.experiments.format.records import Event
from interpose.experiments.format.traces import read_stretches

# Each `work` runs in a task of its own. `other` is a task before them, whose lines are not recorded.
WORKS = """
import time, LIBRARY

async def other():
    await LIBRARY.sleep(0)
    time.sleep(0.001)

async def work0():
    await LIBRARY.sleep(0.03)
    time.sleep(0.001)

async def work1():
    await LIBRARY.sleep(0.02)
    time.sleep(0.001)

async def work2():
    await LIBRARY.sleep(0.01)
    time.sleep(0.001)
"""
TASKS = (
    WORKS.replace("LIBRARY", "asyncio")
    + """
async def main():
    await asyncio.gather(other())
    await asyncio.gather(work0(), work1(), work2())

asyncio.run(main())
"""
)
TRIO = (
    WORKS.replace("LIBRARY", "trio")
    + """
async def main():
    await other()
    async with trio.open_nursery() as nursery:
        for work in work0, work1, work2:
            nursery.start_soon(work)

trio.run(main)
"""
)
GREENLETS = """
import time
from greenlet import getcurrent, greenlet

def other():
    time.sleep(0.001)

def inner():
    time.sleep(0.001)

def work0():
    getcurrent().parent.switch()
    time.sleep(0.001)

def work1():
    time.sleep(0.001)
    getcurrent().parent.switch()

def work2():
    getcurrent().parent.switch()
    time.sleep(0.001)

greenlet(other).switch()
greenlets = [greenlet(each) for each in (work0, work1, work2)]
[each.switch() for each in greenlets]
[each.switch() for each in reversed(greenlets)]
"""
WORK = {"work0", "work1", "work2"}


def tasks_of(done: Traced, events: Iterable[Event]) -> set[tuple[str, int]]:
    """The functions from which events come, and their tasks."""
    founder = done.experiment.founder
    return {(next(founder.frames(event.stack)).function, event.task) for event in events}


def tasks_of_functions(done: Traced) -> set[tuple[str, int]]:
    """Functions under line trace that ran, and in which task."""
    return {
        (each.name, each.record.task)
        for stretch in read_stretches(done.experiment.founder)
        for each in stretch.functions
        if any(line.executed for line in each.lines)
    }


@pytest.mark.interpreter_lock
@pytest.mark.parametrize(("program", "needed"), [(TASKS, "asyncio"), (TRIO, "trio"), (GREENLETS, "greenlet")])
def test_a_task_has_the_same_number_in_calls_line_events_and_functions(traced, program, needed):
    pytest.importorskip(needed)

    done = traced(program, **ON, INTERPOSE_LINES="__main__:work*")

    events = [done.events("time.sleep"), statements(done.experiment.founder)]
    told = [*(tasks_of(done, each) for each in events), tasks_of_functions(done)]
    calls, line_events, functions = [sorted(pair for pair in pairs if pair[0] in WORK) for pairs in told]
    assert len({task for _, task in calls}) == len(calls) == len(WORK)
    assert line_events == calls
    assert functions == calls


NAMED = """
import asyncio, os, time

class Shouting(asyncio.Task):
    def get_name(self):
        raise RuntimeError

async def work():
    time.sleep(0)

async def main():
    loop = asyncio.get_running_loop()
    await asyncio.gather(*[asyncio.create_task(work(), name=name) for name in (None, "first", "second")])
    await Shouting(work(), name="third", loop=loop)

async def child():
    await asyncio.create_task(work(), name="of the child")

asyncio.run(main())
if os.fork():
    os.wait()
else:
    asyncio.run(child())
"""


@pytest.mark.long
def test_a_task_has_the_name_that_the_program_gave_it_or_that_of_its_coroutine(traced, interpose_here):
    done = traced(NAMED)
    founder, child = done.experiment.processes

    assert [founder.task_names[each.task] for each in done.events("time.sleep")] == ["work", "first", "second", "work"]
    assert [child.task_names[each.task] for each in done.events("time.sleep", child)] == ["of the child"]
    told = json.loads(interpose_here("events", "--format", "json", done.path).stdout)
    assert [row["task_name"] for row in told if row["intrinsic"] == "time.sleep"] == [
        *("work", "first", "second", "work", "of the child")
    ]
    assert {row["task_name"] for row in told if row["task"] is None} == {None}
    shown = interpose_here("events", done.path).stdout.splitlines()
    assert "task" in shown[0].split()
    assert any(f" {done.events('time.sleep')[1].task} first " in line for line in shown)


MANY = """
import asyncio, time

async def work():
    time.sleep(0)

async def main():
    for number in range(17_000):
        await asyncio.create_task(work(), name=str(number) if number > 16_900 else None)

asyncio.run(main())
"""


@pytest.mark.long
def test_of_many_tasks_the_newest_have_names(traced):
    done = traced(MANY)
    names = done.experiment.founder.task_names
    events = done.events("time.sleep")

    assert [names[each.task] for each in events[16_901:]] == [str(number) for number in range(16_901, 17_000)]
    assert len(names) == 16_380
    assert not done.experiment.damages.found


def test_where_no_task_has_a_name_there_is_no_column(traced, interpose_here):
    done = traced("import time; time.sleep(0)")

    assert "task" not in interpose_here("events", done.path).stdout.splitlines()[0].split()


NAMED_GREENLETS = """
import time
from greenlet import getcurrent, greenlet
from interpose import transaction

class Own(greenlet):
    pass

class Method:
    def work(self):
        time.sleep(0)

def work():
    with transaction("work"):
        getcurrent().parent.switch()
        time.sleep(0.01)

greenlets = [greenlet(work), Own(work), greenlet(work)]
[each.switch() for each in greenlets]
[each.switch() for each in greenlets]
greenlet(Method().work).switch()
greenlet(lambda: time.sleep(0)).switch()
"""
NAMED_BY_GEVENT = """
import gevent
from interpose import transaction

def work():
    with transaction("work"):
        gevent.sleep(0.01)

gevent.joinall([gevent.spawn(work) for _ in range(3)])
"""


def test_a_greenlet_has_the_name_of_the_function_that_it_runs(traced, interpose_here):
    pytest.importorskip("greenlet")

    done = traced(NAMED_GREENLETS)

    names = done.experiment.founder.task_names
    sleeps = done.events("time.sleep")
    assert [names[each.task] for each in sleeps] == ["work", "work", "work", "Method.work", "<lambda>"]
    shown = interpose_here("events", done.path).stdout.splitlines()
    assert "task" in shown[0].split()
    assert any(f" {sleeps[0].task} work " in line for line in shown)


@pytest.mark.parametrize(
    ("program", "needed", "inside"),
    [(NAMED_GREENLETS, "greenlet", "time.sleep"), (NAMED_BY_GEVENT, "gevent", "gevent.sleep")],
)
def test_transactions_of_greenlets_are_of_their_tasks_and_leave_the_threads_time_whole(traced, program, needed, inside):
    pytest.importorskip(needed)

    done = traced(program)

    marked = done.events("interpose.transaction")
    assert {each.task for each in marked} == {each.task for each in done.events(inside)[:3]}
    assert len({each.task for each in marked} - {0}) == 3
    made = transactions(Analysis(done.experiment))
    assert next(row for row in made.rows if row.name == "work").overlap_ns > 10_000_000
    assert made.thread_ns == pytest.approx(profile(Analysis(done.experiment), "kind").total.wall_ns, rel=0.01)


COUNTED = """
import asyncio, gc, time, weakref

async def work():
    time.sleep(0)
    await asyncio.sleep(0)
    return weakref.getweakrefcount(asyncio.current_task().get_coro())

async def main():
    return sum(await asyncio.gather(*[work() for _ in range(2_000)]))

def references():
    return sum(type(each) is weakref.ref for each in gc.get_objects())

before = references()
print(asyncio.run(main()), references() - before < 100)
"""
COUNTED_IN_TRANSACTIONS = """
import asyncio, time, weakref
from interpose import transaction

counted = []
async def inner(coroutines):
    with transaction("inner"):
        await asyncio.sleep(0)
        time.sleep(0)
        counted.extend(map(weakref.getweakrefcount, coroutines))

async def work():
    coroutines = [asyncio.current_task().get_coro()]
    coroutines.append(inner(coroutines))
    with transaction("outer"):
        await coroutines[1]

async def main():
    await asyncio.gather(*[work() for _ in range(2_000)])

asyncio.run(main())
print(sum(counted), len(counted))
"""
COUNTED_GREENLETS = """
import gc, time, weakref
from greenlet import getcurrent, greenlet

class Own(greenlet):
    pass

counted = []
def work():
    time.sleep(0)
    getcurrent().parent.switch()
    counted.append(weakref.getweakrefcount(getcurrent()))

for kind in (greenlet, Own):
    for _ in range(1_000):
        each = kind(work)
        each.switch()
        each.switch()
        del each
print(sum(counted), len(counted))
"""


@pytest.mark.interpreter_lock
@pytest.mark.parametrize(
    ("program", "needed"),
    [(COUNTED, "asyncio"), (COUNTED_IN_TRANSACTIONS, "asyncio"), (COUNTED_GREENLETS, "greenlet")],
)
def test_a_task_is_numbered_and_the_program_can_count_nothing_of_it(traced, program, needed):
    pytest.importorskip(needed)

    done = traced(program)

    assert (done.stdout, done.stderr) == (traced(program, INTERPOSE="0").stdout, "")
    assert len({event.task for event in done.events("time.sleep")} - {0}) == 2_000


def test_coroutines_that_follow_one_another_at_one_address_are_different_tasks(traced):
    done = traced("""
        import asyncio, time

        async def work():
            time.sleep(0)

        async def main():
            for _ in range(500):
                await asyncio.create_task(work())

        asyncio.run(main())
    """)

    tasks = [event.task for event in done.events("time.sleep")]
    assert len(set(tasks)) == len(tasks) == 500


def test_what_a_coroutine_calls_as_it_is_closed_is_of_its_task(traced):
    done = traced("""
        import asyncio, time

        async def work():
            time.sleep(0)
            try:
                await asyncio.sleep(9)
            finally:
                time.sleep(0)

        async def main():
            coroutine = work()
            coroutine.send(None)
            del coroutine

        asyncio.run(main())
    """)

    first, second = [event.task for event in done.events("time.sleep")]
    assert first == second


@pytest.mark.interpreter_lock
def test_after_the_end_types_free_their_objects_as_before(traced):
    done = traced("""
        import asyncio, ctypes, time
        import interpose

        FREES = 6  # tp_dealloc, in words
        def frees():
            words = ctypes.cast(id(type(work)), ctypes.POINTER(ctypes.c_void_p))
            return words[FREES]

        async def do():
            time.sleep(0)

        work = do()
        before = frees()
        asyncio.run(do())
        while_recording = frees()
        interpose.stop_process()
        print(before != while_recording, frees() == before)
        work.close()
        asyncio.run(do())
    """)

    assert (done.stdout, done.stderr) == ("True True\n", "")
