"""Line trace: how often lines ran, loops, times, threads, tasks, depth, and switching it."""

from __future__ import annotations

import ast
import subprocess
import sys

import pytest
from tracing import Traced

from interpose.analysis.lines import line_rows
from interpose.analysis.lines.line_rows import Figures, FunctionTotal, Line, Trace, line_trace, not_below
from interpose.experiments.format.traces import read_stretches
from interpose.reports.tables import lines as tables

NEWER = sys.version_info >= (3, 12)
LOOPS = """
def bar(i):
    return i + 1

def loops(queue):
    x = [bar(i) for i in range(10)]
    y = [(i, j) for i in range(5) for j in range(4)]
    for a in range(5):
        for b in range(4):
            c = a
    while c:
        c -= 1
        if c == 2:
            continue
        queue.append(c)
    while queue: queue.pop()
    for a in x: c += a
    return sum(i for i in range(3))

loops([])
"""


def line(traced: Traced, function: str, number: int, **labels: str) -> Line:
    """The one row of that line of a function."""
    found = [each for each in line_trace(traced.experiment, labels).lines if is_of(each, function, number, labels)]
    assert len(found) == 1, [(each.place.function, each.line) for each in found]
    return found[0]


def is_of(row: Line, function: str, number: int, labels: dict[str, str]) -> bool:
    return (row.place.function, row.line) == (function, number) and row.labels == labels


def function(traced: Traced, name: str) -> FunctionTotal:
    return next(each for each in line_trace(traced.experiment).functions if each.place.function == name)


def counts(traced: Traced, function: str) -> dict[int, tuple[int, int]]:
    """How often each line of a function was executed and entered."""
    rows = line_trace(traced.experiment).lines
    mine = [row for row in rows if row.place.function == function and (row.figures.executed or row.figures.entered)]
    return {row.line: (row.figures.executed, row.figures.entered) for row in sorted(mine, key=lambda row: row.line)}


def test_each_line_is_counted_as_the_interpreter_comes_to_it_and_as_one_reads_it(traced):
    done = traced(LOOPS, INTERPOSE="lines")

    assert counts(done, "bar") == {2: (0, 10), 3: (10, 10)}
    found = counts(done, "loops")
    assert found[5] == (0, 1)
    assert {number: found[number][1] for number in (6, 7, 8, 9, 10, 12)} == {6: 1, 7: 1, 8: 1, 9: 5, 10: 20, 12: 4}
    assert {number: found[number][0] for number in (8, 9, 10, 12)} == {8: 6, 9: 25, 10: 20, 12: 4}


ONE_LINERS = """
import sys

def one(x): return x + 1
least = lambda x: -x

def many(values):
    total = sum(value for value in values if value)
    return total + sum(map(lambda value: one(value), values))

counts = {}

def trace(frame, event, argument):
    if event == "line":
        key = f"{frame.f_code.co_qualname.removesuffix('.<locals>.<genexpr>')} {frame.f_lineno}"
        counts[key] = counts.get(key, 0) + 1
    return trace

def work():
    for _ in range(50):
        many(range(7))
        min(range(3), key=least)

if "traced" in sys.argv:
    sys.settrace(trace)
work()
sys.settrace(None)
print(sorted(counts.items()))
"""


def test_functions_of_one_line_are_counted_at_each_call(traced):
    """As a trace function counts them; the interpreter specialises their beginning after some calls."""
    expected = dict(ast.literal_eval(traced(ONE_LINERS, "traced", INTERPOSE="0").stdout))

    done = traced(ONE_LINERS, INTERPOSE="lines")

    found = {
        f"{row.place.function} {row.line}": row.figures.executed
        for row in line_trace(done.experiment).lines
        if row.figures.executed and row.place.function not in ("<module>", "trace")
    }
    assert found == expected
    assert (found["one 4"], found["many.<locals>.<lambda> 9"]) == (350, 350)


def test_what_a_library_makes_of_texts_is_the_librarys(traced):
    done = traced(
        """
        import json
        theirs = "def theirs():\\n    return 1"
        exec(theirs, vars(json))
        exec(theirs.replace("theirs", "ours"))
        json.theirs(), ours()
        """,
        INTERPOSE="lines",
    )

    assert (done.stderr, counts(done, "theirs"), counts(done, "ours")) == ("", {}, {1: (0, 1), 2: (1, 1)})


def test_what_follows_a_loop_that_is_left_in_two_ways_is_counted(traced):
    """The compiler has the last line there twice; CPython 3.14 and 3.15 have no event for the second."""
    done = traced(
        """
        def find(numbers, wanted):
            for number in numbers:
                if number == wanted:
                    break
            return number

        find([1, 2], 1)
        find([1, 2], 3)
        find([1, 2], 2)
        """,
        INTERPOSE="lines",
    )

    assert counts(done, "find") == {2: (0, 3), 3: (6, 3), 4: (5, 5), 5: (2, 2), 6: (3, 3)}


