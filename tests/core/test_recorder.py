"""What a recording survives: threads, forks, every way to die, a full disk, and a program that closes everything."""

import os
import shutil
import signal
import stat
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor

import pytest
from machine import small_disk
from tracing import Traced, environment, events_of, run_in, write_program

from interpose.analysis.consolidation.consolidate import consolidated
from interpose.experiments.model.experiment import Experiment


def balanced(process):
    """Whether every call that was made is recorded, dropped or in progress; and how many were made."""
    for thread in process.threads:
        record = thread.record
        assert record.made == record.recorded + record.dropped + record.depth
    return sum(thread.record.made for thread in process.threads)


def test_many_threads_record_every_call_once(traced):
    done = traced("""
        import os, threading, time
        nothing = os.open(os.devnull, os.O_WRONLY)
        def work():
            for _ in range(5000):
                os.write(nothing, b"x")
        threads = [threading.Thread(target=work) for _ in range(8)]
        for thread in threads: thread.start()
        for thread in threads: thread.join()
    """)
    founder = done.experiment.founder
    calls = [(event.thread, event.call) for event in done.events("os.write")]

    assert len(calls) == len(set(calls)) == 40_000
    assert balanced(founder) == len(done.events()) >= 40_000
    assert len({thread for thread, _ in calls}) == 8


def test_a_thread_is_known_from_its_beginning_to_its_end(traced):
    done = traced("""
        import threading, time
        def work():
            end = time.monotonic() + 0.1
            while time.monotonic() < end: pass
            time.sleep(0.1)
        thread = threading.Thread(target=work)
        thread.start()
        thread.join()
        time.sleep(0.2)
    """)
    main, other = sorted((thread.record for thread in done.experiment.founder.threads), key=lambda r: -r.main)

    assert 190_000_000 <= other.end_ns - other.start_ns < main.end_ns - main.start_ns - 190_000_000
    assert 0 < other.end_cpu_ns - other.start_cpu_ns <= 150_000_000
    assert main.end_ns - main.start_ns >= 390_000_000


def test_blocks_of_ended_threads_are_used_again(traced):
    done = traced("""
        import os, threading
        nothing = os.open(os.devnull, os.O_WRONLY)
        for _ in range(500):
            thread = threading.Thread(target=os.write, args=(nothing, b"x"))
            thread.start()
            thread.join()
    """)

    assert len(done.events("os.write")) == 500
    assert len(done.experiment.founder.threads) >= 500
    assert os.path.getsize(done.path + "/events") < 10 * 65536


def test_a_block_that_was_full_when_its_thread_ended_is_emptied_first(traced):
    done = traced("""
        import os, threading
        nothing = os.open(os.devnull, os.O_WRONLY)
        def work(calls):
            for _ in range(calls): os.write(nothing, b"x")
        for calls in (743, 1, 742, 1, 1486, 3):
            thread = threading.Thread(target=work, args=(calls,))
            thread.start()
            thread.join()
    """).ended_well()

    assert len(done.events("os.write")) == 743 + 1 + 742 + 1 + 1486 + 3
    balanced(done.experiment.founder)


def test_many_threads_need_few_mappings(traced):
    done = traced("""
        import threading
        before = open("/proc/self/maps").read().count(".er/")
        for _ in range(2000):
            thread = threading.Thread(target=int)
            thread.start()
            thread.join()
        print(open("/proc/self/maps").read().count(".er/") - before)
    """)

    assert int(done.stdout) < 10
    assert len(done.experiment.founder.threads) == 2001


def test_a_child_in_a_namespace_of_process_numbers_is_no_one_else(tmp_path):
    program = write_program(
        tmp_path,
        """
        import ctypes, os, sys, threading
        nothing = os.open(os.devnull, os.O_WRONLY)
        threads = [threading.Thread(target=os.write, args=(nothing, b"t")) for _ in range(4)]
        for thread in threads: thread.start()
        for thread in threads: thread.join()
        if ctypes.CDLL(None).unshare(0x20000000):
            sys.exit(77)
        if os.fork() == 0:
            os.write(nothing, b"child")
            sys.exit(7)
        print(os.waitstatus_to_exitcode(os.wait()[1]))
        """,
    )
    done = run_in(tmp_path, ["unshare", "-fp", "--mount-proc", sys.executable, str(program)], INTERPOSE="1")
    if done.returncode == 77 or "unshare" in done.stderr:
        pytest.skip("no right to make a namespace")
    founder, child = Traced(tmp_path, done).experiment.processes

    assert (done.returncode, done.stdout) == (0, "7\n")
    assert [event.bytes for event in events_of(founder, "os.write")] == [1] * 4
    assert [event.bytes for event in events_of(child, "os.write")] == [5]


