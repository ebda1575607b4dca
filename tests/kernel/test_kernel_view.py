"""The system calls of processes are those that strace counts, their times those that the processes measured."""

import json
import os
import re
import shutil
import signal
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pytest

from interpose.analysis.analysis import Analysis
from interpose.analysis.findings.engine import found_in
from interpose.analysis.findings.survey import Survey
from interpose.experiments.model.experiment import Experiment
from interpose.experiments.model.process import Process
from tests.kernel_watching import KERNEL, MARKS, calls_of, compiled, counts_of, watched
from tests.machine import small_disk
from tests.system_calls import needs_strace
from tests.tracing import environment, run_in, start_in, until

pytestmark = MARKS


@pytest.fixture
def started() -> Iterator[list[subprocess.Popen]]:
    """Programs that do not outlive the test."""
    programs: list[subprocess.Popen] = []
    yield programs
    for each in programs:
        with each:
            each.kill()


def watch(directory: Path, *pids: int) -> subprocess.Popen:
    """Begin to watch running processes."""
    options = [word for pid in pids for word in ("-p", str(pid))]
    watcher = subprocess.Popen(
        [*KERNEL, *options], cwd=directory, env=environment(PYTHONUNBUFFERED="1"), stdout=subprocess.PIPE, text=True
    )
    for _ in pids:
        assert "are recorded" in watcher.stdout.readline()
    return watcher


# --- counts

PROGRAMS = {
    "dd": ("dd", "if=/dev/zero", "of=/dev/null", "bs=1", "count=20000"),
    "shell": ("sh", "-c", "for i in 1 2 3 4 5; do ls -l / | wc -c; done; cat /nonexistent; cat /etc/passwd >/dev/null"),
    "python": (sys.executable, "-S", "-c", "import json, os, subprocess; subprocess.run(['true']); os.listdir('/')"),
    "git": ("git", "--no-pager", "log", "-n", "3", "--stat"),
}
# strace stands in the way of these: what they find, or how long they wait, differs from run to run.
UNEQUAL = {
    "futex",
    "restart_syscall",
    "rt_sigreturn",
    "clock_nanosleep",
    "exit",
    "exit_group",
    "brk",
    "munmap",
    "mmap",
    "mprotect",
    "madvise",
}


@pytest.mark.long
@needs_strace
@pytest.mark.parametrize("name", PROGRAMS)
def test_calls_are_as_many_as_strace_counts(tmp_path, name):
    words, about = PROGRAMS[name], tmp_path / "strace"
    if shutil.which(words[0]) is None:
        pytest.skip(f"no {words[0]}")
    tracer = ["strace", "-f", "-q", "-o", about, *words]
    directory = Path(__file__).parent
    subprocess.run(tracer, capture_output=True, env=environment(), cwd=directory)
    subprocess.run([*KERNEL, "-d", tmp_path, *words], capture_output=True, env=environment(), cwd=directory)

    lines = [line.split(maxsplit=1)[1] for line in about.read_text().splitlines()]
    begun = [line for line in lines if "= ? ERESTARTNOINTR" not in line]  # those begin anew after a signal
    expected = Counter(found[1] for line in begun if (found := re.match(r"(\w+)\(", line)))
    expected["execve"] -= 1  # of strace itself: the program's own begins before it is one
    found = counts_of(Experiment(str(tmp_path / "ktest.1.er")))
    assert {each: found[each] for each in expected if each not in UNEQUAL} == {
        each: count for each, count in expected.items() if each not in UNEQUAL
    }
    assert not set(found) - set(expected) - UNEQUAL


def test_bytes_and_errors_are_those_of_the_calls(tmp_path):
    (tmp_path / "input").write_bytes(b"x" * 12_345)

    experiment = watched(
        tmp_path, "sh", "-c", "dd if=input of=output bs=100 2>/dev/null; cat missing 2>/dev/null; rmdir /proc"
    )

    calls = [(each, name, event) for each in experiment.processes for name, event in calls_of(each)]
    moved = Counter({"syscall.read": 0, "syscall.write": 0})
    for _, name, event in calls:
        if name in moved and (event.bytes == 100 or event.bytes == 45):
            moved[name] += event.bytes
    assert moved == {"syscall.read": 12_345, "syscall.write": 12_345}
    errors = Counter((name, process.string(event.error)) for process, name, event in calls if event.error)
    assert errors["syscall.openat", "ENOENT"] >= 1
    assert errors["syscall.rmdir", "EBUSY"] + errors["syscall.rmdir", "EPERM"] + errors["syscall.rmdir", "EACCES"] == 1


# --- times

PHASES = """
import json, os, time
def spent(act):
    wall, cpu = time.monotonic_ns(), time.thread_time_ns()
    act()
    return time.monotonic_ns() - wall, time.thread_time_ns() - cpu
def compute():
    end = time.thread_time_ns() + 300_000_000
    while time.thread_time_ns() < end:
        sum(range(10_000))
random = os.open("/dev/urandom", os.O_RDONLY)
buffer = bytearray(40_000_000)
begun = time.process_time_ns()
os.write(2, b"begun")
read, sleep = spent(lambda: os.readv(random, [buffer])), spent(lambda: time.sleep(0.3))
compute()
ended = time.process_time_ns()
os.write(2, b"ended")
print(json.dumps({"read": read, "sleep": sleep, "whole": ended - begun}))
"""


