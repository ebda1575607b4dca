"""Covered, missed and excluded lines are coverage.py's: of programs, of modules of the standard library under CPython's
own tests, and of all its sources as far as they can be told without running."""

from __future__ import annotations

import ast
import json
import os
import re
import subprocess
import sys
import sysconfig
import warnings
from pathlib import Path

import pytest
from tracing import Traced

from interpose.analysis.coverage.coverage import Asked, coverage
from interpose.analysis.coverage.exclusion import DEFAULTS
from interpose.analysis.coverage.module import MISSED
from interpose.analysis.coverage.table import Unreadable, statement_table
from interpose.cli.main import main
from interpose.experiments.model.sources import decoded

parser = pytest.importorskip("coverage.parser")
config = pytest.importorskip("coverage.config")

# Each with its tests, which neither trace nor take long. Not among them what runs before coverage.py can begin, and is
# seen by us alone (enum, ast).
MODULES = (
    *("textwrap", "shlex", "fnmatch", "colorsys", "string", "heapq", "statistics", "dataclasses", "graphlib"),
    *("bisect", "difflib", "csv", "configparser", "html", "contextlib", "argparse", "fractions"),
)
# Runs the tests of a module that is imported anew, so that all of it is seen, by coverage.py where it is asked to.
RUNS = """
import json, random, sys, unittest

module, who = sys.argv[1:]
if who == "coverage.py":
    import coverage
    measured = coverage.Coverage(data_file=None, include=[f"*/{module}.py", f"*/{module}/*.py"], config_file=False)
    measured.start()
sys.modules.pop(module, None)
random.seed(0)
tests = unittest.defaultTestLoader.loadTestsFromName(f"test.test_{module}")
result = unittest.TextTestRunner(verbosity=0).run(tests)
found = {}
if who == "coverage.py":
    measured.stop()
    for path in measured.get_data().measured_files():
        _, statements, excluded, missing, _ = measured.analysis2(path)
        found[path] = [statements, excluded, missing]
print(json.dumps([result.testsRun, found]))
"""
PROGRAM = '''
"""A program with a bit of everything."""
from __future__ import annotations
import asyncio, contextlib
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator

@dataclass(
    order=True,
)
class Order:
    """An order."""
    number: int
    items: list[str] = field(
        default_factory=list)

    def __repr__(self):  # pragma: no cover
        return "never"

    @property
    def count(self): return len(self.items)

    @staticmethod
    @contextlib.contextmanager
    def opened(n):
        try:
            yield n
        finally:
            n = 0

def numbers(n) -> Iterator[int]:
    while True:
        if n > 3: return
        yield n; n += 1
    else:
        n = 2

def judge(value):
    match value:
        case [a, *rest] if (
            rest
        ):
            return "several"
        case {"k": v}: return v
        case int() | str():
            pass
        case _:
            return None
    try:
        assert value, (
            "nothing")
        x = {k: [i for i in range(k)]
             for k in range(3)
             if k}
    except AssertionError as error:
        raise ValueError(
            error
        ) from error
    except (KeyError,
            IndexError):
        del x
    else:
        x = lambda: (
            1)
    finally:
        for _ in (): print("never")
        else: _ = 1
    return (x if value else
            None)

async def steps(n):
    async with contextlib.AsyncExitStack() as stack, contextlib.AsyncExitStack():
        stack.push_async_callback(asyncio.sleep, 0)
        async for i in aiter_(n):
            if i: continue
            await asyncio.sleep(0)
    return [i async for i in aiter_(n)]

async def aiter_(n):
    for i in range(n):
        yield i

class Never(
    Exception
):
    def method(self):
        global never
        never = 1
        class Inner:
            x = 1
        return Inner

print(list(numbers(1)), Order(1).count, judge(3), judge([1, 2]), judge({"k": 1}))
with Order.opened(1) as n: print(n)
with contextlib.suppress(ValueError):
    judge(0)
if n and (
    n > 100 or
    n < -100
):
    print("never")
elif n: print(asyncio.run(steps(2)))
else:
    print("never")
if 0:
    print("left out")
while n:
    n -= 1
    if n: break
    del n; break
exec("def made(a):\\n    return a\\n")
'''

MEASURES = """
import coverage, json, runpy, sys

measured = coverage.Coverage(data_file=None, config_file=False)
measured.start()
del sys.argv[0]
try:
    runpy.run_path(sys.argv[0], run_name="__main__")
finally:
    measured.stop()
    print(json.dumps(measured.analysis2(sys.argv[0])))
"""

