"""What recording leaves of the disk: the program writes as it does without us, and the report says what stopped."""

import os
import subprocess
import sys
import time

import pytest
from tracing import environment, run_in, until, write_program

from interpose.analysis.recording.ending import recording_stopped
from interpose.config import values
from interpose.experiments.metadata.control import Control
from interpose.experiments.model.experiment import Experiment
from interpose.monitor import FAILED_AT_MOST, Monitor
from tests.experiments.test_compressed import calls_in_order, recorded

MIB_BYTES = 1 << 20
# Calls that a ring would fill the disk with, then as many of the program's own bytes as there are without us.
WRITES = """
import os, sys
for _ in range(400_000):
    os.stat("/")
piece, written = bytes(64 * 1024), 0
with open("own", "wb", buffering=0) as file:
    for _ in range(int(sys.argv[1])):
        written += file.write(piece) == len(piece)
print(written)
"""
FORKS = """
import os
for _ in range(20):
    child = os.fork()
    if not child:
        os._exit(0)
    os.waitpid(child, 0)
"""


@pytest.fixture
def disk(tmp_path):
    """A file system of 64 MiB."""
    place = tmp_path / "disk"
    place.mkdir()
    if subprocess.run(["mount", "-t", "tmpfs", "-o", "size=64M", "tmpfs", place], capture_output=True).returncode:
        pytest.skip("no right to mount a small file system")
    yield place
    for _ in range(100):
        if subprocess.run(["umount", place], capture_output=True).returncode == 0:
            return
        time.sleep(0.1)
    raise AssertionError("somebody still uses the file system")


def run(tmp_path, disk, source, *words, **variables):
    done = run_in(
        disk,
        [sys.executable, str(write_program(tmp_path, source)), *words],
        INTERPOSE="1",
        XDG_STATE_HOME=str(tmp_path / "state"),
        **variables,
    )
    return done, Experiment(str(disk / "test.1.er"))


@pytest.fixture
def start(tmp_path, started):
    """Starts a program under `interpose run`, which is its monitor."""

    def start(place, program, **variables):
        words = [sys.executable, "-m", "interpose", "run", "--", sys.executable, str(program)]
        own = environment(XDG_STATE_HOME=str(tmp_path / "state"), **variables)
        return started(words, session=True, cwd=place, env=own)

    return start


def used_bytes(directory):
    return sum(file.stat().st_blocks * 512 for file in directory.rglob("*") if file.is_file())


@pytest.mark.long
def test_a_file_system_smaller_than_the_reserve_is_left_to_the_program(tmp_path, disk, interpose_here):
    done, experiment = run(tmp_path, disk, WRITES, "1000", INTERPOSE_RING="256MiB")

    assert (done.returncode, done.stdout, done.stderr) == (0, "1000\n", "")
    assert recording_stopped(experiment.founder) == "too little disk is free (INTERPOSE_RESERVE)"
    assert used_bytes(disk / "test.1.er") <= MIB_BYTES
    shown = interpose_here("report", str(disk / "test.1.er"))
    assert "incomplete: recording stopped, too little disk is free (INTERPOSE_RESERVE)" in shown.stdout.splitlines()[1]


@pytest.mark.long
@pytest.mark.parametrize("files", ["ring", "events"])
def test_recording_stops_when_so_much_is_free_as_was_said(tmp_path, disk, files):
    variables = {"INTERPOSE_RING": "256MiB"} if files == "ring" else {}
    done, experiment = run(tmp_path, disk, WRITES, "720", INTERPOSE_RESERVE="46MiB", **variables)

    assert (done.returncode, done.stdout, done.stderr) == (0, "720\n", "")
    assert recording_stopped(experiment.founder)
    # Full blocks that go round stay; others the monitor may have compressed by now.
    assert used_bytes(disk / "test.1.er") <= 18 * MIB_BYTES
    assert files == "events" or used_bytes(disk / "test.1.er") >= 15 * MIB_BYTES
    assert Control(experiment.founder).read().reserve_bytes == 46 * MIB_BYTES