def errors_of_times(directory: Path) -> dict[str, float]:
    """How far the times of calls and of the thread are from those that the program measured, as parts of these."""
    words = [*KERNEL, "-o", "phases.1.er", sys.executable, "-c", PHASES]
    done = subprocess.run(words, cwd=directory, env=environment(), capture_output=True, text=True, check=True)
    said = json.loads(done.stdout)
    (process,) = Experiment(max(map(str, directory.glob("phases*.er")), key=os.path.getmtime)).processes
    longest = dict(sorted(calls_of(process), key=lambda each: each[1].wall_ns))
    begun, ended = [event for name, event in calls_of(process) if name == "syscall.write" and event.bytes == 5]
    read, sleep = longest["syscall.readv"], longest["syscall.clock_nanosleep"]
    figures = {
        "wall of read": (read.wall_ns, said["read"][0]),
        "CPU of read": (read.cpu_ns, said["read"][1]),
        "wall of sleep": (sleep.wall_ns, said["sleep"][0]),
        "wait of sleep": (sleep.wall_ns - sleep.cpu_ns, said["sleep"][0] - said["sleep"][1]),
        "CPU of all": (ended.start_cpu_ns - begun.start_cpu_ns, said["whole"]),
    }
    return {name: abs(ours / theirs - 1) for name, (ours, theirs) in figures.items()}


@pytest.mark.long
@pytest.mark.alone
def test_calls_have_the_wall_and_cpu_time_that_the_program_measured(tmp_path):
    """What a hypervisor takes away is CPU time to us, and not to the program: the best of some runs counts."""
    runs = [errors_of_times(tmp_path) for _ in range(4)]

    least = {name: min(each[name] for each in runs) for name in runs[0]}
    assert max(least.values()) < 0.01, least


THREADS = """
import json, os, sys, threading, time
said = {}
def work(number):
    sys.stdin.readline() if number < 0 else None
    begin = time.thread_time_ns()
    end = time.monotonic() + 1
    while time.monotonic() < end:
        for _ in range(20_000 * number + 1):
            pass
        time.sleep(0.002)
    said[threading.get_native_id()] = time.thread_time_ns() - begin
waiting = threading.Thread(target=lambda: os.read(0, 1))
waiting.start()
print("ready", flush=True)
while not os.path.exists("watched"):
    time.sleep(0.01)
threads = [threading.Thread(target=work, args=(number,)) for number in range(3)]
for each in threads: each.start()
for each in threads: each.join()
print(json.dumps(said), flush=True)
waiting.join()
"""


@pytest.mark.alone
def test_a_running_process_is_watched_with_all_its_threads(tmp_path, started):
    program = start_in(tmp_path, [sys.executable, "-c", THREADS])
    started.append(program)
    assert program.stdout.readline() == "ready\n"
    watcher = watch(tmp_path, program.pid)
    started.append(watcher)
    (tmp_path / "watched").touch()
    said = json.loads(program.stdout.readline())
    program.communicate("x")
    assert watcher.wait(20) == 0

    (process,) = Experiment(str(tmp_path / "ktest.1.er")).processes
    cpu_ns = {each.record.tid: each.record.end_cpu_ns for each in process.threads}
    for tid, spent_ns in said.items():
        assert cpu_ns[int(tid)] == pytest.approx(spent_ns, rel=0.02, abs=3_000_000)
    in_read = [event for name, event in calls_of(process) if name == "syscall.read" and event.wall_ns > 500_000_000]
    assert [process.string(event.detail) for event in in_read] == ["<stdin>"]  # it was in it already
    assert len(process.threads) == 5
    assert all(each.record.made == each.record.recorded + each.record.dropped for each in process.threads)


# --- programs

STATIC = """
#include <unistd.h>
#include <sys/syscall.h>
int main(void) { for (int each = 0; each < 1000; each++) syscall(SYS_getppid); return 7; }
"""


def test_a_static_program_that_makes_its_calls_itself_is_watched(tmp_path):
    program = compiled(tmp_path, STATIC, "-static")

    experiment = watched(tmp_path, program)

    assert counts_of(experiment)["getppid"] == 1000
    assert experiment.founder.log.executable == str(program)


ANOTHER = """
#include <pthread.h>
#include <unistd.h>
static void *become(void *unused)
{
    usleep(200000);
    execl("/bin/echo", "echo", "from a thread", (char *)0);
    return unused;
}
int main(void) { pthread_t thread; pthread_create(&thread, 0, become, 0); for (;;) pause(); }
"""


def test_a_thread_that_becomes_another_program_takes_the_place_of_the_first(tmp_path):
    experiment = watched(tmp_path, compiled(tmp_path, ANOTHER))

    (process,) = experiment.processes
    assert Path(process.log.executable).name == "echo"
    assert all(each.record.end_ns for each in process.threads)
    assert counts_of(experiment)["pause"] == 1
    (became,) = [event for name, event in calls_of(process) if name == "syscall.execve"]
    last = max(process.threads, key=lambda each: each.record.end_ns)
    assert last.record.start_ns >= became.start_ns + became.wall_ns


def test_descendants_have_their_place_below_who_started_them(tmp_path):
    experiment = watched(tmp_path, "sh", "-c", "sh -c '/bin/true; /bin/true; exit 3'; exit 5")

    lineages = {each.lineage: Path(each.log.executable).name for each in experiment.processes}
    assert sorted(lineages) == ["", "_c1", "_c1_c1", "_c1_c2"]
    assert lineages["_c1_c1"] == lineages["_c1_c2"] == "true"


