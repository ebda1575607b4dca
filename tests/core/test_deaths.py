"""Whatever a program dies of: its exit is as without us, what it had completed is there, what it was in is told."""

from __future__ import annotations

import os
import random
import re
import shutil
import signal
import subprocess
import sys
import time
from collections import Counter

import pytest
from machine import limits_memory, small_disk
from tracing import Traced, environment, events_of, run_in, write_program

from interpose.analysis.analysis import Analysis
from interpose.analysis.calls.profile import profile
from interpose.analysis.findings.engine import found_in
from interpose.analysis.findings.survey import Survey
from interpose.analysis.recording.ending import ending, recording_stopped
from interpose.analysis.transactions.response_times import transactions
from interpose.experiments.model.experiment import Experiment
from interpose.reports.formats.colour import Paint
from interpose.reports.screen.screen import Screen
from interpose.reports.screen.summary import summary

BUSY = """
import ctypes, faulthandler, os, resource, signal, sqlite3, sys, threading, time
nothing = os.open(os.devnull, os.O_WRONLY)
for _ in range(1000):
    os.write(nothing, b"x")
"""

WAYS = {
    "os._exit": "os._exit(4)",
    "an uncaught exception": "raise ValueError('x')",
    "sys.exit in a thread": "thread = threading.Thread(target=sys.exit, args=(3,)); thread.start(); thread.join()",
    "an uncaught exception in a thread": "other = threading.Thread(target=int, args='x'); other.start(); other.join()",
    "SIGTERM": "os.kill(os.getpid(), signal.SIGTERM)",
    "SIGKILL": "os.kill(os.getpid(), signal.SIGKILL)",
    "SIGSEGV": "ctypes.string_at(0)",
    "abort": "os.abort()",
    "faulthandler": "faulthandler.enable(); faulthandler._sigsegv()",
    "a fatal error": "faulthandler._fatal_error_c_thread()",
    "MemoryError": "bytes(1 << 60)",
    "no more address space": """
resource.setrlimit(resource.RLIMIT_AS, (1 << 29, resource.RLIM_INFINITY))
kept = []
try:
    while True:
        kept.append(bytes(1 << 20))
finally:
    kept.clear()  # what is printed of it needs room
""",
    "MemoryError that is caught": """
resource.setrlimit(resource.RLIMIT_AS, (1 << 29, resource.RLIM_INFINITY))
kept = []
try:
    while True:
        kept.append(bytes(1 << 16))
except MemoryError:
    for _ in range(3000):
        os.write(nothing, b"y")
    print("went on")
""",
    "a file grown past its limit": """
resource.setrlimit(resource.RLIMIT_FSIZE, (1 << 20, 1 << 20))
open("large", "wb").write(bytes(1 << 21))
""",
    "SIGXFSZ": """
resource.setrlimit(resource.RLIMIT_FSIZE, (1 << 20, 1 << 20))
signal.signal(signal.SIGXFSZ, signal.SIG_DFL)
open("large", "wb").write(bytes(1 << 21))
""",
    "closerange of all": "os.closerange(0, 65536); os._exit(7)",
    "close_range of all": "ctypes.CDLL(None).syscall(436, 0, ctypes.c_uint(-1).value, 0); os._exit(8)",
    "exec": "os.execv('/bin/sh', ['sh', '-c', 'exit 9'])",
    "a daemon": """
reader, writer = os.pipe()
if os.fork() == 0:
    os.setsid()
    if os.fork() == 0:
        os.chdir("/")
        os.umask(0)
        os.dup2(writer, 0)
        os.closerange(1, 65536)
        nothing = os.open(os.devnull, os.O_WRONLY)
        for _ in range(1000):
            os.write(nothing, b"x")
        os.write(0, b"done")
        os._exit(0)
    os._exit(0)
os.close(writer)
os.wait()
print(os.read(reader, 9), os.read(reader, 9))
""",
}


def run(program, words=(), **variables):
    """The program's outcome: exit code, standard output and error, without what differs between any two runs."""
    done = run_in(
        program.parent,
        [sys.executable, *words, str(program)],
        XDG_STATE_HOME=str(program.parent / "state"),
        **variables,
    )
    return done, (done.returncode, done.stdout, re.sub(r"0x[0-9a-f]{8,}", "?", done.stderr))


def screen(experiment):
    """The first screen, in one text."""
    made = profile(Analysis(experiment), "site")
    return "\n".join(summary(Screen(made, 2e9, 200, Paint(False))))


