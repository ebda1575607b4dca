"""A directory above the experiment is renamed while the program runs, as deployments do."""

import os
import subprocess
import sys

import pytest
from tracing import environment, write_program

from interpose.analysis.recording.ending import recording_stopped
from interpose.experiments.model.experiment import Experiment

MOVED = """
import os, sys, threading
def work():
    for _ in range(3000):
        os.stat("/")
def descriptors():
    return sorted(map(int, os.listdir("/proc/self/fd")))[:-1]
before = descriptors()
for name in sys.argv[1:]:
    os.rename(os.getcwd(), os.path.join(os.path.dirname(os.getcwd()), name))
    threads = [threading.Thread(target=work) for _ in range(3)]
    for each in threads:
        each.start()
    for each in threads:
        each.join()
assert descriptors() == before
if not (pid := os.fork()):
    work()
    os._exit(0)
os.waitpid(pid, 0)
"""


def recorded(process):
    return sum(
        process.intrinsic(event.intrinsic).name == "os.stat" and process.string(event.detail) == "/"
        for block in process.events.blocks()
        for event in process.events.events(block)
    )


def run(directory, *names):
    directory.mkdir()
    variables = environment(INTERPOSE="1", INTERPOSE_ARCHIVE="off", XDG_STATE_HOME=str(directory.parent / "state"))
    words = [sys.executable, str(write_program(directory.parent, MOVED)), *names]
    done = subprocess.run(words, cwd=directory, env=variables, capture_output=True, text=True, timeout=60)
    assert done.returncode == 0, done.stderr


@pytest.mark.parametrize("names", [("old",), ("old", "older than old"), ("old", "now")])
def test_what_is_called_after_a_rename_is_recorded(tmp_path, names):
    run(tmp_path / "now", *names)
    experiment = Experiment(str(tmp_path / names[-1] / "test.1.er"))
    founder, child = experiment.processes

    assert [recorded(each) for each in (founder, child)] == [9000 * len(names), 3000]
    assert recording_stopped(founder) is None
    assert [event.kind for event in founder.log.events if event.kind == "exit"] == ["exit"]
    assert os.listdir(tmp_path).count("now") == names.count("now")