READING_CHILD = """
#include <sys/wait.h>
#include <unistd.h>
int main(void)
{
    int ends[2];
    char byte;
    if (pipe(ends)) return 1;
    if (!fork()) {
        for (int number = 0; number < 20; number++)
            if (read(ends[0], &byte, 1) != 1) return 1;
        usleep(100000);
        return 0;
    }
    for (int number = 0; number < 20; number++) {
        usleep(20000);
        if (write(ends[1], "x", 1) != 1) return 1;
    }
    wait(0);
}
"""


def test_a_child_that_reads_what_its_parent_writes_waits_for_no_child(tmp_path):
    experiment = watched(tmp_path, compiled(tmp_path, READING_CHILD))

    findings = [each for each in found_in(Survey(Analysis(experiment))) if each.first and each.first.kind == "process"]
    found = {each.rule: {row.intrinsic for row in each.rows} for each in findings}
    assert found["slow calls"] == {"syscall.read"}
    assert "syscall.read" not in found.get("child processes", ())


@pytest.mark.long
def test_a_long_chain_of_processes_is_recorded_to_its_end(tmp_path):
    (tmp_path / "chain").write_text('[ $1 = 0 ] || sh ./chain $(($1 - 1))\nexit $1\n')

    done = subprocess.run([*KERNEL, "sh", "./chain", "120"], cwd=tmp_path, env=environment(), capture_output=True)

    processes = Experiment(str(tmp_path / "ktest.1.er")).processes
    ends = [event.status for each in processes for event in each.log.events if event.kind == "exit"]
    assert done.returncode == 120
    assert sorted(ends) == list(range(121))


def test_descendants_are_left_out_if_they_are_not_followed(tmp_path):
    experiment = watched(tmp_path, "-F", "off", "sh", "-c", "/bin/true; /bin/true")

    assert [each.lineage for each in experiment.processes] == [""]
    assert counts_of(experiment)["wait4"] >= 2


@pytest.mark.parametrize(("act", "code"), [("exit 5", 5), ("kill -9 $$", -9), ("kill -TERM $$", -15)])
def test_the_end_is_passed_through_and_told(tmp_path, act, code):
    done = run_in(tmp_path, [*KERNEL, "sh", "-c", f"echo out; echo err >&2; {act}"])

    assert (done.returncode, done.stdout, done.stderr) == (code, "out\n", "err\n")
    processes = run_in(tmp_path, [sys.executable, "-m", "interpose", "processes", "--format", "json"])
    (founder, *_) = json.loads(processes.stdout)
    assert (founder["state"], founder["status"]) == (("exit", 5) if code == 5 else ("killed", None))
    assert founder["signal"] == (None if code == 5 else -code)


def test_the_program_has_what_it_would_have_without_us(tmp_path):
    script = "ls /proc/self/fd | wc -l; ulimit -n; env | sort; grep -E 'Sig(Blk|Ign|Cgt)' /proc/self/status"

    plain = subprocess.run(["sh", "-c", script], capture_output=True, text=True, env=environment(), cwd=tmp_path)
    done = subprocess.run(
        [*KERNEL, "sh", "-c", script], capture_output=True, text=True, env=environment(), cwd=tmp_path
    )

    assert done.stdout == plain.stdout


def test_a_watcher_that_is_killed_leaves_the_program_and_what_it_saw(tmp_path, started):
    program = subprocess.Popen(
        [sys.executable, "-c", "import os, time\nwhile True: os.getppid(); time.sleep(0.001)"], env=environment()
    )
    started.append(program)
    watcher = watch(tmp_path, program.pid)
    time.sleep(2.5)
    with watcher:
        watcher.kill()

    assert program.poll() is None
    experiment = Experiment(str(tmp_path / "ktest.1.er"))
    assert counts_of(experiment)["getppid"] > 500
    assert not experiment.damages.found


# --- descriptors

ALTERNATING = """
import os, socket, time
names = ["one", "three"]
for number in range(2000):
    descriptor = os.open(names[number % 2], os.O_RDONLY)
    os.read(descriptor, 100)
    if number % 100 == 0:
        time.sleep(0.05)
        os.read(descriptor, 100)
    os.close(descriptor)
pair = socket.socketpair()
os.write(pair[0].fileno(), b"to a socket")
time.sleep(0.1)
"""


def test_a_path_is_never_that_of_another_file_under_the_same_number(tmp_path):
    (tmp_path / "one").write_text("1")
    (tmp_path / "three").write_text("333")

    (process,) = watched(tmp_path, sys.executable, "-S", "-c", ALTERNATING).processes

    reads = [event for name, event in calls_of(process) if name == "syscall.read" and event.bytes in (1, 3)]
    paths = Counter((process.string(event.detail), event.bytes) for event in reads)
    assert len(reads) == 2000
    known = {str(tmp_path / "one"): 1, str(tmp_path / "three"): 3}
    assert all(known.get(path, bytes) == bytes for path, bytes in paths)
    assert sum(count for (path, _), count in paths.items() if path in known) >= 15  # those that stayed open for a while
    assert {path for path, _ in paths} <= {*known, "<closed at once>"}


FIRST_ENDS = """
#include <fcntl.h>
#include <pthread.h>
#include <unistd.h>
static void *work(void *path)
{
    char byte;
    usleep(100000);
    int file = open(path, O_RDONLY);
    for (int each = 0; each < 5; each++, usleep(50000))
        (void)!pread(file, &byte, 1, 0);
    return 0;
}
int main(int count, char **words)
{
    pthread_t thread;
    pthread_create(&thread, 0, work, words[count - 1]);
    pthread_exit(0);
}
"""


