"""The ways out of conditions: of code that never ran they are those that would have been recorded."""

from __future__ import annotations

import sys

import pytest
from tracing import Traced

from interpose.analysis.coverage.conditions import EXIT, ways
from interpose.analysis.coverage.coverage import Asked, coverage
from interpose.analysis.coverage.module import Module
from interpose.analysis.coverage.table import statement_table

SOURCE = """\
def f(a, b):
    if a and b:
        c = 1
    elif b: c = 2
    for i in a:
        if i:
            continue
        c = i
    else:
        c = 3
    while c:
        c -= 1
        if b:
            break
    try:
        with a:
            d = [x for x in a if x] if b else a or b
    except (KeyError, ValueError):
        return d
    assert a, b
    while True:
        if c: return 1
        yield (a
               or b)
    match a:
        case 1: c = 1
        case [x] if x: c = 2
        case _: c = 3
    return c if a else b

async def g(a):
    async for i in a:
        if i: await i
    async with a: pass
    return None
"""
RUNS = """
import asyncio, sys
def run(*given):
    try:
        return list(f(*given))
    except Exception:
        return None
class Empty:
    def __aiter__(self): return self
    async def __anext__(self): raise StopAsyncIteration
    async def __aenter__(self): return self
    async def __aexit__(self, *error): return None
"""
LINES = SOURCE.count("\n")


def by_line(found, table) -> set[tuple[int, int]]:
    lines = table.statements.lines
    return {(lines[begin], EXIT if end == EXIT else lines[end]) for begin, end in found}


def test_each_way_leads_from_a_statement_to_another():
    head = "def f(a, b):\n    if a and b:\n        c = 1\n    elif b: c = 2\n"
    table = statement_table(f"{head}    for i in a:\n        c = any(b for b in i)\n")

    of_any = {(6, 5)} if sys.version_info >= (3, 14) else set()  # it is a loop of the line's own there
    assert by_line(ways(table), table) == {(2, 3), (2, 4), (4, 4), (4, 5), (5, 6), (5, EXIT)} | of_any


def program_of(done: Traced) -> Module:
    found = coverage(done.experiment, Asked(include=["program.py"], place=str(done.directory)))
    return found.modules[0]


@pytest.mark.parametrize("given", ["f([0, 1], 1)", "f([], 0)", "f(0, 0)"])
def test_they_are_those_that_are_recorded(traced, given):
    call = f"run{given[1:]}\nasyncio.run(g(Empty()))\n"

    done = program_of(traced(SOURCE + RUNS + call, INTERPOSE="coverage", INTERPOSE_BRANCHES="1"))
    never = program_of(traced(SOURCE + RUNS, INTERPOSE="coverage", INTERPOSE_BRANCHES="1"))

    ran, not_ran = done.jumps, never.jumps
    last = max(number for number, line in enumerate(done.table.statements.lines) if line <= LINES)
    assert {way for way in ran if way[0] <= last} == {way for way in not_ran if way[0] <= last}
    assert sum(ran.values()) >= 2 > sum(not_ran.values()) == 0


def test_conditions_that_never_ran_count_as_not_gone_only_where_branches_were_recorded(traced):
    program = "def never(a):\n    if a:\n        return 1\n    return 2\nfor i in range(2):\n    print(i)\n"

    found = []
    for branches in "10":
        done = traced(program, INTERPOSE="coverage", INTERPOSE_BRANCHES=branches)
        found.append(program_of(done).branches)

    assert found == [(2, 4), (0, 0)]


RAISING = """\
def f(x):
    try:
        int(x)
    except ValueError:
        x = 0
    try:
        int(x)
    except TypeError:
        x = 1
    except (KeyError, OSError):
        x = 2
    for y in (x, x):
        assert y is not None
    return x

"""


@pytest.mark.parametrize("call", ["f('1')", "f('')", ""])
def test_where_an_exception_leads_to_is_no_way(traced, call):
    done = program_of(traced(RAISING + call, INTERPOSE="coverage", INTERPOSE_BRANCHES="1"))

    assert {(line.number, to) for line in done.lines.values() for to in line.branches} == {
        *((8, 9), (8, 10)),
        *((12, 13), (12, 14)),
    }
