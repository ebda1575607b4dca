"""Line counts are those of a trace function in Python, on modules of the standard library under CPython's own tests.

Times are those that a program of functions of every shape measures itself while nothing is recorded."""

from __future__ import annotations

import json
import shutil
import statistics
import subprocess
import sys
from collections import Counter
from pathlib import Path

import pytest
from tracing import Traced, environment

from interpose.analysis.lines.line_rows import line_trace
from interpose.experiments.format.traces import read_stretches
from interpose.experiments.metadata import names
from interpose.experiments.model.experiment import Experiment

# Each with its tests, which neither trace nor take long.
MODULES = (
    *("textwrap", "shlex", "fnmatch", "colorsys", "string", "heapq"),
    *("bisect", "difflib", "csv", "configparser", "html", "contextlib"),
)
RUNS = """
import sys

counts = {}

def trace(frame, event, argument):
    if frame.f_globals.get("__name__") != sys.argv[1]:
        return None
    if event == "line":
        key = f"{frame.f_code.co_qualname} {frame.f_lineno}"
        counts[key] = counts.get(key, 0) + 1
    return trace

if sys.argv[2] == "traced":
    sys.settrace(trace)
import random, unittest
random.seed(0)
tests = unittest.defaultTestLoader.loadTestsFromName(f"test.test_{sys.argv[1]}")
result = unittest.TextTestRunner(verbosity=0).run(tests)
sys.settrace(None)
import json
print(json.dumps([result.testsRun, counts]))
"""


def counted(done: Traced, module: str) -> Counter[str]:
    """How often each line of a module's functions was executed."""
    found: Counter[str] = Counter()
    for process in done.experiment.processes:
        for stretch in read_stretches(process):
            for function in stretch.functions:
                for line in function.lines if function.module == module else ():
                    found[f"{function.name} {line.line}"] += line.executed
    return +found


@pytest.mark.slow
@pytest.mark.parametrize("module", MODULES)
def test_lines_are_counted_as_a_trace_function_counts_them(traced, module):
    pytest.importorskip(f"test.test_{module}")
    variables = {"PYTHONHASHSEED": "0", "INTERPOSE_FOLLOW": "off"}

    reference = traced(RUNS, module, "traced", timeout_s=600, INTERPOSE="0", **variables)
    done = traced(RUNS, module, "not", timeout_s=600, INTERPOSE="lines", INTERPOSE_LINES=module, **variables)

    tests, expected = json.loads(reference.stdout.splitlines()[-1])
    assert json.loads(done.stdout.splitlines()[-1])[0] == tests > 0
    assert counted(done, module) == expected


# --- times

SHAPES = Path(__file__).with_name("shapes.py")
ROUNDS = 3
NEXT_TO = "mostly_c"  # a function that no event of line trace makes slower
# How far, in percent of both, a function may be off beside the same time of that one, and how far the mean.
# On 3.11 the interpreter asks at each instruction if a line begins, which is calibrated by kinds of instructions.
FARTHEST, MEAN = (9, 3) if sys.version_info >= (3, 12) else (15, 5)
# Programs of four of the functions: the points by which a function's share may be off, or the percent of its time;
# which part of all functions must be that near.
PROGRAMS, OF_FUNCTIONS = 20, 4
POINTS, PERCENT = 3, 5
NEAR = 0.9 if sys.version_info >= (3, 12) else 0.55
HOT = """
import time

def work():
    s = 0
    for i in range(300_000):
        s += i * i % 7

def other():
    s = 0
    for i in range(30_000):
        s ^= len(str(i))

def took(function):
    begin = time.thread_time_ns()
    function()
    return time.thread_time_ns() - begin

print(*[min(took(function) for _ in range(3)) for function in (work, other)])
"""