def test_loops_tell_their_passes_by_level_within_a_line(traced):
    done = traced(LOOPS, INTERPOSE="lines")

    passes = {number: line(done, "loops", number).loops for number in (6, 7, 8, 9, 11, 17, 18)}
    assert passes == {6: {1: 10}, 7: {1: 5, 2: 20}, 8: {1: 5}, 9: {1: 20}, 11: {1: 4}, 17: {1: 10}, 18: {1: 3}}
    assert line(done, "loops", 16).loops == {1: 3 if NEWER else 2}


HANDLERS = """
def waits():
    try:
        int("x")
    except ValueError:
        pass
    yield 1

def opens(numbers):
    with open("/dev/null"):
        numbers = list(numbers)
    for i in numbers:
        try:
            if i % 2:
                int("x")
        except ValueError:
            i = 0
        finally:
            i += 1

list(waits())
opens(range(10))
"""


def test_the_way_back_from_a_handler_is_no_loop(traced):
    done = traced(HANDLERS, INTERPOSE="lines")

    rows = [row for row in line_trace(done.experiment).lines if row.place.function in ("waits", "opens")]
    assert {row.line: row.loops for row in rows if row.loops} == {12: {1: 10}}
    assert {number: entered for number, (_, entered) in counts(done, "waits").items() if number > 2} == dict.fromkeys(
        range(3, 8), 1
    )
    found = counts(done, "opens")
    entered = {11: 1, 12: 1, 13: 10, 15: 5, 16: 5, 17: 5, 19: 10}
    assert {number: found[number][1] for number in entered} == entered


# Functions with `with`: of one to four managers, of which each in turn, or none, suppresses what the body raises.
MANAGERS = """
import sys

class Manager:
    def __init__(self, *quiet): self.quiet = quiet
    def __enter__(self): return self
    def __exit__(self, kind, *error): return kind in self.quiet
    async def __aenter__(self): return self
    async def __aexit__(self, kind, *error): return kind in self.quiet

loud, quiet = Manager(), Manager(ZeroDivisionError)
"""
SHAPES_OF_WITH = """
def alone_{name}(n):
    with {managers}:
        1 / n
    return n

def in_one_line_{name}(n):
    with {managers}: 1 / n
    return n

def with_comprehension_{name}(n):
    with {managers}:
        1 / n
    return [each for each in (1, 2)]

def looped_{name}(n):
    for each in (n, 1, n):
        with {managers}:
            1 / each
    while each < 3:
        with {managers}: each += 1; 1 / n

def on_lines_{name}(n):
    with ({managers_on_lines}):
        1 / n
    return n

async def awaited_{name}(n):
    async with {managers}:
        1 / n
    async with {managers}: 1 / n
    return n
"""
RUN_ALL = """
counts = {}

def trace(frame, event, argument):
    name = frame.f_code.co_qualname.split(".")[0]  # up to 3.11 a comprehension has a frame of its own
    if name.endswith("_with"):
        if event == "line":
            key = f"{name} {frame.f_lineno}"
            counts[key] = counts.get(key, 0) + 1
        return trace

def run(function, n):
    try:
        began = function(n)
        began and hasattr(began, "send") and began.send(None)
    except (ZeroDivisionError, StopIteration):
        pass

if "traced" in sys.argv:
    sys.settrace(trace)
for function in [each for name, each in vars().items() if name.endswith("_with")]:
    run(function, 0)
    run(function, 1)
sys.settrace(None)
print(counts)
"""


def withs() -> str:
    found = []
    for count in range(1, 5):
        for place in range(count + 1):
            managers = ["quiet" if each == place else "loud" for each in range(count)]
            names = {"name": f"{count}_{place}_with", "managers": ", ".join(managers)}
            found.append(SHAPES_OF_WITH.format(**names, managers_on_lines=",\n        ".join(managers)))
    return MANAGERS + "".join(found) + RUN_ALL


def test_a_with_that_suppresses_an_exception_is_counted_as_a_trace_function_counts_it(traced):
    expected = ast.literal_eval(traced(withs(), "traced", INTERPOSE="0").stdout)

    done = traced(withs(), INTERPOSE="lines")

    found = {
        f"{row.place.function} {row.line}": row.figures.executed
        for row in line_trace(done.experiment).lines
        if row.figures.executed and row.place.function.endswith("_with")
    }
    assert found == expected


def test_a_loop_whose_body_is_long_is_one(traced):
    body = "".join(f"        x = i + {number} * len(str(i))\n" for number in range(60))
    body += "        if x:\n            for c in 'ab':\n                yield c\n"
    done = traced(f"def work():\n    for i in range(5):\n{body}\nlist(work())\n", INTERPOSE="lines")

    assert line(done, "work", 2).loops == {1: 5}
    assert counts(done, "work")[2] == (6, 1)


def test_nested_comprehensions_are_levels_of_their_line(traced):
    done = traced("[[j for j in range(4)] for i in range(5)]", INTERPOSE="lines")

    assert line(done, "<module>", 1).loops == {1: 5, 2: 20}


