"""The whole system library: every intrinsic that this Python has is interposed, and exercised by a program."""

import importlib.util
import re
import shutil
import sys
import xml.etree.ElementTree as ElementTree

import pytest
from exercises import PROGRAMS, exists, named
from tracing import Traced, events_of, run_in, write_program

from interpose.config import levels
from interpose.instrumentation import system_library
from interpose.instrumentation.system_library import (
    PACKAGES,
    contexts,
    every,
    marks,
    of_packages,
    rabbitmq,
    served,
    tracers,
    web,
)
from interpose.library import Intrinsic, resolve

INTRINSICS = every()
OUR_OWN = "interpreter lock"  # no name of Python's stands for it
HERE = [intrinsic for intrinsic in INTRINSICS if intrinsic.name == OUR_OWN or exists(intrinsic)]
MODULES_NOT_EVERYWHERE = {"_curses", "_dbm", "_gdbm", "_posixshmem", "_ssl", "readline"}
SINCE_3_13 = {"_thread._ThreadHandle.join", "os.posix_openpt"}
SINCE_3_13 |= {each.name for each in INTRINSICS if each.module == "dbm.sqlite3"}

# No line of a program's own is around them: test_served, test_library_tasks and test_library_http look at them.
IN_THREADS_OF_PACKAGES = {
    *(each.name for each in rabbitmq.INTRINSICS),  # test_rabbitmq
    "celery.worker.trace_task_ret",
    "celery.worker.fast_trace_task",
    "dramatiq.rabbitmq.Consumer.__next__",
    "gevent.ThreadPool.get",
    *(each.name for each in of_packages(["grpc"])),  # test_grpc
    "kombu.redis.Channel.brpop_start",
    *(each.name for each in of_packages(["trio"])),  # test_trio
    "starlette.background.BackgroundTask.__call__",  # test_background_tasks
    "starlette.routing.Route.handle",
    *(each.name for each in served.INTRINSICS),
    *(each.name for each in web.SERVERS),
    *(each.name for each in marks.INTRINSICS),  # tests/test_marks
    *(each.name for each in contexts.INTRINSICS),  # test_transactions_in_threads
    "fastapi.routing.APIRoute.handle",
    "flask.ctx.RequestContext.match_request",
    "prompt_toolkit.input.Vt100Input.read_keys",
    *(each.name for each in tracers.INTRINSICS),  # no calls: test_active_spans
    *(each.name for each in INTRINSICS if each.effect == "answer"),  # no calls: test_idle
    # How often a loop waits is its own affair: test_loops_in_c.
    *(each.name for each in INTRINSICS if each.by == "loop"),
}

# What modules of packages import that these can be installed without.
NEEDS = {"httptools_impl": "httptools", "brokers.rabbitmq": "pika"}


def may_be_expected(module):
    """Whether a module is in every Python, or is of a package that is installed here."""
    package = module.partition(".")[0]
    needs = next((each for end, each in NEEDS.items() if module.endswith(end)), None)
    if needs and importlib.util.find_spec(needs) is None:
        return False
    if package == "opentelemetry":  # several distributions share that name
        package = module.rpartition(".")[0] if importlib.util.find_spec(package) else package
    if package in sys.stdlib_module_names:
        return module not in MODULES_NOT_EVERYWHERE
    return importlib.util.find_spec(package) is not None


def test_an_intrinsic_is_missing_only_where_this_python_is_older_or_built_without_its_module():
    """A target that is misspelt is in no Python, and no other test would see it."""
    expected_absent = SINCE_3_13 if sys.version_info < (3, 13) else set()
    absent = {each.name for each in INTRINSICS if each not in HERE and may_be_expected(each.module)}

    assert absent == expected_absent


def test_every_intrinsic_is_in_a_program_that_calls_it():
    exercised = {name for program in PROGRAMS.glob("*.py") for name in named(program.read_text())}

    assert sorted({intrinsic.name for intrinsic in HERE} - exercised - IN_THREADS_OF_PACKAGES) == [OUR_OWN]


def test_every_program_is_run_by_a_test():
    tests = "".join(path.read_text() for path in PROGRAMS.parent.rglob("test_*.py"))

    run = set(re.findall(r'(?:source_of\(|assert_program_is_recorded\(traced, )"(\w+)"', tests))
    assert {path.stem for path in PROGRAMS.glob("*.py")} - run == set()