class Shapes:
    """The program of functions of every shape, in a directory of its own."""

    def __init__(self, directory: Path, scale: int) -> None:
        self._directory = directory
        self._scale = scale
        for name in ("shapes", *(f"round_{number}" for number in range(ROUNDS))):
            shutil.copy(SHAPES, directory / f"{name}.py")

    def _run(self, **variables: str) -> list[dict[str, int]]:
        words = [sys.executable, "shapes.py", str(ROUNDS), str(self._scale)]
        done = subprocess.run(
            words, cwd=self._directory, env=environment(**variables), capture_output=True, text=True, check=True
        )
        found: list[dict[str, int]] = json.loads(done.stdout)
        return found

    def untraced(self) -> dict[str, int]:
        """The least time of each function, as the program measures it, in nanoseconds."""
        return least(self._run())

    def traced(self) -> dict[str, int]:
        """The same as line trace gives it."""
        self._run(INTERPOSE="lines")
        path = names.newest(str(self._directory))
        assert path
        rounds: list[dict[str, int]] = [{} for _ in range(ROUNDS)]
        for each in line_trace(Experiment(path)).functions:
            if each.place.module.startswith("round_"):
                rounds[int(each.place.module.removeprefix("round_"))][each.place.function] = each.figures.cpu_ns
        shutil.rmtree(path)
        return least(rounds)


def least(rounds: list[dict[str, int]]) -> dict[str, int]:
    return {name: min(found[name] for found in rounds) for name in rounds[0]}


def points_off(untraced: dict[str, int], traced: dict[str, float]) -> dict[str, float]:
    """By how many percent of their common time a function's share beside an equal part of another's is wrong."""
    ratios = {name: traced[name] / traced[NEXT_TO] / (untraced[name] / untraced[NEXT_TO]) for name in untraced}
    return {name: 100 * (ratio / (1 + ratio) - 0.5) for name, ratio in ratios.items() if name != NEXT_TO}


def measure(directory: Path, scale: int, turns: int) -> tuple[dict[str, int], dict[str, float]]:
    """The time of each function, untraced and as line trace gives it; in turns, and each calibrates anew."""
    shapes = Shapes(directory, scale)
    taken = [(shapes.untraced(), shapes.traced()) for _ in range(turns)]
    untraced = least([untraced for untraced, _ in taken])
    return untraced, {name: statistics.median(traced[name] for _, traced in taken) for name in untraced}


def compare(directory: Path, scale: int, turns: int) -> dict[str, float]:
    """How far off each function is."""
    return points_off(*measure(directory, scale, turns))


def programs_of(names: list[str]) -> list[list[str]]:
    """Programs of a few functions each, in which every function occurs."""
    return [[names[(number + 9 * step) % len(names)] for step in range(OF_FUNCTIONS)] for number in range(PROGRAMS)]


def is_near(untraced: dict[str, int], traced: dict[str, float], name: str) -> bool:
    """Whether a function's time, or its share in the program of these functions, is what it is untraced."""
    shares = [100 * times[name] / sum(times.values()) for times in (untraced, traced)]
    return abs(shares[1] - shares[0]) <= POINTS or abs(traced[name] / untraced[name] - 1) <= PERCENT / 100


def near_part(untraced: dict[str, int], traced: dict[str, float]) -> tuple[float, list[tuple[str, list[str]]]]:
    """Which part of the functions of all programs is near, and which are not, each with its program."""
    far = [
        (name, names)
        for names in programs_of(list(untraced))
        for name in names
        if not is_near({each: untraced[each] for each in names}, {each: traced[each] for each in names}, name)
    ]
    return 1 - len(far) / (PROGRAMS * OF_FUNCTIONS), far


def is_true(off: dict[str, float]) -> bool:
    distances = [abs(points) for points in off.values()]
    return max(distances) <= FARTHEST and statistics.mean(distances) <= MEAN


@pytest.mark.slow
@pytest.mark.truth
def test_times_of_functions_are_those_of_the_untraced_program(tmp_path):
    off = compare(tmp_path, scale=1, turns=3)
    if not is_true(off):  # others may have run meanwhile
        off = compare(tmp_path, scale=1, turns=6)

    assert is_true(off), off