@pytest.mark.parametrize("call", ["all(1", "any(0", "tuple(1", "list(1", "set(1", "max(1"])
def test_a_call_on_a_generator_expression_has_the_passes_of_that_alone(traced, call):
    """Some versions compile some of these calls as a loop."""
    done = traced(f"def work(values):\n    return {call} for value in values)\n\nwork([5, 6])\n", INTERPOSE="lines")

    assert line(done, "work", 2).loops == {1: 2}


def test_what_a_function_takes_is_of_its_lines_and_of_those_that_call_it(traced):
    done = traced(
        """
        import time

        def spin(seconds):
            until = time.thread_time() + seconds
            while time.thread_time() < until:
                pass

        def caller():
            spin(0.05)
            time.sleep(0.05)

        caller()
        """,
        INTERPOSE="lines",
    )

    calling, sleeping = line(done, "caller", 10).figures, line(done, "caller", 11).figures
    spinning = function(done, "spin").figures
    assert calling.self_cpu_ns < 5_000_000 < 25_000_000 < spinning.self_cpu_ns
    assert calling.cpu_ns == pytest.approx(spinning.self_cpu_ns, rel=0.01)
    assert sleeping.self_wall_ns >= 50_000_000 > 25_000_000 > sleeping.self_cpu_ns
    assert spinning.wall_ns >= spinning.cpu_ns


def test_a_function_that_calls_itself_counts_no_time_twice(traced):
    done = traced(
        """
        import time

        def down(n):
            if n:
                down(n - 1)
            else:
                until = time.thread_time() + 0.05
                while time.thread_time() < until:
                    pass

        down(30)
        """,
        INTERPOSE="lines",
    )

    trace = line_trace(done.experiment)
    total = function(done, "down").figures
    assert total.entered == 31
    for figures in (total, line(done, "down", 6).figures):
        assert 25_000_000 < figures.cpu_ns <= sum(thread.cpu_ns for thread in trace.threads)


def test_self_times_and_our_own_add_up_to_the_threads_cpu_time(traced):
    done = traced(LOOPS + "for _ in range(3000): loops([])\n", INTERPOSE="lines")

    trace = line_trace(done.experiment)
    whole = trace.threads[0]
    lines_ns = sum(each.figures.self_cpu_ns for each in trace.lines)
    assert lines_ns + whole.outside.self_cpu_ns + whole.own_ns == pytest.approx(whole.cpu_ns, rel=0.001)
    assert trace.run.user_ns + trace.run.system_ns == pytest.approx(whole.cpu_ns, rel=0.05)


def test_generators_and_exceptions_leave_the_figures_right(traced):
    done = traced(
        """
        def numbers(n):
            for i in range(n):
                yield i

        def fails(n):
            if n == 0:
                raise ValueError
            fails(n - 1)

        def uses():
            for i in numbers(4):
                pass
            half = numbers(10)
            next(half)
            try:
                half.throw(KeyError)
            except KeyError:
                pass
            try:
                fails(3)
            except ValueError:
                return 1

        uses()
        uses()
        """,
        INTERPOSE="lines",
    )

    assert counts(done, "numbers") == {2: (0, 4), 3: (12, 4), 4: (10, 10)}
    assert counts(done, "fails") == {6: (0, 8), 7: (8, 8), 8: (2, 2), 9: (6, 6)}
    assert counts(done, "uses")[22] == (2, 2)
    assert line(done, "numbers", 3).loops == {1: 10}


def test_threads_and_tasks_are_told_apart_where_asked(traced):
    done = traced(
        """
        import asyncio, threading

        def work(n):
            for i in range(n):
                pass

        async def job(n):
            await asyncio.sleep(0)
            work(n)

        async def jobs():
            tasks = [asyncio.create_task(job(n), name=name) for n, name in ((3, "first"), (4, "second"))]
            await asyncio.gather(*tasks)
            print(*[task.get_name() for task in tasks])

        worker = threading.Thread(target=work, args=(5,), name="worker")
        worker.start()
        worker.join()
        print(worker.native_id)
        asyncio.run(jobs())
        work(6)
        """,
        INTERPOSE="lines",
    )

    assert line(done, "work", 6).figures.entered == 18
    apart = [row for row in line_trace(done.experiment, ("thread", "task")).lines if is_row(row, "work", 6)]
    assert sorted(row.figures.entered for row in apart) == [3, 4, 5, 6]
    assert len({row.labels["thread"] for row in apart}) == 2
    assert len({row.labels["task"] for row in apart}) == 3
    native, ran = done.stdout.splitlines()
    assert {row.labels["thread"] for row in apart if row.figures.entered == 5} == {f"{native} worker"}
    named = {row.figures.entered: row.labels["task"].partition(" ")[2] for row in apart}
    assert named == {3: "first", 4: "second", 5: "", 6: ""} and ran == "first second"


def is_row(row: Line, function: str, number: int) -> bool:
    return row.place.function == function and row.line == number


