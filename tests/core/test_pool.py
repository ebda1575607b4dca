"""The pool's limits: what is dropped is counted, and who chose to wait waits as long as somebody makes room."""

import fcntl
import os
import signal
import subprocess
import sys
import time

import pytest
from tracing import environment, until

from interpose.config import values
from interpose.experiments.metadata.control import Control
from interpose.experiments.model.experiment import Experiment

MIB_BYTES = 1 << 20
CALLS = 40_000
MANY = f"""
import os, sys
null = os.open("/dev/null", os.O_WRONLY)
for _ in range({CALLS}):
    os.write(null, b"x")
"""


def recorded(experiment):
    return sum(thread.record.recorded for process in experiment.processes for thread in process.threads)


def dropped(experiment):
    return sum(thread.record.dropped for process in experiment.processes for thread in process.threads)


def written(experiment):
    """The events that are there."""
    return sum(block.head.used for process in experiment.processes for block in process.events.blocks())


@pytest.mark.parametrize(("variable", "name"), [("INTERPOSE_POOL", "pool"), ("INTERPOSE_LIMIT", "limit")])
def test_what_does_not_fit_is_dropped_and_counted(traced, interpose, variable, name):
    done = traced(MANY, **{variable: "1MiB"})

    experiment = done.experiment
    page = Control(experiment.founder).read()
    assert done.stderr == ""
    assert page.most_bytes == MIB_BYTES  # at a time: the monitor may have made room in a pool before the program ended
    assert page.full_drops == dropped(experiment) > 20_000
    assert name == "pool" or page.monitor_ns == 0  # nobody can make room below a limit
    assert recorded(experiment) == written(experiment)
    assert sum(each.record.made for each in experiment.founder.threads) == recorded(experiment) + dropped(experiment)
    report = interpose("report", done.path)
    assert f"incomplete: the {name} was " in report.stdout
    assert f"({variable}); {dropped(experiment):,} events lost" in report.stdout


def test_the_pool_is_that_of_the_whole_tree(traced):
    done = traced(
        f"""
        import os, subprocess, sys
        many = {MANY!r}
        child = os.fork()
        exec(many)
        if child == 0:
            os._exit(0)
        os.waitpid(child, 0)
        subprocess.run([sys.executable, "-c", many])
        """,
        INTERPOSE_POOL="2MiB",
    )

    experiment = done.experiment
    assert len(experiment.processes) == 3
    assert Control(experiment.founder).read().most_bytes == 2 * MIB_BYTES
    assert recorded(experiment) + dropped(experiment) >= 3 * CALLS


def test_nobody_waits_where_nobody_can_make_room(traced):
    done = traced(
        f"""
        import ctypes
        PR_SET_CHILD_SUBREAPER = 36
        assert ctypes.CDLL(None).prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0) == 0
        exec({MANY!r})
        """,
        INTERPOSE_POOL="1MiB",
        INTERPOSE_WHEN_FULL="wait",
    )

    page = Control(done.experiment.founder).read()
    assert (page.monitor, page.full_waits) == (0, 0)
    assert page.full_drops == dropped(done.experiment) > 0


def test_who_waits_loses_nothing_and_a_monitor_comes(traced):
    done = traced(MANY, INTERPOSE_POOL="1MiB", INTERPOSE_WHEN_FULL="wait")

    page = Control(done.experiment.founder).read()
    (thread,) = done.experiment.founder.threads
    assert dropped(done.experiment) == page.full_drops == 0
    assert recorded(done.experiment) == written(done.experiment) >= CALLS
    assert page.full_waits > 0
    assert 0 < page.full_wait_ns <= thread.record.own_wall_ns


def test_run_makes_room_for_who_waits_from_the_beginning(interpose, tmp_path):
    done = interpose("run", "--pool", "1MiB", "--when-full", "wait", sys.executable, "-c", MANY)

    experiment = Experiment(str(tmp_path / "work" / "test.1.er"))
    page = Control(experiment.founder).read()
    assert (done.returncode, done.stderr) == (0, "")
    assert dropped(experiment) == page.full_drops == 0
    assert recorded(experiment) == written(experiment) >= CALLS
    assert page.full_waits > 0