# Conditions that code ends with: of nested functions, methods, classes and the module, some of it decorated.
EXITS = """
@staticmethod
def outer(a):
    if a:
        return 1

class A:
    if len("a"):
        x = 1
    def method(self, n):
        for i in range(n):
            pass
    @property
    def p(self):
        def nested(q):
            while q:
                q -= 1
        nested(2)
        f = lambda v: 1 if v else 2
        if f(0):
            f(1)
    if A_ := [i for i in range(3) if i]:
        y = 2

async def co():
    async for x in gen():
        pass
    if x:
        x = 2
async def gen():
    for i in range(2):
        yield i
outer(0)
A().method(2)
A().p
import asyncio
asyncio.run(co())
try:
    match 3:
        case 1: pass
        case 2: pass
except ValueError:
    pass
@classmethod
@staticmethod
def never(a):
    if a:
        print(1)
for i in range(2):
    if i:
        pass
"""

HEADS = (
    *("def f():", "def f(a, b) -> int:", "async def f() -> dict[str, int]:", "def f(\n  a,\n):"),
    *("def f(\n a\n) -> int:", "class C:", "class C(str):", "if a:", "while f(1):", "if a[1]:", "def f(a\n  ):"),
    *("@x\ndef f():", "def f(): # c"),
    *("def f():  # pragma: no cover", "def f(a): x = 1;", "def f(a='):'):", "def f(a=[1]) -> 'x: y':", "with a():"),
)
BODIES = (
    *(" ...", " ... # c", "\n    ...", "\n\n    ...  # x", "\n    # c\n    ...", "\n    x = ...", "\n    ...\n    1"),
    *(" x = ...", " f(...)", "\n    'd'\n    ...", "\n    a[...]", " ...;  ...", "\n    x = (\n  ...\n)", "\n    ...;"),
)

_Lines = tuple[list[int], list[int], list[int]]


def ours(done: Traced, directory: str) -> dict[str, _Lines]:
    """Lines with statements, excluded and missed ones, by path."""
    found = coverage(done.experiment, Asked(place=directory))
    return {
        module.path: (
            list(module.lines),
            sorted(module.table.excluded),
            [line.number for line in module.lines.values() if line.status == MISSED],
        )
        for module in found.modules
        if module.table
    }


def assert_same(found: _Lines, statements: list[int], excluded: list[int], missing: list[int]) -> None:
    """Of what is left out, coverage.py lists lines without code as well: comments, blank ones that a pattern took."""
    assert (found[0], found[2]) == (statements, missing)
    assert set(found[1]) <= set(excluded)


@pytest.mark.long
@pytest.mark.parametrize("name", ["of a bit of everything", "orders"])
def test_lines_of_a_program_are_covered_as_coverage_py_has_it(traced, tmp_path, name):
    example = Path(__file__).parents[2] / "examples"
    arguments = [str(example / "orders.txt")] if name == "orders" else []
    source = (example / "orders.py").read_text() if name == "orders" else PROGRAM
    measured = tmp_path / "measured.py"
    measured.write_text(source)

    found = ours(traced(source, *arguments, INTERPOSE="coverage"), str(tmp_path))[str(tmp_path / "program.py")]
    reference = traced(MEASURES, str(measured), *arguments, INTERPOSE="0")

    assert_same(found, *json.loads(reference.stdout.splitlines()[-1])[1:4])


def branches_by_line(report: str) -> dict[int, set[tuple[int, bool]]]:
    """Where the branches of each line lead, and whether each was taken, as a JSON report has them."""
    (found,) = json.loads(report)["files"].values()
    by_line: dict[int, set[tuple[int, bool]]] = {}
    for name in ("executed_branches", "missing_branches"):
        for line, to in found[name]:
            by_line.setdefault(line, set()).add((to, name == "executed_branches"))
    return by_line


