"""A program that runs already is recorded from then on, goes on as it would have, and is as before when that ends."""

import ctypes
import errno
import json
import os
import platform
import re
import shutil
import signal
import socket
import subprocess
import sys
import textwrap
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from tracing import PATIENCE_S, environment, events_of, until, write_program

from interpose.analysis.calls.profile import thread_label
from interpose.analysis.heap import heap_of
from interpose.attach import ptrace
from interpose.attach.code import code, refuse_what_others_could_change
from interpose.attach.reach import by_ptrace
from interpose.attach.symbols import NotELF, symbols
from interpose.attach.tracee import CannotAttach, Tracee
from interpose.experiments.model.experiment import Experiment
from interpose.timing import clocks

TESTS = str(Path(__file__).parents[1])
CYCLES = (4, pytest.param(50, marks=pytest.mark.slow), pytest.param(200, marks=[pytest.mark.slow, pytest.mark.reach]))
by_ptrace_only = pytest.mark.skipif(sys.version_info >= (3, 14), reason="from 3.14 on Python itself is asked")
by_remote_exec = pytest.mark.skipif(sys.version_info < (3, 14), reason="Python has no sys.remote_exec before 3.14")

# A loop with a database, until somebody says that it is enough.
BUSY = """
import sqlite3, signal, sys
enough = []
signal.signal(signal.SIGTERM, lambda number, frame: enough.append(number))
connection = sqlite3.connect(":memory:")
connection.execute("create table t (n)")
print("ready", flush=True)
count = 0
while not enough:
    connection.execute("insert into t values (?)", (count,))
    count += 1
(found,) = connection.execute("select count(*) from t").fetchone()
print(found == count, flush=True)
sys.exit(7)
"""
# One whose database is a file.
COMMITTING = BUSY.replace(":memory:", "busy.db").replace("count += 1", "connection.commit()\n    count += 1")
# One that has a word in its recording, where it is asked to.
PAUSING = """
import interpose, os, select, sys
print("ready", flush=True)
while True:
    os.stat("/")
    if select.select([0], [], [], 0.002)[0]:
        if not sys.stdin.readline():
            break
        interpose.pause()
        os.listdir("/")
        interpose.resume()
        print("{}", flush=True)
"""
SLEEPING = """
import signal, sys, threading, time
enough = threading.Event()
signal.signal(signal.SIGTERM, lambda number, frame: enough.set())
def wait():
    while not enough.is_set():
        time.sleep(0.05)
threads = [threading.Thread(target=wait) for _ in range(3)]
for thread in threads:
    thread.start()
print("ready", flush=True)
while not enough.is_set():
    time.sleep(0.05)
for thread in threads:
    thread.join()
print(True, flush=True)
sys.exit(7)
"""
# Its threads take turns ten times as often as else: who attaches waits for fewer of them at each step.
EIGHT_THREADS = """
import os, signal, sys, threading
sys.setswitchinterval(0.0005)
enough = []
signal.signal(signal.SIGTERM, lambda number, frame: enough.append(number))
sums = [0] * 8
def compute(number):
    while not enough:
        for each in range(1000):
            sums[number] += each
        os.stat("/")
threads = [threading.Thread(target=compute, args=(number,)) for number in range(8)]
for thread in threads:
    thread.start()
print("ready", flush=True)
while not enough:
    threads[0].join(0.1)
for thread in threads:
    thread.join()
print(all(each % 499500 == 0 for each in sums), flush=True)
sys.exit(7)
"""
AWAITING = """
import asyncio, os, signal, sys
async def main():
    enough = asyncio.Event()
    asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, enough.set)
    print("ready", flush=True)
    while not enough.is_set():
        await asyncio.sleep(0.01)
        os.stat("/")
    print(True, flush=True)
    sys.exit(7)
asyncio.run(main())
"""
# Nothing is called in the loop.
COMPUTING = """
import os, signal, sys
enough = False
def end(number, frame):
    global enough
    enough = True
signal.signal(signal.SIGTERM, end)
print("ready", flush=True)
count = 0
while not enough:
    count += 1
os.stat("/")
print(count > 0, flush=True)
sys.exit(7)
"""
# Its threads import, all the time.
IMPORTING = """
import importlib, signal, sys, threading, time
sys.setswitchinterval(0.0005)
enough, failed = [], []
signal.signal(signal.SIGTERM, lambda number, frame: enough.append(number))
def work(name):
    while not enough:
        sys.modules.pop(name, None)
        try:
            importlib.import_module(name)
        except ImportError as error:
            failed.append(error)
names = ["colorsys", "csv", "fractions", "html", "statistics", "string", "uuid"]
threads = [threading.Thread(target=work, args=(name,)) for name in names]
for thread in threads:
    thread.start()
print("ready", flush=True)
while not enough:
    time.sleep(0.01)
for thread in threads:
    thread.join()
print(not failed, flush=True)
sys.exit(7)
"""
# What its handler raises is what it goes on by; without, it waits for ever.
RAISING = """
import os, signal, sys
class Enough(Exception):
    pass
def end(number, frame):
    raise Enough(number)
enough = []
signal.signal(signal.SIGTERM, lambda number, frame: enough.append(number))
signal.signal(signal.SIGALRM, end)
print("ready", flush=True)
while not enough:
    try:
        signal.setitimer(signal.ITIMER_REAL, 0.005)
        while True:
            os.stat("/")
    except Enough as raised:
        (number,) = raised.args
print(number == signal.SIGALRM, flush=True)
sys.exit(7)
"""
AGAIN_WITHOUT_REMOTE_DEBUGGING = """
import os, sys
if "disable-remote-debug" not in sys._xoptions:
    os.execv(sys.executable, [sys.executable, "-X", "disable-remote-debug", *sys.argv])
"""
# Its handler raises once, while what attaching brings along opens a file.
INTERRUPTED = """
import os, signal, sys
class Late(Exception):
    pass
def end(number, frame):
    raise Late
enough, late, opened = [], 0, []
signal.signal(signal.SIGTERM, lambda number, frame: enough.append(number))
signal.signal(signal.SIGALRM, end)
def hook(event, what):
    if event == "open" and str(what[0]).endswith("SEEN") and not opened:
        opened.append(what)
        os.kill(os.getpid(), signal.SIGALRM)
sys.addaudithook(hook)
print("ready", flush=True)
while not enough:
    try:
        while not enough:
            os.stat("/")
    except Late:
        late += 1
print(late, flush=True)
sys.exit(7)
"""
# It tells of itself whenever somebody asks, and works all the time.
TELLING = f"""
import json, os, select, sqlite3, sys, threading, time
sys.path.append({TESTS!r})
import audit, pointers
def work():
    while True:
        time.sleep(0.002)
threading.Thread(target=work, daemon=True).start()
connection = sqlite3.connect(":memory:")
snapshot = None
print("ready", flush=True)
while True:
    connection.execute("select 1").fetchone()
    if not select.select([0], [], [], 0)[0]:
        continue
    asked = sys.stdin.readline().strip()
    if not asked:
        break
    if asked == "keep":
        facts, snapshot = audit.facts(), pointers.Snapshot()
        told = {{}}
    elif asked == "compare":
        now = audit.facts()
        changed = snapshot.changes()
        told = {{"changed": changed, "differing": audit.differences(facts, now)}}
    else:
        with open("/proc/self/statm") as file:
            told = {{"resident_bytes": int(file.read().split()[1]) * 4096, "mappings": len(audit.maps())}}
    print(json.dumps(told), flush=True)
"""