def waiting_program(directory, source, **variables):
    """A program that waits when its small pool is full, once it has written its first line; and its experiment."""
    program = subprocess.Popen(
        [sys.executable, "-c", source],
        cwd=directory,
        env=environment(**{"INTERPOSE": "1", "INTERPOSE_POOL": "1MiB", "INTERPOSE_WHEN_FULL": "wait", **variables}),
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
    )
    program.stdout.readline()
    return program, str(directory / "test.1.er")


# Each of its processes is small. It goes on when it is asked to.
SMALL_CHILDREN = """
import os, sys
def children(number):
    for _ in range(number):
        child = os.fork()
        if not child:
            for _ in range(4_000):
                os.stat("/")
            os._exit(0)
        os.waitpid(child, 0)
children(8)
print(flush=True)
sys.stdin.readline()
children(12)
"""


def test_a_monitor_comes_for_processes_that_are_each_small(tmp_path):
    program, path = waiting_program(tmp_path, SMALL_CHILDREN, INTERPOSE_POOL="4MiB", INTERPOSE_WHEN_FULL="drop")
    control = Control(Experiment(path).founder)
    until(lambda: control.read().in_use_bytes < MIB_BYTES)
    program.communicate(b"\n")

    assert program.returncode == 0
    assert dropped(Experiment(path)) == 0
    assert recorded(Experiment(path)) >= 20 * 4_000


def test_recording_goes_on_when_a_pool_that_was_full_has_room_again(tmp_path):
    source = f"import sys; many = {MANY!r}; exec(many); print(flush=True); sys.stdin.readline(); exec(many)"
    program, path = waiting_program(tmp_path, source, INTERPOSE_WHEN_FULL="drop")
    control = Control(Experiment(path).founder)
    before = recorded(Experiment(path))
    until(lambda: control.read().in_use_bytes < MIB_BYTES)
    program.communicate(b"\n")

    assert program.returncode == 0
    assert recorded(Experiment(path)) > before


@pytest.mark.slow
def test_a_monitor_that_gets_no_processor_for_a_while_is_waited_for(tmp_path):
    program, path = waiting_program(tmp_path, f"many = {MANY!r}; exec(many); print(flush=True); input(); exec(many)")
    control = Control(Experiment(path).founder)
    before = control.read()
    os.kill(before.monitor, signal.SIGSTOP)
    program.stdin.write(b"\n")
    program.stdin.flush()
    while program.poll() is None and control.read().full_wait_ns < before.full_wait_ns + 4 * 10**9:
        time.sleep(0.1)
    os.kill(before.monitor, signal.SIGCONT)
    program.communicate()

    page = control.read()
    assert program.returncode == 0
    assert page.full_wait_ns >= before.full_wait_ns + 4 * 10**9
    assert page.full_drops == dropped(Experiment(path)) == 0


@pytest.mark.slow
def test_a_monitor_that_makes_no_room_is_not_waited_for_for_ever(tmp_path):
    source = f"import sys; print(flush=True); sys.stdin.readline(); exec({MANY!r})"
    program, path = waiting_program(tmp_path, source)
    lock = os.open(path, os.O_RDONLY)
    fcntl.flock(lock, fcntl.LOCK_EX)
    control = Control(Experiment(path).founder)
    program.stdin.write(b"\n")
    program.stdin.flush()
    for _ in range(600):
        control.write(monitor_ns=time.monotonic_ns())
        if program.poll() is not None:
            break
        time.sleep(0.1)
    program.kill()
    program.communicate()
    os.close(lock)

    page = control.read()
    assert program.returncode == 0
    assert page.full_wait_ns >= 10 * 10**9
    assert page.full_drops == dropped(Experiment(path)) > 0


@pytest.mark.parametrize(
    ("text", "size_bytes"), [("off", 0), ("1", 1 << 20), ("1.5GiB", 3 << 29), ("2048KiB", 2 << 20)]
)
def test_a_size_has_its_unit_or_is_in_mib(text, size_bytes):
    assert values.parse_size(text) == size_bytes


@pytest.mark.parametrize(
    "text", ["", "0", "-1", "x", "1023KiB", "64KiB0", "5MB", "nan", "inf", "9e99TiB", "GiB"]
)
def test_what_is_no_size_is_refused(text):
    with pytest.raises(ValueError):
        values.parse_size(text)