def test_a_forked_child_has_its_own_figures(traced):
    done = traced(
        """
        import os

        def work(n):
            for i in range(n):
                pass

        work(3)
        if child := os.fork():
            os.waitpid(child, 0)
            work(1)
        else:
            work(10)
            os._exit(0)
        """,
        INTERPOSE="calls,lines",
    )

    rows = [row for row in line_trace(done.experiment, ("process",)).lines if is_row(row, "work", 5)]
    assert {row.labels["process"]: row.loops for row in rows} == {"founder": {1: 4}, "_f1": {1: 10}}


def test_calls_too_deep_in_each_other_are_not_recorded_and_the_result_says_so(traced):
    done = traced(
        """
        def down(n):
            return n and down(n - 1)

        down(50)
        down(5)
        """,
        INTERPOSE="lines",
        INTERPOSE_LINES_DEPTH="20",
    )

    trace = line_trace(done.experiment)
    assert {number: entered for number, (_, entered) in counts(done, "down").items()} == {2: 25, 3: 25}
    assert trace.beyond == 32
    assert trace.notes == ["INCOMPLETE DATA: MAXTRACELEVEL: 32 calls were more than 20 deep in each other"]


def test_only_chosen_functions_are_recorded(traced):
    done = traced(LOOPS, INTERPOSE="lines", INTERPOSE_LINES="other,__main__:ba*")

    assert {row.place.function for row in line_trace(done.experiment).lines} == {"bar"}


def test_who_says_which_lines_has_them_recorded(interpose):
    said = interpose("run", "--lines", "shop", "--dry-run", "app.py").stdout

    assert [line.split()[:2] for line in said.splitlines()[1:2]] == [["INTERPOSE", "calls,lines"]]
    assert ["INTERPOSE_LINES", "shop", "option"] in [line.split() for line in said.splitlines()]


def test_functions_of_the_standard_library_are_recorded_where_chosen(traced):
    done = traced("import shlex; shlex.split('a b')", INTERPOSE="lines", INTERPOSE_LINES="shlex")

    assert counts(done, "split")


SWITCHING = """
import interpose

def work(n):
    for i in range(n):
        pass

def switched():
    interpose.trace_lines(True, '^first("A")')
    work(3)
    interpose.trace_lines(False, '^second("B")')
    work(5)

work(1)
switched()
with interpose.trace_lines():
    work(10)
    with interpose.trace_lines():
        work(1)
    work(1)
work(1)
"""


def test_it_is_switched_on_and_off_by_the_program(traced):
    done = traced(SWITCHING)

    assert line(done, "work", 5).loops == {1: 15}
    assert counts(done, "switched") == {10: (1, 1)}


WINDOWS = """
import interpose
from time import perf_counter_ns as now

took = {"whole": 0, "part": 0, "outer": 0}

def work():
    return sum(range(200_000))

def whole():
    begin = now()
    work()
    took["whole"] += now() - begin

def part():
    interpose.trace_lines()
    begin = now()
    work()
    took["part"] += now() - begin
    interpose.trace_lines(False)

def outer():
    for _ in range(6):
        begin = now()
        part()
        took["outer"] += now() - begin

for _ in range(6):
    with interpose.trace_lines():
        whole()
outer()
print(took["whole"], took["part"])
"""


@pytest.mark.parametrize("recorded", ["calls", "lines"])
def test_inclusive_times_are_those_of_all_the_times_that_line_trace_was_on(traced, recorded):
    done = traced("import interpose\ninterpose.trace_lines(False)" + WINDOWS, INTERPOSE=recorded)

    whole_ns, part_ns = map(int, done.stdout.split())
    for name, number, truth_ns in (("whole", 13, whole_ns), ("part", 19, part_ns), ("<module>", 31, whole_ns)):
        assert line(done, name, number).figures.wall_ns == pytest.approx(truth_ns, rel=0.1), name
    assert function(done, "part").figures.wall_ns == pytest.approx(part_ns, rel=0.1)


SHARED = """
import os, subprocess, sys
from time import perf_counter_ns as now, thread_time_ns as cpu

os.sched_setaffinity(0, {min(os.sched_getaffinity(0))})
others = [subprocess.Popen([sys.executable, "-c", "while True: pass"], env={}) for _ in range(2)]

def work():
    return sum(range(200_000))

def whole():
    begin, begin_cpu = now(), cpu()
    work()
    return now() - begin, cpu() - begin_cpu

took = [whole() for _ in range(40)]
for each in others:
    each.kill()
    each.wait()
print(*map(sum, zip(*took)))
"""


def test_time_without_a_processor_is_of_the_line_that_lost_it(traced):
    done = traced(SHARED, INTERPOSE="lines")

    wall_ns, cpu_ns = map(int, done.stdout.split())
    figures = line(done, "work", 9).figures
    assert figures.wall_ns == pytest.approx(wall_ns, rel=0.1)
    assert figures.cpu_ns == pytest.approx(cpu_ns, rel=0.1)