class Running:
    """A program that runs, as nobody would know that it is to be looked at."""

    def __init__(
        self, directory: Path, interpose: Callable[..., subprocess.CompletedProcess], source: str, **variables: str
    ) -> None:
        self.directory = directory
        self._interpose = interpose
        self.process = subprocess.Popen(
            [sys.executable, str(write_program(directory, source))],
            cwd=directory,
            env=environment(**variables),
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        assert self.line() == "ready"

    @property
    def pid(self) -> int:
        return self.process.pid

    def line(self) -> str:
        assert self.process.stdout is not None
        return self.process.stdout.readline().strip()

    def asked(self, what: str) -> dict:
        """What it tells of itself."""
        assert self.process.stdin is not None
        self.process.stdin.write(f"{what}\n")
        self.process.stdin.flush()
        return json.loads(self.line())

    def interpose(self, *words: str, **variables: str) -> subprocess.CompletedProcess:
        """`interpose WORDS`, where the program was started."""
        return self._interpose(*words, variables=variables, cwd=self.directory)

    def attach(self, *words: str, **variables: str) -> str:
        """Attach; the experiment's path."""
        done = self.interpose("attach", str(self.pid), *words, **variables)
        assert (done.returncode, done.stderr) == (0, "")
        return done.stdout.split("   ")[0]

    def detach(self) -> str:
        done = self.interpose("detach", str(self.pid))
        assert (done.returncode, done.stderr) == (0, "")
        return done.stdout

    def end(self) -> tuple[int, str, str]:
        """Say that it is enough; how it ended, and what it said."""
        self.process.send_signal(signal.SIGTERM)
        out, errors = self.process.communicate(timeout=PATIENCE_S)
        return self.process.returncode, out, errors


@pytest.fixture
def running(
    tmp_path: Path, interpose_here: Callable[..., subprocess.CompletedProcess]
) -> Iterator[Callable[..., Running]]:
    """Start a program; what is left of it at the end is killed."""
    started: list[Running] = []

    def start(source: str, **variables: str) -> Running:
        started.append(Running(tmp_path, interpose_here, source, **variables))
        return started[-1]

    yield start
    for each in started:
        each.process.kill()
        each.process.communicate()


def recorded_names(path: str) -> set[str]:
    founder = Experiment(path).founder
    return {founder.intrinsic(event.intrinsic).name for event in events_of(founder)}


def until_recorded(path: str, *names: str) -> None:
    """Wait until the experiment has an event of each."""
    until(lambda: all(any(events_of(Experiment(path).founder, name)) for name in names))


@pytest.mark.parametrize(
    ("source", "intrinsic"),
    [
        pytest.param(BUSY, "sqlite3.Connection.execute", id="busy"),
        pytest.param(SLEEPING, "time.sleep", id="sleeping"),
        pytest.param(EIGHT_THREADS, "os.stat", id="eight threads"),
        pytest.param(AWAITING, "os.stat", id="awaiting"),
        pytest.param(COMPUTING, "os.stat", id="computing"),
    ],
)
def test_a_running_program_is_recorded_from_then_on_and_ends_as_it_would(source, intrinsic, running):
    program = running(source)

    path = program.attach()
    if source != COMPUTING:
        until_recorded(path, intrinsic)
    ended = program.end()

    assert ended == (7, "True\n", "")
    assert intrinsic in recorded_names(path)
    assert Experiment(path).founder.log.pid == program.pid


def test_native_calls_are_recorded_until_one_detaches(running):
    program = running(COMMITTING)

    path = program.attach("--record", "calls,native")
    until_recorded(path, "sqlite3.Connection.commit", "libc.pwrite64")
    program.detach()
    recorded = [thread.record.recorded for thread in Experiment(path).founder.threads]
    ended = program.end()

    assert ended == (7, "True\n", "")
    assert [thread.record.recorded for thread in Experiment(path).founder.threads] == recorded


GROWING = """
import signal, sys, time
enough, kept = [], []
signal.signal(signal.SIGTERM, lambda number, frame: enough.append(number))
def grow():
    kept.append(bytearray(100_000))
print("ready", flush=True)
while not enough:
    grow()
    time.sleep(0.002)
print(len(kept) > 30, flush=True)
sys.exit(7)
"""


def test_what_a_running_program_allocates_is_recorded_until_one_detaches(running):
    program = running(GROWING)

    path = program.attach("--record", "calls,heap", "--heap", "all")
    until(lambda: grown_bytes(path) > 3_000_000)
    program.detach()
    recorded_bytes = grown_bytes(path)
    ended = program.end()

    assert ended == (7, "True\n", "")
    assert grown_bytes(path) == recorded_bytes


def test_each_recording_of_the_heap_has_its_own_size(running):
    program = running(GROWING)
    seldom = program.attach("--record", "calls,heap", "--heap", "16GiB")
    until(lambda: heap_of(Experiment(seldom).founder))
    time.sleep(0.1)  # allocations, by which the thread knows when its next sample would be due
    program.detach()

    path = program.attach("--record", "calls,heap", "--heap", "all")
    until(lambda: grown_bytes(path) > 1_000_000)
    program.detach()

    assert program.end() == (7, "True\n", "")


TRACEMALLOC_THAT_STOPS = """
import signal, tracemalloc
tracemalloc.start()
signal.signal(signal.SIGUSR1, lambda number, frame: tracemalloc.stop())
"""


def test_the_heap_is_recorded_again_after_another_allocator_was_put_back(running):
    program = running(TRACEMALLOC_THAT_STOPS + GROWING)
    first = program.attach("--record", "calls,heap", "--heap", "all")
    until(lambda: grown_bytes(first) > 1_000_000)
    os.kill(program.pid, signal.SIGUSR1)  # what was there before tracemalloc, and so before us, is asked from then on
    time.sleep(0.1)
    program.detach()

    path = program.attach("--record", "calls,heap", "--heap", "all")
    until(lambda: grown_bytes(path) > 1_000_000)
    program.detach()

    assert program.end() == (7, "True\n", "")


def test_all_of_it_is_recorded_of_threads_that_wait_for_each_other(running):
    program = running(EIGHT_THREADS)

    for number in range(4):
        path = program.attach("--record", "calls,native,heap", "--name", f"turn{number}")
        assert heap_of(Experiment(path).founder)
        program.detach()

    assert program.end() == (7, "True\n", "")


def grown_bytes(path):
    """What a line of `grow` has in use, as recorded."""
    heap = heap_of(Experiment(path).founder)
    rows = heap.rows.items() if heap else ()
    return sum(figures.end_bytes for site, figures in rows if site.function == "grow")


@pytest.mark.parametrize("source", [BUSY, SLEEPING, EIGHT_THREADS, AWAITING, COMPUTING])
def test_after_detaching_it_goes_on_and_nothing_is_recorded_any_more(source, running):
    program = running(source)
    path = program.attach()

    program.detach()
    recorded = [thread.record.recorded for thread in Experiment(path).founder.threads]
    again = program.interpose("detach", str(program.pid))
    report = program.interpose("report", path)
    ended = program.end()

    assert ended == (7, "True\n", "")
    assert [thread.record.recorded for thread in Experiment(path).founder.threads] == recorded
    assert (again.returncode, again.stderr) == (1, f"interpose: {program.pid}: is not recorded\n")
    assert "detached, and ran on" in report.stdout
    assert "   complete\n" in report.stdout


@pytest.mark.parametrize(
    "source",
    [
        pytest.param(IMPORTING, id="importing"),
        pytest.param(
            RAISING,
            id="raising",
            marks=pytest.mark.skipif(
                sys.version_info >= (3, 14), reason="sys.remote_exec loses what is raised too early (docs/limits.md)"
            ),
        ),
    ],
)
def test_what_the_program_imports_and_raises_meanwhile_it_gets(source, running):
    program = running(source)

    done = [program.interpose(word, str(program.pid)) for _ in range(5) for word in ("attach", "detach")]
    said = [each.stderr for each in done if each.returncode]

    assert program.end() == (7, "True\n", "")
    # Where it is raised within our code, attaching fails.
    assert len(said) < len(done) and all("Enough: 14" in each or "recorded" in each for each in said)


def test_both_say_how_long_it_took_and_what_to_do_next(running):
    program = running(BUSY)

    attached = program.interpose("attach", str(program.pid), "--name", "late")
    detached = program.interpose("detach", str(program.pid))

    took = r"took [\d.,]+ m?s; the program stood still for [\d.]+ ms of it\n"
    assert re.search(f"^attaching {took}", attached.stdout, re.MULTILINE)
    assert re.search(f"^detaching {took}", detached.stdout, re.MULTILINE)
    assert attached.stdout.startswith(f"{program.directory}/late.1.er ")
    assert f"interpose report late.1.er · interpose detach {program.pid}" in attached.stdout


def test_what_the_program_says_of_its_recording_holds_from_then_on(running):
    program = running(PAUSING)
    path = program.attach()

    program.asked("to pause")
    program.detach()
    found = recorded_names(path)

    assert "os.stat" in found and "os.listdir" not in found
    assert [event.kind for event in Experiment(path).founder.log.events][:2] == ["pause", "resume"]


def test_settings_are_those_of_who_attaches_and_not_of_the_program(running):
    program = running(BUSY, INTERPOSE_NAME="theirs", INTERPOSE_KINDS="net")

    path = program.attach("--kinds", "db", INTERPOSE_NAME="mine")
    settings = Experiment(path).founder.log.settings

    assert Path(path).name == "mine.1.er"
    assert settings["INTERPOSE_KINDS"] == "db"


def test_settings_of_one_time_do_not_hold_the_next(running):
    program = running(BUSY)

    program.attach("--kinds", "file", "--transactions", "1/2")
    program.detach()
    path = program.attach()

    until_recorded(path, "sqlite3.Connection.execute")


def test_a_filter_holds_from_the_beginning_for_threads_that_call_meanwhile(running):
    program = running(EIGHT_THREADS)

    path = program.attach("--filter", "kind=net")
    program.detach()

    assert recorded_names(path) == set()


def test_a_data_collector_is_told_from_the_beginning_of_what_threads_call_meanwhile(running, tmp_path):
    (tmp_path / "interpose.d").mkdir()
    (tmp_path / "interpose.d" / "interpose_program.py").write_text(
        "import interpose\n@interpose.collector\ndef told(area):\n    area.module = 'TOLD'\n"
    )
    program = running(EIGHT_THREADS)

    path = program.attach()
    until_recorded(path, "os.stat")
    program.detach()

    founder = Experiment(path).founder
    calls = sorted(events_of(founder, "os.stat"), key=lambda event: event.start_ns)[:8]
    assert [next(iter(founder.frames(event.stack))).file for event in calls] == ["TOLD"] * len(calls)
    assert len(calls) == 8


def test_threads_that_began_before_have_their_names_and_are_chosen_by_them(running):
    program = running("""
        import os, select, threading, time
        def work():
            while True:
                os.stat("/")
                time.sleep(0.002)
        for number in range(2):
            threading.Thread(target=work, name=f"worker {number}", daemon=True).start()
        print("ready", flush=True)
        while not select.select([0], [], [], 0.02)[0]:
            pass
    """)

    for wanted in ("worker 0", "worker 1"):  # one of them is it in which attaching is done
        path = program.attach("--filter", f"thread={wanted}")
        until_recorded(path, "")
        program.detach()
        founder = Experiment(path).founder
        calling = {thread_label(founder, event.thread).partition(" ")[2] for event in events_of(founder)}

        assert calling == {wanted}


def test_children_that_it_starts_afterwards_are_recorded_too(running):
    program = running("""
        import select, subprocess, sys
        print("ready", flush=True)
        while not select.select([0], [], [], 0.02)[0]:
            pass
        sys.exit(subprocess.run([sys.executable, "-c", "import time; time.sleep(0.01)"]).returncode)
    """)

    path = program.attach()
    out, errors = program.process.communicate("\n", timeout=PATIENCE_S)

    assert (program.process.returncode, out, errors) == (0, "", "")
    assert [process.lineage for process in Experiment(path).processes] == ["", "_c1"]


def test_what_was_bound_before_by_name_is_told(running, tmp_path):
    pytest.importorskip("wrapt")
    (tmp_path / "interpose.d").mkdir()
    declared = 'from interpose.library import Intrinsic\nINTRINSICS = [Intrinsic("shop.get", "shop:get", "net")]\n'
    (tmp_path / "interpose.d" / "shop.py").write_text(declared)
    (tmp_path / "shop.py").write_text("def get():\n    return 1\n")
    program = running("from shop import get\n" + BUSY)

    done = program.interpose("attach", str(program.pid))

    assert "not seen: __main__.get (shop.get), bound before" in done.stdout
    log = Experiment(done.stdout.split("   ")[0]).founder.log
    assert "bound before: __main__.get (shop.get)" in [event.why for event in log.events]


@pytest.mark.parametrize("cycles", CYCLES)
def test_nothing_changes_in_it_however_often_one_attaches(cycles, running):
    program = running(TELLING)
    figures = []
    for cycle in range(cycles):
        attached = program.interpose("attach", str(program.pid), "--name", f"run{cycle}")
        assert (attached.returncode, attached.stderr) == (0, "")
        path = attached.stdout.split("   ")[0]
        until_recorded(path, "sqlite3.Connection.execute")
        figures.append(attached.stdout.splitlines()[1])
        program.detach()
        shutil.rmtree(path, ignore_errors=True)  # the monitor may still be writing its last
        if cycle == 1:
            program.asked("keep")
            second = program.asked("memory")

    last = program.asked("memory")
    compared = program.asked("compare")
    print(*figures, f"memory: {second} to {last}", sep="\n")

    assert last["mappings"] <= second["mappings"] + 4
    assert last["resident_bytes"] - second["resident_bytes"] <= 1 << 20
    assert compared == {"changed": [], "differing": {}}


@pytest.mark.skipif(clocks.choose("perf")[0] != "perf", reason="no perf events here")
def test_the_clocks_of_its_threads_are_given_back(running):
    program = running(TELLING)
    maps = Path(f"/proc/{program.pid}/maps")
    mappings = []
    for _ in range(4):
        path = program.attach(INTERPOSE_CLOCK="perf")
        until_recorded(path, "sqlite3.Connection.execute", "time.sleep")
        assert maps.read_text().count("perf_event") == 2
        program.detach()
        assert "perf_event" not in maps.read_text()
        mappings.append(program.asked("memory")["mappings"])

    assert mappings[3] <= mappings[1]


def test_a_program_that_only_waits_is_left_as_it_was(running):
    program = running("""
        import socket, sys
        with socket.create_server(("127.0.0.1", 0)) as server:
            print("ready", flush=True)
            print(server.getsockname()[1], flush=True)
            connection, _ = server.accept()
            connection.close()
        sys.exit(7)
    """)
    port = int(program.line())

    done = program.interpose("attach", str(program.pid), "--wait", "0.5")
    socket.create_connection(("127.0.0.1", port)).close()
    out, errors = program.process.communicate(timeout=PATIENCE_S)

    assert done.returncode == 1
    who = "its main thread came to no" if sys.version_info >= (3, 14) else "no thread of it came to a"
    assert done.stderr == (
        f"interpose: {program.pid}: {who} place where it can be interrupted; it runs on as it was\n"
    )
    assert (program.process.returncode, out, errors) == (7, "", "")
    assert not list(program.directory.glob("*.er"))


def test_one_that_is_recorded_already_is_not_begun_again(running):
    program = running(BUSY, INTERPOSE="1")

    done = program.interpose("attach", str(program.pid))

    assert (done.returncode, done.stderr) == (1, f"interpose: {program.pid}: is recorded already\n")
    assert program.end() == (7, "True\n", "")


def test_a_program_recorded_from_its_beginning_can_be_detached_from(running):
    program = running(BUSY, INTERPOSE="1")

    program.detach()

    assert program.end() == (7, "True\n", "")
    assert "detached, and ran on" in program.interpose("report").stdout


@by_ptrace_only
def test_no_other_program_is_needed(running):
    program = running(BUSY)

    for command in ("attach", "detach"):
        done = program.interpose(command, str(program.pid), PATH="/nonexistent")

        assert (done.returncode, done.stderr) == (0, "")
    assert program.end() == (7, "True\n", "")


@by_remote_exec
def test_from_3_14_on_python_itself_is_asked_and_nothing_is_left_of_that(running):
    program = running(BUSY)
    directory = program.directory / "asked"
    directory.mkdir()
    variables = {"PATH": "/nonexistent", "TMPDIR": str(directory)}

    attached = program.interpose("attach", str(program.pid), **variables)
    path = attached.stdout.split("   ")[0]
    until_recorded(path, "sqlite3.Connection.execute")
    detached = program.interpose("detach", str(program.pid), **variables)

    took = r"took [\d.,]+ m?s; the program stood still for [\d.]+ ms of it\n"
    assert re.search(f"^attaching {took}", attached.stdout, re.MULTILINE)
    assert re.search(f"^detaching {took}", detached.stdout, re.MULTILINE)
    assert not list(directory.iterdir())
    assert program.end() == (7, "True\n", "")


@by_remote_exec
@pytest.mark.parametrize("switched_off_by", ["variable", "option"])
def test_a_program_that_may_not_be_asked_is_refused(switched_off_by, running, tmp_path):
    variables = {"PYTHON_DISABLE_REMOTE_DEBUG": "1"} if switched_off_by == "variable" else {}
    source = BUSY if variables else AGAIN_WITHOUT_REMOTE_DEBUGGING + BUSY
    program = running(source, **variables)

    done = program.interpose("attach", str(program.pid))

    assert (done.returncode, done.stderr) == (
        1,
        f"interpose: {program.pid}: remote debugging is switched off in it"
        " (PYTHON_DISABLE_REMOTE_DEBUG, -X disable-remote-debug): it cannot be reached\n",
    )
    assert program.end() == (7, "True\n", "")


@by_remote_exec
def test_an_interpose_that_may_not_ask_says_so(running, tmp_path):
    program = running(BUSY)

    words = [sys.executable, "-m", "interpose", "attach", str(program.pid)]
    variables = environment(PYTHON_DISABLE_REMOTE_DEBUG="1")
    done = subprocess.run(words, cwd=tmp_path, env=variables, capture_output=True, text=True)

    assert (done.returncode, done.stderr) == (
        1,
        f"interpose: {program.pid}: remote debugging is switched off in the Python that this interpose runs on"
        " (PYTHON_DISABLE_REMOTE_DEBUG, -X disable-remote-debug)\n",
    )
    assert program.end() == (7, "True\n", "")


@by_remote_exec
@pytest.mark.parametrize("seen", ["bundle", "answer"])
def test_what_a_handler_raises_while_our_code_runs_is_raised_in_the_program(seen, running):
    program = running(INTERRUPTED.replace("SEEN", seen))

    program.interpose("attach", str(program.pid))

    assert program.end() == (7, "1\n", "")


@pytest.mark.parametrize("command", ["attach", "detach"])
def test_what_is_no_python_program_is_refused(command, interpose):
    sleeper = subprocess.Popen(["sleep", "60"])

    done = interpose(command, str(sleeper.pid))
    sleeper.kill()
    sleeper.wait()
    gone = interpose(command, str(sleeper.pid))

    assert (done.returncode, gone.returncode) == (1, 1)
    assert f"interpose: {sleeper.pid}: is not a Python process" in done.stderr
    assert gone.stderr == f"interpose: {sleeper.pid}: no such process\n"


def test_one_that_ends_meanwhile_is_told_in_a_line(running):
    program = running(BUSY)
    tracee = Tracee(program.pid)
    program.process.kill()
    program.process.wait()

    with pytest.raises(CannotAttach, match=f"^{program.pid}: (has ended|no such process)$"):
        by_ptrace(tracee, code("end", ()), 1.0)


def test_memory_that_cannot_be_written_and_a_program_that_ended_are_told_apart():
    act = [sys.executable, "-c", "input('ready\\n')"]
    with subprocess.Popen(act, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as program:
        program.stdout.readline()
        tracee = Tracee(program.pid)

        with pytest.raises(CannotAttach, match=f"^{program.pid}: its memory cannot be reached: Input/output error$"):
            tracee.write(0, b"x")
        program.communicate(b"\n")
        ended = f"^{program.pid}: no such process$"
        with pytest.raises(CannotAttach, match=ended):
            tracee.write(0, b"x")
        with pytest.raises(CannotAttach, match=ended):
            _ = tracee.user
        with pytest.raises(CannotAttach, match=ended):
            tracee.entry()


def test_a_stopped_program_is_refused(running):
    program = running(BUSY)
    program.process.send_signal(signal.SIGSTOP)
    until(lambda: "T" in Path(f"/proc/{program.pid}/stat").read_text().rpartition(")")[2].split()[0])

    done = program.interpose("attach", str(program.pid))
    program.process.send_signal(signal.SIGCONT)

    assert done.stderr == f"interpose: {program.pid}: is stopped; kill -CONT {program.pid} lets it go on\n"
    assert program.end() == (7, "True\n", "")


# It traces itself when it is through: what would be left of tracing that was put off shows.
TRACING = """
import os, signal, sys, threading, time
enough = threading.Event()
signal.signal(signal.SIGTERM, lambda number, frame: enough.set())
seen = []
def trace(frame, event, what):
    seen.append(event)
    return trace
def traced():
    return 1
def work():
    while not enough.is_set():
        os.stat("/")
        time.sleep(0.001)
    sys.settrace(trace)
    traced()
    sys.settrace(None)
threads = [threading.Thread(target=work) for _ in range(2)]
for thread in threads:
    thread.start()
print("ready", flush=True)
work()
for thread in threads:
    thread.join()
print(seen.count("call") == 3, flush=True)
sys.exit(7)
"""
# Whoever attaches, or the program, is killed when the given number of requests has been made.
KILLED = """
import os, signal, sys
from interpose.attach import ptrace
from interpose.cli.main import main
left, program = [int(sys.argv[2])], int(sys.argv[4])
def request(what, thread, address=0, data=0, request=ptrace.request):
    left[0] -= 1
    if not left[0]:
        os.kill(program if sys.argv[1] == "program" else os.getppid(), signal.SIGKILL)
    return request(what, thread, address, data)
ptrace.request = request
sys.exit(main(sys.argv[3:]))
"""


@by_ptrace_only
def test_when_attaching_is_killed_the_program_is_left_as_it_was(running):
    program, killed = running(TRACING), 0
    status = Path(f"/proc/{program.pid}/status")
    done = -signal.SIGKILL
    while done == -signal.SIGKILL:
        killed += 1
        words = [sys.executable, "-c", KILLED, "attaching", str(killed * 15), "attach", str(program.pid)]
        done = subprocess.run(words, cwd=program.directory, env=environment(), capture_output=True).returncode
        until(lambda: "TracerPid:\t0\n" in status.read_text())
        program.interpose("detach", str(program.pid))

    assert killed > 10
    assert program.end() == (7, "True\n", "")


@by_ptrace_only
def test_a_program_that_is_killed_meanwhile_is_told_in_a_line(running):
    for requests in (1, 2, 3, 5, 8, 15, 30, 60, 100, 140):
        program = running(TRACING)
        words = [sys.executable, "-c", KILLED, "program", str(requests), "detach", str(program.pid)]
        done = subprocess.run(words, env=environment(), capture_output=True, text=True, timeout=PATIENCE_S)

        assert (done.returncode, done.stderr) == (1, f"interpose: {program.pid}: has ended\n")
        assert program.process.wait(timeout=PATIENCE_S) == -signal.SIGKILL


@by_ptrace_only
def test_attaching_that_is_interrupted_leaves_the_program_at_once(running):
    program = running("""
        import sys
        print("ready", flush=True)
        sys.exit(len(sys.stdin.readline()))
    """)
    status = Path(f"/proc/{program.pid}/status")
    attaching = subprocess.Popen(
        [sys.executable, "-m", "interpose", "attach", str(program.pid), "--wait", "600"], env=environment()
    )
    until(lambda: "TracerPid:\t0\n" not in status.read_text())

    attaching.send_signal(signal.SIGINT)
    attaching.wait(timeout=PATIENCE_S)

    assert "TracerPid:\t0\n" in status.read_text()
    out, errors = program.process.communicate("123\n", timeout=PATIENCE_S)
    assert (program.process.returncode, out, errors) == (4, "", "")


SEIZING = """
import sys
from interpose.attach import ptrace
ptrace.request(ptrace.SEIZE, int(sys.argv[1]))
print("ready", flush=True)
sys.stdin.read()
"""


@by_ptrace_only
def test_a_program_that_somebody_traces_is_refused(running):
    program = running(BUSY)
    tracee = Tracee(program.pid)
    tracer = subprocess.Popen(
        [sys.executable, "-c", SEIZING, str(program.pid)], stdin=subprocess.PIPE, stdout=subprocess.PIPE
    )
    assert tracer.stdout is not None and tracer.stdout.readline() == b"ready\n"

    done = program.interpose("attach", str(program.pid))
    with pytest.raises(CannotAttach) as raised:
        by_ptrace(tracee, code("end", ()), 1.0)
    name = Path(f"/proc/{tracer.pid}/comm").read_text().strip()
    tracer.communicate(b"")

    told = f"{program.pid}: is traced already, by {name} ({tracer.pid})"
    assert (done.returncode, done.stderr) == (1, f"interpose: {told}\n")
    assert str(raised.value) == told  # where both came at the same time
    assert program.end() == (7, "True\n", "")


@by_ptrace_only
def test_of_several_who_attach_at_once_each_succeeds_or_says_why_not(running):
    program = running(EIGHT_THREADS)
    words = [sys.executable, "-m", "interpose", "attach", str(program.pid)]
    attaching = [
        subprocess.Popen(words, cwd=program.directory, env=environment(), stderr=subprocess.PIPE, text=True)
        for _ in range(4)
    ]
    ended = [(each.communicate(timeout=PATIENCE_S)[1], each.returncode) for each in attaching]

    assert [code for _, code in ended].count(0) == 1
    told = rf"interpose: {program.pid}: is (recorded already|traced already, by .* \(\d+\))\n"
    assert all(re.fullmatch(told, error) for error, code in ended if code)
    assert program.end() == (7, "True\n", "")


@by_ptrace_only
def test_a_program_that_starts_another_in_its_place_is_left_to_it(running):
    program = running("""
        import os, sys
        def hook(event, what):
            if event == "exec" and not sys._getframe(1).f_code.co_filename.endswith("program.py"):
                os.execv(sys.executable, [sys.executable, "-c", "import sys; sys.exit(len(sys.stdin.readline()))"])
        sys.addaudithook(hook)
        print("ready", flush=True)
        while True:
            os.stat("/")
    """)

    done = program.interpose("attach", str(program.pid))
    out, errors = program.process.communicate("12345\n", timeout=PATIENCE_S)

    told = f"interpose: {program.pid}: has started another program in its place\n"
    assert (done.returncode, done.stderr) == (1, told)
    assert (program.process.returncode, out, errors) == (6, "", "")


# It says what came of each of its system calls, and how many signals it got; it sends itself some all the time.
SIGNALLED = """
import ctypes, os, select, signal, socket, sys, threading, time
enough, got, failed = [], [], []
signal.signal(signal.SIGTERM, lambda number, frame: enough.append(number))
signal.signal(signal.SIGUSR1, lambda number, frame: got.append(number))
signal.siginterrupt(signal.SIGUSR1, True)
class Pause(ctypes.Structure):
    _fields_ = [("s", ctypes.c_long), ("ns", ctypes.c_long)]
libc = ctypes.CDLL(None, use_errno=True)
def sleep():
    signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGUSR1, signal.SIGTERM})
    while not enough:
        begin, pause = time.monotonic(), Pause(0, 30_000_000)
        if libc.nanosleep(ctypes.byref(pause), None) or time.monotonic() - begin < 0.03:
            failed.append(("nanosleep", ctypes.get_errno()))
def exchange():
    signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGUSR1, signal.SIGTERM})
    here, there = socket.socketpair()
    while not enough:
        here.send(b"x")
        if libc.recv(there.fileno(), ctypes.create_string_buffer(1), 1, 0) != 1:
            failed.append(("recv", ctypes.get_errno()))
        select.select([there], [], [], 0.001)
threads = [threading.Thread(target=sleep), threading.Thread(target=exchange)]
for thread in threads:
    thread.start()
print("ready", flush=True)
sent = 0
while not enough:
    os.kill(os.getpid(), signal.SIGUSR1)
    sent += 1
    time.sleep(0.001)
for thread in threads:
    thread.join()
print(failed or len(got) == sent, flush=True)
sys.exit(7)
"""
# It starts processes all the time, each of which goes through the places where threads are stopped.
FORKING = """
import os, signal, subprocess, sys, threading, warnings
warnings.simplefilter("ignore")  # of forks where there are threads
enough, failed = [], []
signal.signal(signal.SIGTERM, lambda number, frame: enough.append(number))
def fork():
    while not enough:
        process = os.fork()
        if not process:
            os._exit(sum(map(int, map(str, range(200)))) % 100)
        _, status = os.waitpid(process, 0)
        if os.waitstatus_to_exitcode(status) != 0:
            failed.append(status)
def start():
    while not enough:
        done = subprocess.run(["/bin/sh", "-c", "exit 3"])
        if done.returncode != 3:
            failed.append(done)
threads = [threading.Thread(target=fork), threading.Thread(target=start)]
for thread in threads:
    thread.start()
print("ready", flush=True)
for thread in threads:
    while thread.is_alive():
        thread.join(0.05)
print(failed or True, flush=True)
sys.exit(7)
"""
# Its threads are begun and ended all the time.
SHORT_THREADS = """
import os, signal, sys, threading
enough, sums = [], []
signal.signal(signal.SIGTERM, lambda number, frame: enough.append(number))
def work():
    sums.append(sum(range(1000)))
print("ready", flush=True)
begun = 0
while not enough:
    threads = [threading.Thread(target=work) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    begun += 4
print(len(sums) == begun and set(sums) == {499500}, flush=True)
sys.exit(7)
"""
# Floating-point numbers are in vector registers when a thread is stopped: nothing may change in them.
FLOATING = """
import math, signal, sys, threading
enough, results = [], set()
signal.signal(signal.SIGTERM, lambda number, frame: enough.append(number))
def compute():
    x = 0.5
    for number in range(3000):
        x = math.fsum((math.sin(x) * 3.7, x * 0.25, float(number) / 7.0)) % 1.0
    return x
def work():
    while not enough:
        results.add(compute())
threads = [threading.Thread(target=work) for _ in range(3)]
for thread in threads:
    thread.start()
print("ready", flush=True)
while not enough:
    results.add(compute())
for thread in threads:
    thread.join()
print(len(results) == 1, flush=True)
sys.exit(7)
"""
BLOCKING_SIGNALS = """
import os, signal, sys
enough = False
def end(number, frame):
    global enough
    enough = True
signal.signal(signal.SIGTERM, end)
signal.pthread_sigmask(signal.SIG_BLOCK, signal.valid_signals() - {signal.SIGTERM})
blocked = signal.pthread_sigmask(signal.SIG_BLOCK, ())
print("ready", flush=True)
count = 0
while not enough:
    count += 1  # where it is stopped, it has often to be passed over
print(signal.pthread_sigmask(signal.SIG_BLOCK, ()) == blocked, flush=True)
sys.exit(7)
"""


@by_ptrace_only
def test_a_thread_of_another_interpreter_goes_on_and_the_first_is_waited_for(running):
    program = running("""
        import os, signal, sys, threading
        try:
            import _interpreters as interpreters
        except ImportError:
            import _xxsubinterpreters as interpreters
        enough = []
        signal.signal(signal.SIGTERM, lambda number, frame: enough.append(number))
        other = interpreters.create()
        work = "import os, time\\nend_s = time.monotonic() + 3\\nwhile time.monotonic() < end_s: os.stat('/')"
        thread = threading.Thread(target=interpreters.run_string, args=(other, work))
        thread.start()
        print("ready", flush=True)
        thread.join()
        while not enough:
            os.stat("/")
        print(True, flush=True)
        sys.exit(7)
    """)

    path = program.attach()
    until_recorded(path, "os.stat")

    assert program.end() == (7, "True\n", "")


@by_ptrace_only
@pytest.mark.parametrize("times", [5, pytest.param(300, marks=[pytest.mark.slow, pytest.mark.reach])])
@pytest.mark.parametrize(
    "source",
    [
        pytest.param(EIGHT_THREADS, id="eight threads"),
        pytest.param(SIGNALLED, id="signalled"),
        pytest.param(FORKING, id="forking"),
        pytest.param(SHORT_THREADS, id="short threads"),
        pytest.param(FLOATING, id="floating"),
        pytest.param(BLOCKING_SIGNALS, id="blocking signals"),
        pytest.param(COMPUTING, id="computing"),
    ],
)
def test_a_program_does_the_same_however_often_it_is_stopped(source, times, running):
    program, what, stills_ms = running(source), code("end", ()), []

    for _ in range(times):
        answer, still_ns = by_ptrace(Tracee(program.pid), what, PATIENCE_S)
        stills_ms.append(still_ns / 1e6)
        assert answer == {"why": "is not recorded"}
    print(f"stood still: {sorted(stills_ms)[times // 2]:.1f} ms, at most {max(stills_ms):.1f} ms")

    assert program.end() == (7, "True\n", "")


@by_ptrace_only
def test_a_program_that_is_stopped_meanwhile_stays_so_until_somebody_continues_it(running):
    program = running("""
        import sys
        print("ready", flush=True)
        sys.exit(len(sys.stdin.readline()))
    """)
    status = Path(f"/proc/{program.pid}/status")
    words = [sys.executable, "-m", "interpose", "attach", str(program.pid), "--wait", "1"]
    attaching = subprocess.Popen(words, env=environment(), stderr=subprocess.PIPE, text=True)
    until(lambda: "TracerPid:\t0\n" not in status.read_text())
    program.process.send_signal(signal.SIGSTOP)
    _, told = attaching.communicate(timeout=PATIENCE_S)
    until(lambda: "State:\tT" in status.read_text())
    program.process.send_signal(signal.SIGCONT)
    out, errors = program.process.communicate("123\n", timeout=PATIENCE_S)

    assert told.startswith(f"interpose: {program.pid}: no thread of it came to a place")
    assert (program.process.returncode, out, errors) == (4, "", "")


@by_ptrace_only
def test_a_program_with_a_shadow_stack_is_refused(running, monkeypatch):
    program = running(BUSY)
    tracee = Tracee(program.pid)
    monkeypatch.setattr(tracee, "_status", lambda: {"x86_Thread_features": "shstk"})

    with pytest.raises(CannotAttach, match=f"^{program.pid}: has a shadow stack"):
        by_ptrace(tracee, code("end", ()), 1.0)


def test_registers_are_read_and_written_in_the_size_that_the_kernel_gives(monkeypatch):
    """As Linux does it where the state of AMX makes the set longer than any that was there before."""
    kept = bytes(number % 251 for number in range(11_008))

    def kernel(what, thread, address, data):
        vector = ptrace._Vector.from_address(data)
        if what == ptrace._GET_SET:
            vector.size_bytes = min(vector.size_bytes, len(kept))
            ctypes.memmove(vector.address, kept, vector.size_bytes)
            return 0
        assert ctypes.string_at(vector.address, vector.size_bytes) == kept
        ctypes.set_errno(0 if vector.size_bytes == len(kept) else errno.EFAULT)
        return 0 if vector.size_bytes == len(kept) else -1

    monkeypatch.setattr(ptrace, "_ptrace", kernel)

    assert ptrace.read_registers(1, 0x202) == kept
    ptrace.write_registers(1, 0x202, kept)


@pytest.mark.skipif(platform.machine() != "x86_64", reason="other machines have another set")
def test_the_extended_state_of_this_processor_is_put_back_as_it_was(running):
    program = running(BUSY)
    script = f"""
        import os
        from interpose.attach import ptrace
        ptrace.request(ptrace.SEIZE, {program.pid})
        ptrace.request(ptrace.INTERRUPT, {program.pid})
        os.waitpid({program.pid}, 0x40000000)
        before = ptrace.read_registers({program.pid}, 0x202)
        ptrace.write_registers({program.pid}, 0x202, before)
        assert ptrace.read_registers({program.pid}, 0x202) == before
        print(len(before))
    """

    done = subprocess.run([sys.executable, "-c", textwrap.dedent(script)], capture_output=True, text=True)

    assert (done.stderr, int(done.stdout) >= 576) == ("", True)
    assert program.end() == (7, "True\n", "")


def test_another_users_program_is_refused(running, monkeypatch):
    program = running(BUSY)
    monkeypatch.setattr(os, "geteuid", lambda: os.stat(f"/proc/{program.pid}").st_uid + 1)

    with pytest.raises(CannotAttach, match=rf"{program.pid}: is .*'s; only they, or root, can attach to it"):
        Tracee(program.pid)


def test_another_python_is_refused(running, monkeypatch):
    program = running(BUSY)
    monkeypatch.setattr(sys, "version_info", (3, 99, 0))

    with pytest.raises(CannotAttach, match=r"and this interpose is installed for 3\.99: use one that is"):
        Tracee(program.pid)


def test_code_that_others_could_have_changed_is_refused():
    with pytest.raises(CannotAttach, match="is not only root's and 1's user's to change"):
        mode = os.stat(os.path.dirname(__file__)).st_uid
        refuse_what_others_could_change(1, 12345, 12345) if mode else _refuse_writable_by_all()


def _refuse_writable_by_all() -> None:
    import interpose

    path = os.path.join(os.path.dirname(interpose.__file__), "errors.py")
    before = os.stat(path).st_mode
    os.chmod(path, before | 0o002)
    try:
        refuse_what_others_could_change(1, os.getuid(), os.getgid())
    finally:
        os.chmod(path, before)


def test_lines_are_not_recorded_of_a_program_that_runs_already(interpose):
    done = interpose("attach", "1", variables={"INTERPOSE": "lines"})

    assert done.returncode == 2
    assert "attach records calls, native calls, the profile and the heap" in done.stderr


def test_how_lines_are_to_be_recorded_has_no_meaning_for_a_program_that_runs_already(interpose):
    done = interpose("attach", "1", "--lines", "shop:*")

    assert done.returncode == 2
    assert done.stderr == (
        "interpose: --lines: attach records calls, native calls, the profile and the heap; lines and coverage are"
        " recorded of a program from its beginning on\n"
    )


@pytest.mark.parametrize("kind", ["SystemExit", "LookupError"])
def test_an_exception_of_a_handler_of_the_programs_is_raised_again(kind):
    source = textwrap.dedent(f"""
        import sys, types
        def handler():
            raise {kind}(3)
        sys.modules["_imp"] = types.SimpleNamespace(lock_held=handler)
        names = {{}}
        exec(sys.stdin.read(), names)
        assert "{kind}" in names["answer"]
        import ctypes, threading
        here = ctypes.c_ulong(threading.get_ident())
        try:
            ctypes.pythonapi.PyThreadState_SetAsyncExc(here, ctypes.py_object(names["raised"]))
            for _ in range(1000):
                pass
        except {kind} as raised:
            sys.exit(raised.args[0] + 1)
    """)

    text = code("begin", ({},)).text
    done = subprocess.run([sys.executable, "-c", source], input=text, text=True, timeout=PATIENCE_S)

    assert done.returncode == 4


def test_somebody_who_imports_is_waited_for():
    names: dict[str, object] = {}
    import _imp

    _imp.acquire_lock()
    try:
        exec(code("begin", ({},)).text, names)
    finally:
        _imp.release_lock()

    assert names["answer"] == "{}"
    assert "raised" not in names


# A program into which the code comes as by attaching, with what goes with it; what it says of that is not ours to show.
REACHED = """
import json, sys
codes = [(start, bundle.encode("latin-1")) for start, bundle in json.load(sys.stdin)]
def run(start, bundle):
    names = {"bundle": memoryview(bundle)}
    exec(start, names)
    return names["answer"]
"""
REACHING = """
import json, sys
from interpose.attach.code import code
begin = code("begin", ({"INTERPOSE": "1", "INTERPOSE_DIR": sys.argv[1], "INTERPOSE_NAME": "t"},))
print(json.dumps([(each.start, each.bundle.decode("latin-1")) for each in (begin, code("end", ()))]))
"""


def reached(directory: Path, source: str, *options: str) -> list:
    """What a program says into which the code to begin and to end a recording came, as `codes`."""

    def run(*words: str, given: str) -> str:
        done = subprocess.run(
            [sys.executable, *words], input=given, text=True, capture_output=True, cwd=directory, env=environment()
        )
        assert (done.returncode, done.stderr) == (0, "")
        return done.stdout

    given = run("-c", REACHING, str(directory), given="")
    return json.loads(run(*options, "-c", REACHED + textwrap.dedent(source), given=given))


def test_what_recording_takes_comes_with_the_code_and_is_read_from_no_file(tmp_path):
    answer, opened, loaded, file, finders = reached(
        tmp_path,
        """
        opened = []
        sys.addaudithook(lambda event, what: opened.append(str(what[0])) if event == "open" else None)
        answer = run(*codes[0])
        ours = sys.modules["interpose"]
        print(json.dumps([answer, opened, ours.__loader__.path, ours.__file__, len(sys.meta_path)]))
        """,
        "-S",
    )

    assert "experiment" in answer
    assert not [path for path in opened if path.endswith((".py", ".pyc")) and "interpose" in path]
    assert loaded == file
    assert finders == 3


@pytest.mark.parametrize("sort", ["Exception", "FileNotFoundError"])
def test_where_a_handler_of_the_programs_raises_meanwhile_it_is_told_what_has_become_of_it(sort, tmp_path):
    told = reached(
        tmp_path,
        """
        import ast, os
        class Enough(SORT):
            pass
        def is_recorded():
            laid_by = vars(sys.modules.get("interpose", sys)).get("_laid_by", {})
            shims = sys.modules.get("interpose.timing.shims") or laid_by.get("interpose.timing.shims")
            return shims is not None and shims.is_recording()
        def attempt(code, at):
            seen = 0
            def look(frame, event, argument):
                nonlocal seen
                if frame.f_code.co_filename != "<string>" and "interpose" not in frame.f_code.co_filename:
                    return None
                seen += event == "line"
                if event == "line" and seen == at:
                    sys.settrace(None)
                    raise Enough('Enough')
                return look
            sys.settrace(look)
            try:
                answer = run(*code)
            finally:
                sys.settrace(None)
            return seen, ast.literal_eval(answer)
        run(*codes[0])
        run(*codes[1])
        told = []
        for code, other in (codes, codes[::-1]):
            lines, _ = attempt(code, 0)
            run(*other)
            for at in [*range(lines - 60, lines - 12), *range(20, lines - 60, lines // 60)]:
                was, (_, answer) = is_recorded(), attempt(code, at)
                told.append([was, answer, is_recorded(), len([name for name in os.listdir() if name.endswith(".er")])])
                if is_recorded() != was:
                    run(*other)
                assert is_recorded() == was, answer
        print(json.dumps(told))
        """.replace("SORT", sort),
    )

    begun = [(answer, is_recorded) for was, answer, is_recorded, _ in told if not was]
    ended = [(answer, is_recorded) for was, answer, is_recorded, _ in told if was]
    assert all(("experiment" in answer) == is_recorded for answer, is_recorded in begun)
    assert all(("left" in answer) == (not is_recorded) for answer, is_recorded in ended)
    whys = [answer.get("raised", answer.get("why", "")) for answer, _ in (*begun, *ended)]
    assert all("Enough" in why for why in whys) or sort != "Exception"  # of files ours pass over what is missing
    assert {is_recorded for _, is_recorded in begun} == {is_recorded for _, is_recorded in ended} == {False, True}
    assert sum(is_recorded for _, is_recorded in begun) + 2 + len(ended) >= told[-1][3]


def test_where_compiled_code_is_of_another_sort_it_is_compiled_in_the_program(tmp_path):
    answers = reached(
        tmp_path,
        """
        sys.modules["_frozen_importlib_external"].MAGIC_NUMBER = b"else"
        print(json.dumps([run(*code) for code in codes]))
        """,
        "-B",
    )

    assert "experiment" in answers[0]
    assert answers[1] == "{'left': 0}"


def test_attaching_again_takes_little_memory_at_any_time(tmp_path):
    peaks = reached(
        tmp_path,
        """
        import tracemalloc
        many = [[] for _ in range(300_000)]
        for code in codes * 2:
            run(*code)
        tracemalloc.start()
        peaks = []
        for code in codes:
            before, _ = tracemalloc.get_traced_memory()
            tracemalloc.reset_peak()
            assert "why" not in run(*code)
            peaks.append(tracemalloc.get_traced_memory()[1] - before)
        print(json.dumps(peaks))
        """,
    )

    begins, ends = peaks
    assert begins < 384 << 10  # 325 to 345 kilobytes; more than 900, had it all to be read and compiled again
    assert ends < 128 << 10


def test_symbols_are_where_a_file_says(tmp_path):
    found = symbols(f"/proc/{os.getpid()}/exe", ["main", "no_such_symbol"])
    broken = tmp_path / "broken"
    broken.write_bytes(b"\x7fELF\x02\x01" + bytes(40) + b"\xff" * 200)
    (tmp_path / "empty").touch()

    assert "no_such_symbol" not in found
    for name in ("broken", "empty"):
        with pytest.raises(NotELF):
            symbols(str(tmp_path / name), ["main"])