def test_a_process_whose_first_thread_has_ended_has_its_paths_too(tmp_path):
    (tmp_path / "file").write_text("1")

    (process,) = watched(tmp_path, compiled(tmp_path, FIRST_ENDS), tmp_path / "file").processes

    reads = [
        process.string(event.detail)
        for name, event in calls_of(process)
        if name == "syscall.pread64" and event.bytes == 1
    ]
    assert reads == [str(tmp_path / "file")] * 5


def test_calls_are_of_the_kind_of_their_descriptors(tmp_path):
    (tmp_path / "one").write_text("1")
    (tmp_path / "three").write_text("333")

    (process,) = watched(tmp_path, sys.executable, "-S", "-c", ALTERNATING).processes

    kinds = Counter((process.numbered_intrinsics[event.intrinsic].kind, event.bytes) for _, event in calls_of(process))
    assert kinds["net", len("to a socket")] == 1
    assert kinds["file", 1] == kinds["file", 3] == 1000


# --- stacks

FUNCTIONS = """
#include <fcntl.h>
#include <unistd.h>
#define APART __attribute__((noinline))
APART static int leaf(int file) { char byte; return (int)read(file, &byte, 1); }
APART static int often(int file) { int sum = 0; for (int each = 0; each < 300; each++) sum += leaf(file); return sum; }
APART static int seldom(int file) { int sum = 0; for (int each = 0; each < 100; each++) sum += leaf(file); return sum; }
int main(int count, char **words)
{
    int file = open("/dev/zero", O_RDONLY);
    for (int turns = count > 1 ? 1000 : 1; turns--; usleep(count > 1 ? 2000 : 0))
        if (often(file) + seldom(file) != 400)
            return 1;
    return 0;
}
"""
WITH_FRAMES = ("-fno-omit-frame-pointer", "-fno-optimize-sibling-calls")


def callers_of(process: Process, name: str) -> Counter[tuple[str, ...]]:
    """The functions that led to each call of this name, from the outermost of the program on."""
    found: Counter[tuple[str, ...]] = Counter()
    for each, event in calls_of(process):
        if each == name:
            frames = [(site.file, site.function) for site in process.frames(event.stack)]
            own = [function for file, function in frames if file == process.log.executable]
            found[tuple(reversed(own))] += 1
    return found


def test_calls_have_the_functions_that_led_to_them(tmp_path):
    (process,) = watched(tmp_path, "--stacks", compiled(tmp_path, FUNCTIONS, *WITH_FRAMES)).processes

    callers = callers_of(process, "syscall.read")
    assert callers["main", "often", "leaf"] == 300
    assert callers["main", "seldom", "leaf"] == 100
    assert callers.total() - callers[()] == 400  # the others are the loader's


def test_a_running_process_has_them_too(tmp_path, started):
    program = subprocess.Popen([compiled(tmp_path, FUNCTIONS, *WITH_FRAMES), "long"])
    started.append(program)
    words = [*KERNEL, "--stacks", "--for", "500ms", "-p", str(program.pid)]
    subprocess.run(words, cwd=tmp_path, env=environment(), capture_output=True, check=True)

    (process,) = Experiment(str(tmp_path / "ktest.1.er")).processes
    callers = callers_of(process, "syscall.read")
    assert set(callers) == {("main", "often", "leaf"), ("main", "seldom", "leaf")}
    often, seldom = callers["main", "often", "leaf"], callers["main", "seldom", "leaf"]
    assert seldom > 300
    assert abs(often - 3 * seldom) <= 300  # the last turn was not finished


def test_without_frames_the_caller_of_a_function_of_the_c_library_is_known_and_nothing_is_guessed(tmp_path):
    (process,) = watched(tmp_path, "--stacks", compiled(tmp_path, FUNCTIONS, "-fomit-frame-pointer")).processes

    callers = callers_of(process, "syscall.read")
    assert sum(count for functions, count in callers.items() if functions and functions[-1] == "leaf") == 400
    assert all("often" not in functions or functions[-2:] == ("often", "leaf") for functions in callers)


# --- what may be recorded


def test_only_the_kinds_that_are_wanted_are_recorded(tmp_path):
    (process,) = watched(
        tmp_path, "--kinds", "net", sys.executable, "-S", "-c", "import socket; socket.socket()"
    ).processes

    assert {name for name, _ in calls_of(process)} >= {"syscall.socket"}
    assert {process.numbered_intrinsics[event.intrinsic].kind for _, event in calls_of(process)} <= {"net", "idle"}
    assert all(each.record.made == each.record.recorded for each in process.threads)


@pytest.mark.parametrize("option", [("--arguments", "file=nothing"), ("--redact", "secret[a-z]*")])
def test_paths_are_kept_only_as_far_as_they_may_be(tmp_path, option):
    (tmp_path / "secretfile").write_text("1")

    experiment = watched(
        tmp_path,
        *option,
        sys.executable,
        "-S",
        "-c",
        "import time; opened = open('secretfile'); opened.read(); time.sleep(0.1); opened.seek(0); opened.read()",
    )

    assert counts_of(experiment)["read"]
    assert not [
        path for path in (tmp_path / "ktest.1.er").rglob("*") if path.is_file() and b"secretfile" in path.read_bytes()
    ]


FORBIDDING = """
import sys
from interpose.capture import session
session.POLICY = sys.argv.pop(1)
from interpose.cli.main import main
sys.exit(main())
"""


