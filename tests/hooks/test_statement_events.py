"""Statements as events: each line that is come to, in the order of the interpreter, among the calls."""

from __future__ import annotations

import json
import os
import signal
import sys
from collections import Counter

import pytest
from line_events import ON, dropped, executed, lines_of, place, statements
from tracing import write_program

from interpose.analysis.analysis import Analysis
from interpose.analysis.calls.profile import profile
from interpose.analysis.lines.line_rows import line_trace
from interpose.analysis.transactions.response_times import transactions
from interpose.analysis.transactions.tracking import roles_of
from interpose.experiments.model.experiment import Experiment
from interpose.experiments.model.process import Process
from interpose.legacy.codes import STATEMENT
from tests.build import Build

pytestmark = pytest.mark.interpreter_lock

# As `reference` it keeps the lines of its functions, of each thread, by a trace function of its own.
REFERENCE = """
import sys, threading
mine, seen = threading.local(), []

def see(frame, event, argument):
    if frame.f_code.co_filename != __file__ or frame.f_code.co_qualname in ("<module>", "see"):
        return None
    if event == "line":
        if not hasattr(mine, "lines"):
            mine.lines = []
            seen.append(mine.lines)
        mine.lines.append((frame.f_code.co_qualname, frame.f_lineno))
    return see

if sys.argv[1:] == ["reference"]:
    threading.settrace(see)
    sys.settrace(see)
"""
PRINTED = """
sys.settrace(None)
threading.settrace(None)
import json
print(json.dumps(sorted(seen)))
"""
LOOPS = """
def bar(i):
    return i + 1

def loops():
    x = [bar(i) for i in range(10)]
    for a in range(5):
        for b in range(4):
            c = a
    while c:
        c -= 1
        if c == 2:
            continue
    while x: x.pop()
    for a in range(3): c += a
    return sum(i for i in range(3))

loops()
"""
GENERATORS = """
def numbers(n):
    try:
        while True:
            got = yield n
            n += got or 1
    except KeyError:
        yield "caught"
    finally:
        n = 0

def delegate():
    yield from numbers(3)

def use():
    generator = delegate()
    next(generator)
    generator.send(4)
    generator.throw(KeyError)
    generator.close()
    for each in numbers(1):
        if each > 3:
            break

use()
"""
EXCEPTIONS = """
class Mood:
    def __enter__(self):
        return self
    def __exit__(self, *error):
        return error[0] is KeyError

def fail(n):
    if n:
        fail(n - 1)
    raise ValueError(
        n
    )

def tries():
    for n in range(3):
        try:
            fail(n)
        except ValueError as error:
            kept = str(error)
        else:
            kept = None
        finally:
            kept = kept or "0"
    with Mood():
        {}["x"]
    return kept

tries()
"""
RECURSION = """
def climb(m, n):
    if m == 0:
        return n + 1
    if n == 0:
        return climb(m - 1, 1)
    return climb(m - 1, climb(m, n - 1))

climb(2, 5)
"""
COROUTINES = """
import asyncio

async def count(n):
    total = 0
    for i in range(n):
        await asyncio.sleep(0)
        total += i
    return total

async def letters():
    for letter in "abc":
        yield letter

async def main():
    await asyncio.gather(count(3), count(5))
    async for letter in letters():
        kept = letter
    return kept

asyncio.run(main())
"""
THREADS = """
import queue

def work(n, given):
    while (item := given.get()) is not None:
        for i in range(item * n):
            kept = i
    return kept

threads = []
for n in range(1, 4):
    given = queue.Queue()
    for item in (2, 3, None):
        given.put(item)
    threads.append(threading.Thread(target=work, args=(n, given)))
for each in threads: each.start()
for each in threads: each.join()
"""
PROGRAMS = {
    "loops": LOOPS,
    "generators": GENERATORS,
    "exceptions": EXCEPTIONS,
    "recursion": RECURSION,
    "coroutines": COROUTINES,
    "threads": THREADS,
}
SHOP = """
import os, sqlite3

def double(n):
    return n * 2

def order(db, n):
    db.execute("insert into t values (double(?))", (n,))
    os.stat("/")
    return n

db = sqlite3.connect(":memory:")
db.create_function("double", 1, double)
db.execute("create table t (n)")
for n in range(5):
    order(db, n)
"""