@pytest.mark.parametrize("way", WAYS)
def test_what_was_completed_is_there_and_the_outcome_is_as_without_us(way, tmp_path):
    if "RLIMIT_AS" in WAYS[way] and not limits_memory():
        pytest.skip("RLIMIT_AS is ignored here")
    program = write_program(tmp_path, BUSY + WAYS[way])
    _, plain = run(program)

    done, outcome = run(program, INTERPOSE="1")
    founder = Traced(tmp_path, done).experiment.founder

    assert without_extension_modules(outcome) == without_extension_modules(plain)
    assert sum(1 for _ in events_of(founder, "os.write")) >= 1000
    assert founder.damages.found == []


def without_extension_modules(outcome):
    """faulthandler names the extension modules that are loaded, and ours is one."""
    code, out, err = outcome
    return code, out, re.sub(r"\n+Extension modules: .*", "", err)


def test_a_daemon_that_closed_everything_is_recorded_to_its_end(tmp_path):
    program = write_program(tmp_path, BUSY + WAYS["a daemon"])

    done, _ = run(program, INTERPOSE="1")
    daemon = next(each for each in Traced(tmp_path, done).experiment.processes if each.lineage == "_f1_f1")

    assert Counter(daemon.intrinsic(each.intrinsic).name for each in events_of(daemon))["os.write"] == 1001
    assert ending(daemon).state == "exit"


# What it computed, as it says itself.
COMPUTING = """
import ctypes, os, signal, time
print(time.thread_time_ns(), flush=True)
while time.thread_time() < 0.3:
    sum(range(1000))
os.stat("/")
print(time.thread_time_ns(), flush=True)
"""


@pytest.mark.parametrize(
    "end",
    ["os.kill(os.getpid(), signal.SIGKILL)", "getattr(ctypes.PyDLL(None), 'raise')(9)"],
    ids=["in a call", "between calls"],
)
def test_what_a_killed_thread_computed_before_its_last_call_is_in_its_account(tmp_path, end):
    done, _ = run(write_program(tmp_path, COMPUTING + end), INTERPOSE="1", INTERPOSE_SAMPLE="off")
    analysis = Analysis(Traced(tmp_path, done).experiment)

    ((share,),) = (account.threads.values() for account in analysis.accounts)
    at_its_first_line_ns, computed_ns = map(int, done.stdout.split())
    assert done.returncode == -signal.SIGKILL
    assert computed_ns - at_its_first_line_ns - 5e6 < share.cpu_ns < computed_ns + 5e6
    assert share.program_cpu_ns > 200e6
    assert sum(each.cpu_ns for each in transactions(analysis).rows) == share.cpu_ns


KILLED_CHILD = """
import os, resource, signal, time
child = os.fork()
if not child:
    os.stat("/")
    while True:
        sum(range(1000))
time.sleep(0.5)
os.kill(child, signal.SIGKILL)
os.waitpid(child, 0)
print(int(resource.getrusage(resource.RUSAGE_CHILDREN).ru_utime * 1e9))
"""


def test_what_a_killed_child_computed_is_known_by_its_parent(tmp_path):
    done, _ = run(write_program(tmp_path, KILLED_CHILD), INTERPOSE="1")
    analysis = Analysis(Traced(tmp_path, done).experiment)

    _, child = analysis.accounts
    (share,) = child.threads.values()
    assert abs(share.cpu_ns - int(done.stdout)) < 50e6
    assert share.program_cpu_ns > 0.8 * int(done.stdout)


KILLED_THREADS = """
import os, signal, sys, threading, time, zlib
child = os.fork()
if not child:
    def compress(data, times=10**9):
        os.stat("/")
        for _ in range(times):
            zlib.compress(data, 9)  # longer than interpose waits for the interpreter lock
    for _ in range(2):
        threading.Thread(target=compress, args=(bytes(range(256)) * 40_000,), daemon=True).start()
    time.sleep(1000)
time.sleep(1)
os.kill(child, signal.SIGKILL)
_, _, used = os.wait4(child, 0)
print(int((used.ru_utime + used.ru_stime) * 1e9))
"""


@pytest.mark.long
def test_what_threads_of_a_killed_child_computed_is_known_by_its_parent(tmp_path):
    done, _ = run(write_program(tmp_path, KILLED_THREADS), INTERPOSE="1")
    _, child = Analysis(Traced(tmp_path, done).experiment).accounts

    main, *others = child.threads.values()
    assert abs(sum(share.cpu_ns for share in child.threads.values()) - int(done.stdout)) < 0.1 * int(done.stdout)
    assert all(share.program_cpu_ns > 0.2 * int(done.stdout) for share in others)
    assert main.program_cpu_ns < 0.2 * int(done.stdout)