def forbidding(directory: Path, text: str, *words: str) -> subprocess.CompletedProcess[str]:
    """`interpose kernel` on a machine with such a file."""
    (directory / "interpose.conf").write_text(text)
    command = (sys.executable, "-c", FORBIDDING, str(directory / "interpose.conf"), "kernel", *words)
    return subprocess.run(command, cwd=directory, env=environment(), capture_output=True, text=True)


def test_programs_that_are_forbidden_are_not_recorded_whatever_they_were_before(tmp_path):
    script = "sleep 0.2; sh -c 'sleep 0.2; exec tail -f /dev/null' & sleep 0.6; kill $!; "
    script += "timeout 0.3 tail -f /dev/null; sleep 0.1"

    done = forbidding(tmp_path, "programs = tail", "sh", "-c", script)

    experiment = Experiment(str(tmp_path / "ktest.1.er"))
    programs = Counter(Path(each.log.executable).name for each in experiment.processes)
    assert programs["sleep"] >= 3
    assert programs["tail"] == 0
    assert "forbidden by" in done.stderr
    for process in experiment.processes:
        sites = {Path(site.file).name for _, event in calls_of(process) for site in process.frames(event.stack)}
        assert "tail" not in sites


@pytest.mark.alone  # else some have become another program before they are looked at
def test_all_that_could_not_be_recorded_is_told_once_for_each_reason(tmp_path):
    script = "for each in 1 2 3 4 5; do tail -n 1 /dev/null; nice true; sleep 0.1; done"

    done = forbidding(tmp_path, "programs = tail nice", "-o", "some.1.er", "sh", "-c", script)

    told = re.findall(r"process \d+( and \d+ others?)? (?:is|are) not recorded: (.*)", done.stderr)
    assert len(told) == done.stderr.count("\n") <= 4
    assert sum(int(others.split()[1]) + 1 if others else 1 for others, _ in told) == 10


@pytest.mark.long
def test_processes_and_kinds_that_are_forbidden_are_not_recorded(tmp_path, started):
    program = subprocess.Popen(["sleep", "30"])
    started.append(program)

    done = forbidding(tmp_path, f"users = {os.getuid()}", "-p", str(program.pid), "--for", "100ms")
    assert done.returncode == 1
    assert f"{program.pid}: forbidden by " in done.stderr
    assert not list(tmp_path.glob("*.er"))

    assert forbidding(tmp_path, "kinds = file", "cat", "/etc/hostname").returncode == 0
    (process,) = Experiment(str(tmp_path / "ktest.1.er")).processes
    kinds = {process.numbered_intrinsics[event.intrinsic].kind for _, event in calls_of(process)}
    assert "system" in kinds
    assert "file" not in kinds


def test_what_nobody_can_tell_is_not_recorded_where_programs_are_forbidden(tmp_path):
    done = forbidding(tmp_path, "programs = tail", "true")

    assert done.returncode == 0
    assert not list(tmp_path.glob("*.er")) or "true" in Experiment(str(tmp_path / "ktest.1.er")).founder.log.executable
    assert list(tmp_path.glob("*.er")) or "ended before its command line could be read" in done.stderr


def test_files_are_their_owners_alone(tmp_path):
    watched(tmp_path, "sh", "-c", "/bin/true")

    for path in [tmp_path / "ktest.1.er", *(tmp_path / "ktest.1.er").rglob("*")]:
        assert path.stat().st_mode & 0o7777 == (0o700 if path.is_dir() else 0o600), path


# --- losses


# The processor on which notes are lost has none afterwards that could tell of it.
BUSY = """
import os, sys
processors = sorted(os.sched_getaffinity(0))
os.sched_setaffinity(0, processors[:1])
sys.stdin.readline()
for _ in range(1_500_000):
    os.getppid()
os.sched_setaffinity(0, processors[-1:])
print("done", flush=True)
sys.stdin.readline()
"""


def watched_with_losses(tmp_path, started, program):
    """Watch a program that works when told to, while nobody reads what the kernel notes: the experiment."""
    watcher = watch(tmp_path, program.pid)
    started.append(watcher)
    os.kill(watcher.pid, signal.SIGSTOP)
    program.stdin.write("go\n")
    program.stdin.flush()
    assert program.stdout.readline() == "done\n"
    os.kill(watcher.pid, signal.SIGCONT)
    program.communicate("end\n")
    assert watcher.wait(60) == 0
    return Experiment(str(tmp_path / "ktest.1.er"))


@pytest.mark.long
def test_lost_notes_are_told_and_no_time_is_made_up(tmp_path, started):
    program = subprocess.Popen(
        [sys.executable, "-c", BUSY], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, env=environment()
    )
    started.append(program)

    (process,) = watched_with_losses(tmp_path, started, program).processes

    assert any("lost" in why for why in process.log.missed("calls"))
    assert 0 < counts_of(Experiment(str(tmp_path / "ktest.1.er")))["getppid"] < 1_500_000
    for record in (each.record for each in process.threads):
        assert record.made == record.recorded + record.dropped + record.depth
    last_ns = 0
    for _, event in calls_of(process):
        assert event.start_ns >= last_ns
        assert event.cpu_ns <= event.wall_ns
        last_ns = event.start_ns + event.wall_ns
    seen_ns = sum(each.record.end_ns - each.record.start_ns for each in process.threads)
    cpu_ns = sum(each.record.end_cpu_ns for each in process.threads)
    off_ns = sum(event.wall_ns - event.cpu_ns for _, event in calls_of(process))
    off_ns += sum(each.record.run_delay_ns for each in process.threads)
    assert seen_ns < 1.2 * cpu_ns + off_ns + 500_000_000