def test_a_forked_child_has_its_own_subexperiment_and_nothing_is_there_twice(traced):
    done = traced("""
        import os, threading, warnings
        warnings.simplefilter("ignore", DeprecationWarning)  # 3.12 and later: of forks in threads
        stop = threading.Event()
        nothing = os.open(os.devnull, os.O_WRONLY)
        def busy():
            while not stop.is_set():
                os.write(nothing, b"parent")
        threads = [threading.Thread(target=busy) for _ in range(4)]
        for thread in threads: thread.start()
        for number in range(5):
            if os.fork() == 0:
                os.write(nothing, b"child%d" % number)
                if number == 0 and os.fork() == 0:
                    os.write(nothing, b"grandchild")
                    os._exit(7)
                os._exit(number)
        for _ in range(5):
            os.wait()
        stop.set()
        for thread in threads: thread.join()
    """).ended_well()
    experiment = done.experiment
    lineages = sorted(process.lineage for process in experiment.processes)

    assert lineages == ["", "_f1", "_f1_f1", "_f2", "_f3", "_f4", "_f5"]
    for process in experiment.processes[1:]:
        writes = list(events_of(process, "os.write"))
        assert [event.bytes for event in writes] in ([6], [10])
        frames = [frame for event in writes for frame in process.frames(event.stack)]
        assert [os.path.basename(frame.file) for frame in frames] == ["program.py"]
    statuses = {process.lineage: process.log.events[-1].status for process in experiment.processes}
    assert statuses == {"": 0, "_f1": 0, "_f1_f1": 7, "_f2": 1, "_f3": 2, "_f4": 3, "_f5": 4}
    balanced(experiment.founder)


def test_a_fork_inside_a_recorded_call_records_it_in_the_parent_alone(traced):
    done = traced("""
        import os, signal, time
        child = None
        def split(*_):
            global child
            child = os.fork()
        signal.signal(signal.SIGALRM, split)
        signal.setitimer(signal.ITIMER_REAL, 0.02)
        time.sleep(0.05)
        if child:
            os.wait()
        else:
            begun_ns = time.monotonic_ns()
            time.sleep(0.001)
            print(time.monotonic_ns() - begun_ns)
    """).ended_well()
    founder, child = done.experiment.processes
    (whole,), (later,) = done.events("time.sleep"), done.events("time.sleep", child)

    assert whole.wall_ns >= 50_000_000
    assert 1_000_000 <= later.wall_ns <= int(done.stdout)
    assert (later.parent, later.call) == (0, 1)
    balanced(founder)
    balanced(child)


def test_children_started_otherwise_are_descendants(traced):
    done = traced("""
        import os, subprocess, sys
        code = "import time; time.sleep(0.01)"
        subprocess.run([sys.executable, "-c", code])
        os.execv(sys.executable, [sys.executable, "-c", code])
    """)

    assert done.returncode == 0
    assert sorted(process.lineage for process in done.experiment.processes) == ["", "_c1", "_x1"]


WAYS_TO_END = {
    "the end of the program": ("pass", 0),
    "sys.exit": ("sys.exit(3)", 3),
    "an exception": ("raise ValueError('x')", 1),
    "sys.exit below zero": ("sys.exit(-1)", 255),
    "os._exit": ("os._exit(4)", 4),
    "SIGTERM": ("os.kill(os.getpid(), 15)", -15),
    "SIGKILL": ("os.kill(os.getpid(), 9)", -9),
    "abort": ("os.abort()", -6),
    "SIGSEGV": ("ctypes.string_at(0)", -11),
    "exit from a thread": ("threading.Thread(target=os._exit, args=(5,)).start(); time.sleep(9)", 5),
    "another image": ("os.execv('/bin/true', ['true'])", 0),
}