def test_what_is_declared_of_packages_is_read_with_any_of_them():
    for package in PACKAGES:
        assert package in {intrinsic.module.partition(".")[0] for intrinsic in of_packages([package])}
    named = {intrinsic.module.partition(".")[0] for intrinsic in of_packages(PACKAGES)}
    assert named == set(PACKAGES)
    at_once = {intrinsic.module.partition(".")[0] for intrinsic in system_library.standard()}
    assert at_once - {"interpose"} <= sys.stdlib_module_names


def test_what_a_recording_makes_of_a_declaration_is_forgotten():
    def all_of(intrinsic: Intrinsic) -> list:
        return [getattr(intrinsic, name) for name in Intrinsic.__slots__]

    system_library.forget()  # what another test, of the same process, has made of them
    before = [all_of(each) for each in every()]
    for each in every():
        each.be_sampled()
        each.others, each.suffix, each.passes_on, each.order = (each,), " (theirs)", "real", 1
        each.qualified = "another"
    levels.forbid(levels.assign(resolve([("system", every())], ("raw", "buffered")), {}, {"os": "count"}), ["db"])
    changed = [all_of(each) for each in every()]
    system_library.forget()

    assert all(here != there for here, there in zip(before, changed, strict=True))
    assert [all_of(each) for each in every()] == before


LATER = """
    import os, sys, threading
    before = set(sys.modules)
    import redis
    print(sorted(name for name in set(sys.modules) - before if not name.startswith("wrapt.")))
    print(redis.Redis().execute_command("GET", "key"))
    if os.fork() == 0:
        def work():
            import celery.app.task
            celery.app.task.Task().apply_async()
        thread = threading.Thread(target=work)
        thread.start()
        thread.join()
        os._exit(0)
    os.wait()
"""


def test_a_package_that_is_imported_later_is_recorded_from_then_on_and_in_children(traced, tmp_path):
    (tmp_path / "redis").mkdir()
    (tmp_path / "redis" / "__init__.py").write_text("from redis.client import Redis\n")
    (tmp_path / "redis" / "client.py").write_text(
        "class Redis:\n    def execute_command(self, *words):\n        return len(words)\n"
    )
    (tmp_path / "celery" / "app").mkdir(parents=True)
    for name in ("celery", "celery/app"):
        (tmp_path / name / "__init__.py").touch()
    (tmp_path / "celery" / "app" / "task.py").write_text(
        "class Task:\n    name = 'mail'\n    def apply_async(self):\n        pass\n"
    )
    done = traced(LATER)
    founder, child = done.experiment.processes

    assert (done.returncode, done.stdout, done.stderr) == (0, "['redis', 'redis.client']\n2\n", "")
    (event,) = done.events("redis.Redis.execute_command")
    assert (founder.string(event.detail), founder.intrinsic(event.intrinsic).kind) == ("GET", "db")
    assert len(done.events("celery.Task.apply_async", child)) == 1
    assert done.events("celery.Task.apply_async") == []
    assert done.experiment.damages.found == []


def test_no_two_intrinsics_have_the_same_name():
    assert len({intrinsic.name for intrinsic in INTRINSICS}) == len(INTRINSICS)


@pytest.mark.long
def test_every_intrinsic_that_this_python_has_is_installed(traced):
    modules = sorted({intrinsic.module for intrinsic in HERE})
    done = traced(f"import {', '.join(modules)}", INTERPOSE_FILES="buffered", INTERPOSE_KINDS="all,import").ended_well()
    entries = {entry.get("name"): entry for entry in ElementTree.parse(f"{done.path}/map.xml").iter("intrinsic")}
    not_installed = {name for name, entry in entries.items() if entry.get("installed") != "1"}
    missing = {intrinsic.name for intrinsic in HERE if intrinsic.name not in entries}

    assert missing == set()
    assert not_installed == {intrinsic.name for intrinsic in INTRINSICS if intrinsic.name in entries} - {
        intrinsic.name for intrinsic in HERE
    }


