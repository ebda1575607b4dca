"""A program that is attached to notices nothing of it: its threads, signals, memory, and who traces it."""

import ctypes
import platform
import re
import shutil
import signal
import socket
import subprocess
import sys
import time
from pathlib import Path

import pytest
from attaching import COMPUTING, EIGHT_THREADS, by_ptrace_only, until_recorded
from tracing import PATIENCE_S, environment, until

from interpose.attach import ptrace
from interpose.attach.code import code
from interpose.attach.reach import by_ptrace
from interpose.attach.tracee import Tracee
from interpose.timing import clocks

TESTS = str(Path(__file__).parents[1])
CYCLES = (4, pytest.param(50, marks=pytest.mark.slow), pytest.param(200, marks=[pytest.mark.slow, pytest.mark.reach]))
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


# Its handler notes the code that each alarm interrupts, and which signals came in all.
ALARMED = """
import os, signal, sys
enough, interrupted, number_of = [], set(), {}
def note(number, frame):
    number_of[number] = number_of.get(number, 0) + 1
    interrupted.add(frame.f_code.co_filename)
signal.signal(signal.SIGTERM, lambda number, frame: enough.append(number))
signal.signal(signal.SIGALRM, note)
signal.signal(signal.SIGUSR1, note)
signal.setitimer(signal.ITIMER_REAL, 0.001, 0.001)
print("ready", flush=True)
while not enough:
    os.stat("/")
signal.setitimer(signal.ITIMER_REAL, 0)
is_own = interrupted - {"<string>"} == {sys.argv[0]}
print(is_own, number_of[signal.SIGALRM] > 5, number_of[signal.SIGUSR1], flush=True)
sys.exit(7)
"""


@pytest.mark.long
@by_ptrace_only
def test_a_signal_waits_until_our_code_has_ended_and_is_not_lost(running):
    program = running(ALARMED)
    status = Path(f"/proc/{program.pid}/status")

    done = []
    for word in ("attach", "detach") * 3:
        words = [sys.executable, "-m", "interpose", word, str(program.pid)]
        with subprocess.Popen(words, cwd=program.directory, env=environment(), stdout=subprocess.DEVNULL) as attaching:
            while attaching.poll() is None and "TracerPid:\t0\n" in status.read_text():
                time.sleep(0.001)  # it is traced for some hundredths of a second
            program.process.send_signal(signal.SIGUSR1)
        done.append(attaching.returncode)

    assert done == [0] * 6
    assert program.end() == (7, "True True 6\n", "")


@pytest.mark.long
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


@pytest.mark.long
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
    who = "its main thread reached no" if sys.version_info >= (3, 14) else "none of its threads reached a"
    assert done.stderr == (
        f"interpose: {program.pid}: {who} point where it can be interrupted; it continues unchanged;"
        " to wait longer, use --wait SECONDS\n"
    )
    assert (program.process.returncode, out, errors) == (7, "", "")
    assert not list(program.directory.glob("*.er"))


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


@pytest.mark.long
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


@pytest.mark.long
@by_ptrace_only
def test_a_program_that_is_killed_meanwhile_is_told_in_a_line(running):
    for requests in (1, 2, 3, 5, 8, 15, 30, 60, 100, 140):
        program = running(TRACING)
        program.attach()
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


@pytest.mark.long
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


@pytest.mark.long
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


@pytest.mark.long
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


KCMP = {"x86_64": 312, "aarch64": 272}
KCMP_VM = 1


def share_memory(one: int, other: int) -> bool:
    """As vfork's child does with its parent: kcmp(2)."""
    return ctypes.CDLL(None).syscall(KCMP[platform.machine()], one, other, KCMP_VM, 0, 0) == 0


@pytest.mark.long
@by_ptrace_only
def test_a_trap_that_is_awaited_stays_in_while_a_child_with_the_same_memory_begins(running, monkeypatch, tmp_path):
    """Without it, a function that returned just then went on at the program's first instruction."""
    program, request, children, taken_out = running(FORKING), ptrace.request, tmp_path / "children", tmp_path / "out"
    entry = Tracee(program.pid).entry()

    def watched(what: int, thread: int, address: int = 0, data: int = 0) -> None:
        is_child = what == ptrace.POKE and not Path(f"/proc/{program.pid}/task/{thread}").exists()
        if is_child and share_memory(program.pid, thread):
            (taken_out if address == entry else children).touch()
        request(what, thread, address, data)

    monkeypatch.setattr(ptrace, "request", watched)
    for times in range(1000):  # whether one of /bin/sh is just then about to begin is chance
        by_ptrace(Tracee(program.pid), code("end", ()), PATIENCE_S)
        if times >= 20 and children.exists():
            break

    assert not taken_out.exists()
    assert children.exists(), "none had the same memory"
    assert program.end() == (7, "True\n", "")


@pytest.mark.long
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

    assert told.startswith(f"interpose: {program.pid}: none of its threads reached a point")
    assert (program.process.returncode, out, errors) == (4, "", "")


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