AWAITED = """\
import asyncio
async def agen(n):
    for i in range(n):
        yield i
async def ends():
    async for x in agen(3):
        pass
    return 1
async def never():
    async for x in agen(0):
        str(x)
    return 2
async def breaks():
    async for x in agen(3):
        break
    else:
        str(0)
    return 3
async def last():
    async for x in agen(2):
        str(x)
async def nested():
    async for x in agen(2):
        async for y in agen(x):
            str(y)
        for z in range(x):
            str(z)
async def within_if(flag):
    if flag:
        async for x in agen(2):
            if x:
                continue
            str(x)
    else:
        pass
async def raises():
    try:
        async for x in agen(2):
            raise ValueError
    except ValueError:
        pass
async def returns():
    async for x in agen(2):
        return x
    return 9
async def reached_by_break():
    for n in (1, 2):
        async for x in agen(n):
            if n:
                break
        str(n)
async def breaks_down():
    yield 1
    raise ValueError
async def fails():
    try:
        async for x in breaks_down():
            str(x)
    except ValueError:
        pass
async def never_called():
    async for x in agen(1):
        str(x)
class Suppressed:
    async def __aenter__(self):
        return self
    async def __aexit__(self, *error):
        return True
async def withs():
    async with Suppressed() as c:
        str(c)
    async with Suppressed():
        raise ValueError
    async with Suppressed(), Suppressed():
        pass
async def with_within():
    async for x in agen(2):
        async with Suppressed():
            str(x)
async def with_else():
    async for x in agen(
        2
    ):
        str(x)
    else:
        str(1)
    str(2)
async def within_while():
    n = 0
    while n < 2:
        async for x in agen(1):
            n += 1
async def within_handler(n):
    try:
        raise KeyError
    except KeyError as e:
        async for x in agen(n):
            str(e)
        str(0)
async def ends_in_handler():
    try:
        raise KeyError
    except KeyError:
        async for x in agen(2):
            str(x)
async def within_finally():
    try:
        str(0)
    finally:
        async for x in agen(1):
            str(x)
async def reraised():
    try:
        raise KeyError
    finally:
        async for x in agen(2):
            str(x)
async def of_lines():
    async for x in (
        agen(2)
    ):
        str(x)
async def of_lines_with_more():
    async for x in (
        agen
        (2)
    ):
        str(x)
    str(0)
async def never_called_with_handlers():
    try:
        raise KeyError
    except KeyError:
        async for x in (
            agen(2)
        ):
            str(x)
    finally:
        async for x in agen(1):
            str(x)
async def main():
    await ends(), await never(), await breaks(), await last(), await nested()
    await within_if(True), await raises(), await returns(), await withs(), await with_within(), await with_else()
    await within_while(), await reached_by_break(), await fails(), await within_handler(2)
    await ends_in_handler(), await within_finally(), await of_lines(), await of_lines_with_more()
    try:
        await reraised()
    except KeyError:
        pass
asyncio.run(main())
"""


def branch_reports(traced, capsys, source: str) -> tuple[str, str]:
    """The JSON reports of a program's branches: ours and coverage.py's."""
    done = traced(source, INTERPOSE="coverage", INTERPOSE_BRANCHES="1")
    told = ["run", "--branch", "--data-file=data", "program.py"], ["json", "--data-file=data", "-q", "-o", "theirs"]
    for words in told:
        subprocess.run([sys.executable, "-m", "coverage", *words], cwd=done.directory, check=True, timeout=60)

    assert main(["coverage", "json", "--branch", str(done.directory / done.experiment.name)]) == 0
    return capsys.readouterr().out, (done.directory / "theirs").read_text()


@pytest.mark.long
def test_branches_of_awaited_loops_are_as_coverage_py_has_them(traced, capsys):
    ours, theirs = branch_reports(traced, capsys, AWAITED)

    expected = branches_by_line(theirs)
    fails = AWAITED[: AWAITED.index("async for x in breaks_down")].count("\n") + 1
    if sys.version_info >= (3, 14):  # which tells of the loop's end before it looks whether it was another error
        expected[fails] = {(to, was_taken and to > 0) for to, was_taken in expected[fails]}
    assert branches_by_line(ours) == expected
    assert len(expected) > 20


@pytest.mark.long
def test_branches_of_a_long_awaited_loop_are_as_coverage_py_has_them(traced, capsys):
    body = "        str(x), str(x), str(x), str(x)\n" * 100
    head = "import asyncio\nasync def agen():\n    yield 1\nasync def f():\n    async for x in agen():\n"

    ours, theirs = branch_reports(traced, capsys, f"{head}{body}    str(0)\nasyncio.run(f())\n")

    assert branches_by_line(ours) == branches_by_line(theirs) == {5: {(6, True), (106, True)}}


NO_BRANCH = """\
def wrapped(function):
    return function

@wrapped
def decorated(given):
    if given:  # pragma: no branch
        given = 1
    return given

def conditions(given):
    if given and (
        given > 0  # PRAGMA: NO BRANCH
    ):
        given += 1
    elif given:  # pragma:no branch
        given += 2
    if given:
        given += 3
    while given:  # pragma no branch, with a reason
        given -= 1
        if given == 1:
            break
    for each in range(given):  #pragma: no branch
        return each
    return given

def never(given):
    if given:  # pragma: no branch
        return 1
    if given:
        return 2
    return "# pragma: no branch"

decorated(1)
conditions(2)
"""