BEARING = """
import os
print(flush=True)
while True:
    children = [child for _ in range(3) if (child := os.fork()) or os.stat("/") and os._exit(0)]
    for child in children:
        os.waitpid(child, 0)
"""


@pytest.mark.parametrize("files", [[], ["events"], ["events", "strings"], ["events", "strings", "threads", "map.xml"]])
def test_a_descendant_that_had_not_begun_when_it_was_killed_is_no_damage(tmp_path, interpose_here, files):
    done, _ = run(write_program(tmp_path, "import os\nos.stat('/')"), INTERPOSE="1")
    founder = Traced(tmp_path, done).experiment.directory
    unborn = os.path.join(founder, "_f1.er")
    os.mkdir(unborn)
    for name in files:
        shutil.copy(os.path.join(founder, name), unborn)

    shown = interpose_here("report", founder)

    assert (shown.returncode, shown.stderr) == (0, "")
    assert "   complete\n" in shown.stdout


def test_a_descendant_that_recorded_and_has_no_log_is_damage(tmp_path, interpose_here):
    done, _ = run(write_program(tmp_path, BUSY), INTERPOSE="1")
    founder = Traced(tmp_path, done).experiment.directory
    os.mkdir(os.path.join(founder, "_f1.er"))
    shutil.copy(os.path.join(founder, "events"), os.path.join(founder, "_f1.er"))

    shown = interpose_here("report", founder)

    assert shown.returncode == 3
    assert "_f1.er/log.xml" in shown.stderr


@pytest.mark.long
def test_a_kill_while_children_are_born_damages_nothing(tmp_path):
    program, damages = write_program(tmp_path, BEARING), []
    for attempt in range(10):
        place = tmp_path / str(attempt)
        place.mkdir()
        variables = environment(INTERPOSE="1", XDG_STATE_HOME=str(tmp_path / "state"))
        with subprocess.Popen(
            [sys.executable, str(program)], cwd=place, env=variables, stdout=subprocess.PIPE, start_new_session=True
        ) as busy:
            busy.stdout.readline()
            time.sleep(random.uniform(0, 0.05))
            os.killpg(busy.pid, signal.SIGKILL)
        experiment = Experiment(str(place / "test.1.er"))
        for process in experiment.processes:
            read = (process.threads, process.overview, process.children, list(process.strings()), events_of(process))
            assert list(read[-1]) is not None
        damages += experiment.damages.found

    assert damages == []


@pytest.mark.skipif(not shutil.which("strace"), reason="strace is not installed")
@pytest.mark.parametrize("call", ["fallocate:error=EINTR", "writev:error=EINTR:when=1+2"])
def test_a_signal_that_interrupts_the_recorder_keeps_nothing_from_being_recorded(tmp_path, call):
    program = write_program(tmp_path, BUSY)
    words = ["strace", "-qq", "-o", "/dev/null", "-e", f"inject={call}", sys.executable, str(program)]

    done = run_in(tmp_path, words, INTERPOSE="1", XDG_STATE_HOME=str(tmp_path / "state"))

    founder = Traced(tmp_path, done).experiment.founder
    assert (done.returncode, done.stderr) == (0, "")
    assert sum(1 for _ in events_of(founder, "os.write")) >= 1000
    assert recording_stopped(founder) is None
    assert founder.damages.found == []


DYING = """
import os, signal, sqlite3, sys
connection = sqlite3.connect(":memory:")
connection.create_function("die", 0, lambda: os.kill(os.getpid(), signal.SIGKILL))
connection.cursor().execute("select die()")
"""


def test_what_was_in_progress_is_told_with_its_time_where_run_saw_the_death(tmp_path):
    program = write_program(tmp_path, DYING)

    done, _ = run(program, ["-m", "interpose", "run"])
    shown = screen(Traced(tmp_path, done).experiment)

    assert done.returncode == -9
    assert re.search(r" in progress  sqlite3\.Cursor\.execute at program\.py:5 for [\d.]+ .?s when killed\n", shown)
    assert "(estimated)" not in shown and "in all of them are estimated" not in shown


