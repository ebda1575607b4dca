"""Waiting for what others send through a pipe is idle; reading from one's own child is waiting for that child."""

from __future__ import annotations

import pytest
from idling import kinds, waits
from tracing import events_of

SHARES = """
import time
from multiprocessing import shared_memory

memory = shared_memory.SharedMemory(create=True, size=100)
time.sleep(0.3)
memory.close()
memory.unlink()
"""
SPAWNS = """
import multiprocessing, sys, time

if __name__ == "__main__":
    made = multiprocessing.get_context(sys.argv[1])
    worker = made.Process(target=time.sleep, args=(0.3,))
    worker.start()
    worker.join()
"""
READS = """
import subprocess, sys

child = [sys.executable, "-c", "import time; time.sleep(0.2); print('done')"]
with subprocess.Popen(child, stdout=subprocess.PIPE) as started:
    started.stdout.read()
with subprocess.Popen(child, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as started:
    started.communicate()
"""
BEHIND_A_TERMINAL = """
import asyncio, errno, os, pty, select, sys

def started():
    child, master = pty.fork()
    if not child:
        os.execv(sys.executable, [sys.executable, "-c", "import time; time.sleep(0.2); print('done')"])
    return master

def is_over(master):
    try:
        return not os.read(master, 100)
    except OSError as error:
        assert error.errno == errno.EIO
        return True

def reads(master):
    while not is_over(master):
        pass

def selects(master):
    while select.select([master], [], []) and not is_over(master):
        pass

def polls(master):
    poller = select.poll()
    poller.register(master, select.POLLIN)
    while poller.poll() and not is_over(master):
        pass

def in_loop(master):
    async def main():
        ended = asyncio.Event()
        asyncio.get_running_loop().add_reader(master, lambda: is_over(master) and ended.set())
        await ended.wait()
    asyncio.run(main())

for wait in (reads, selects, polls, in_loop):
    master = started()
    wait(master)
    os.wait()
"""
FORKS = """
import os, time

there, back = os.pipe(), os.pipe()
if not os.fork():
    time.sleep(0.2)
    os.read(there[0], 1)  # what the parent sends
    again = os.pipe()
    if not os.fork():
        time.sleep(0.2)
        os._exit(os.write(again[1], b"x") - 1)
    os.read(again[0], 1)  # its own child
    time.sleep(0.2)
    os._exit(os.write(back[1], b"x") - 1)
time.sleep(0.4)
os.write(there[1], b"x")
os.read(back[0], 1)
os.wait()
"""


def lines(process):
    """The program's own lines that calls were made from."""
    found = [process.own_line(event.stack) for event in events_of(process)]
    return {(line.file, line.function) for line in found if line and line.own}


def test_the_resource_tracker_is_idle_and_its_command_is_not_the_programs_code(traced):
    done = traced(SHARES).ended_well()

    (tracker,) = done.experiment.processes[1:]
    assert {kind for _, kind in kinds(waits(done, tracker))} == {"idle"}
    assert not lines(tracker)


@pytest.mark.parametrize("way", ["spawn", "forkserver"])
def test_helpers_of_multiprocessing_are_idle(traced, way):
    done = traced(SPAWNS, way).ended_well()

    waited = [kinds(waits(done, process)) for process in done.experiment.processes[1:]]
    assert {kind for each in waited for _, kind in each} == {"idle", "sleep"}
    assert not [line for process in done.experiment.processes[1:] for line in lines(process) if line[0] == "<string>"]


@pytest.mark.parametrize("way", ["fork", "spawn", "forkserver"])
def test_who_starts_a_process_of_multiprocessing_waits_for_it_and_not_for_the_network(traced, way):
    done = traced(SPAWNS, way).ended_well()
    founder = done.experiment.founder
    called = [founder.intrinsic(event.intrinsic) for event in events_of(founder)]

    assert {each.kind for each in called if each.name in ("os.read", "os.write")} <= {"process", "file"}


def test_who_reads_the_output_of_its_child_waits_for_the_child(traced):
    done = traced(READS).ended_well()

    assert {kind for _, kind in kinds(waits(done))} == {"process"}


def test_who_reads_what_a_program_writes_to_its_terminal_waits_for_that_program(traced):
    done = traced(BEHIND_A_TERMINAL).ended_well()

    ways = ["os.read", "select.select", "select.poll.poll", "select.epoll.poll"]
    found = [each for each in kinds(waits(done, done.experiment.founder)) if each[0] in ways]  # not the loop's await
    assert found == [(name, "process") for name in ways]


def test_a_forked_child_that_reads_from_its_parent_is_idle_and_else_waits_for_its_own_child(traced):
    done = traced(FORKS).ended_well()
    founder, child = done.experiment.processes[:2]

    assert [kind for name, kind in kinds(waits(done, founder)) if name == "os.read"] == ["process"]
    assert [kind for name, kind in kinds(waits(done, child)) if name == "os.read"] == ["idle", "process"]