def test_what_only_writes_texts_stops_as_well(tmp_path, disk):
    many = 'import os\nfor number in range(60_000): os.path.exists(f"/nonexistent/{number:0200d}")\n'

    done, experiment = run(tmp_path, disk, many, INTERPOSE_RESERVE="60MiB", INTERPOSE_POOL="off")

    assert (done.returncode, done.stderr) == (0, "")
    assert recording_stopped(experiment.founder)
    assert used_bytes(disk / "test.1.er") <= 4 * MIB_BYTES


def test_children_take_nothing_below_the_reserve_and_are_counted(tmp_path, disk):
    done, experiment = run(tmp_path, disk, FORKS)

    assert (done.returncode, done.stderr) == (0, "")
    assert len(experiment.processes) == 1
    assert experiment.founder.unrecorded_children == 20


CALLS = """
import os, time
print("ready", flush=True)
while not os.path.exists("enough"):
    time.sleep(0.1)  # so rarely that no file grows
"""


@pytest.mark.parametrize("ring", ["off", "1MiB"])
def test_recording_stops_when_another_program_fills_the_disk(tmp_path, disk, start, ring):
    experiment = str(disk / "test.1.er")
    running = start(disk, write_program(tmp_path, CALLS), INTERPOSE_RESERVE="40MiB", INTERPOSE_RING=ring)
    (disk / "filler").write_bytes(bytes(30 * MIB_BYTES))

    until(lambda: recording_stopped(Experiment(experiment).founder))
    used = used_bytes(disk / "test.1.er")
    (disk / "enough").touch()

    assert running.wait(30) == 0
    assert recording_stopped(Experiment(experiment).founder) == "too little disk is free (INTERPOSE_RESERVE)"
    assert used <= 2 * MIB_BYTES


def test_nothing_is_left_free_where_that_is_asked_for(tmp_path, disk):
    _, experiment = run(tmp_path, disk, "import os\nfor _ in range(1000): os.stat('/')", INTERPOSE_RESERVE="off")

    assert recording_stopped(experiment.founder) is None
    assert Control(experiment.founder).read().reserve_bytes == 0


def test_the_reserve_is_the_larger_of_a_part_of_the_disk_and_a_size(tmp_path):
    _, experiment = run(tmp_path, tmp_path, "pass")

    status = os.statvfs(tmp_path)
    part_bytes = status.f_blocks * status.f_frsize // 20
    assert Control(experiment.founder).read().reserve_bytes == max(part_bytes, 256 * MIB_BYTES)


@pytest.mark.parametrize(
    ("text", "size_bytes"), [("auto", values.RESERVE_AUTO), ("off", 0), ("2GiB", 2 << 30), ("64", 64 << 20)]
)
def test_the_reserve_is_a_size_or_a_word(text, size_bytes):
    assert values.parse_reserve(text) == size_bytes


def test_the_monitor_of_an_ended_process_ends_though_the_disk_is_full(tmp_path, disk):
    path = recorded(disk / "t.1.er")
    before = calls_in_order(path)
    (disk / "filler").write_bytes(bytes(os.statvfs(disk).f_bavail * os.statvfs(disk).f_frsize))
    monitor, looks = Monitor(str(path)), 0

    while not monitor.is_done and looks < 100:
        monitor.look()
        looks += 1
    monitor.close()

    assert looks <= FAILED_AT_MOST + 1
    assert calls_in_order(path) == before


def test_the_monitor_takes_no_more_of_the_disk_where_it_cannot_give_back(tmp_path, disk, monkeypatch):
    def refuse(descriptor, offset, length):
        raise OSError(95, os.strerror(95))

    monkeypatch.setattr("interpose.experiments.maintenance.drain.give_back", refuse)
    path = recorded(disk / "t.1.er")
    Control(Experiment(str(path)).founder).write(reserve_bytes=100 * MIB_BYTES)
    before, monitor = calls_in_order(path), Monitor(str(path))

    for _ in range(3):
        monitor.look()
    monitor.close()

    assert monitor.is_done
    assert (path / "events").stat().st_size > 0
    assert calls_in_order(path) == before
