"""The clock: wall and CPU from one reading, whatever witness it has."""

import os
import subprocess
import sys
import threading
import time
from statistics import median

import pytest
from clock_kinds import KINDS, available
from tracing import environment

from interpose.timing import clocks


def work(clock, seconds):
    """Compute, call the kernel and sleep in turns; gives the CPU time by the clock, and the least and the most that it
    may be by the kernel, which is asked before and after the clock: the thread may lose its processor in between."""
    nothing = os.open(os.devnull, os.O_WRONLY)
    begun, (wall_ns, begun_ns), begun_later = clocks.thread_cpu_ns(), clock.sync(), clocks.thread_cpu_ns()
    until_ns, turn = wall_ns + int(seconds * 1e9), 0
    while clock.read()[0] < until_ns:
        turn += 1
        if turn % 100 == 0:
            time.sleep(0.0002)
        elif turn % 3 == 0:
            sum(range(1000))
        else:
            os.write(nothing, b"x")
    os.close(nothing)
    ended, (_, ended_ns), ended_later = clocks.thread_cpu_ns(), clock.sync(), clocks.thread_cpu_ns()
    return ended_ns - begun_ns, ended - begun_later, ended_later - begun


@pytest.mark.alone
@pytest.mark.parametrize("kind", KINDS)
def test_it_agrees_with_the_kernel_in_four_threads(kind):
    available(kind)
    sums = []

    def measure():
        clock = clocks.Clock(kind)
        sums.append((*work(clock, 0.4), clock.behind_ns))

    threads = [threading.Thread(target=measure) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()

    for ours_ns, least_ns, most_ns, behind_ns in sums:
        # What the hypervisor stole is counted until the next synchronisation, at most a millisecond later.
        allowed_ns = max(20_000, most_ns / 1000) + behind_ns
        assert least_ns - allowed_ns <= ours_ns <= most_ns + allowed_ns
    assert len(sums) == 4


@pytest.mark.alone
@pytest.mark.parametrize("kind", ["tsc", "rseq", "perf"])
def test_sleeping_is_not_cpu_time(kind):
    clock = clocks.Clock(available(kind))
    before_wall_ns, before_cpu_ns = clock.read()

    time.sleep(0.05)
    wall_ns, cpu_ns = clock.read()

    assert wall_ns - before_wall_ns >= 50_000_000
    assert cpu_ns - before_cpu_ns < 10_000_000


@pytest.mark.alone
@pytest.mark.parametrize("kind", ["tsc", "rseq", "perf"])
def test_the_kernel_is_seldom_asked_while_computing(kind):
    clock = clocks.Clock(available(kind))

    for _ in range(100_000):
        clock.read()

    assert clock.syncs < 10_000


@pytest.mark.alone
@pytest.mark.parametrize("kind", ["tsc", "rseq"])
def test_a_pair_is_never_older_than_a_millisecond(kind):
    clock = clocks.Clock(available(kind))
    paired_ns, syncs = clock.sync()[0], clock.syncs
    oldest_ns, end_ns = 0, paired_ns + 100_000_000

    while paired_ns < end_ns:
        wall_ns, _ = clock.read()
        if clock.syncs != syncs:
            paired_ns, syncs = wall_ns, clock.syncs
        oldest_ns = max(oldest_ns, wall_ns - paired_ns)

    assert 0 < oldest_ns <= 1_000_000


@pytest.mark.alone
@pytest.mark.parametrize("kind", ["tsc", "rseq", "perf"])
def test_it_never_goes_back_and_shows_what_it_was_ahead(kind):
    clock, syncs = clocks.Clock(available(kind)), None
    while syncs != clock.syncs:  # a thread that loses its processor between the two lines synchronises
        syncs = clock.syncs
        clock.drift(300_000)
        ahead_ns = clock.read()[1]

    readings = [clock.sync()[1]] + [clock.read()[1] for _ in range(1000)]

    assert readings[0] >= ahead_ns
    assert readings == sorted(readings)
    assert clock.behind_ns > 200_000


@pytest.mark.alone
def test_it_catches_up_after_having_been_ahead():
    clock = clocks.Clock(available("rseq"))
    clock.drift(300_000)
    clock.read()

    until_ns = time.monotonic_ns() + 20_000_000
    while time.monotonic_ns() < until_ns:
        clock.read()
    kernel_ns, (_, ours_ns) = clocks.thread_cpu_ns(), clock.sync()

    assert abs(ours_ns - kernel_ns) < 100_000


@pytest.mark.alone
def test_two_clocks_on_a_thread_do_not_take_each_others_mark():
    first, second = clocks.Clock("rseq"), clocks.Clock("rseq")
    kernel_ns, begun_ns = clocks.thread_cpu_ns(), first.sync()[1]

    for _ in range(20):
        time.sleep(0.001)
        second.sync()
        ours_ns = first.read()[1]

    assert abs((ours_ns - begun_ns) - (clocks.thread_cpu_ns() - kernel_ns)) < 1_000_000


@pytest.mark.alone
@pytest.mark.parametrize("kind", ["tsc", "rseq"])
def test_the_witness_is_given_up_where_somebody_else_owns_it(kind):
    clock, other = clocks.Clock(available(kind)), clocks.Clock("rseq")

    for _ in range(10_000):
        clock.read()
        other.sync()

    assert clock.kind in ("perf", "syscall")


def test_the_choice_is_explained():
    kind, why = clocks.choose("auto")

    assert kind in KINDS
    assert why


def test_the_choice_is_the_same_however_often_it_is_made():
    assert len({clocks.choose("auto") for _ in range(10_000)}) == 1


def test_the_system_call_can_be_chosen():
    assert clocks.choose("syscall") == ("syscall", "as set")


def test_without_rseq_another_clock_is_taken():
    probe = "from interpose.timing import clocks; print(*clocks.choose())"
    done = subprocess.run(
        [sys.executable, "-c", probe],
        env=environment(GLIBC_TUNABLES="glibc.pthread.rseq=0"),
        capture_output=True,
        text=True,
    )

    assert done.stdout == "perf rseq is not registered for this thread\n" or done.stdout.startswith("syscall ")


PROGRAM = """
    import os, threading, time, warnings
    warnings.simplefilter("ignore", DeprecationWarning)  # 3.12 and later: a thread may not be quite gone at the fork
    out = os.open(os.devnull, os.O_WRONLY)
    def work():
        for turn in range(300):
            os.write(out, b"x" * 10)
            if turn % 100 == 0:
                time.sleep(0.002)
                sum(range(20000))
    threads = [threading.Thread(target=work) for _ in range(4)]
    for thread in threads: thread.start()
    work()
    for thread in threads: thread.join()
    if os.fork() == 0:
        work()
        os._exit(0)
    os.wait()
"""


@pytest.mark.parametrize("kind", KINDS)
def test_every_clock_records_the_same_calls_in_threads_and_after_fork(kind, traced):
    available(kind)
    done = traced(PROGRAM, INTERPOSE_CLOCK=kind).ended_well()
    founder, child = done.experiment.processes

    assert founder.log.clock["kind"] == kind
    assert len(done.events("os.write")) == 5 * 300
    assert len(done.events("os.write", child)) == 300
    for event in [*done.events(), *done.events(process=child)]:
        assert 0 <= event.cpu_ns <= event.wall_ns
    sleeps = done.events("time.sleep")
    assert len(sleeps) == 15
    assert min(event.wall_ns for event in sleeps) >= 2_000_000
    assert median(event.cpu_ns for event in sleeps) < 200_000  # to some the kernel charges what a hypervisor took


@pytest.mark.parametrize("ahead_ns", [-5_000_000, 5_000_000])
def test_cpu_is_never_negative_nor_more_than_wall_when_the_clock_is_wrong(ahead_ns, recorded):
    if ahead_ns < 0 and clocks.Clock("auto").kind == "syscall":
        pytest.skip("the clock asks the kernel at each reading here, so it is never behind")
    done = recorded(f"""
        import time
        from interpose.library import Intrinsic
        record(Intrinsic("time.sleep", "time:sleep", "sleep"))
        for _ in range(20):
            shims.drift_clock({ahead_ns})
            time.sleep(0.001)
    """)

    events = done.events("time.sleep")
    assert len(events) == 20
    assert all(0 <= event.cpu_ns <= event.wall_ns for event in events)
    if ahead_ns < 0:
        assert any(event.cpu_ns == event.wall_ns for event in events)
    else:
        assert all(event.cpu_ns == 0 for event in events[1:])
