"""The monitor beside a real program: it compresses, it is not seen, and it may be killed at any moment."""

import json
import os
import random
import signal
import subprocess
import sys
import time
from collections import Counter
from pathlib import Path

import pytest
from machine import SECCOMP_TYPES
from tracing import environment, run_in, until, write_program

from interpose.analysis.consolidation.consolidate import consolidated
from interpose.analysis.consolidation.records import Records
from interpose.experiments.metadata.control import Control
from interpose.experiments.model.experiment import Experiment
from interpose.monitor import DETAILS_AT_MOST

MUCH = 260_000  # events that take more than what a monitor is started for

WORK = f"""
import json, os, sys
sink = os.open(os.devnull, os.O_WRONLY)
def work(calls={MUCH}):
    for _ in range(calls):
        os.write(sink, b"x")
"""


@pytest.fixture
def started(tmp_path):
    """Start a program under the tracer; its lines are read one at a time, and it ends with the test."""
    programs = []

    def start(source, *words, **variables):
        program = write_program(tmp_path, WORK + source)
        programs.append(
            subprocess.Popen(
                [sys.executable, *words, str(program)],
                cwd=tmp_path,
                env=environment(INTERPOSE="1", XDG_STATE_HOME=str(tmp_path / "state"), **variables),
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                text=True,
                start_new_session=True,  # nobody else is in it
            )
        )
        return programs[-1]

    yield start
    for program in programs:
        program.kill()
        program.communicate()


def experiment_in(directory: Path) -> Path:
    return directory / "test.1.er"


def monitor_of(directory: Path) -> int:
    return Control(Experiment(str(experiment_in(directory))).founder).read().monitor


def is_all_compressed(directory: Path) -> bool:
    return (experiment_in(directory) / "events").stat().st_size == 0


def counted(path: Path) -> tuple[int, int]:
    """The events that are there, and how many the threads say."""
    process = Experiment(str(path)).founder
    events = sum(sums.calls for sums in consolidated(process, ("intrinsic",)).sums().values())
    assert process.damages.found == []
    return events, sum(thread.record.recorded for thread in process.threads)


LOOKING = """
import signal
came = []
signal.signal(signal.SIGCHLD, lambda number, frame: came.append(number))

def seen():
    try:
        child = os.waitpid(-1, os.WNOHANG)
    except ChildProcessError:
        child = None
    children = []
    for task in os.listdir("/proc/self/task"):
        with open(f"/proc/self/task/{task}/children") as file:
            children += file.read().split()
    session = [name for name in os.listdir("/proc") if name.isdigit() and same_session(int(name))]
    return {
        "child": child,
        "children": children,
        "signals": came,
        "session": session,
        "descriptors": sorted(os.listdir("/proc/self/fd")),
        "mask": sorted(signal.pthread_sigmask(signal.SIG_BLOCK, [])),
        "group": os.getpgrp(),
        "variables": sorted(os.environ),
    }

def same_session(pid):
    try:
        return os.getsid(pid) == os.getsid(0) and os.getpgid(pid) == os.getpgrp() and pid != os.getppid()
    except ProcessLookupError:
        return False

before = seen()
work()
print(json.dumps([before, seen()]), flush=True)
sys.stdin.readline()
print(json.dumps(seen()), flush=True)
"""


def test_the_program_does_not_see_its_monitor_begin_work_or_end(started, tmp_path):
    program = started(LOOKING)
    before, after = json.loads(program.stdout.readline())
    monitor = until(lambda: monitor_of(tmp_path))
    os.kill(monitor, signal.SIGKILL)
    until(lambda: not os.path.exists(f"/proc/{monitor}"))
    program.stdin.write("\n")
    program.stdin.flush()
    at_the_end = json.loads(program.stdout.readline())

    assert before == after == at_the_end
    assert (before["child"], before["children"], before["signals"]) == (None, [], [])


@pytest.mark.long
def test_the_monitor_has_nothing_of_the_program(started, tmp_path):
    program = started("work(); print('done', flush=True); sys.stdin.readline()", SECRET="word", LC_ALL="C.UTF-8")
    program.stdout.readline()
    monitor = until(lambda: monitor_of(tmp_path))
    place = Path("/proc", str(monitor))

    status = dict(line.split(":\t", 1) for line in (place / "status").read_text().splitlines() if ":\t" in line)
    files = {os.readlink(place / "fd" / number) for number in ("0", "1", "2")}
    others = {os.readlink(entry) for entry in (place / "fd").iterdir()} - files
    variables = (place / "environ").read_bytes().split(b"\0")

    assert files == {"/dev/null"}
    assert all(str(experiment_in(tmp_path)) in each for each in others)
    assert os.readlink(place / "cwd") == "/"
    assert os.getsid(monitor) == monitor != os.getsid(program.pid)
    assert int(status["PPid"]) != program.pid
    assert int(status["SigBlk"], 16) == 0
    assert os.getpriority(os.PRIO_PROCESS, monitor) >= 10
    assert variables == [b"LC_ALL=C.UTF-8", b""]
    assert not (Path("/proc", str(monitor), "maps").read_bytes().count(b"libinterpose"))