MANY_LOSING = """
import os, sys, threading
def work():
    ready.wait()
    for _ in range(40_000):
        os.getppid()
ready = threading.Event()
threads = [threading.Thread(target=work) for _ in range(50)]
for each in threads: each.start()
print(len(threads), flush=True)
sys.stdin.readline()
ready.set()
for each in threads: each.join()
print("done", flush=True)
sys.stdin.readline()
"""


@pytest.mark.long
def test_threads_that_end_while_notes_are_lost_have_an_end_and_are_not_counted_again_and_again(tmp_path, started):
    program = subprocess.Popen(
        [sys.executable, "-c", MANY_LOSING], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, env=environment()
    )
    started.append(program)
    assert program.stdout.readline() == "50\n"

    (process,) = watched_with_losses(tmp_path, started, program).processes

    assert process.log.missed("calls")
    assert len({each.record.tid for each in process.threads}) == 51
    assert len(process.threads) <= 2 * 51
    assert all(each.record.end_ns for each in process.threads)


ENDING = """
import os, sys, time
child = os.fork()
if child == 0:
    sys.stdin.readline()
    for _ in range(1_500_000):
        os.getppid()
    os._exit(0)
print(child, flush=True)
while open(f"/proc/{child}/stat").read().rpartition(")")[2].split()[0] != "Z":
    time.sleep(0.01)
print("ended", flush=True)
time.sleep(60)
"""


def test_it_ends_with_a_process_whose_end_was_lost_and_that_nobody_waits_for(tmp_path, started):
    program = subprocess.Popen(
        [sys.executable, "-c", ENDING], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, env=environment()
    )
    started.append(program)
    watcher = watch(tmp_path, int(program.stdout.readline()))
    started.append(watcher)
    os.kill(watcher.pid, signal.SIGSTOP)
    program.stdin.write("go\n")
    program.stdin.flush()
    assert program.stdout.readline() == "ended\n"
    os.kill(watcher.pid, signal.SIGCONT)

    assert watcher.wait(60) == 0
    assert program.poll() is None
    assert Experiment(str(tmp_path / "ktest.1.er")).founder.log.missed("calls")


# --- what hostile programs do

REFUSED = """
#include <errno.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <stddef.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>
int main(void)
{
    struct sock_filter filter[] = {
        BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_getppid, 0, 1),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | EXDEV),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
    };
    struct sock_fprog program = {4, filter};
    prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0);
    if (prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program))
        return 1;
    for (int each = 0; each < 1000; each++)
        syscall(SYS_getppid);
    return 0;
}
"""


def test_calls_that_a_filter_refuses_count_with_their_error(tmp_path):
    (process,) = watched(tmp_path, compiled(tmp_path, REFUSED)).processes

    refused = [event for name, event in calls_of(process) if name == "syscall.getppid"]
    assert [process.string(event.error) for event in refused] == ["EXDEV"] * 1000
    assert {event.wall_ns for event in refused} == {0}


MANY_THREADS = """
#include <pthread.h>
#include <unistd.h>
static void *begin(void *unused) { getppid(); return unused; }
int main(void)
{
    for (int each = 0; each < 5000; each++) {
        pthread_t thread;
        pthread_create(&thread, 0, begin, 0);
        pthread_join(thread, 0);
    }
}
"""


@pytest.mark.long
def test_threads_that_end_leave_their_blocks_to_others_even_full_ones(tmp_path):
    experiment = watched(tmp_path, compiled(tmp_path, MANY_THREADS))

    (process,) = experiment.processes
    assert len(process.threads) == 5_001
    assert counts_of(experiment)["getppid"] == 5_000
    assert not experiment.damages.found


BECOMING = """
#include <fcntl.h>
#include <unistd.h>
int main(int count, char **words)
{
    char text[8];
    int ends[2], file;
    if (count > 1)
        return pipe(ends) || write(ends[1], "to pipe", 7) != 7 || read(ends[0], text, 7) != 7 || usleep(200000);
    file = open("one", O_RDONLY | O_CLOEXEC);
    read(file, text, 1);
    usleep(100000);
    read(file, text, 1);
    execl(words[0], words[0], "again", (char *)0);
    return 1;
}
"""


def test_what_another_program_closes_as_it_begins_is_forgotten(tmp_path):
    (tmp_path / "one").write_text("1")

    (process,) = watched(tmp_path, compiled(tmp_path, BECOMING, "-static")).processes

    (read,) = [event for name, event in calls_of(process) if name == "syscall.read" and event.bytes == 7]
    assert process.string(read.detail) == "<pipe>"
    assert process.numbered_intrinsics[read.intrinsic].kind == "process"


LOSING = """
import os, sys
number = os.open("one", os.O_RDONLY)
print("begun", flush=True)
sys.stdin.readline()
os.read(number, 1)
print("read", flush=True)
sys.stdin.readline()
for _ in range(1_500_000):
    os.getppid()
os.close(number)
ends = os.pipe()
assert number in ends
print("lost", flush=True)
sys.stdin.readline()
os.write(ends[1], b"to pipe")
os.read(ends[0], 7)
sys.stdin.readline()
"""


