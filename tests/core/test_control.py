"""The control page: a running program is told from outside to stop recording, and to go on."""

import os
import sys

import pytest
from tracing import events_of, start_in

from interpose.errors import ExperimentError
from interpose.experiments.metadata.control import Control
from interpose.experiments.model.experiment import Experiment
from tests.build import Build, size_of

STEPS = """
import os, subprocess, sys
null = os.open("/dev/null", os.O_WRONLY)
sys.stdin.readline()
os.write(null, b"1")
print(flush=True)
sys.stdin.readline()
os.write(null, b"22")
child = os.fork()
if child == 0:
    os.write(null, b"333")
    os._exit(0)
os.waitpid(child, 0)
subprocess.run([sys.executable, "-c", "import os; os.write(1, b'4444')"], stdout=null)
print(flush=True)
sys.stdin.readline()
os.write(null, b"55555")
"""


@pytest.fixture
def steps(tmp_path):
    """A traced program that goes on with each line it is given, and has begun."""
    process = start_in(tmp_path, [sys.executable, "-c", STEPS], INTERPOSE="1")

    def go_on(last=False):
        process.stdin.write("\n")
        process.stdin.flush()
        return process.wait(30) if last else process.stdout.readline()

    yield go_on
    process.kill()
    process.communicate()


def written(experiment):
    """The bytes of each `os.write` of all processes, in order."""
    found = [event for process in experiment.processes for event in events_of(process, "os.write")]
    return [event.bytes for event in sorted(found, key=lambda event: event.start_ns)]


def test_nothing_is_recorded_of_the_whole_tree_while_it_is_paused(tmp_path, steps):
    steps()
    control = Control(Experiment(str(tmp_path / "test.1.er")).founder)
    control.write(paused=1)
    steps()
    control.write(paused=0)
    assert steps(last=True) == 0

    experiment = Experiment(str(tmp_path / "test.1.er"))
    assert len(experiment.processes) == 3
    assert written(experiment) == [1, 5]
    assert not any(thread.record.dropped for process in experiment.processes for thread in process.threads)


def test_what_a_descriptor_is_is_asked_again_after_a_pause(tmp_path, traced):
    done = traced("""
        import ctypes, mmap, os
        one, two = os.open("one", os.O_CREAT | os.O_RDWR), os.open("two", os.O_CREAT | os.O_RDWR)
        os.write(one, b"1")
        page = os.open("test.1.er/threads", os.O_RDWR)
        offset = int(open("test.1.er/log.xml").read().split('name="paused" type="u32" offset="')[1].split('"')[0])
        os.pwrite(page, b"\\1", 64 + offset)
        os.dup2(two, one)
        os.pwrite(page, b"\\0", 64 + offset)
        os.write(one, b"2")
    """)

    founder = done.experiment.founder
    assert done.stderr == ""
    assert [os.path.basename(founder.string(event.detail)) for event in done.events("os.write")] == ["one", "two"]


def test_each_field_is_read_as_it_was_written(tmp_path):
    founder = Experiment(str(Build(tmp_path / "t.1.er").write())).founder
    control = Control(founder)

    control.write(paused=1, drained_bytes=1 << 40, monitor=77)

    record = control.read()
    assert (record.paused, record.drained_bytes, record.monitor) == (1, 1 << 40, 77)
    assert sum(record) == 1 + (1 << 40) + 77


def test_a_page_that_is_cut_short_is_told(tmp_path):
    path = Build(tmp_path / "t.1.er").write()
    founder = Experiment(str(path)).founder
    os.truncate(path / "threads", size_of("HEAD") + size_of("CONTROL") - 1)

    with pytest.raises(ExperimentError, match=r"t\.1\.er/threads: cut short"):
        Control(founder).read()


def test_an_experiment_of_an_earlier_version_has_no_page(tmp_path):
    path = Build(tmp_path / "t.1.er").write()
    log = path / "log.xml"
    log.write_text(log.read_text().replace("<control ", "<other ").replace("</control>", "</other>"))

    with pytest.raises(ExperimentError, match="has no control page"):
        Control(Experiment(str(path)).founder)
