"""The ways out of conditions: of code that never ran they are those that would have been recorded."""

from __future__ import annotations

import json
import re
import subprocess
import sys

import pytest
from tracing import Traced, environment

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


# Loops whose way back stands elsewhere: in handlers of exceptions, behind a `with`, in an await.
LEFT_BY_EXCEPTIONS = """\
import asyncio, contextlib

def retried(n):
    while n:
        try:
            int("x")
        except ValueError: n -= 1
    return "retried"

def returns_within(n):
    while n:
        try:
            return [1][n]
        except IndexError:
            n -= 1
        finally:
            n += 0
    return "never"

def continues(xs):
    for x in xs:
        try:
            if x:
                raise KeyError
        except KeyError:
            continue
        x += 1
    return "continues"

def suppressed(n):
    while n:
        with contextlib.suppress(ValueError):
            n -= 1
            raise ValueError
    return "suppressed"

def suppressed_in_for(xs):
    for x in xs:
        with contextlib.suppress(KeyError):
            if x:
                raise KeyError
            x += 1
    return x

def breaks(n):
    while True:
        try:
            n -= 1
            if n < 0:
                break
        except TypeError:
            break
    return n

def with_else(n):
    i = 0
    while i < 3 and n:
        try:
            1 / 0
        except ZeroDivisionError as error:
            i += 1
    else:
        i = -1
    return i

def nested(n):
    while n:
        m = n
        while m:
            try:
                if m % 2:
                    raise KeyError
                m -= 1
            except KeyError:
                m -= 1
        with contextlib.suppress(OSError):
            n -= 1
            raise OSError
    return n

def returns_in_finally(n):
    while n:
        try:
            int("x")
        except ValueError:
            n -= 1
        finally:
            if n == 7:
                return n
    return n

def names_left(xs, n):
    while n:
        try:
            xs[n]
        except (IndexError, KeyError):
            if n > 2:
                n -= 2
                continue
            n -= 1
    return n

def never_again(n):
    while n:
        try:
            int("x")
        except ValueError:
            n = n
            return n
    return n

class Counted:
    def __init__(self, n): self.n = n
    def __aiter__(self): return self
    async def __anext__(self):
        if not self.n:
            raise StopAsyncIteration
        self.n -= 1
        return self.n
    async def __aenter__(self): return self
    async def __aexit__(self, *error): return True

async def fails(): raise OSError
async def truth(x): return x

async def awaited(n):
    while n:
        try:
            await fails()
        except OSError: n -= 1
    return "awaited"

async def awaited_condition(n):
    while await truth(n):
        async with Counted(1):
            n -= 1
            raise KeyError
    return n

async def iterated(n):
    while n:
        async for x in Counted(3):
            if x:
                continue
            n -= 1
        async with Counted(1):
            raise KeyError
    return [y async for y in Counted(3) if y]

async def awaits_in_if(n):
    if await truth(n):
        n = await truth(0)
    if await truth(n):
        n = 5
    return n

"""
RUN_ALL = """
def run_all():
    retried(3), returns_within(3), continues([0, 1]), suppressed(3), suppressed_in_for([0, 1]), breaks(2), with_else(1)
    with_else(0), nested(3), returns_in_finally(3), returns_in_finally(8), names_left([], 5), never_again(2)
    for each in (awaited(2), awaited_condition(2), iterated(2), awaits_in_if(1)):
        asyncio.run(each)
"""
# What the interpreter tells of lines, without us: from each line to the next one of the same call, or its end.
ARCS = """
import json, sys

arcs = set()

def follow(frame, event, argument):
    if frame.f_code.co_filename != "shapes.py":
        return None
    before = None

    def at(frame, event, argument):
        nonlocal before
        if event == "exception" and argument[0] in (StopIteration, StopAsyncIteration):  # what was awaited has ended
            return at
        if before and event in ("line", "return"):
            arcs.add((before, frame.f_lineno if event == "line" else -2))
        before = frame.f_lineno if event == "line" else None
        return at
    return at

names = {"__name__": "shapes"}
exec(compile(open("shapes.py").read(), "shapes.py", "exec"), names)
sys.settrace(follow)
names["run_all"]()
sys.settrace(None)
print(json.dumps(sorted(arcs)))
"""
CONDITION = re.compile(r" *(while|if|(async )?for) (?!True)")


def test_ways_back_from_handlers_and_awaits_are_seen(traced, tmp_path):
    source = LEFT_BY_EXCEPTIONS + RUN_ALL
    (tmp_path / "shapes.py").write_text(source)
    truth = subprocess.run(
        [sys.executable, "-c", ARCS], cwd=tmp_path, env=environment(), capture_output=True, text=True, check=True
    )
    arcs = {tuple(arc) for arc in json.loads(truth.stdout)}

    found = program_of(traced(source + "run_all()\n", INTERPOSE="coverage", INTERPOSE_BRANCHES="1"))
    never = program_of(traced(source, INTERPOSE="coverage", INTERPOSE_BRANCHES="1"))

    within = range(1, LEFT_BY_EXCEPTIONS.count("\n"))
    told = [line for line in found.lines.values() if line.number in within and line.branches]
    conditions = {
        number for number, line in enumerate(LEFT_BY_EXCEPTIONS.splitlines(), 1) if CONDITION.match(line)
    }
    assert {line.number for line in told} == conditions
    assert all(len(line.branches) == 2 for line in told)
    gone = {(line.number, to) for line in told for to, was_gone in line.branches.items() if was_gone}
    assert gone == {arc for arc in arcs if arc[0] in conditions}
    for line in told:
        assert set(line.branches) == set(never.lines[line.number].branches)
