"""The heap of a program that runs already is recorded from then on, until one detaches."""

import os
import signal
import time

import pytest
from attaching import EIGHT_THREADS
from tracing import until

from interpose.analysis.heap import heap_of
from interpose.experiments.model.experiment import Experiment

GROWING = """
import signal, sys, time
enough, kept = [], []
signal.signal(signal.SIGTERM, lambda number, frame: enough.append(number))
def grow():
    kept.append(bytearray(100_000))
print("ready", flush=True)
while not enough:
    grow()
    time.sleep(0.002)
print(len(kept) > 30, flush=True)
sys.exit(7)
"""


def test_what_a_running_program_allocates_is_recorded_until_one_detaches(running):
    program = running(GROWING)

    path = program.attach("--record", "calls,heap", "--heap", "all")
    until(lambda: grown_bytes(path) > 3_000_000)
    program.detach()
    recorded_bytes = grown_bytes(path)
    ended = program.end()

    assert ended == (7, "True\n", "")
    assert grown_bytes(path) == recorded_bytes


def test_each_recording_of_the_heap_has_its_own_size(running):
    program = running(GROWING)
    seldom = program.attach("--record", "calls,heap", "--heap", "16GiB")
    until(lambda: heap_of(Experiment(seldom).founder))
    time.sleep(0.1)  # allocations, by which the thread knows when its next sample would be due
    program.detach()

    path = program.attach("--record", "calls,heap", "--heap", "all")
    until(lambda: grown_bytes(path) > 1_000_000)
    program.detach()

    assert program.end() == (7, "True\n", "")


TRACEMALLOC_THAT_STOPS = """
import signal, tracemalloc
tracemalloc.start()
signal.signal(signal.SIGUSR1, lambda number, frame: tracemalloc.stop())
"""


def test_the_heap_is_recorded_again_after_another_allocator_was_put_back(running):
    program = running(TRACEMALLOC_THAT_STOPS + GROWING)
    first = program.attach("--record", "calls,heap", "--heap", "all")
    until(lambda: grown_bytes(first) > 1_000_000)
    os.kill(program.pid, signal.SIGUSR1)  # what was there before tracemalloc, and so before us, is asked from then on
    time.sleep(0.1)
    program.detach()

    path = program.attach("--record", "calls,heap", "--heap", "all")
    until(lambda: grown_bytes(path) > 1_000_000)
    program.detach()

    assert program.end() == (7, "True\n", "")


@pytest.mark.long
def test_all_of_it_is_recorded_of_threads_that_wait_for_each_other(running):
    program = running(EIGHT_THREADS)

    for number in range(4):
        path = program.attach("--record", "calls,native,heap", "--name", f"turn{number}")
        assert heap_of(Experiment(path).founder)
        program.detach()

    assert program.end() == (7, "True\n", "")


def grown_bytes(path):
    """What a line of `grow` has in use, as recorded."""
    heap = heap_of(Experiment(path).founder)
    rows = heap.rows.items() if heap else ()
    return sum(figures.end_bytes for site, figures in rows if site.function == "grow")
