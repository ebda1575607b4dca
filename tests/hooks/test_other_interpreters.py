"""Calls of other interpreters of the process (subinterpreters) are recorded, and told apart."""

import sys
from collections import Counter
from importlib.util import find_spec

import pytest
from tracing import events_of, run_in, write_program

from interpose.experiments.model.experiment import Experiment

# What each version calls the module, and how an interpreter of each sort is made by it.
MAKING = """
import os, sqlite3, sys, threading, time, warnings
warnings.simplefilter("ignore")
try:
    import _interpreters as interpreters
except ImportError:
    import _xxsubinterpreters as interpreters

def make(isolated=True):
    if sys.version_info < (3, 13):
        return interpreters.create(isolated=isolated)
    return interpreters.create("isolated" if isolated else "legacy")

def run(code, isolated=True):
    made = make(isolated)
    interpreters.run_string(made, code)
    interpreters.destroy(made)
"""
SORTS = {"with a lock of its own": True, "with the lock of all": False}


def function_of(done, event):
    return next((site.function for site in done.experiment.founder.frames(event.stack)), "")


def told(done, name):
    """How many calls of an intrinsic there are from each function."""
    return Counter(function_of(done, event) for event in done.events(name))


def both(traced, source, **variables):
    """The program traced; untraced it says the same."""
    off, done = traced(source, INTERPOSE="0"), traced(source, **variables)
    assert (done.returncode, done.stdout, done.stderr) == (off.returncode, off.stdout, off.stderr)
    assert off.returncode == 0, off.stderr
    return done


@pytest.mark.parametrize("isolated", SORTS.values(), ids=SORTS)
def test_what_is_called_there_is_recorded_with_its_interpreter(traced, interpose, isolated):
    done = both(
        traced,
        f"""{MAKING}
CODE = '''
import os, sqlite3, time
def work():
    time.sleep(0.001)
    with open("made", "w") as file:
        file.write("x" * 10)
    os.stat("made")
    base = sqlite3.connect(":memory:")
    base.execute("create table t (a)")
    try:
        os.stat("absent")
    except OSError as error:
        print(error)
work()
'''
time.sleep(0)
run(CODE, {isolated})
run(CODE, {isolated})
time.sleep(0)
""",
    )
    founder = done.experiment.founder

    assert told(done, "time.sleep") == {"<module>": 2, "work (interpreter 1)": 1, "work (interpreter 2)": 1}
    there = [event for event in done.events("os.stat") if "work (" in function_of(done, event)]
    assert [founder.string(event.detail) for event in there] == ["made", "absent"] * 2
    assert [founder.string(event.error) for event in there] == ["", "FileNotFoundError errno 2"] * 2
    written = [event for event in done.events("io.FileIO.write") if founder.string(event.detail).endswith("made")]
    assert [event.bytes for event in written] == [10, 10]
    assert told(done, "sqlite3.Connection.execute") == {"work (interpreter 1)": 1, "work (interpreter 2)": 1}
    assert "create table t" in done.details("sqlite3.Connection.execute")[0]
    report = interpose("report", done.path).stdout
    assert "   complete\n" in report
    assert "in other interpreters only calls of C functions are recorded" in report
    assert interpose("check", done.path).returncode == 0


@pytest.mark.long
def test_interpreters_that_run_at_once_mix_nothing_up(traced, interpose):
    done = both(
        traced,
        f"""{MAKING}
CODE = '''
import os, sqlite3
def work():
    base = sqlite3.connect(":memory:")
    for number in range(300):
        os.stat("/")
        descriptor = os.open("file NUMBER", os.O_CREAT | os.O_RDWR)
        os.write(descriptor, b"x" * NUMBER)
        os.close(descriptor)
        base.execute("select NUMBER + ?", (number,))
work()
'''
def each(number):
    run(CODE.replace("NUMBER", str(number)))
threads = [threading.Thread(target=each, args=(number,)) for number in range(1, 7)]
for thread in threads: thread.start()
for number in range(300):
    with open("file 0", "w") as file: file.write("")
    os.stat("/")
for thread in threads: thread.join()
""",
    )
    founder = done.experiment.founder
    found = Counter(
        (function_of(done, event), founder.string(event.detail).rpartition("/")[2], event.bytes)
        for event in done.events("os.write")
    )

    assert sorted(told(done, "os.write").values()) == [300] * 6
    assert len(found) == 6  # each interpreter wrote its own file, and as much as it said
    assert all(name == f"file {size}" for _, name, size in found)
    stats = {function: count for function, count in told(done, "os.stat").items() if function.startswith("work (")}
    assert sorted(stats.values()) == [300] * 6
    assert "   complete\n" in interpose("report", done.path).stdout