def functions_lines(process: Process) -> list[list[tuple[str, int]]]:
    """The lines of functions, of each thread that came to any."""
    found: dict[int, list[tuple[str, int]]] = {}
    for event in statements(process):
        function, line = place(process, event)
        if function not in ("<module>", "see"):
            found.setdefault(event.thread, []).append((function, line))
    return sorted(found.values())


def calls_of(experiment: Experiment) -> Counter[tuple[str | None, str | None]]:
    """How many calls there were of each intrinsic, by kind."""
    rows = profile(Analysis(experiment), "intrinsic").rows
    return +Counter({(row.kind, row.intrinsic): row.sums.calls for row in rows})


@pytest.mark.parametrize("name", PROGRAMS)
def test_lines_are_told_in_the_order_in_which_a_trace_function_sees_them(traced, name):
    source = REFERENCE + PROGRAMS[name] + PRINTED
    reference = traced(source, "reference", INTERPOSE="0")
    done = traced(source, **ON).ended_well()

    expected = [[tuple(each) for each in lines] for lines in json.loads(reference.stdout)]
    assert functions_lines(done.experiment.founder) == expected
    assert sum(map(len, expected)) > 20


@pytest.mark.parametrize("name", PROGRAMS)
def test_each_line_has_as_many_events_as_it_is_counted(traced, name):
    done = traced(REFERENCE + PROGRAMS[name], **ON)

    founder = done.experiment.founder
    told = Counter(place(founder, event)[1] for event in statements(founder))
    counted: Counter[int] = Counter()
    for row in line_trace(done.experiment).lines:
        counted[row.line] += row.figures.executed
    assert told == +counted
    assert dropped(founder) == 0


def test_calls_stand_between_the_line_that_makes_them_and_the_next(traced):
    done = traced(SHOP, **ON)

    founder = done.experiment.founder
    events = done.events()
    stats = [at for at, event in enumerate(events) if founder.intrinsic(event.intrinsic).name == "os.stat"]
    mine = [at for at in stats if founder.own_line(events[at].stack).function == "order"]
    assert len(mine) == 5
    for at in mine:
        before, after = events[at - 1], events[at + 1]
        assert [place(founder, each) for each in (before, events[at], after)] == [
            ("order", line) for line in (9, 9, 10)
        ]
        assert before.start_ns <= events[at].start_ns <= events[at].start_ns + events[at].wall_ns <= after.start_ns
        assert before.start_cpu_ns <= events[at].start_cpu_ns <= after.start_cpu_ns


def test_a_line_that_a_call_runs_is_made_inside_of_it_and_takes_nothing_of_its_time(traced):
    done = traced(SHOP, **ON)

    founder = done.experiment.founder
    calls = {event.call: event for event in done.events("sqlite3.Connection.execute")}
    inner = [event for event in statements(founder) if place(founder, event)[0] == "double"]
    assert len(inner) == 5
    assert all(event.parent in calls for event in inner)
    assert {event.inner_wall_ns for event in calls.values()} == {0}
    assert {(event.wall_ns, event.cpu_ns, event.bytes, event.error) for event in statements(founder)} == {(0, 0, 0, 0)}
    assert {event.parent for event in statements(founder) if place(founder, event)[0] == "order"} == {0}


def test_a_line_of_a_task_is_of_the_task_that_its_calls_are_of(traced):
    done = traced(
        """
        import asyncio, os

        async def look(n):
            for _ in range(n):
                os.stat("/")
                await asyncio.sleep(0)

        async def main():
            await asyncio.gather(look(2), look(3))

        asyncio.run(main())
        """,
        **ON,
    )

    founder = done.experiment.founder
    looked = [each for each in done.events("os.stat") if founder.own_line(each.stack).function == "look"]
    tasks = Counter(event.task for event in statements(founder) if place(founder, event) == ("look", 6))
    assert tasks == Counter(event.task for event in looked)
    assert sorted(tasks.values()) == [2, 3]


