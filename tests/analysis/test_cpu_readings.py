"""Readings of clocks of CPU time: recorded ones, and the kernel's now."""

import os
import threading
import time

import pytest

from interpose.analysis.time.cpu_readings import Readings, add_process_now, add_thread_now
from interpose.experiments.metadata.log import Log


def test_time_between_readings_is_divided():
    readings = Readings()
    for instant_ns, cpu_ns in ((100, 10), (300, 110), (200, 10)):
        readings.add(instant_ns, cpu_ns)

    assert [readings.at(each) for each in (0, 100, 250, 300, 400)] == [10, 10, 60, 110, 110]
    assert readings.used_ns(150, 250) == 50
    assert readings.nearest(240) == 200


def test_without_readings_nothing_was_used():
    assert Readings().used_ns(1, 2) == 0
    assert Readings().nearest(7) == 7


def test_the_kernel_tells_what_threads_and_processes_have_used_until_now():
    process, thread = Readings(), Readings()
    end = time.process_time() + 0.05
    while time.process_time() < end:
        pass

    add_process_now(process, Log(pid=os.getpid()))
    add_thread_now(thread, Log(pid=os.getpid()), threading.get_native_id())

    assert process.at(time.monotonic_ns()) == pytest.approx(time.process_time_ns(), abs=50_000_000)
    assert thread.at(time.monotonic_ns()) == pytest.approx(time.thread_time_ns(), abs=50_000_000)


def test_what_has_ended_adds_no_reading():
    readings = Readings()

    add_process_now(readings, Log(pid=2**22 + 1))
    add_thread_now(readings, Log(pid=2**22 + 1), 2**22 + 1)

    assert readings.at(time.monotonic_ns()) == 0