SWITCHED_OFF = """
import interpose, sys

def cycle():
    interpose.trace_lines()
    x = 1
    y = 2
    interpose.trace_lines(False)
    return x + y

for _ in range(int(sys.argv[1])):
    cycle()
"""


@pytest.mark.parametrize("times", [1, 2, 20])
def test_the_line_that_switches_line_trace_off_has_neither_count_nor_time(traced, times):
    done = traced(SWITCHED_OFF, str(times), INTERPOSE="calls")

    assert counts(done, "cycle") == {6: (times, times), 7: (times, times)}
    off = [row.figures for row in line_trace(done.experiment).lines if row.line == 8]
    assert [(each.self_wall_ns, each.self_cpu_ns) for each in off] == [(0, 0)]
    trace = line_trace(done.experiment)
    table = tables.lines_table([*tables.line_rows(trace.lines, "cpu", None), *tables.closing_rows(trace)], (), "")
    (share,) = [each for each in table.columns if each.title == "share"]
    shares = [int(share.show(row).removesuffix(" %")) for row in table.rows if row.is_counted]
    assert all(0 <= each <= 100 for each in shares) and sum(shares) <= 100 + len(shares)


def test_what_ends_after_line_trace_was_off_is_charged_nothing_of_that_time(traced):
    done = traced(
        """
        import interpose, time

        def on():
            interpose.trace_lines()

        for _ in range(3):
            on()
            x = 1
            interpose.trace_lines(False)
            time.sleep(0.2)
        """,
        INTERPOSE="calls",
    )

    (whole,) = line_trace(done.experiment).threads
    assert whole.outside.self_wall_ns < 0.4e9 and whole.wall_ns < 0.4e9


def test_what_runs_while_recording_is_paused_is_neither_counted_nor_charged(traced):
    done = traced(
        """
        import time, interpose

        def busy(seconds):
            until = time.thread_time() + seconds
            while time.thread_time() < until:
                sum(range(20_000))  # what recording costs is little of it, and is charged to nothing

        def run():
            busy(0.02)
            interpose.pause()
            busy(0.3)
            interpose.resume()
            busy(0.02)

        run()
        """,
        INTERPOSE="calls,lines",
    )
    found = function(done, "busy")
    whole = line_trace(done.experiment)

    assert found.figures.entered == 2
    assert 30_000_000 < found.figures.cpu_ns < 200_000_000
    assert 30_000_000 < sum(row.figures.self_cpu_ns for row in whole.lines) < 250_000_000


def test_line_trace_of_a_recording_that_begins_paused_begins_when_that_ends(traced):
    done = traced(
        """
        import interpose
        def f(n):
            for i in range(n):
                x = i

        f(10)
        interpose.start()
        f(7)
        """,
        INTERPOSE="calls,lines",
        INTERPOSE_PAUSED="1",
    )

    assert counts(done, "f") == {3: (0, 1), 4: (8, 1), 5: (7, 7)}


def test_a_line_that_switches_is_not_counted_and_one_that_would_is(traced):
    done = traced(SWITCHING)

    assert counts(done, "<module>") == {17: (1, 1), 18: (2, 2), 19: (1, 1), 20: (1, 1)}


def test_the_target_given_when_it_is_switched_off_goes_before(traced):
    done = traced(SWITCHING)

    trace: Trace = line_trace(done.experiment, target='^second("B")')
    assert {row.place.function for row in trace.lines} == {"switched", "work"}
    assert not line_trace(done.experiment, target='^first("A")').lines


def test_switching_does_nothing_where_nothing_is_recorded(traced):
    done = traced("import interpose\nwith interpose.trace_lines():\n    print('done')", INTERPOSE="0")

    assert done.stdout == "done\n"


def test_the_world_is_as_before_when_it_was_switched_off(traced):
    done = traced(
        """
        import sys, interpose

        def tools():
            monitoring = getattr(sys, "monitoring", None)
            return monitoring and [monitoring.get_tool(number) for number in range(6)]

        def events(code):
            monitoring = getattr(sys, "monitoring", None)
            used = [number for number in (3, 4) if monitoring and monitoring.get_tool(number)]
            return [monitoring.get_local_events(number, code) for number in used]

        def f():
            return 1

        before = tools(), sys.gettrace(), f.__code__.co_code
        with interpose.trace_lines():
            f()
            print(sys.gettrace())
        print((tools(), sys.gettrace(), f.__code__.co_code) == before, events(f.__code__))
        """,
    )

    assert done.stdout == "None\nTrue []\n"


def test_the_end_of_a_recording_ends_line_trace(recorded):
    done = recorded(
        """
        record()
        session.begin_lines(precedence.resolve({}, {"INTERPOSE": "lines"}, {}))
        monitoring = getattr(sys, "monitoring", None)
        tools = lambda: [monitoring and monitoring.get_tool(number) for number in (3, 4)]
        during = tools()
        shims.end()
        print("interpose" in during, tools(), sys.gettrace())
        """
    )

    assert done.stdout == f"{NEWER} [None, None] None\n"