@pytest.mark.parametrize("way", WAYS_TO_END)
def test_what_was_completed_is_there_and_the_exit_is_unchanged(way, traced):
    how, expected = WAYS_TO_END[way]
    done = traced(f"""
        import ctypes, os, sys, threading, time
        nothing = os.open(os.devnull, os.O_WRONLY)
        for _ in range(1000):
            os.write(nothing, b"x")
        {how}
    """)
    founder = done.experiment.founder

    assert done.returncode == expected
    assert len(done.events("os.write")) == 1000
    status = [event.status for event in founder.log.events]
    assert status == ([expected] if expected >= 0 and way != "another image" else [])


def test_an_exit_that_fails_ends_nothing(traced):
    done = traced("""
        import os
        nothing = os.open(os.devnull, os.O_WRONLY)
        for status in (2**40, 2**80, "x", None):
            try:
                os._exit(status)
            except (OverflowError, TypeError):
                os.write(nothing, b"x")
    """)

    assert len(done.events("os.write")) == 4
    assert done.experiment.founder.log.events[-1].status == 0


def test_calls_during_finalisation_are_recorded_and_harm_nothing(traced):
    done = traced("""
        import atexit, os, sys, threading, time
        nothing = os.open(os.devnull, os.O_WRONLY)
        atexit.register(os.write, nothing, b"at exit")
        class Late:
            def __del__(self, write=os.write, nothing=nothing):
                write(nothing, b"finalizer")
        late = Late()
    """).ended_well()

    assert [event.bytes for event in done.events("os.write")] == [7, 9]


def test_daemon_threads_that_call_to_the_last_moment_harm_nothing(traced):
    done = traced("""
        import os, threading, time
        nothing = os.open(os.devnull, os.O_WRONLY)
        def endless():
            while True:
                os.write(nothing, b"x")
        for _ in range(4):
            threading.Thread(target=endless, daemon=True).start()
        time.sleep(0.05)
    """).ended_well()

    assert len(done.events("os.write")) > 100


COUNTING = """
    import mmap, os, sqlite3, sys
    counter = mmap.mmap(os.open("counter", os.O_RDWR), 8)
    nothing = os.open(os.devnull, os.O_WRONLY)
    cursor = sqlite3.connect(":memory:").cursor()
    print("ready", flush=True)
    made = 0
    while True:
        os.write(nothing, b"x")
        cursor.execute("select 1")
        made += 2
        counter[:] = made.to_bytes(8, "little")
"""


def kill_at(directory, delay_s):
    """Kill a counting program after a while; gives what it counted and what was recorded."""
    shutil.rmtree(directory, ignore_errors=True)
    directory.mkdir()
    (directory / "counter").write_bytes(bytes(8))
    program = write_program(directory, COUNTING)
    running = subprocess.Popen(
        [sys.executable, str(program)],
        cwd=directory,
        env=environment(INTERPOSE="1"),
        stdout=subprocess.PIPE,
    )
    assert running.stdout is not None
    assert running.stdout.readline() == b"ready\n"
    time.sleep(delay_s)
    running.send_signal(signal.SIGKILL)
    running.wait()
    running.stdout.close()
    counted = int.from_bytes((directory / "counter").read_bytes(), "little")
    process = Experiment(str(directory / "test.1.er")).founder
    calls = ("os.write", "sqlite3.Cursor.execute")
    found = consolidated(process, ("intrinsic",)).sums()
    return counted, sum(sums.calls for (number,), sums in found.items() if process.intrinsic(number).name in calls)


def test_a_killed_program_loses_at_most_the_call_in_progress(tmp_path):
    for turn in range(8):
        counted, recorded = kill_at(tmp_path / "killed", 0.002 + turn * 0.005)

        assert counted <= recorded <= counted + 2


@pytest.mark.slow
@pytest.mark.reach
def test_a_program_killed_1000_times_loses_at_most_the_call_in_progress(tmp_path, tally):
    def kill(turn):
        directory = tmp_path / str(turn)
        outcome = kill_at(directory, (turn * 7919 % 1000) / 10_000)
        shutil.rmtree(directory)
        return outcome

    with ThreadPoolExecutor(os.cpu_count()) as pool:
        outcomes = list(pool.map(kill, range(tally.times(1000))))

    for counted, recorded in outcomes:
        tally.check(counted <= recorded <= counted + 2, f"{recorded} recorded of {counted}")
    tally.end()