def test_what_was_in_progress_is_told_with_its_time_where_a_parent_waited(tmp_path):
    (tmp_path / "dying.py").write_text(DYING)
    program = write_program(tmp_path, "import subprocess, sys; print(subprocess.call([sys.executable, 'dying.py']))")

    done, outcome = run(program, INTERPOSE="1")
    experiment = Traced(tmp_path, done).experiment
    shown = screen(experiment)

    assert outcome == (0, "-9\n", "")
    assert ending(experiment.processes[1]).signal == 9
    assert re.search(r" in progress  sqlite3\.Cursor\.execute at dying\.py:5 for [\d.]+ .?s when killed\n", shown)
    assert "(estimated)" not in shown and "in all of them are estimated" not in shown


WAITED_LATE = """
import os, signal, sys, time
begun_ns = time.monotonic_ns()
child = os.fork()
if not child:
    {child}
{parent}
os.waitpid(child, 0)
print(lived_ns)
"""
KILLS_ITSELF = ("time.sleep(0.1); os.kill(os.getpid(), signal.SIGKILL)", "lived_ns = 500_000_000; time.sleep(2)")
ASKS_A_DATABASE = """import sqlite3
    asks = sqlite3.connect(":memory:").execute
    while True:
        asks("select 1").fetchone()"""
IS_KILLED = (
    ASKS_A_DATABASE,
    "time.sleep(0.5); os.kill(child, signal.SIGKILL); lived_ns = time.monotonic_ns() - begun_ns; time.sleep(2)",
)


@pytest.mark.long
@pytest.mark.alone
@pytest.mark.parametrize(("child", "parent"), [KILLS_ITSELF, IS_KILLED])
def test_a_call_in_which_a_process_was_killed_counts_until_the_last_sign_of_life(tmp_path, child, parent):
    program = write_program(tmp_path, WAITED_LATE.format(child=child, parent=parent))

    done, _ = run(program, INTERPOSE="1")
    experiment = Traced(tmp_path, done).experiment
    survey = Survey(Analysis(experiment))
    of_child = [each for each in survey.calls if {number for number, _ in each.threads} == {1}]
    least_ns = 100_000_000 if child == KILLS_ITSELF[0] else 1.8 * int(done.stdout)  # of both, besides two seconds

    assert (done.returncode, done.stderr, len(experiment.processes)) == (0, "", 2)
    assert sum(each.wall_ns for each in of_child) <= int(done.stdout)
    assert survey.times.whole_ns > 2_000_000_000 + least_ns
    assert survey.times.whole_ns < 2 * int(done.stdout) + 2_500_000_000
    assert {"child processes", "unexplained wait"}.isdisjoint(each.rule for each in found_in(survey))
    if "os.kill(os.getpid()" in child:
        shown = screen(experiment)
        assert re.search(r" in progress  os\.kill at program\.py:6 for \S+ \S?s or more when killed\n", shown)


def test_a_call_in_which_a_process_was_killed_counts_wholly_if_its_parent_waited_for_it(tmp_path):
    child, parent = "signal.alarm(1); time.sleep(9)", "lived_ns = 0"
    program = write_program(tmp_path, WAITED_LATE.format(child=child, parent=parent))

    done, _ = run(program, INTERPOSE="1")
    experiment = Traced(tmp_path, done).experiment
    (slept,) = [each for each in Survey(Analysis(experiment)).calls if each.intrinsic == "time.sleep"]

    assert (done.returncode, done.stderr) == (0, "")
    assert 900_000_000 < slept.wall_ns < 1_500_000_000
    assert re.search(r" in progress  time\.sleep at program\.py:6 for \d\S+ \S?s when killed\n", screen(experiment))


TWO_CHILDREN = """
import multiprocessing, os, signal, subprocess, sys, threading, time

def lives(seconds):
    time.sleep(seconds)
def is_killed():
    begun_ns = time.monotonic_ns()
    time.sleep(0.1)
    print(time.monotonic_ns() - begun_ns, flush=True)
    threading.Timer(0.2, os.kill, [os.getpid(), signal.SIGKILL]).start()
    time.sleep(100)

if sys.argv[1:] == ["killed"]:
    is_killed()
elif sys.argv[1:]:
    lives(1.5)
elif __name__ == "__main__":
    {waits}
"""
WAITS_IN_TURN = {
    "Popen.wait": """
    children = [subprocess.Popen([sys.executable, __file__, which]) for which in ("other", "killed")]
    for each in children: each.wait()""",
    "Process.join": """
    fork = multiprocessing.get_context("fork").Process
    children = [fork(target=lives, args=(1.5,)), fork(target=is_killed)]
    for each in children: each.start()
    for each in children: each.join()""",
    "with a time limit": """
    children = [subprocess.Popen([sys.executable, __file__, which]) for which in ("other", "killed")]
    try:
        children[0].wait(1)
    except subprocess.TimeoutExpired:
        children[1].poll()
    children[0].wait()""",
    "join with a time limit": """
    fork = multiprocessing.get_context("fork").Process
    children = [fork(target=lives, args=(1.5,)), fork(target=is_killed)]
    for each in children: each.start()
    children[0].join(1)
    children[1].is_alive()
    children[0].join()""",
}