@pytest.mark.skipif(not NEWER, reason="there is no sys.monitoring")
def test_where_others_have_the_tools_it_is_said_and_the_program_goes_on(traced):
    done = traced(
        """
        import sys, interpose
        for number in (3, 4):
            sys.monitoring.use_tool_id(number, "other")
        with interpose.trace_lines():
            print("goes on")
        """
    )

    assert done.stdout == "goes on\n"
    assert line_trace(done.experiment).notes == [
        "not traced: sys.monitoring: other tools use all free tool numbers"
    ]


@pytest.mark.skipif(NEWER, reason="there is sys.monitoring")
def test_where_there_is_another_trace_function_it_is_said_and_that_one_stays(traced):
    done = traced(
        """
        import sys, interpose
        def theirs(frame, event, argument):
            return theirs
        sys.settrace(theirs)
        with interpose.trace_lines():
            print(sys.gettrace() is theirs)
        print(sys.gettrace() is theirs)
        """
    )

    assert done.stdout == "True\nTrue\n"
    assert "not traced: another trace function is there" in line_trace(done.experiment).notes


def test_lines_are_traced_again_where_the_programs_own_trace_function_is_gone(traced):
    program = """
        import sys

        def f():
            return 1

        def theirs(frame, event, argument):
            told.append(event)
            return theirs

        told = []
        sys.settrace(None)
        f()
        sys.settrace(theirs)
        f()
        sys.settrace(None)
        f()
        print(told, sys.gettrace())
        """

    on, off = traced(program, INTERPOSE="lines"), traced(program, INTERPOSE="0")

    assert on.stdout == off.stdout
    if NEWER:
        assert line(on, "f", 5).figures.executed == 3
    else:
        assert line(on, "f", 5).figures.executed == 2
        seen = "what ran under the program's own trace function (sys.settrace)"
        assert f"not traced: {seen}" in line_trace(on.experiment).notes


@pytest.mark.long
def test_user_and_system_time_are_apart_only_where_asked(traced):
    program = """
        import os
        def busy():
            while os.times().system < 0.2:  # many kernels count it in ticks, and give it to threads in proportion
                os.stat("/")
        busy()
        """

    asked = line(traced(program, INTERPOSE="lines", INTERPOSE_LINES_SYSTEM="1"), "busy", 5).figures

    assert asked.system_ns is not None and asked.system_ns > 0
    assert line(traced(program, INTERPOSE="lines"), "busy", 5).figures.system_ns is None


def test_user_and_system_time_of_a_line_are_its_cpu_time_and_a_function_is_the_sum_of_its_lines(traced):
    program = """
        import os, resource
        def calls():
            for _ in range(300):
                os.urandom(20_000)
        def computes():
            for _ in range(300):
                sum(range(3_000))
        def system_s():
            return resource.getrusage(resource.RUSAGE_THREAD).ru_stime
        begin = system_s()
        calls()
        end = system_s()
        computes()
        print(end - begin)
        """

    done = traced(program, INTERPOSE="lines", INTERPOSE_LINES_SYSTEM="1")

    trace = line_trace(done.experiment)
    for each in trace.lines:
        assert 0 <= each.figures.system_ns <= each.figures.self_cpu_ns <= each.figures.self_wall_ns
        assert each.figures.user_ns + each.figures.system_ns == each.figures.self_cpu_ns
    for whole in trace.functions:
        mine = [each.figures for each in trace.lines if each.place == whole.place]
        assert whole.figures.system_ns == sum(each.system_ns for each in mine)
        assert whole.figures.self_cpu_ns == sum(each.self_cpu_ns for each in mine)
    system_ns = float(done.stdout) * 1e9
    most_ns = min(system_ns, function(done, "calls").figures.self_cpu_ns)
    assert function(done, "calls").figures.system_ns >= 0.8 * most_ns
    assert sum(each.figures.system_ns for each in trace.functions) <= 1.01 * (trace.run.user_ns + trace.run.system_ns)


SPLIT = """
import resource
def cheap():
    x = 0
    for i in range(600_000):
        x += i * i
def allocates():
    for _ in range(60):
        bytearray(8 << 20)
def reads():
    with open("/dev/zero", "rb", 0) as file:
        for _ in range(60):
            file.read(4 << 20)
def computes():
    for k in range(60):
        sum([k] * 300_000)
for each in (cheap, allocates, reads, computes, cheap):
    begin = resource.getrusage(resource.RUSAGE_THREAD)
    each()
    end = resource.getrusage(resource.RUSAGE_THREAD)
    print(each.__name__, end.ru_utime - begin.ru_utime, end.ru_stime - begin.ru_stime)
"""
TICK_NS = 10_000_000  # many kernels look only so often in which mode a thread is