def test_lines_of_a_library_that_is_traced_stand_by_themselves(traced):
    done = traced("import colorsys\ncolorsys.rgb_to_hls(1, 0, 0)\n", **ON, INTERPOSE_LINES="colorsys")

    founder = done.experiment.founder
    functions = {place(founder, event)[0] for event in statements(founder)}
    assert functions == {"<module>", "rgb_to_hls"}


def test_times_and_other_calls_are_as_without(traced):
    with_them, without = traced(SHOP, **ON), traced(SHOP, INTERPOSE="calls,lines")

    told, plain = calls_of(with_them.experiment), calls_of(without.experiment)
    assert told.pop(("logic", STATEMENT)) == len(statements(with_them.experiment.founder))
    assert told == plain
    assert [each.name for each in transactions(Analysis(with_them.experiment)).rows] == [
        each.name for each in transactions(Analysis(without.experiment)).rows
    ]
    assert all(thread.adds_up for thread in with_them.experiment.founder.threads)
    assert with_them.experiment.founder.log.statement_ns > 0 == without.experiment.founder.log.statement_ns


def test_nothing_is_different_where_they_are_not_asked_for(traced):
    done = traced(SHOP, INTERPOSE="calls,lines")

    assert done.events(STATEMENT) == []
    with open(os.path.join(done.path, "map.xml")) as file:
        assert STATEMENT not in file.read()


@pytest.mark.parametrize("end", ["os._exit(3)", "os.kill(os.getpid(), signal.SIGKILL)"])
def test_the_last_lines_before_a_death_are_in_the_ring(traced, end):
    done = traced(
        f"""
        import os, signal

        def spin():
            for i in range(60000):
                x = i

        def die():
            y = 1
            z = 2
            {end}

        spin()
        die()
        """,
        **ON,
        INTERPOSE_RING="1MiB",
    )

    founder = done.experiment.founder
    places = [place(founder, event) for event in done.events(STATEMENT)]
    assert done.returncode in (3, -signal.SIGKILL)
    assert founder.overwritten > 0
    assert places[-4:] == [("<module>", 14), ("die", 9), ("die", 10), ("die", 11)]
    assert len(places) < 60000


def test_a_forked_child_tells_its_own_lines(traced):
    done = traced(
        """
        import os

        def both(n):
            return n + 1

        def child():
            return both(2)

        both(1)
        pid = os.fork()
        if pid == 0:
            child()
            os._exit(0)
        os.waitpid(pid, 0)
        both(3)
        """,
        **ON,
    )

    founder, child = done.experiment.processes
    assert functions_lines(founder) == [[("both", 5), ("both", 5)]]
    assert functions_lines(child) == [[("child", 8), ("both", 5)]]


def test_a_pause_has_no_lines_and_afterwards_they_go_on(traced):
    done = traced(
        """
        import interpose

        def work(n):
            x = n
            interpose.pause()
            x = n
            y = n
            interpose.resume()
            return x

        work(1)
        work(2)
        """,
        **ON,
    )

    assert lines_of(done, "work") == [5, 6, 10, 5, 6, 10]


def test_after_the_recordings_end_there_are_no_more(traced):
    done = traced(
        """
        import interpose

        def work():
            return 1

        work()
        interpose.stop_process()
        work()
        interpose.stop_process()
        """,
        **ON,
    ).ended_well()

    assert lines_of(done, "work") == [5]


def test_line_trace_that_is_switched_on_by_the_program_tells_its_lines(traced):
    done = traced(
        """
        import interpose

        def work():
            return 1

        def outer():
            work()
            with interpose.trace_lines():
                work()
            work()

        outer()
        outer()
        """,
        INTERPOSE="1",
        INTERPOSE_STATEMENTS="1",
    ).ended_well()

    assert lines_of(done, "work") == [5, 5]