@pytest.mark.parametrize("way", WAITS_IN_TURN)
def test_a_wait_for_another_child_does_not_see_the_end_of_the_killed_one(tmp_path, way):
    program = write_program(tmp_path, TWO_CHILDREN.replace("{waits}", WAITS_IN_TURN[way].strip()))

    done, _ = run(program, INTERPOSE="1")
    slept_ns = Counter()
    for each in Survey(Analysis(Traced(tmp_path, done).experiment)).calls:
        for number in {number for number, _ in each.threads if each.intrinsic == "time.sleep"}:
            slept_ns[number] += each.wall_ns

    assert (done.returncode, done.stderr, len(slept_ns)) == (0, "", 2)
    assert max(slept_ns.values()) >= 1_500_000_000
    assert 0.9 * int(done.stdout) < min(slept_ns.values()) < 700_000_000


WAITS_WHILE_IT_DIES = {
    "os.wait": "os.wait(); os.wait()",
    "os.waitpid": "os.waitpid(killed, 0); os.waitpid(other, 0)",
}


@pytest.mark.parametrize("way", WAITS_WHILE_IT_DIES)
def test_a_wait_during_which_a_killed_child_ended_saw_its_end(tmp_path, way):
    program = write_program(tmp_path, f"""
import os, signal, time
other = os.fork()
if not other:
    time.sleep(0.9)
    os._exit(0)
killed = os.fork()
if not killed:
    signal.setitimer(signal.ITIMER_REAL, 0.5)
    time.sleep(100)
begun_ns = time.monotonic_ns()
{WAITS_WHILE_IT_DIES[way]}
""")

    done, _ = run(program, INTERPOSE="1")
    calls = Survey(Analysis(Traced(tmp_path, done).experiment)).calls
    slept = [each.wall_ns for each in calls if each.intrinsic == "time.sleep"]

    assert (done.returncode, done.stderr) == (0, "")
    assert 400_000_000 < min(slept) < 800_000_000


def test_where_nobody_saw_the_death_it_says_until_when_it_is_known(tmp_path):
    program = write_program(tmp_path, DYING)

    done, _ = run(program, INTERPOSE="1")
    shown = screen(Traced(tmp_path, done).experiment)

    assert re.search(r" in progress  sqlite3\.Cursor\.execute at program\.py:5 .*last seen\n", shown)


def test_an_exec_that_succeeded_is_not_in_progress(tmp_path):
    program = write_program(tmp_path, "import os; os.execv('/bin/true', ['true'])")

    done, _ = run(program, INTERPOSE="1")
    shown = screen(Traced(tmp_path, done).experiment)

    assert "became true by exec" in shown
    assert " in os.execv" not in shown


# --- a full disk

FILLS = """
import os, subprocess, threading, warnings
warnings.simplefilter("ignore")  # from 3.12 on, of forks where a thread is just ending
nothing = os.open(os.devnull, os.O_WRONLY)
def work():
    for _ in range(2000):
        os.write(nothing, b"x")
threads = [threading.Thread(target=work) for _ in range(2)]
for thread in threads: thread.start()
for thread in threads: thread.join()
if os.fork() == 0:
    work()
    os._exit(3)
print(os.waitstatus_to_exitcode(os.wait()[1]))
print(subprocess.call(["true"]))
"""


@pytest.mark.skipif(os.getuid() != 0, reason="only root mounts a small file system")
@pytest.mark.parametrize("size", ["64k", "256k", "1M"])
def test_a_full_disk_changes_nothing_for_the_program(tmp_path, size):
    program = write_program(tmp_path, FILLS)
    _, plain = run(program)
    with small_disk(tmp_path / "disk", size) as disk:
        _, outcome = run(program, INTERPOSE="1", INTERPOSE_RESERVE="off", INTERPOSE_DIR=str(disk))

    assert outcome == plain