@pytest.mark.long
def test_all_is_compressed_and_the_monitor_ends_with_the_program(started, tmp_path):
    program = started("work(); print('done', flush=True); sys.stdin.readline()")
    program.stdout.readline()
    monitor = until(lambda: monitor_of(tmp_path))
    program.communicate("\n")

    until(lambda: is_all_compressed(tmp_path))
    until(lambda: not os.path.exists(f"/proc/{monitor}"))

    found, recorded = counted(experiment_in(tmp_path))
    assert program.returncode == 0
    assert found == recorded >= MUCH
    assert monitor_of(tmp_path) == 0
    stored = (experiment_in(tmp_path) / "events.zst").stat().st_size
    assert stored <= 0.15 * 88 * recorded


def test_a_program_that_records_little_gets_no_monitor(started, tmp_path):
    program = started("work(1000)")
    program.communicate()

    assert monitor_of(tmp_path) == 0
    assert not (experiment_in(tmp_path) / "events.zst").exists()


SUBREAPER = "import ctypes\nctypes.CDLL(None).prctl(36, 1, 0, 0, 0)\n"
SECCOMP = SECCOMP_TYPES + """
allow = Instruction(6, 0, 0, 0x7FFF0000)
assert libc.prctl(38, 1, 0, 0, 0) == 0
assert libc.prctl(22, 2, ctypes.byref(Filter(1, ctypes.pointer(allow)))) == 0
"""


@pytest.mark.parametrize("prepare", [SUBREAPER, SECCOMP], ids=["subreaper", "seccomp"])
def test_where_it_might_be_seen_or_must_not_be_started_there_is_none(started, tmp_path, prepare):
    program = started(prepare + "work()\nprint('done', flush=True)\nsys.stdin.readline()")
    program.stdout.readline()
    time.sleep(0.5)  # one that was started would have the lock by now

    assert monitor_of(tmp_path) == 0
    program.communicate("\n")
    assert program.returncode == 0
    found, recorded = counted(experiment_in(tmp_path))
    assert found == recorded >= MUCH


@pytest.mark.slow
def test_killed_again_and_again_nothing_is_lost_or_doubled(started, tmp_path):
    chance = random.Random(4)
    program = started("import select, time\nwhile not select.select([0], [], [], 0.2)[0]:\n    work(100_000)")
    killed = set()
    log = experiment_in(tmp_path) / "log.xml"
    until(lambda: log.exists() and log.stat().st_size)
    while len(killed) < 3:  # another one is called some seconds later
        time.sleep(chance.random() / 20)
        monitor = monitor_of(tmp_path)
        if monitor and monitor not in killed:
            os.kill(monitor, signal.SIGKILL)
            killed.add(monitor)
        assert program.poll() is None
    program.communicate("\n")

    found, recorded = counted(experiment_in(tmp_path))
    assert found == recorded >= 300_000


@pytest.mark.slow
@pytest.mark.reach
def test_a_process_that_becomes_another_program_is_compressed_whole(started, tmp_path):
    program = started(
        f"if sys.argv[1:]:\n    work(10)\nelse:\n    work()\n"
        f"    os.execv({sys.executable!r}, [{sys.executable!r}, sys.argv[0], 'again'])"
    )
    program.communicate()

    until(lambda: is_all_compressed(tmp_path))
    until(lambda: (experiment_in(tmp_path) / "_x1.er" / "events").stat().st_size == 0)
    for path in (experiment_in(tmp_path), experiment_in(tmp_path) / "_x1.er"):
        found, recorded = counted(path)
        assert found == recorded


# --- interpose run as the monitor


def run(tmp_path, source, *options):
    program = write_program(tmp_path, WORK + source)
    return run_in(
        tmp_path,
        [sys.executable, "-m", "interpose", "run", *options, "--", sys.executable, str(program)],
        XDG_STATE_HOME=str(tmp_path / "state"),
    )


def test_run_compresses_a_small_experiment_before_it_ends(tmp_path):
    done = run(tmp_path, "work(10); sys.exit(3)")

    assert (done.returncode, done.stdout, done.stderr) == (3, "", "")
    assert is_all_compressed(tmp_path)
    found, recorded = counted(experiment_in(tmp_path))
    assert found == recorded > 10


def test_run_compresses_while_the_program_runs_and_no_other_monitor_does(started, tmp_path):
    program = started(
        "work(); print(os.getppid(), flush=True); sys.stdin.readline()", "-m", "interpose", "run", "--"
    )
    watching = int(program.stdout.readline())

    assert until(lambda: monitor_of(tmp_path)) == watching
    until(lambda: (experiment_in(tmp_path) / "events").stat().st_blocks * 512 <= 2**20)
    program.communicate("\n")
    assert is_all_compressed(tmp_path)