@pytest.mark.long
def test_lines_without_branches_count_as_coverage_py_counts_them(traced, capsys):
    reports = branch_reports(traced, capsys, NO_BRANCH)

    ours, theirs = (next(iter(json.loads(report)["files"].values())) for report in reports)
    assert ours["missing_branches"] == theirs["missing_branches"]
    names = ("num_branches", "covered_branches", "num_partial_branches", "percent_covered")
    assert [ours["summary"][name] for name in names] == [theirs["summary"][name] for name in names]
    assert len(theirs["missing_branches"]) == 3 and theirs["summary"]["num_branches"] == 18


@pytest.mark.long
def test_branches_to_the_exit_of_code_are_as_coverage_py_has_them(traced, capsys):
    ours, theirs = branch_reports(traced, capsys, EXITS)

    found, expected = branches_by_line(ours), branches_by_line(theirs)
    exits = {line: {way for way in ways if way[0] < 0} for line, ways in expected.items()}
    exits = {line: ways for line, ways in exits.items() if ways}
    assert len({to for ways in exits.values() for to, _ in ways}) > 6
    assert {line: {way for way in found[line] if way[0] < 0} for line in exits} == exits


@pytest.mark.slow
@pytest.mark.parametrize("module", MODULES)
def test_lines_of_the_standard_library_are_covered_as_coverage_py_has_it(traced, tmp_path, module):
    pytest.importorskip(f"test.test_{module}")
    variables = {"PYTHONHASHSEED": "0", "INTERPOSE_FOLLOW": "off", "COVERAGE_CORE": "sysmon"}

    reference = traced(RUNS, module, "coverage.py", timeout_s=600, INTERPOSE="0", **variables)
    done = traced(RUNS, module, "not", timeout_s=600, INTERPOSE="coverage", INTERPOSE_COVERAGE=module, **variables)

    tests, expected = json.loads(reference.stdout.splitlines()[-1])
    assert json.loads(done.stdout.splitlines()[-1])[0] == tests > 0
    found = ours(done, str(tmp_path))
    for path, lines in expected.items():
        assert_same(found[path], *lines)


def theirs(text: str) -> set[int]:
    """The lines with statements that are not left out. Raises parser.NotPython."""
    if not text:
        return set()  # it takes no empty text
    exclude = "|".join(f"(?:{each})" for each in config.DEFAULT_EXCLUDE)
    found = parser.PythonParser(text=text, exclude=exclude)
    found.parse_source()
    return found.statements


def mine(text: str) -> set[int]:
    table = statement_table(text, [re.compile(each, re.MULTILINE) for each in DEFAULTS])
    return {table.statements.lines[number] for number in table.counted}


def test_bodies_of_dots_are_left_out_as_coverage_py_has_it():
    texts = [f"a = 1\n{head}{body}\nz = 2\n" for head in HEADS for body in BODIES]

    found = [text for text in texts if is_python(text) and mine(text) != theirs(text)]

    assert not found
    assert sum(map(is_python, texts)) > 200


def is_python(text: str) -> bool:
    try:
        ast.parse(text)
    except SyntaxError:
        return False
    return True


@pytest.mark.parametrize("piece", [")", "\n", "def ", "# ", "...", "def f(a) ->", "    \n", ") ->", "# pragma "])
@pytest.mark.parametrize(("before", "behind"), [("a = 1\n# ", "\n"), ("a = ('''\n", "\n''')\n")])
def test_what_is_left_out_of_a_hostile_source_is_found_in_one_pass(before, piece, behind):
    assert mine(f"{before}{piece * 200_000}{behind}") == {1}


@pytest.mark.slow
def test_lines_with_statements_are_coverage_pys_in_the_whole_standard_library():
    differing, compared = [], 0
    sources = [each for each in Path(sysconfig.get_path("stdlib")).rglob("*.py") if "site-packages" not in each.parts]
    for path in sorted(sources)[::4]:
        text = decoded(path.read_bytes())
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            try:
                is_same = mine(text) == theirs(text)
            except (Unreadable, parser.NotPython):
                continue
        compared += 1
        if not is_same:
            differing.append(os.path.relpath(path))

    assert not differing
    assert compared > 100