def split_of(text):
    times_ns = {}
    for name, *seconds in map(str.split, text.splitlines()):
        user_ns, system_ns = (float(each) * 1e9 for each in seconds)
        before_ns = times_ns.get(name, (0, 0))
        times_ns[name] = before_ns[0] + user_ns, before_ns[1] + system_ns
    return times_ns


def test_lines_have_the_user_and_system_time_that_the_kernel_gives_them_beside_a_hot_loop(traced):
    plain = subprocess.run([sys.executable, "-c", SPLIT], capture_output=True, text=True, check=True)

    done = traced(SPLIT, INTERPOSE="lines", INTERPOSE_LINES_SYSTEM="1")

    told = split_of(done.stdout) | {"cheap": split_of(plain.stdout)["cheap"]}  # traced, it has recording's own too
    for name, (user_ns, system_ns) in told.items():
        figures = function(done, name).figures
        near = 0.25 * (user_ns + system_ns) + TICK_NS
        assert figures.system_ns == pytest.approx(system_ns, abs=near), name
        assert figures.user_ns >= user_ns - near, name


def test_what_a_line_has_more_system_time_than_cpu_time_goes_to_its_neighbours():
    def lines_of(*times_ns):
        return [Figures(self_cpu_ns=cpu_ns, system_ns=system_ns) for cpu_ns, system_ns in times_ns]

    near, far = lines_of((100, 900), (1_000, 0)), lines_of((500, 700), (100, 0))

    line_rows.spread_system([near, far])

    assert [each.system_ns for each in near] == [100, 900]
    assert [each.system_ns for each in far] == [500, 100]


def test_what_others_keep_with_code_objects_is_let_go_of_only_where_they_keep_something(traced):
    done = traced(
        """
        import ctypes
        calls = []
        let_go = ctypes.CFUNCTYPE(None, ctypes.c_void_p)(calls.append)
        name = "RequestCodeExtraIndex"
        api = ctypes.pythonapi
        newer = hasattr(api, "PyUnstable_Eval_" + name)
        getattr(api, ("PyUnstable_Eval_" if newer else "_PyEval_") + name)(let_go)
        for _ in range(3):
            names = {}
            exec("def f():\\n    open('/dev/null', 'rb', 0).close()\\nf()", names)
            del names
        print(calls)
        """,
        INTERPOSE="calls,lines",
    )

    assert done.stdout == "[]\n"


@pytest.mark.long
def test_a_function_for_which_there_is_no_room_is_one_that_is_left_out(traced):
    done = traced(
        """
        body = "".join(f"    x = {n}\\n" for n in range(17_000))
        exec(compile(f"def f():\\n{body}f()\\nf()\\n", "made.py", "exec"))
        """,
        INTERPOSE="lines",
    )

    notes = line_trace(done.experiment).notes
    assert [each for each in notes if "during calibration" not in each] == [
        "incomplete: for 1 functions there was no room"
    ]


def test_no_line_is_below_zero_and_estimates_are_marked(traced):
    source = "def f(n):\n    x = 0\n    for i in range(n):\n        x = i\n        x = i\n        x = i\nf(100_000)\n"
    for _ in range(5):  # on a machine that others slow down, recording may once take less than half
        done = traced(source, INTERPOSE="lines")
        trace = line_trace(done.experiment)
        assert all(each.figures.self_cpu_ns >= 0 for each in (*trace.lines, *trace.functions))
        if trace.is_estimated:
            break

    words = [sys.executable, "-m", "interpose", "lines", done.path]
    shown = subprocess.run(words, capture_output=True, text=True, check=True)
    assert trace.is_estimated
    assert f"recording took {trace.recorded_percent} % of the CPU time" in shown.stderr
    assert "~" in shown.stdout


def test_a_pattern_that_no_function_matches_is_told(traced):
    done = traced("def f(n):\n    return n\nf(1)\n", INTERPOSE="lines")

    words = [sys.executable, "-m", "interpose", "lines", done.path, "--function", "g*"]
    shown = subprocess.run(words, capture_output=True, text=True, check=False)
    told = "interpose: no function that was traced matches --function g*; interpose lines --by function lists them\n"
    assert (shown.returncode, shown.stdout) == (2, "")
    assert shown.stderr.endswith(told)


def test_where_the_script_is_among_packages_a_remedy_is_named(interpose, tmp_path):
    script = tmp_path / "work" / "site-packages" / "app.py"
    script.parent.mkdir()
    script.write_text("import time\ntime.sleep(0.01)\n")

    interpose("run", "--lines", "own", str(script))
    told, screen = interpose("lines").stderr, interpose("report").stdout
    interpose("run", "--lines", "__main__", str(script))

    assert "so its code counts as a library's; use INTERPOSE_LINES=__main__ or name its modules\n" in told
    assert " your lines  none: the script is in site-packages, among libraries\n" in screen
    assert "app.py:2" in interpose("lines").stdout