def test_calls_too_deep_inside_others_have_no_lines(traced):
    done = traced(RECURSION.replace("climb(2, 5)", "climb(2, 20)"), **ON, INTERPOSE_LINES_DEPTH="4").ended_well()

    assert len(statements(done.experiment.founder)) == executed(done.experiment) > 0


def test_a_second_recording_in_one_process_has_numbers_of_its_own(recorded):
    done = recorded("""
        from interpose.capture import interposed

        def begin(number):
            directory = os.path.abspath(f"test.{number}.er")
            os.mkdir(directory, 0o700)
            wanted = precedence.resolve({}, {"INTERPOSE": "calls,lines", "INTERPOSE_STATEMENTS": "1"}, {})
            session.record(wanted, directory, "", directory, interposed.intrinsics_of(wanted))

        def work(n):
            return n

        begin(1)
        work(1)
        shims.end()
        work(2)
        begin(2)
        other = 1
        work(3)
        shims.end()
        os.stat("/")
        work(4)
    """).ended_well()

    for number in (1, 2):
        founder = Experiment(str(done.directory / f"test.{number}.er")).founder
        assert [place(founder, event)[0] for event in statements(founder)].count("work") == 1


def test_within_transactions_that_are_passed_over_there_are_none(traced):
    done = traced(
        """
        import interpose

        def work(n):
            return n

        for n in range(40):
            with interpose.transaction("order"):
                work(n)
        """,
        **ON,
        INTERPOSE_TRANSACTIONS="1/4",
        INTERPOSE_SEED="7",
    )

    founder = done.experiment.founder
    began = [event for event in done.events() if founder.intrinsic(event.intrinsic).name == "interpose.transaction"]
    inside = {event.parent for event in statements(founder) if place(founder, event)[0] == "work"}
    assert 0 < len(inside) < len(began) == 40
    assert len(lines_of(done, "work")) == len(inside)


def test_put_together_as_they_are_recorded_they_are_counted_by_line(interpose_here, tmp_path):
    program = write_program(tmp_path, LOOPS)
    done = interpose_here(
        *("run", "-d", str(tmp_path), "--statements", "1", "--consolidate", "1"),
        *(sys.executable, str(program)),
    )

    assert done.returncode == 0, done.stderr
    found = Experiment(str(tmp_path / "test.1.er"))
    sites = [row for row in profile(Analysis(found), "site").rows if row.site and row.site.function == "bar"]
    assert calls_of(found)["logic", STATEMENT] == executed(found)
    assert [(row.site.line, row.sums.calls) for row in sites if row.site] == [(3, 10)]


def test_at_the_level_count_they_are_counted_and_no_events(traced):
    done = traced(LOOPS, **ON, INTERPOSE_LEVELS=f"{STATEMENT}=count")

    (row,) = [row for row in profile(Analysis(done.experiment), "intrinsic").rows if row.intrinsic == STATEMENT]
    assert done.events(STATEMENT) == []
    assert row.counted == executed(done.experiment) > 0


def test_what_does_not_fit_is_counted_as_lost(traced):
    source = "def spin():\n    for i in range(30000):\n        x = i\nspin()\n"
    done = traced(source, **ON, INTERPOSE_LIMIT="1MiB")

    founder = done.experiment.founder
    lost = executed(done.experiment) - len(statements(founder))
    assert 0 < lost <= dropped(founder) < lost + 100
    assert all(thread.adds_up for thread in founder.threads)


def test_lines_are_no_activity_between_keystrokes(tmp_path):
    build = Build(tmp_path / "t.1.er")
    build.intrinsic(STATEMENT, "logic")
    build.intrinsic("interpose.user_event", "logic")
    process = Experiment(str(build.write())).founder

    assert set(roles_of(process)) == {2}


def test_reports_show_them_by_their_code(traced, interpose_here):
    done = traced(SHOP, **ON)

    events = json.loads(interpose_here("events", "--codes", "natural", "--format", "json", done.path).stdout)
    told = [f"{row['code']} {row['function']}" for row in events if row["function"] in ("order", "double")]
    assert told[:6] == ["NS order", "DB order", "NS double", "DA order", "NS order", "None order"]