def test_a_call_in_progress_at_the_kill_is_in_the_table(traced):
    done = traced("""
        import os, signal, sqlite3
        connection = sqlite3.connect(":memory:")
        connection.create_function("die", 0, lambda: os.kill(os.getpid(), signal.SIGKILL))
        connection.cursor().execute("select die(), 'secret'")
    """)
    founder = done.experiment.founder
    call, killing = founder.threads[0].open_calls

    assert done.returncode == -signal.SIGKILL
    assert founder.intrinsic(killing.intrinsic).name == "os.kill"
    assert founder.intrinsic(call.intrinsic).name == "sqlite3.Cursor.execute"
    assert founder.string(call.detail) == "select die(), ?"
    assert next(founder.frames(call.stack)).line == 5


FILLING = """
import os, sys, threading
nothing = os.open(os.devnull, os.O_WRONLY)
all_have_begun = threading.Barrier(3)  # a thread that begins after the recording was stopped has no record
def work():
    os.write(nothing, b"x")
    all_have_begun.wait()
    for _ in range(20000):
        os.write(nothing, b"x")
threads = [threading.Thread(target=work) for _ in range(2)]
for thread in threads: thread.start()
work()
for thread in threads: thread.join()
print("done")
"""


def assert_only_data_were_lost(done):
    founder = done.experiment.founder
    recorded = len(done.events())
    dropped = sum(thread.record.dropped for thread in founder.threads)

    assert (done.returncode, done.stdout, done.stderr) == (0, "done\n", "")
    assert recorded + dropped == balanced(founder) >= 60_000
    assert 0 < recorded < 60_000
    assert [sample.kind for sample in founder.overview] == [1, 4, 3]
    assert [event.kind for event in founder.log.events][-1:] == ["exit"]


def test_a_limit_on_file_size_stops_the_recording_not_the_program(traced):
    done = traced("import resource; resource.setrlimit(resource.RLIMIT_FSIZE, (1 << 20, 1 << 20))" + FILLING)

    assert_only_data_were_lost(done)


def test_a_full_disk_stops_the_recording_not_the_program(tmp_path):
    with small_disk(tmp_path / "disk", "2M") as disk:
        program = write_program(tmp_path, FILLING)
        run = run_in(disk, [sys.executable, str(program)], INTERPOSE="1", INTERPOSE_RESERVE="off")
        assert_only_data_were_lost(Traced(disk, run))


def test_a_child_that_cannot_be_recorded_is_counted_and_leaves_nothing(traced):
    done = traced("""
        import os, resource, time
        resource.setrlimit(resource.RLIMIT_FSIZE, (10000, 10000))
        if os.fork() == 0:
            time.sleep(0)
            os._exit(3)
        print(os.waitstatus_to_exitcode(os.wait()[1]))
    """)

    assert (done.returncode, done.stdout, done.stderr) == (0, "3\n", "")
    assert [process.lineage for process in done.experiment.processes] == [""]
    assert done.experiment.founder.unrecorded_children == 1
    assert not [name for name in os.listdir(done.path) if name.startswith("_")]


def test_calls_of_threads_without_a_record_are_counted(traced):
    done = traced("""
        import os, resource, threading
        nothing = os.open(os.devnull, os.O_WRONLY)
        resource.setrlimit(resource.RLIMIT_FSIZE, (10000, 10000))
        def work():
            for _ in range(10): os.write(nothing, b"x")
        for _ in range(20):
            thread = threading.Thread(target=work)
            thread.start()
            thread.join()
    """)
    founder = done.experiment.founder

    assert done.returncode == 0
    recorded = sum(1 for _ in events_of(founder, "os.write"))
    assert recorded + founder.lost_calls >= 200
    dropped = sum(thread.record.dropped for thread in founder.threads)
    assert balanced(founder) == sum(1 for _ in events_of(founder)) + dropped
    assert founder.lost_calls > 0


def test_closing_every_descriptor_does_not_end_the_recording(traced):
    done = traced("""
        import os, time
        os.closerange(3, 1000)
        nothing = os.open(os.devnull, os.O_WRONLY)
        for _ in range(3000):
            os.write(nothing, b"x")
        print(len(os.listdir("/proc/self/fd")))
    """)

    assert done.stdout == "5\n"
    assert len(done.events("os.write")) == 3000


