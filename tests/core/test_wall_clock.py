"""Recorded times are those of the monotonic clock, whatever they are counted by."""

import json
import sys
import threading
import time

import pytest
from clock_kinds import KINDS, available
from tracing import Traced, run_in, write_program

from interpose.timing import clocks

APART_NS = 1000
SOURCE = "/sys/devices/system/clocksource/clocksource0/current_clocksource"


def farthest_ns(clock, seconds):
    """How far readings lie outside of two readings of the monotonic clock around each; and the readings."""
    readings, apart_ns = [], 0
    until_ns = time.monotonic_ns() + int(seconds * 1e9)
    before_ns = 0
    while before_ns < until_ns:
        before_ns = time.monotonic_ns()
        wall_ns = clock.read()[0]
        after_ns = time.monotonic_ns()
        readings.append(wall_ns)
        apart_ns = max(apart_ns, before_ns - wall_ns, wall_ns - after_ns)
    return apart_ns, readings


@pytest.mark.alone
@pytest.mark.parametrize("kind", KINDS)
def test_wall_time_is_the_monotonic_clock_in_every_thread(kind):
    available(kind)
    found = []

    def compare():
        clock = clocks.Clock(kind)
        for _ in range(5):
            found.append(farthest_ns(clock, 0.02))
            time.sleep(0.01)

    threads = [threading.Thread(target=compare) for _ in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()

    assert len(found) == 10
    assert max(apart_ns for apart_ns, _ in found) < APART_NS
    assert all(readings == sorted(readings) for _, readings in found)


@pytest.mark.slow
@pytest.mark.alone
def test_it_is_so_for_many_seconds():
    apart_ns, readings = farthest_ns(clocks.Clock(available("tsc")), 20)

    assert apart_ns < APART_NS
    assert readings == sorted(readings)


@pytest.mark.alone
@pytest.mark.parametrize("factor", [0.9, 0.9999, 1.0001, 1.1])
def test_a_wrong_rate_is_soon_corrected(factor):
    clock = clocks.Clock(available("tsc"))
    farthest_ns(clock, 0.02)
    clock.bend(factor)
    for _ in range(5):  # the clock is synchronised after each sleep, and measures between them
        time.sleep(0.012)
        clock.read()

    apart_ns, _ = farthest_ns(clock, 0.05)

    assert apart_ns < APART_NS


@pytest.mark.alone
@pytest.mark.parametrize("factor", [0.03, 30, 1000])
def test_a_rate_that_is_far_off_counts_until_the_next_synchronisation_only(factor):
    clock = clocks.Clock(available("tsc"))
    farthest_ns(clock, 0.02)
    clock.bend(factor)
    for _ in range(2):  # the first takes it up
        time.sleep(0.001)
        clock.read()

    _, readings = farthest_ns(clock, 0.05)
    apart_ns = readings[-1] - time.monotonic_ns()

    assert readings == sorted(readings)
    assert apart_ns < 2_000_000


PROGRAM = """
    import json, os, threading, time, warnings
    warnings.simplefilter("ignore", DeprecationWarning)  # of fork: a joined thread may still be ending
    nothing = os.open(os.devnull, os.O_WRONLY)
    def work(found):
        bounds = found[threading.get_native_id()] = []
        for turn in range(400):
            before = time.monotonic_ns()
            os.write(nothing, b"x")
            bounds.append((before, time.monotonic_ns()))
            if turn % 10 == 0:
                time.sleep(0.0005)
            elif turn % 100 == 5:
                sum(range(100_000))
    def run(who):
        found = {}
        threads = [threading.Thread(target=work, args=(found,)) for _ in range(3)]
        for thread in threads: thread.start()
        for thread in threads: thread.join()
        with open(who, "w") as file:
            json.dump(found, file)
    run("parent")
    if os.fork() == 0:
        run("child")
        os._exit(0)
    os.wait()
"""


@pytest.mark.parametrize("kind", KINDS)
def test_events_lie_within_the_programs_own_readings(kind, traced):
    available(kind)
    done = traced(PROGRAM, INTERPOSE_CLOCK=kind).ended_well()
    parent, child = done.experiment.processes

    for process, name in ((parent, "parent"), (child, "child")):
        bounds = json.loads((done.directory / name).read_text())
        events = {tid: [] for tid in bounds}
        tids = {thread.number: str(thread.record.tid) for thread in process.threads}
        for event in done.events("os.write", process):
            events[tids[event.thread]].append(event)
        for tid, own in events.items():
            for event, (before_ns, after_ns) in zip(own, bounds[tid], strict=True):
                assert before_ns - APART_NS <= event.start_ns
                assert event.start_ns + event.wall_ns <= after_ns + APART_NS
                assert 0 <= event.cpu_ns <= event.wall_ns


def in_another_source(program, directory, **variables):
    """The program, run where the kernel says that its clock source is another one."""
    other = directory / "clocksource"
    other.write_text("hpet\n")
    command = f'mount --bind "{other}" {SOURCE} && exec "$0" "$@"'
    done = run_in(directory, ["unshare", "-rm", "sh", "-c", command, sys.executable, *program], **variables)
    if "unshare" in done.stderr or "mount" in done.stderr:
        pytest.skip("no right to make a namespace")
    return done


def test_where_the_kernel_uses_another_source_its_clock_is_read(tmp_path):
    available("tsc")
    probe = "from interpose.timing import clocks; print(*clocks.choose()); print(clocks.Clock('tsc').kind)"

    done = in_another_source(["-c", probe], tmp_path)

    assert done.stdout == "rseq the kernel does not keep its time by the processor's counter\nrseq\n"


def test_the_experiment_says_that_the_counter_was_not_used(tmp_path):
    available("tsc")
    program = write_program(tmp_path, "import os; os.write(os.open(os.devnull, os.O_WRONLY), b'x')")

    traced = Traced(tmp_path, in_another_source([str(program)], tmp_path, INTERPOSE="1"))

    assert traced.experiment.founder.log.clock["kind"] == "rseq"
    assert "processor's counter" in traced.experiment.founder.log.clock["why"]