@pytest.mark.parametrize(
    ("times_ns", "least_ns", "kept_ns"),
    [
        ([5, 0, 7], [0, 0, 0], [5, 0, 7]),
        ([-10, 100, 300], [0, 0, 0], [0, 98, 292]),
        ([-4, 3], [0, 0], [0, 0]),
        ([1, 105, 300], [5, 5, 0], [5, 104, 297]),
        ([-4, 3], [1, 2], [1, 2]),
        ([], [], []),
    ],
)
def test_lines_below_their_least_take_from_the_others_of_their_function(times_ns, least_ns, kept_ns):
    kept = not_below(times_ns, least_ns)

    assert sum(kept) == max(sum(times_ns), sum(least_ns))
    assert kept == pytest.approx(kept_ns, abs=1)


CALIBRATED = """
import time

def work():
    s = 0
    for i in range(60_000):
        s += i * i % 7

def other():
    s = 0
    for i in range(6_000):
        s ^= len(str(i))

def both():
    work()
    other()

def took(function):
    begin = time.thread_time_ns()
    function()
    return time.thread_time_ns() - begin

both()
"""


def calibrated_times(times):
    """How stretches are read as if calibration had given so many times as much."""

    def dearer(record, *names):
        more = (times - 1) * record.event_ticks
        return record._replace(ticks=record.ticks - more, event_ticks=record.event_ticks + more)

    def read(process):
        stretches = read_stretches(process)
        for function in (each for stretch in stretches for each in stretch.functions):
            function.record = dearer(function.record)
            function.lines = [
                dearer(line)._replace(inner_ticks=line.inner_ticks - (times - 1) * line.inner_event_ticks)
                for line in function.lines
            ]
        return stretches

    return read


def calibrated_when_the_processor_was(faster):
    """How stretches are read as if the processor had been so many times as fast during calibration as later."""
    read_as_if_cheaper = calibrated_times(1 / faster)

    def read(process):
        stretches = read_as_if_cheaper(process)
        for stretch in stretches:
            assert stretch.record.speeds > 0 < stretch.record.speed_ticks
            speeds_ticks = faster * stretch.record.speed_ticks * 10
            stretch.record = stretch.record._replace(speeds=10, speeds_ticks=speeds_ticks)
        return stretches

    return read


@pytest.mark.parametrize(("faster", "is_said"), [(2, True), (1.5, True), (0.5, True), (1.1, False)])
def test_events_cost_more_on_a_processor_that_has_become_slower(traced, monkeypatch, faster, is_said):
    done = traced(CALIBRATED, INTERPOSE="lines")
    took = {}
    for times in 1, faster:
        monkeypatch.setattr(line_rows, "read_stretches", calibrated_when_the_processor_was(times))
        trace = line_trace(done.experiment)
        took[times] = {each.place.function: each.figures.self_cpu_ns for each in trace.functions}

    assert took[faster] == pytest.approx(took[1], rel=0.01)
    assert trace.slow_percent == round(100 * faster)
    assert [note for note in trace.notes if "during calibration" in note] == [
        f"the same work took {trace.slow_percent} % of the time that it took during calibration (a busy machine?):"
        " the costs of events are scaled by that"
    ] * is_said


@pytest.mark.alone  # shares of what lines took
def test_what_was_calibrated_too_high_is_bounded_by_what_lines_took(traced, monkeypatch):
    done = traced(CALIBRATED, INTERPOSE="lines")
    shares, held = [], {}
    for times in 1, 3, 10:
        monkeypatch.setattr(line_rows, "read_stretches", calibrated_times(times))
        trace = line_trace(done.experiment)
        took = {each.place.function: each.figures for each in trace.functions}
        assert all(each.figures.self_cpu_ns > 0 for each in trace.lines if each.figures.executed)
        assert took["both"].cpu_ns == pytest.approx(took["work"].cpu_ns + took["other"].cpu_ns, rel=0.12)
        held[times] = trace.held_percent
        shares.append(took["work"].self_cpu_ns / (took["work"].self_cpu_ns + took["other"].self_cpu_ns))

    assert trace.is_estimated and trace.held_percent < 100
    # So much can be taken off, whatever is asked for.
    assert held[3] == pytest.approx(min(100, held[10] * 10 / 3), abs=4)
    assert f"{trace.held_percent} % of what it gives for events is taken off" in trace.notes[0]
    assert shares == [pytest.approx(shares[0], abs=0.1)] * 3


def test_a_damaged_log_is_said_instead_of_that_no_lines_were_recorded(traced):
    done = traced("x = 1", INTERPOSE="lines")
    log = f"{done.experiment.directory}/log.xml"
    with open(log, "rb") as file:
        text = file.read()
    with open(log, "wb") as file:
        file.write(text[: text.index(b"<process") if b"<process" in text else len(text) // 4])

    shown, checked = (
        subprocess.run(
            [sys.executable, "-m", "interpose", command, done.experiment.directory], capture_output=True, text=True
        )
        for command in ("lines", "check")
    )

    assert (shown.returncode, checked.returncode) == (3, 3)
    assert "log.xml: " in shown.stderr and "no lines were recorded" not in shown.stderr