def test_a_directory_removed_meanwhile_stops_the_recording_not_the_program(tmp_path):
    program = write_program(tmp_path, "import shutil; shutil.rmtree('test.1.er')" + FILLING)
    done = subprocess.run(
        [sys.executable, str(program)], cwd=tmp_path, env=environment(INTERPOSE="1"), capture_output=True, text=True
    )

    assert (done.returncode, done.stdout, done.stderr) == (0, "done\n", "")
    assert os.listdir(tmp_path) == ["program.py"]


def test_directories_and_files_are_the_owners_alone(traced):
    done = traced("""
        import os
        if os.fork() == 0:
            os._exit(0)
        os.wait()
    """)
    modes = set()
    for directory, _, files in os.walk(done.path):
        modes.add(stat.S_IMODE(os.stat(directory).st_mode))
        assert {stat.S_IMODE(os.stat(os.path.join(directory, file)).st_mode) for file in files} == {0o600}

    assert modes == {0o700}


@pytest.mark.long
def test_signals_interrupt_and_are_handled_as_without_us(traced):
    done = traced("""
        import os, signal, time
        seen = []
        signal.signal(signal.SIGALRM, lambda *_: seen.append(os.write(nothing, b"h")))
        nothing = os.open(os.devnull, os.O_WRONLY)
        signal.setitimer(signal.ITIMER_REAL, 0.0005, 0.0005)
        until = time.monotonic() + 0.5
        made = 0
        while time.monotonic() < until:
            made += os.write(nothing, b"x")
        signal.setitimer(signal.ITIMER_REAL, 0)
        print(made + len(seen))
    """)

    assert done.stderr == ""
    assert len(done.events("os.write")) == int(done.stdout)
    balanced(done.experiment.founder)


def test_counts_equal_sqlites_own(traced):
    done = traced("""
        import sqlite3
        made = 0
        def count(_):
            global made
            made += 1
        connection = sqlite3.connect(":memory:")
        connection.set_trace_callback(count)
        cursor = connection.cursor()
        for number in range(20000):
            cursor.execute("select ?", (number,))
        print(made)
    """)

    assert len(done.events("sqlite3.Cursor.execute")) == int(done.stdout) == 20_000


@pytest.mark.slow
def test_a_million_calls_are_a_million_events(traced):
    done = traced("""
        import sqlite3
        made = 0
        def count(_):
            global made
            made += 1
        connection = sqlite3.connect(":memory:")
        connection.set_trace_callback(count)
        cursor = connection.cursor()
        for number in range(1000000):
            cursor.execute("select 1")
        print(made)
    """)
    founder = done.experiment.founder

    assert done.stdout == "1000000\n"
    assert sum(1 for _ in events_of(founder, "sqlite3.Cursor.execute")) == 1_000_000
    assert sum(1 for _ in events_of(founder)) == balanced(founder)


@pytest.mark.skipif(not shutil.which("strace"), reason="strace is not installed")
@pytest.mark.parametrize("calls", [3000, pytest.param(200_000, marks=pytest.mark.slow)])
def test_counts_equal_straces(calls, tmp_path):
    program = write_program(
        tmp_path,
        f"""
        import os
        nothing = os.open(os.devnull, os.O_WRONLY)
        for _ in range({calls}):
            os.write(nothing, b"xyz")
        """,
    )

    def traced(value):
        """How many times write(2) was called, by strace's own table."""
        words = ["strace", "--seccomp-bpf", "-f", "-c", "-U", "calls,name", "-e", "trace=write", "-o", "calls"]
        done = run_in(tmp_path, [*words, sys.executable, str(program)], INTERPOSE=value)
        if done.returncode:
            pytest.skip(f"strace may not trace here: {done.stderr.strip()}")
        (line,) = [line for line in (tmp_path / "calls").read_text().splitlines() if line.endswith(" write")]
        return int(line.split()[0]), done

    made, _ = traced("0")
    made_traced, done = traced("1")
    founder = Traced(tmp_path, done).experiment.founder

    assert made == calls
    # Beside the program's there are our own: log.xml, map.xml, .gitignore, but not one for each call.
    assert calls <= made_traced <= calls + 20 + calls // 500
    assert sum(1 for _ in events_of(founder, "os.write")) == calls
