"""Numbers of tasks: each has one, whatever records it."""

from __future__ import annotations

from collections.abc import Iterable

import pytest
from told_lines import ON, statements
from tracing import Traced

from interpose.experiments.format.records import Event
from interpose.experiments.format.traces import read_stretches

# Each `work` runs in a task of its own. `other` is a task before them, whose lines are not recorded.
TASKS = """
import asyncio, time

async def other():
    await asyncio.sleep(0)
    time.sleep(0.001)

async def work0():
    await asyncio.sleep(0.03)
    time.sleep(0.001)

async def work1():
    await asyncio.sleep(0.02)
    time.sleep(0.001)

async def work2():
    await asyncio.sleep(0.01)
    time.sleep(0.001)

async def main():
    await asyncio.gather(other())
    await asyncio.gather(work0(), work1(), work2())

asyncio.run(main())
"""
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


@pytest.mark.parametrize(("program", "needed"), [(TASKS, "asyncio"), (GREENLETS, "greenlet")])
def test_a_task_has_the_same_number_in_calls_line_events_and_functions(traced, program, needed):
    pytest.importorskip(needed)

    done = traced(program, **ON, INTERPOSE_LINES="__main__:work*")

    events = [done.events("time.sleep"), statements(done.experiment.founder)]
    told = [*(tasks_of(done, each) for each in events), tasks_of_functions(done)]
    calls, line_events, functions = [sorted(pair for pair in pairs if pair[0] in WORK) for pairs in told]
    assert len({task for _, task in calls}) == len(calls) == len(WORK)
    assert line_events == calls
    assert functions == calls