@pytest.mark.long
def test_what_happened_to_a_descriptor_while_notes_were_lost_is_not_taken_for_nothing(tmp_path, started):
    (tmp_path / "one").write_text("1")
    program = subprocess.Popen(
        [sys.executable, "-c", LOSING],
        cwd=tmp_path,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
        bufsize=1,
        env=environment(),
    )
    started.append(program)
    assert program.stdout.readline() == "begun\n"
    watcher = watch(tmp_path, program.pid)
    started.append(watcher)
    program.stdin.write("read\n")
    assert program.stdout.readline() == "read\n"
    time.sleep(0.5)
    os.kill(watcher.pid, signal.SIGSTOP)
    program.stdin.write("lose\n")
    assert program.stdout.readline() == "lost\n"
    os.kill(watcher.pid, signal.SIGCONT)
    time.sleep(5)  # it has caught up
    program.stdin.write("go on\n")
    time.sleep(0.5)
    program.communicate("end\n")
    assert watcher.wait(60) == 0

    (process,) = Experiment(str(tmp_path / "ktest.1.er")).processes
    paths = {event.bytes: process.string(event.detail) for name, event in calls_of(process) if name == "syscall.read"}
    assert any("lost" in why for why in process.log.missed("calls"))
    assert paths[1] == str(tmp_path / "one")
    assert paths[7] == "<pipe>"


OF_32_BITS = """
static int call(int number, int first, int second, int third)
{
    int result;
    __asm__ volatile("int $0x80" : "=a"(result) : "a"(number), "b"(first), "c"(second), "d"(third) : "memory");
    return result;
}
static void sleep_shortly(void) { int duration[] = {0, 100000000}; call(162, (int)duration, 0, 0); }
void _start(void)
{
    call(60, 022, 0, 0);
    int file = call(5, (int)"one", 0, 0);
    call(19, file, 0, 0);
    sleep_shortly();
    call(6, file, 0, 0);
    file = call(5, (int)"three", 0, 0);
    call(19, file, 0, 0);
    sleep_shortly();
    call(252, 3, 0, 0);
}
"""


@pytest.mark.skipif(os.uname().machine != "x86_64", reason="programs of 32 bits are those of x86")
def test_calls_of_a_program_of_32_bits_have_no_wrong_name_path_or_exit_code(tmp_path):
    (tmp_path / "one").write_text("1")
    (tmp_path / "three").write_text("333")
    program = compiled(
        tmp_path, OF_32_BITS, "-m32", "-nostdlib", "-static", "-fno-stack-protector", "-fno-pic", "-no-pie"
    )
    if subprocess.run([program], cwd=tmp_path).returncode != 3:
        pytest.skip("programs of 32 bits do not run here")

    (process,) = watched(tmp_path, program).processes

    assert [(name, event.detail) for name, event in calls_of(process)] == [("syscall.other", 0)] * 9
    (end,) = re.findall('kind="exit".*', (tmp_path / "ktest.1.er" / "log.xml").read_text())
    assert 'status="3"' in end


WITH_POLICY = """
import runpy, sys
from interpose.cli.running.watched_processes import Permitted
Permitted.__init__.__defaults__ = (sys.argv[1],)
del sys.argv[1]
runpy.run_module("interpose", run_name="__main__")
"""


SHORTLY = """
#include <sys/syscall.h>
#include <unistd.h>
int main(void)
{
    for (int each = 0; each < 100; each++)
        syscall(SYS_getppid);
    execl("/bin/sleep", "sleep", "0.3", (char *)0);
}
"""


def kernel_with_policy(directory: Path, policy: str, *words: str | Path) -> subprocess.CompletedProcess[str]:
    (directory / "policy").write_text(policy)
    command = [sys.executable, "-c", WITH_POLICY, directory / "policy", "kernel", *words]
    return subprocess.run(command, cwd=directory, env=environment(), capture_output=True, text=True)


@pytest.mark.long
def test_a_forbidden_program_is_not_recorded_even_if_it_soon_becomes_another(tmp_path):
    program = compiled(tmp_path, SHORTLY)
    (tmp_path / "script").write_text(f"#!/bin/sh\nexec {program}\n")
    (tmp_path / "script").chmod(0o755)

    for forbidden in ("program", str(program), "script"):
        words = ("sh", "-c", "./script; sleep 0.1; :")
        done = kernel_with_policy(tmp_path, f"programs = {forbidden}\n", "-o", "of.1.er", *words)

        assert done.returncode == 0, done.stderr
        found = counts_of(Experiment(max(map(str, tmp_path.glob("of.*.er")), key=os.path.getmtime)))
        assert found["wait4"] >= 2
        assert found["getppid"] < 10  # of shells


def test_a_command_that_is_forbidden_is_refused(tmp_path):
    done = kernel_with_policy(tmp_path, "programs = sleep\n", "sleep", "0")

    why = f"interpose: sleep: forbidden by {tmp_path}/policy:1: programs = sleep\n"
    assert (done.returncode, done.stdout, done.stderr) == (1, "", why)
    assert not list(tmp_path.rglob("*.er"))


SLEEPING = """
import subprocess, sys, threading, time
threading.Thread(target=time.sleep, args=(30,), daemon=True).start()
ended = subprocess.Popen(["true"])
print(threading.enumerate()[1].native_id, ended.pid, flush=True)
sys.stdin.readline()
"""


@pytest.mark.long
def test_what_is_no_process_that_runs_is_told_and_leaves_nothing(interpose, tmp_path, started):
    program = subprocess.Popen(
        [sys.executable, "-c", SLEEPING], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, env=environment()
    )
    started.append(program)
    thread, ended = program.stdout.readline().split()
    until(lambda: " Z " in Path(f"/proc/{ended}/stat").read_text())
    why_not = {
        thread: f"is a thread of the process {program.pid}: -p {program.pid} records that",
        ended: "has ended; only the process that started it has not asked for its exit code",
        "99999999": "there is no such process",
    }
    if os.path.exists("/proc/2/stat") and "(kthreadd)" in Path("/proc/2/stat").read_text():
        why_not["2"] = "is a thread of the kernel, which makes no system calls"

    for number, why in why_not.items():
        done = interpose("kernel", "-p", str(program.pid), "-p", number)

        assert (done.returncode, done.stdout, done.stderr) == (1, "", f"interpose: -p {number}: {why}\n")
        assert not list(tmp_path.rglob("*.er"))


