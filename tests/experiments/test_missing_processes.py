"""A process whose recording is gone is told by every command, and so is what an archive had lost."""

import shutil
import subprocess
import sys

import pytest
from tracing import environment, write_program

from interpose.experiments.model.experiment import Experiment

FORKS = """
import os, time
def is_killed():
    kept = b"x" * (4 << 20)  # a thousand page faults
    os.kill(os.getpid(), 9)
for ends in (lambda: os._exit(0), is_killed, lambda: time.sleep(0.2) or os._exit(3)):
    if not os.fork():
        ends()
    os.wait()
"""
GONE = "test.1.er/_f3.er: is missing: process"


@pytest.fixture
def forked(traced):
    done = traced(FORKS)
    assert done.returncode == 0
    assert len(Experiment(done.path).processes) == 4
    return done


@pytest.mark.long
@pytest.mark.parametrize("command", ["check", "report", "processes", "transactions", "events"])
def test_a_forked_process_whose_directory_is_gone_is_told_by_its_starter(forked, interpose, command):
    whole = interpose(command, forked.path)
    (pid,) = [each.log.pid for each in forked.experiment.processes if each.lineage == "_f3"]
    shutil.rmtree(forked.directory / "test.1.er" / "_f3.er")
    rest = interpose(command, forked.path)

    assert (whole.returncode, whole.stderr) == (0, "")
    assert rest.returncode == 3
    assert f"{GONE} {pid} was recorded there" in rest.stdout + rest.stderr


def test_the_first_screen_calls_it_incomplete(forked, interpose):
    shutil.rmtree(forked.directory / "test.1.er" / "_f3.er")

    assert "incomplete: _f3.er: is missing: process" in interpose("report", forked.path).stdout


def test_a_process_without_its_log_is_told(forked, interpose):
    (forked.directory / "test.1.er" / "_f1.er" / "log.xml").unlink()
    done = interpose("check", forked.path)

    assert done.returncode == 3
    assert done.stdout.splitlines()[0] == f"{forked.path}/_f1.er/log.xml: No such file or directory"
    assert "test.1.er: damaged; read: 3 processes, " in done.stdout


def test_one_that_was_killed_when_it_had_begun_is_told_too(forked, interpose):
    shutil.rmtree(forked.directory / "test.1.er" / "_f2.er")

    assert "test.1.er/_f2.er: is missing: process" in interpose("check", forked.path).stdout


STOPPED = """
import os, signal, time
for _ in range(20):
    if not (child := os.fork()):
        os._exit(0)
    os.kill(child, signal.SIGSTOP)
    time.sleep(0.12)
    os.kill(child, signal.SIGKILL)
    os.wait()
"""


def test_one_that_was_stopped_as_it_began_and_killed_later_may_have_nothing(traced, interpose):
    done = traced(STOPPED).ended_well()

    assert len(done.experiment.processes) < 21
    assert interpose("check", done.path).returncode == 0


FORKS_ON = """
import os, sys, threading
threading.Thread(target=lambda: (sys.stdin.read(), os._exit(0)), daemon=True).start()
print("forks", flush=True)
while True:
    if not os.fork():
        os._exit(0)
    os.wait()
"""


@pytest.mark.long
def test_a_program_that_forks_meanwhile_is_not_damaged(tmp_path, interpose):
    program = write_program(tmp_path, FORKS_ON)
    words = {"cwd": tmp_path, "env": environment(INTERPOSE="1"), "stdin": subprocess.PIPE, "stdout": subprocess.PIPE}
    with subprocess.Popen([sys.executable, "-W", "ignore", program], **words) as running:
        running.stdout.readline()
        found = [interpose("check", str(tmp_path / "test.1.er")) for _ in range(3)]
        running.stdin.close()

    assert [(each.returncode, each.stderr) for each in found] == [(0, "")] * len(found), found[0].stdout


@pytest.mark.long
def test_what_an_archive_had_lost_is_told_of_its_copy_too(forked, interpose):
    archive = forked.directory / "t.er.tar.zst"
    assert interpose("archive", "-o", str(archive), forked.path).returncode == 0
    archive.write_bytes(archive.read_bytes()[:-200])
    copied = interpose("cp", str(archive), "copy.er")
    again = interpose("archive", "-o", "again.er.tar.zst", "copy.er")

    assert (copied.returncode, copied.stderr) == (3, "interpose: t.er.tar.zst: cut short\n")
    assert again.returncode == 3
    for path in ("copy.er", "again.er.tar.zst"):
        assert "t.er.tar.zst: cut short" in interpose("check", path).stdout
        assert "incomplete: t.er.tar.zst: cut short" in interpose("report", path).stdout
