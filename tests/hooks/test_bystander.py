"""What a program that does nothing can see of the tracer: little, and all of it documented."""

import json
import os
from pathlib import Path

import audit
import pytest
from tracing import Traced

PROGRAM = """
    import sys
    sys.path.append({tests!r})
    import audit, json
    sys.path.pop()
    print(json.dumps(audit.facts()))
"""
# What may differ; each has a test of its own.
KNOWN = {"modules", "directories looked into", "os.environ", "C environment", "mapped files"}


@pytest.fixture
def sides(traced) -> tuple[Traced, Traced]:
    """A program's view of its process without the tracer and with it."""
    program = PROGRAM.format(tests=str(Path(__file__).parents[1]))
    return traced(program, INTERPOSE="0"), traced(program)


@pytest.fixture
def seen(sides) -> tuple[dict, dict]:
    off, on = sides
    assert (on.returncode, on.stderr) == (0, "")
    assert on.experiment.founder.threads
    return json.loads(off.stdout), json.loads(on.stdout)


def test_everything_else_is_as_without(seen):
    off, on = seen

    assert {name: both for name, both in audit.differences(off, on).items() if name not in KNOWN} == {}
    assert on["threads"] == 1
    assert on["children"] == ""


def test_three_modules_of_ours_are_there_and_none_of_others(seen):
    off, on = seen

    assert set(on["modules"]) - set(off["modules"]) == {"interpose", "interpose.boot", "interpose.timing.shims"}
    assert set(off["modules"]) - set(on["modules"]) == set()


def test_the_import_system_has_looked_into_our_directories_only(seen):
    off, on = seen
    looked = set(on["directories looked into"]) - set(off["directories looked into"])

    assert {path.partition("/site-packages/interpose")[1] for path in looked} <= {"/site-packages/interpose"}


def test_nothing_heavy_is_imported(traced):
    done = traced("import sys; print(*sys.modules)")

    heavy = {"wrapt", "ssl", "asyncio", "threading", "logging", "re", "typing", "zstandard", "ctypes", "json"}
    assert not heavy & set(done.stdout.split())


def test_the_collector_does_not_go_through_what_is_interposed(traced):
    source = """
        import gc, selectors, sqlite3
        declared = [each for each in gc.get_objects() if type(each).__name__ == "Intrinsic"]
        print(*[each.name for each in declared if each.number])
    """
    done = traced(source)

    assert done.stdout == "\n"
    assert len(done.experiment.founder.numbered_intrinsics) > 100


def test_the_environment_has_one_more_variable_and_only_for_children(seen):
    off, on = seen
    added = set(on["C environment"]) - set(off["C environment"])

    assert {**on["os.environ"], "INTERPOSE": "0"} == off["os.environ"]
    assert {each.partition("=")[0] for each in added} == {"INTERPOSE", "INTERPOSE_LINEAGE"}
    assert set(off["C environment"]) - set(on["C environment"]) == {"INTERPOSE=0"}


def test_three_libraries_and_the_experiments_files_are_mapped(sides, seen):
    off, on = seen
    experiment = sides[1].experiment
    mapped = set(on["mapped files"]) - set(off["mapped files"])
    ours = {path for path in mapped if not path.startswith(sides[1].path)}

    assert {os.path.basename(path).partition(".")[0] for path in ours} == {
        "libinterpose",
        "libinterpose_cpython",
        "shims",
    }
    assert {os.path.basename(path) for path in mapped - ours} <= set(experiment.founder.log.data)


CHANGES = {
    "os.open('/', 0)": {"descriptors"},
    "import threading; threading.Thread(target=__import__('time').sleep, args=(9,), daemon=True).start()": {
        "threads",
        "known threads",
        "status",
    },
    "import signal; signal.signal(10, lambda *_: None)": {"handlers", "actions", "status"},
    "import signal; signal.pthread_sigmask(signal.SIG_BLOCK, {12})": {"blocked signals", "status"},
    "import faulthandler; faulthandler.enable()": {"actions", "alternate stack", "status"},
    "import ctypes; ctypes.CDLL(None).setenv(b'A', b'b', 1)": {"C environment"},
    "os.environ['B'] = 'b'": {"os.environ", "C environment"},
    "import signal; signal.setitimer(signal.ITIMER_VIRTUAL, 1000)": {"timers"},
    "import resource as r; r.setrlimit(r.RLIMIT_NOFILE, (99, r.getrlimit(r.RLIMIT_NOFILE)[1]))": {"limits"},
    "import atexit; atexit.register(int)": {"atexit"},
    "import gc; gc.callbacks.append(lambda *_: None)": {"collector"},
    "import warnings; warnings.simplefilter('ignore')": {"warnings"},
    "import sys; sys.meta_path.append(int)": {"import"},
    "import sys; sys.setprofile(lambda *_: None)": {"tracing"},
    "import locale; locale.setlocale(locale.LC_ALL, 'C')": {"locale"},
    "os.umask(0)": {"umask"},
    "os.chdir('/')": {"working directory"},
    "import tabnanny": {"modules"},
}


def test_a_change_would_be_seen(traced):
    source = f"""
        import os, sys
        sys.path.append({str(Path(__file__).parents[1])!r})
        import audit
        os.umask(0o077)
        assert audit.differences(audit.facts(), audit.facts()) == {{}}
        for change in {list(CHANGES)!r}:
            before = audit.facts()
            exec(change)
            print(*audit.differences(before, audit.facts()), sep=",")
    """
    done = traced(source, INTERPOSE="0", LC_ALL="C.UTF-8")
    seen = [set(line.split(",")) for line in done.stdout.splitlines()]

    assert done.stderr == ""
    assert len(seen) == len(CHANGES)
    assert not [change for change, differing in zip(CHANGES, seen, strict=True) if not CHANGES[change] <= differing]


def test_nothing_is_on_the_streams_and_nothing_is_left_but_the_experiment(traced):
    done = traced("")
    off = traced("", INTERPOSE="0")

    assert (done.returncode, done.stdout, done.stderr) == (off.returncode, off.stdout, off.stderr) == (0, "", "")
    assert sorted(os.listdir(done.directory)) == ["program.py", "test.1.er"]


@pytest.mark.parametrize("closed", ["0", "1", "2"])
def test_a_closed_stream_stays_closed_and_its_number_free(traced, closed):
    source = """
        import os, sys
        if len(sys.argv) == 2:
            os.close(int(sys.argv[1]))
            os.execv(sys.executable, [sys.executable, sys.argv[0], sys.argv[1], "again"])
        found = sorted(int(name) for name in os.listdir("/proc/self/fd"))
        number = os.open(os.devnull, os.O_RDONLY)
        with open("seen", "w") as file:
            print(found, number, sys.stdin is None, sys.stdout is None, sys.stderr is None, file=file)
    """
    seen = []
    for recording in ("0", "1"):
        done = traced(source, closed, INTERPOSE=recording)
        seen.append((done.returncode, done.stdout, done.stderr, (done.directory / "seen").read_text()))

    assert seen[0] == seen[1]