STATEMENTS = """
    import sqlite3
    ran = []
    connection = sqlite3.connect(":memory:", isolation_level=None)
    connection.set_trace_callback(ran.append)
    def counted(call, *arguments):
        before = len(ran)
        call(*arguments)
        return len(ran) - before
    cursor = connection.cursor()
    for run in connection, cursor:
        print(counted(run.executescript, "create table if not exists t (x); create index if not exists i on t (x)"))
        print(sum(counted(run.execute, "insert into t values (?)", (number,)) for number in range(500)))
        print(sum(counted(run.execute, f"select x from t where x = {number}") for number in range(500)))
        print(counted(run.executemany, "insert into t values (?)", [(number,) for number in range(700)]))
"""


def test_statements_are_counted_as_sqlite_counts_them(traced):
    """One event for each statement of `execute`; for many rows, or a script, one for the call."""
    done = traced(STATEMENTS).ended_well()
    process = done.experiment.founder
    recorded = {
        f"{owner}.{name}": [process.string(event.detail) for event in done.events(f"sqlite3.{owner}.{name}")]
        for owner in ("Connection", "Cursor")
        for name in ("execute", "executemany", "executescript")
    }

    assert [int(line) for line in done.stdout.split()] == [2, 500, 500, 700] * 2
    insert, select = "insert into t values (?)", "select x from t where x = ?"
    for owner in ("Connection", "Cursor"):
        assert recorded[f"{owner}.execute"] == [insert] * 500 + [select] * 500
        assert recorded[f"{owner}.executemany"] == [insert]
    assert len(recorded["Connection.executescript"]) == 1
    assert len(recorded["Cursor.executescript"]) == 2  # a connection's is its cursor's


# What strace counts. What the interpreter itself calls at its start and end is in a run of no turns too.
DIRECT = """
    import os, socket, sys
    turns = int(sys.argv[1])
    listener = socket.create_server(("127.0.0.1", 0))
    left, right = socket.socketpair()
    for turn in range(turns):
        file = os.open("file", os.O_RDWR | os.O_CREAT)
        os.write(file, b"text")
        os.lseek(file, 0, os.SEEK_SET)
        os.read(file, 4)
        os.fsync(file)
        os.ftruncate(file, 0)
        os.close(file)
        os.rename("file", "moved")
        os.unlink("moved")
        os.mkdir("box")
        os.rmdir("box")
        left.send(b"text")
        right.recv(4)
        client = socket.socket()
        client.connect(listener.getsockname())
        served, _ = listener.accept()
        client.close()
        served.close()
"""
BUFFERED = """
    import encodings.ascii, sys
    turns = int(sys.argv[1])
    for turn in range(turns):
        with open("letter", "wb") as letter:
            letter.write(b"x" * 20000)
            letter.write(b"x" * 200)
        with open("letter", "rb", buffering=4096) as letter:
            letter.read(10)
            letter.read(5000)
            letter.seek(20000)
            letter.read(100)
        with open("letter", encoding="ascii") as letter:
            letter.readline()
"""
CHILDREN = """
    import os, signal, subprocess, sys
    turns = int(sys.argv[1]) // 10
    for turn in range(turns):
        subprocess.run(["true"], stdout=subprocess.PIPE)
        if (child := os.fork()) == 0:
            signal.pause()
        os.kill(child, signal.SIGKILL)
        os.waitpid(child, 0)
"""

# Which intrinsics stand for a system call, and for how many.
OF_SYSTEM_CALL = {
    DIRECT: {
        "openat": {"os.open": 1},
        "write": {"os.write": 1},
        "lseek": {"os.lseek": 1},
        "read": {"os.read": 1},
        "fsync": {"os.fsync": 1},
        "ftruncate": {"os.ftruncate": 1},
        "rename": {"os.rename": 1},
        "unlink": {"os.unlink": 1},
        "mkdir": {"os.mkdir": 1},
        "rmdir": {"os.rmdir": 1},
        "sendto": {"socket.socket.send": 1},
        "recvfrom": {"socket.socket.recv": 1},
        "socket": {"socket.socket": 1, "socket.socket.accept": -1},  # that makes an object of what is there
        "connect": {"socket.socket.connect": 1},
        "accept4": {"socket.socket.accept": 1},
        "close": {"os.close": 1, "socket.socket.close": 1},
    },
    BUFFERED: {
        "openat": {"io.FileIO": 1},
        "write": {"io.FileIO.write": 1},
        "read": {"io.FileIO.readinto": 1},
        "lseek": {"io.FileIO.seek": 1, "io.FileIO.tell": 1},
        "close": {"io.FileIO.close": 1},
    },
    CHILDREN: {
        "vfork": {"subprocess.fork_exec": 1},
        "clone": {"os.fork": 1},
        "wait4": {"os.waitpid": 1},
        "kill": {"os.kill": 1},
        "pipe2": {"os.pipe": 1},
    },
}
TURNS = 200


