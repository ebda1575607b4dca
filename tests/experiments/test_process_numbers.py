"""The number of a recorded process means something only in its own PID namespace."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import time
from pathlib import Path

import pytest

from interpose.analysis.recording.ending import is_running
from interpose.analysis.time.cpu_readings import Readings, add_process_now, add_thread_now
from interpose.cli.destinations import refuse_running
from interpose.cli.main import main
from interpose.errors import ExperimentError
from interpose.experiments.metadata.log import Log
from interpose.experiments.model.experiment import Experiment
from interpose.experiments.model.process_numbers import is_number_here, number_here, own_namespace
from tests.build import Build

pytestmark = pytest.mark.every_python

OWN = os.stat("/proc/self/ns/pid").st_ino
OTHER = 1  # no namespace has this inode


@pytest.fixture
def inside():
    """A process that is number 1 in a namespace of its own, by its number here."""
    if not shutil.which("unshare"):
        pytest.skip("no unshare")
    words = ["unshare", "-fp", "--kill-child", sys.executable, "-c", "print(flush=True); input()"]
    with subprocess.Popen(words, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL) as process:
        if process.stdout.readline() != b"\n":
            pytest.skip("no right to make a namespace")
        yield int(Path(f"/proc/{process.pid}/task/{process.pid}/children").read_text())
        process.stdin.close()


def test_a_number_of_the_same_namespace_or_of_an_unknown_one_is_taken_as_it_is():
    assert own_namespace() == OWN
    assert [number_here(Log(pid=7, pid_namespace=each)) for each in (OWN, 0)] == [7, 7]


def test_a_process_in_another_namespace_is_found_by_what_the_kernel_says(inside):
    log = Log(pid=1, pid_namespace=os.stat(f"/proc/{inside}/ns/pid").st_ino)

    assert not is_number_here(log)
    assert [number_here(log), number_here(log)] == [inside, inside]
    assert number_here(Log(pid=2, pid_namespace=log.pid_namespace)) == 0


def test_commands_name_a_running_process_by_its_number_here(inside, tmp_path, capsys):
    namespace = os.stat(f"/proc/{inside}/ns/pid").st_ino
    log = {"pid": 1, "pid_namespace": namespace, "host": os.uname().nodename, "time_ns": time.time_ns()}
    path = str(Build(tmp_path / "t.1.er", **log).write())

    assert main(["control", path]) == 0
    assert capsys.readouterr().out == f"t.1.er  process {inside}  recording  filter off\n"
    with pytest.raises(ExperimentError, match=f"process {inside} still runs"):
        refuse_running(path)


def test_a_number_of_a_namespace_that_is_gone_is_nobody_here():
    log = Log(pid=os.getpid(), pid_namespace=OTHER)
    readings = Readings()
    add_process_now(readings, log)
    add_thread_now(readings, log, os.getpid())

    assert number_here(log) == 0
    assert readings.at(time.monotonic_ns()) == 0


@pytest.mark.parametrize("namespace", [OWN, OTHER])
def test_only_a_process_of_its_namespace_keeps_an_experiment_running(tmp_path, namespace):
    log = {"pid": os.getpid(), "pid_namespace": namespace, "host": os.uname().nodename, "time_ns": time.time_ns()}
    build = Build(tmp_path / "t.1.er", **log)

    assert is_running(Experiment(str(build.write())).founder) == (namespace == OWN)


def test_a_process_records_its_namespace(traced):
    assert traced("pass").experiment.founder.log.pid_namespace == OWN