@pytest.mark.skipif(not find_spec("concurrent.interpreters"), reason="new in CPython 3.14")
def test_a_pool_of_interpreters(traced):
    done = both(
        traced,
        """
        import os, time
        from concurrent.futures import InterpreterPoolExecutor
        def work(number):
            os.stat(f"/proc/{number}")
            return number * 2
        if __name__ == "__main__":
            with InterpreterPoolExecutor(3) as pool:
                print(list(pool.map(work, [1] * 40)))
        """,
    )
    counts = {function: count for function, count in told(done, "os.stat").items() if function.startswith("work ")}

    assert sum(counts.values()) == 40
    assert set(counts) <= {f"work (interpreter {number})" for number in range(1, 4)}


def test_a_filter_of_calls_holds_there_and_one_of_places_leaves_all_of_it_out(traced):
    source = f"""{MAKING}
CODE = '''
import os, time
time.sleep(0.001)
os.stat("/")
'''
run(CODE)
os.stat("/")
"""
    done = traced(source, INTERPOSE_FILTER="event=time.sleep")
    placed = traced(source, INTERPOSE_FILTER="module=__main__")

    assert told(done, "time.sleep") == {"<module> (interpreter 1)": 1}
    assert done.events("os.stat") == []
    assert {site for site in told(placed, "os.stat") if "interpreter" in site} == set()
    assert placed.events("os.stat")


def test_collectors_transactions_and_levels_there(tmp_path):
    (tmp_path / "interpose.d").mkdir()
    program = write_program(
        tmp_path,
        f"""{MAKING}
CODE = '''
import os, interpose
@interpose.transaction("order")
def order():
    os.stat("/")
order()
with interpose.transaction("x"):
    os.stat("/")
print("done")
'''
run(CODE)
""",
    )
    done = run_in(tmp_path, [sys.executable, str(program)], INTERPOSE="1", INTERPOSE_KINDS="all,file=count")
    experiment = Experiment(str(tmp_path / "test.1.er"))

    assert (done.returncode, done.stdout, done.stderr) == (0, "done\n", "")
    assert list(events_of(experiment.founder, "os.stat")) == []


@pytest.mark.long
def test_many_interpreters_one_after_the_other(traced, interpose):
    done = both(traced, f"{MAKING}\nfor number in range(40): run('import time; time.sleep(0)', number % 2 == 0)\n")

    assert told(done, "time.sleep") == {f"<module> (interpreter {number})": 1 for number in range(1, 41)}
    assert "   complete\n" in interpose("report", done.path).stdout


@pytest.mark.skipif(sys.version_info < (3, 13), reason="CPython does not tell which interpreter is the first")
@pytest.mark.parametrize("isolated", SORTS.values(), ids=SORTS)
def test_where_one_is_recorded_the_start_of_others_ends_early(traced, isolated):
    inside = """
import os, sys
opened = []
sys.addaudithook(lambda event, what: opened.append(str(what[0])) if event == "open" else None)
import interpose.boot
interpose.boot._done = False
interpose.boot.boot()
open(os.devnull).close()
files = [os.path.basename(each).partition(".")[0] for each in opened]
os.write(1, " ".join([*files, *sorted(each for each in sys.modules if each.startswith("interpose"))]).encode())
"""
    done = traced(f"{MAKING}\nrun({inside!r}, {isolated})").ended_well()

    assert done.stdout.split() == ["__init__", "null", "interpose", "interpose.boot"]  # the first is interpose.timing