def test_a_full_disk_is_told_and_leaves_nothing(interpose, tmp_path, started):
    started.append(program := subprocess.Popen(["sleep", "30"]))
    with small_disk(tmp_path / "full", "16k") as place:
        done = interpose("kernel", "-d", str(place), "-p", str(program.pid))

        assert (done.returncode, done.stdout) == (1, "")
        assert done.stderr == (
            f"interpose: {place}/ktest.1.er: No space left on device; INTERPOSE_DIR or --dir names another directory\n"
        )
        assert not list(place.iterdir())
    assert program.poll() is None


def test_a_disk_that_becomes_full_does_not_change_how_the_program_ends(interpose, tmp_path):
    source = "import os, sys, time\nfor _ in range(30_000): os.getppid()\ntime.sleep(1.5)\nsys.exit(5)"
    with small_disk(tmp_path / "full", "400k") as place:
        done = interpose("kernel", "-d", str(place), sys.executable, "-S", "-c", source)

        assert (done.returncode, done.stdout) == (5, "")
        assert 1 <= done.stderr.count("\n") <= 3
        assert all("ktest.1.er/" in line and "No space left on device" in line for line in done.stderr.splitlines())
        assert not list(place.rglob("*.new"))


@pytest.mark.long
def test_more_processes_than_files_may_be_open_are_recorded(tmp_path):
    script = "for each in $(seq 100); do sleep 2 & done; wait; ulimit -n"
    limited = ["sh", "-c", 'ulimit -S -n 100; exec "$@"', "sh", *KERNEL, "sh", "-c", script]

    done = subprocess.run(limited, cwd=tmp_path, env=environment(), capture_output=True, text=True)

    assert (done.returncode, done.stdout, done.stderr) == (0, "100\n", "")
    assert counts_of(Experiment(str(tmp_path / "ktest.1.er")))["clock_nanosleep"] == 100


# --- mistakes


@pytest.mark.parametrize(
    ("words", "said", "code"),
    [
        ((), "a command or -p PID is needed", 2),
        (("-p", "1", "true"), "a command or -p PID is needed", 2),
        (("-p", "0"), "-p: ", 2),
        (("-p", "99999999"), "-p 99999999: there is no such process", 1),
        (("--for", "soon", "true"), "--for soon: is not a duration", 2),
        (("-o", "x", "true"), "-o x: its name must end with .er", 2),
        (("--follow", "=python", "true"), "=python: the kernel's view follows all (on) or none (off)", 2),
        (("/nonexistent/program",), "/nonexistent/program: No such file or directory", 127),
    ],
)
def test_a_mistake_is_told_in_a_line_and_leaves_nothing(interpose, tmp_path, words, said, code):
    done = interpose("kernel", *words)

    assert (done.returncode, done.stdout) == (code, "")
    assert said in done.stderr
    assert done.stderr.count("\n") == 1
    assert not list(tmp_path.rglob("*.er"))


def test_who_may_not_is_told_so(tmp_path):
    if os.getuid():
        pytest.skip("not root")
    tmp_path.chmod(0o777)
    source = "import os, runpy, sys; os.setgroups([]); os.setgid(65534); os.setuid(65534)\n"
    source += "sys.argv[1:] = ['kernel', 'true']; runpy.run_module('interpose', run_name='__main__')"

    done = run_in(tmp_path, [sys.executable, "-c", source], HOME=str(tmp_path))

    if any(why in done.stderr for why in ("Permission denied", "ModuleNotFoundError", "No module named interpose")):
        pytest.skip("others may not read this installation")
    assert done.returncode == 1
    assert done.stderr.startswith("interpose: ")
    assert done.stderr.count("\n") == 1
    assert "root" in done.stderr


def test_it_ends_when_time_is_over_and_the_program_goes_on(tmp_path, started):
    program = subprocess.Popen(["sleep", "30"])
    started.append(program)
    done = run_in(tmp_path, [*KERNEL, "--for", "300ms", "-p", str(program.pid)])

    assert done.returncode == 0
    assert done.stdout.splitlines()[-1] == " next: interpose report ktest.1.er"
    assert program.poll() is None
    (process,) = Experiment(str(tmp_path / "ktest.1.er")).processes
    (open_call,) = process.threads[0].open_calls
    assert process.numbered_intrinsics[open_call.intrinsic].name == "syscall.clock_nanosleep"
    assert process.overview[-1].time_ns - process.overview[0].time_ns >= 300_000_000


def test_several_processes_have_an_experiment_each(tmp_path, started):
    programs = [subprocess.Popen(["sleep", "1"]) for _ in range(3)]
    started.extend(programs)
    watcher = watch(tmp_path, *(each.pid for each in programs))
    started.append(watcher)
    assert watcher.wait(20) == 0

    experiments = [Experiment(str(path)) for path in sorted(tmp_path.glob("ktest.*.er"))]
    assert [each.founder.log.pid for each in experiments] == [each.pid for each in programs]
    until(lambda: all(each.poll() == 0 for each in programs))