@pytest.mark.slow
@pytest.mark.truth
def test_functions_of_twenty_programs_have_their_shares_or_times(tmp_path):
    part, far = near_part(*measure(tmp_path, scale=2, turns=5))

    assert part >= NEAR, far


@pytest.mark.slow
@pytest.mark.truth
def test_times_of_longer_functions_are_those_of_the_untraced_program(tmp_path):
    off = compare(tmp_path, scale=8, turns=7)

    assert is_true(off), off


# What a line takes while nothing is recorded: how much longer the function takes with two more of it.
LINES = """
import json, time

STATEMENTS = ("s += i * i % 7", "t = str(i) + name", "u = [i] * 20", "v = sum(u)", "w = sorted(u)", "x = y")

def with_more(number, times):
    lines = [text for place, text in enumerate(STATEMENTS) for _ in range(times if place == number else 1)]
    return "def work(s=0, y=0, name='x'):\\n for i in range(2_000):\\n  " + "\\n  ".join(lines)

def took(sources):
    made = [{} for _ in sources]
    for source, names in zip(sources, made):
        exec(source, names)
    taken = [[] for _ in sources]
    for _ in range(60):  # in turns, and so short that some are not interrupted where processors are busy
        for names, found in zip(made, taken):
            begin = time.thread_time_ns()
            names["work"]()
            found.append(time.thread_time_ns() - begin)
    return [min(found) for found in taken]

def work(s=0, y=0, name="x"):
    for i in range(20_000):
        s += i * i % 7
        t = str(i) + name
        u = [i] * 20
        v = sum(u)
        w = sorted(u)
        x = y

once, *thrice = took([with_more(0, 1), *[with_more(number, 3) for number in range(len(STATEMENTS))]])
print(json.dumps([(each - once) // 2 for each in thrice]))
work()
"""
FIRST_LINE = LINES.splitlines().index("        s += i * i % 7") + 1
OF_LINES = 5 if sys.version_info >= (3, 12) else 10  # how many points of their common time one may be off


def shares_of_lines(traced):
    """The shares of lines in per cent, as the untraced program measures them and as line trace gives them."""
    untraced = json.loads(traced(LINES, INTERPOSE="0").stdout)
    rows = line_trace(traced(LINES, INTERPOSE="lines").experiment).lines
    found = {
        row.line: row.figures.self_cpu_ns for row in rows if row.place.function == "work" and row.place.first_line > 5
    }
    taken = [found[FIRST_LINE + number] for number in range(len(untraced))]
    return [[100 * ns / sum(each) for ns in each] for each in (untraced, taken)]


@pytest.mark.slow
@pytest.mark.truth
def test_lines_of_a_loop_have_their_shares(traced):
    turns = [shares_of_lines(traced) for _ in range(3)]

    sides = zip(*turns, strict=True)
    untraced, found = ([statistics.median(line) for line in zip(*side, strict=True)] for side in sides)
    assert found == [pytest.approx(share, abs=OF_LINES) for share in untraced]


def shares_of_hot_loop(traced):
    """The share of the hot loop in per cent, as the untraced program measures it and as line trace gives it."""
    untraced = [int(ns) for ns in traced(HOT, INTERPOSE="0").stdout.split()]
    done = traced(HOT, INTERPOSE="lines")
    found = {each.place.function: each.figures.self_cpu_ns for each in line_trace(done.experiment).functions}
    return 100 * untraced[0] / sum(untraced), 100 * found["work"] / (found["work"] + found["other"])


@pytest.mark.long
@pytest.mark.alone
def test_a_hot_loop_has_its_share(traced):
    turns = [shares_of_hot_loop(traced) for _ in range(3)]

    untraced, traced_shares = zip(*turns, strict=True)
    assert statistics.median(traced_shares) == pytest.approx(statistics.median(untraced), abs=4)