def test_what_outlives_the_program_is_watched_by_a_process_of_its_own(tmp_path):
    done = run(
        tmp_path,
        "if os.fork() == 0:\n"
        "    os.close(1); os.close(2)\n"
        "    import time; time.sleep(1); work(1000)",
    )
    child = experiment_in(tmp_path) / "_f1.er"

    assert done.returncode == 0
    until(lambda: (child / "events").stat().st_size == 0 and (child / "events.zst").exists())
    found, recorded = counted(child)
    assert found == recorded > 1000


@pytest.mark.long
def test_few_details_are_kept_and_the_others_are_counted(tmp_path):
    done = run(
        tmp_path,
        f"for number in range({2 * DETAILS_AT_MOST}):\n"
        "    os.path.exists('/often'); os.path.exists(f'/nonexistent/{number}')",
        "--consolidate",
        "1",
    )
    founder = Experiment(str(experiment_in(tmp_path))).founder
    said, found = founder.consolidated
    calls = Counter()
    for record in Records(said.by, found).calls():
        calls[founder.string(record.key[said.by.index("detail")])] += record.sums.calls

    assert (done.returncode, done.stderr) == (0, "")
    assert calls["/often"] == 2 * DETAILS_AT_MOST
    assert calls["(other)"] >= DETAILS_AT_MOST
    assert len(calls) <= DETAILS_AT_MOST + 2
    assert calls.total() == sum(thread.record.recorded for thread in founder.threads)


def test_a_killed_program_is_compressed_whole(tmp_path):
    done = run(tmp_path, "work(5000); os.kill(os.getpid(), 9)")

    assert done.returncode == -9
    assert is_all_compressed(tmp_path)
    found, recorded = counted(experiment_in(tmp_path))
    assert found == recorded > 5000


def test_without_zstandard_run_records_says_so_and_leaves_it_as_it_is(tmp_path):
    (tmp_path / "zstandard.py").write_text("raise ImportError('not here')\n")
    program = write_program(tmp_path, WORK + "work(10)")
    done = run_in(
        tmp_path,
        [sys.executable, "-m", "interpose", "run", "--", sys.executable, str(program)],
        XDG_STATE_HOME=str(tmp_path / "state"),
        PYTHONPATH=str(tmp_path),
    )

    told = "interpose: nothing is compressed or sampled: not here (see: interpose doctor)\n"
    assert (done.returncode, done.stderr) == (0, told)
    assert not (experiment_in(tmp_path) / "events.zst").exists()
    found, recorded = counted(experiment_in(tmp_path))
    assert found == recorded > 10


def test_like_calls_are_put_together_while_the_program_runs_and_no_events_are_kept(started, tmp_path, own_environment):
    program = started(
        """
import threading
threads = [threading.Thread(target=work, args=(300_000,)) for _ in range(2)]
for thread in threads: thread.start()
for thread in threads: thread.join()
print("half", flush=True)
input()
work(50_000)
with open("own.txt", "w") as file:
    file.write("x")
""",
        INTERPOSE_CONSOLIDATE="1",
        INTERPOSE_SLOWEST="7",
    )
    program.stdout.readline()
    path = experiment_in(tmp_path)
    until(lambda: (path / "consolidated").exists())
    while_running = counted(path)
    program.communicate("\n")
    until(lambda: (path / "events.zst").stat().st_size == 0 and is_all_compressed(tmp_path))
    process = Experiment(str(path)).founder
    events, recorded = counted(path)

    assert 600_000 <= while_running[0] <= while_running[1]
    assert events == recorded >= 650_000
    said, _ = process.consolidated
    assert len(said.slowest) == 7
    assert sum(file.stat().st_size for file in path.iterdir() if file.is_file()) < 1 << 20


def test_where_no_monitor_was_the_first_reader_puts_calls_together(tmp_path, own_environment, interpose):
    environment = {**own_environment, "INTERPOSE": "1", "INTERPOSE_CONSOLIDATE": "1"}
    source = "import os; [os.stat('/') for _ in range(99)]"
    subprocess.run([sys.executable, "-c", source], cwd=tmp_path, env=environment, check=True)
    path = experiment_in(tmp_path)
    before = (path / "events").stat().st_size

    done = interpose("report", "--by", "intrinsic", "--format", "json", str(path))

    (row,) = [row for row in json.loads(done.stdout) if row["intrinsic"] == "os.stat"]
    assert row["calls"] >= 99
    assert before > 0 == (path / "events").stat().st_size
    assert (path / "consolidated").exists()


def test_the_first_reader_puts_together_what_each_process_called(tmp_path, own_environment, interpose):
    environment = {**own_environment, "INTERPOSE": "1", "INTERPOSE_CONSOLIDATE": "1"}
    source = "import os; pid = os.fork(); [os.stat('/') for _ in range(99)]; pid and os.wait()"
    subprocess.run([sys.executable, "-c", source], cwd=tmp_path, env=environment, check=True)

    told = interpose("report", "--by", "intrinsic", "--format", "json", str(experiment_in(tmp_path)))

    (row,) = [row for row in json.loads(told.stdout) if row["intrinsic"] == "os.stat"]
    assert row["calls"] >= 198
    assert (told.returncode, told.stderr) == (0, "")