def count_system_calls(directory, names, value, turns):
    """How often a program made each system call, by strace's own table; and what strace gave."""
    words = ["strace", "-f", "-c", "-U", "calls,name", "-e", f"trace={','.join(names)}", "-o", "calls"]
    done = run_in(directory, [*words, sys.executable, str(directory / "program.py"), str(turns)], INTERPOSE=value)
    if done.returncode:
        pytest.skip(f"strace may not trace here: {done.stderr.strip()}")
    lines = [line.split() for line in (directory / "calls").read_text().splitlines()]
    counts = {line[-1]: int(line[0]) for line in lines if line[-1] in names}
    return {name: counts.get(name, 0) for name in names}, done


def events_of_loop(process, intrinsics, first_line):
    """How many events the loop of a program made, itself or through the library; each intrinsic times its factor."""
    made = 0
    for intrinsic, factor in intrinsics.items():
        lines = [process.own_line(event.stack) for event in events_of(process, intrinsic)]
        made += factor * sum(1 for line in lines if line and line.own and line.line > first_line)
    return made


REDIS = """
class Redis:
    def execute_command(self, *words):
        return "OK"
"""


@pytest.mark.parametrize("settings", [{}, {"INTERPOSE_LEVELS": "os.stat=count"}], ids=["ready", "read"])
def test_a_package_that_is_imported_after_others_has_calls_of_its_own(traced, tmp_path, settings):
    (tmp_path / "redis").mkdir()
    (tmp_path / "redis" / "__init__.py").write_text("")
    (tmp_path / "redis" / "client.py").write_text(REDIS)
    done = traced(
        """
        import dbm, logging, socket, sqlite3, subprocess, threading
        connection = sqlite3.connect(":memory:")
        connection.execute("select 1")
        connection.commit()
        from redis.client import Redis
        Redis().execute_command("PING")
        """,
        **settings,
    )
    founder = done.experiment.founder
    calls = [founder.intrinsic(event.intrinsic).name for event in done.events()]

    assert done.stderr == ""
    assert [name for name in calls if name.startswith(("sqlite3", "redis"))] == [
        "sqlite3.connect", "sqlite3.Connection.execute", "sqlite3.Connection.commit", "redis.Redis.execute_command"
    ]  # fmt: skip


def test_a_package_that_only_has_the_name_of_a_driver_does_not_hide_what_is_imported_after_it(traced, tmp_path):
    (tmp_path / "psycopg2").mkdir()
    (tmp_path / "psycopg2" / "__init__.py").write_text("")
    (tmp_path / "psycopg2" / "_psycopg.py").write_text("class connection:\n    def close(self): pass\n")
    done = traced("import psycopg2._psycopg\nimport sqlite3\nsqlite3.connect(':memory:').close()")

    assert len(done.events("sqlite3.connect")) == 1


@pytest.mark.long
@pytest.mark.skipif(not shutil.which("strace"), reason="strace is not installed")
@pytest.mark.parametrize("source", OF_SYSTEM_CALL, ids=["direct", "buffered", "children"])
def test_counts_equal_straces_for_every_system_call(source, tmp_path):
    write_program(tmp_path, source)
    first_line = source[: source.index("for turn")].count("\n")
    names = OF_SYSTEM_CALL[source]
    none, _ = count_system_calls(tmp_path, names, "0", 0)
    some, _ = count_system_calls(tmp_path, names, "0", TURNS)
    ours_at_start, _ = count_system_calls(tmp_path, names, "1", 0)
    with_ours, done = count_system_calls(tmp_path, names, "1", TURNS)
    founder = Traced(tmp_path, done).experiment.founder
    made = {name: some[name] - none[name] for name in names}
    recorded = {name: events_of_loop(founder, names[name], first_line) for name in names}

    assert min(made.values()) >= TURNS // 10
    assert recorded == made
    # What the recorder itself calls does not grow with the calls.
    grown = {name: with_ours[name] - ours_at_start[name] - made[name] for name in names}
    assert {name for name in names if grown[name] >= TURNS // 2} == set()
