"""The program that becomes the monitor: it takes the lock, waits, and executes the interpreter only if needed."""

import fcntl
import os
import subprocess
import sys
import time
from contextlib import contextmanager
from pathlib import Path

import pytest
from tracing import environment, start_in, until, write_program

import interpose.cext
from interpose.experiments.metadata.control import Control
from interpose.experiments.model.experiment import Experiment

STARTER = Path(interpose.cext.__path__[0], "interpose_starter")
LOCK = 17  # the number of the descriptor that has it
LONG_MS, SHORT_MS = 60_000, 1
# This runs in place of the monitor, and prints which descriptors are open besides the standard streams.
TOLD = """
import fcntl, os, sys
listed = [int(each) for each in os.listdir("/proc/self/fd") if os.path.exists(f"/proc/self/fd/{each}")]
opened = {each: os.readlink(f"/proc/self/fd/{each}") for each in listed if each > 2}
fcntl.flock(int(sys.argv[1]), fcntl.LOCK_EX | fcntl.LOCK_NB)
print(opened, sys.argv[1:])
"""


@pytest.fixture
def founder(tmp_path):
    made = tmp_path / "test.1.er"
    made.mkdir()
    return made


@contextmanager
def other_process():
    """One that waits for the end of its input."""
    process = subprocess.Popen(["cat"], stdin=subprocess.PIPE)
    try:
        yield process
    finally:
        process.communicate()


def begin(founder, process, milliseconds):
    words = [STARTER, founder, str(process.pid), str(milliseconds), sys.executable, "-c", TOLD, str(LOCK)]
    return subprocess.Popen(words, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)


def said_by(started):
    said, errors = started.communicate(timeout=60)
    assert (started.returncode, errors) == (0, "")
    return said


def executed(founder):
    return f"{ {LOCK: str(founder)} } ['{LOCK}']\n"


def has_begun(started):
    """Whether it has opened the directory. To try the lock could take it from the starter."""
    return os.path.exists(f"/proc/{started.pid}/fd/{LOCK}")


def is_free(founder):
    opened = os.open(founder, os.O_RDONLY)
    try:
        fcntl.flock(opened, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    finally:
        os.close(opened)
    return True


@pytest.mark.parametrize("milliseconds", [0, SHORT_MS])
def test_the_interpreter_gets_the_lock_and_nothing_else(founder, milliseconds):
    with other_process() as process:
        assert said_by(begin(founder, process, milliseconds)) == executed(founder)


def test_nothing_is_executed_if_the_process_ends_meanwhile(founder):
    with other_process() as process:
        started = begin(founder, process, LONG_MS)
        until(lambda: has_begun(started))
        assert started.poll() is None
        process.kill()
        assert said_by(started) == ""
        assert is_free(founder)


def test_a_descendant_that_began_meanwhile_is_watched(founder):
    with other_process() as process:
        started = begin(founder, process, LONG_MS)
        until(lambda: has_begun(started))
        (founder / "_c1.er").mkdir()
        process.kill()
        assert said_by(started) == executed(founder)


def test_a_child_that_was_forked_meanwhile_is_watched_though_it_takes_a_while(founder):
    with other_process() as process:
        started = begin(founder, process, LONG_MS)
        until(lambda: has_begun(started))
        process.kill()
        until(lambda: is_free(founder))
        time.sleep(0.1)
        (founder / "_f1.er").mkdir()
        assert said_by(started) == executed(founder)


def test_of_a_process_that_is_gone_nothing_is_awaited(founder):
    with other_process() as process:
        process.kill()
        process.wait()
        assert said_by(begin(founder, process, LONG_MS)) == ""


def test_nothing_is_executed_if_the_experiment_is_watched(founder):
    opened = os.open(founder, os.O_RDONLY)
    fcntl.flock(opened, fcntl.LOCK_EX)
    with other_process() as process:
        assert said_by(begin(founder, process, SHORT_MS)) == ""
    os.close(opened)


@pytest.mark.parametrize("damaged", ["removed", "link"])
def test_nothing_is_executed_without_the_directory(founder, damaged):
    founder.rmdir()
    if damaged == "link":
        founder.symlink_to(founder.parent)
    with other_process() as process:
        assert said_by(begin(founder, process, 0)) == ""


def test_too_few_words_are_refused():
    assert subprocess.run([STARTER, "."]).returncode == 1


# --- with a program that is sampled

WORK = """
def work():
    while not os.path.exists("enough"):
        sum(range(1000))
"""
STARTED = """
import os, subprocess, sys
if sys.argv[1:]:
    work()
else:
    subprocess.Popen([sys.executable, __file__, "child"])
"""
FORKED = """
import os
if os.fork() == 0:
    work()
"""


def test_the_monitor_of_a_sampled_program_is_known_at_once(tmp_path):
    program = write_program(tmp_path, "print('begun', flush=True); input()")
    with start_in(tmp_path, [sys.executable, program], INTERPOSE="calls,profile") as started:
        started.stdout.readline()
        founder = Experiment(str(tmp_path / "test.1.er")).founder
        monitor = Control(founder).read().monitor
        words = Path("/proc", str(monitor), "cmdline").read_bytes().split(b"\0")
        started.communicate("\n")

    assert os.fsencode(founder.directory) in words


@pytest.mark.parametrize("source", [STARTED, FORKED], ids=["started", "forked"])
def test_a_child_that_outlives_the_founder_is_sampled(tmp_path, source):
    program = write_program(tmp_path, WORK + source)
    subprocess.run([sys.executable, program], cwd=tmp_path, env=environment(INTERPOSE="calls,profile"), check=True)

    try:
        until(lambda: list(tmp_path.glob("test.1.er/_*.er/samples")))
    finally:
        (tmp_path / "enough").touch()
