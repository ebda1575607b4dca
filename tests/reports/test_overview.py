"""Samples of what a process has used, and how long its threads waited for CPU."""

import json
from collections import Counter
from itertools import pairwise

import pytest

from interpose.analysis.analysis import Analysis
from interpose.analysis.time.run_queue import unseen_wait
from interpose.analysis.time.usage import usages
from interpose.config.values import parse_interval
from interpose.experiments.model.experiment import Experiment
from interpose.reports.formats.units import duration
from tests.build import SECOND, START_NS, Build, event

MS = 1_000_000

BUSY = """
    import os, threading, time

    def delay_ns():
        with open("/proc/thread-self/schedstat") as file:
            return int(file.read().split()[1])

    processor = {min(os.sched_getaffinity(0))}
    os.sched_setaffinity(0, processor)
    before_ns = delay_ns()
    rival = os.fork()
    end = time.monotonic() + 0.5
    while time.monotonic() < end:
        pass
    if rival == 0:
        os._exit(0)
    os.waitpid(rival, 0)
    print(delay_ns() - before_ns)
"""

SLEEPING = """
    import time
    for _ in range(30):
        time.sleep(0.01)
"""
MANY_CALLS = """
import os
for _ in range(30_000):
    os.stat(".")
"""


def kinds(process):
    return [sample.kind for sample in process.overview]


def test_a_sample_is_taken_with_the_first_call_after_each_interval(traced):
    founder = traced(SLEEPING, INTERPOSE_SAMPLE="50ms").experiment.founder

    between = [sample for sample in founder.overview if sample.kind == 2]
    assert kinds(founder) == [1, *[2] * len(between), 3]
    assert len(between) >= 2
    gaps = [after.time_ns - before.time_ns for before, after in pairwise(between)]
    assert all(gap >= 49_000_000 for gap in gaps)
    assert [sample.cpu_ns for sample in founder.overview] == sorted(sample.cpu_ns for sample in founder.overview)
    assert all(sample.max_rss_bytes > 1 << 20 for sample in founder.overview)


def test_the_longer_a_process_runs_the_farther_apart_are_its_samples(traced):
    founder = traced(MANY_CALLS, INTERPOSE_SAMPLE="1us").experiment.founder

    due_ns = [sample.every_ns for sample in founder.overview]
    assert due_ns == sorted(due_ns)
    assert Counter(due_ns[1:-1])[1000] == 16_383
    assert set(due_ns) == {1000, 2000}


def test_samples_can_be_left_to_the_beginning_and_the_end(traced):
    assert kinds(traced(SLEEPING, INTERPOSE_SAMPLE="off").experiment.founder) == [1, 3]


def test_a_thread_tells_how_long_it_was_runnable_and_had_no_processor(traced):
    done = traced(BUSY, INTERPOSE_SAMPLE="50ms")

    (thread,) = done.experiment.founder.threads
    assert 100_000_000 < int(done.stdout) <= thread.record.run_delay_ns
    assert done.experiment.founder.overview[-1].run_delay_ns <= thread.record.run_delay_ns


@pytest.mark.parametrize(
    ("text", "interval_ns"),
    [("on", 10**9), ("off", None), ("5", 5 * 10**9), ("0.5", 5 * 10**8), ("20ms", 2 * 10**7), ("5m", 300 * 10**9)],
)
def test_an_interval_is_seconds_or_has_its_unit(text, interval_ns):
    assert parse_interval(text) == interval_ns


@pytest.mark.parametrize("text", ["", "0", "-1", "x", "5d", "onn"])
def test_what_is_no_interval_is_refused(text):
    with pytest.raises(ValueError):
        parse_interval(text)


def sampled(directory, *samples):
    build = Build(directory / "t.1.er", settings={"INTERPOSE_SAMPLE": "on"})
    for after_s, values in samples:
        build.sample(time_ns=START_NS + round(after_s * SECOND), kind=2, every_ns=SECOND, **values)
    return Experiment(str(build.write()))


def test_what_was_used_is_the_difference_of_two_samples(tmp_path):
    experiment = sampled(
        tmp_path,
        (0, {"cpu_ns": 5, "minor_faults": 10, "max_rss_bytes": 100}),
        (1.5, {"cpu_ns": 9, "minor_faults": 10, "max_rss_bytes": 300}),
        (4, {"cpu_ns": 30, "minor_faults": 11, "max_rss_bytes": 300}),
    )

    rows = list(usages(experiment))

    assert [(row.elapsed_ns, row.used["cpu_ns"], row.used["minor_faults"]) for row in rows] == [
        (1.5 * SECOND, 4, 0),
        (2.5 * SECOND, 21, 1),
    ]
    assert [row.max_rss_bytes for row in rows] == [300, 300]
    assert [row.is_gap for row in rows] == [False, True]


def test_samples_that_cannot_be_give_no_figures_below_nothing(tmp_path):
    experiment = sampled(tmp_path, (2, {"cpu_ns": 9}), (1, {"cpu_ns": 30}), (3, {"cpu_ns": 7}))

    assert [(row.elapsed_ns, row.used["cpu_ns"]) for row in usages(experiment)] == [(2 * SECOND, 0)]


def test_the_command_shows_each_stretch_of_time(tmp_path, interpose_here):
    sampled(tmp_path, (0, {"cpu_ns": 0}), (4, {"cpu_ns": SECOND, "run_delay_ns": 3_000_000}))

    shown = interpose_here("overview", str(tmp_path / "t.1.er"))
    told = interpose_here("overview", str(tmp_path / "t.1.er"), "--format", "json")

    assert " ".join(shown.stdout.splitlines()[1].split()).startswith("0.000 s 4.00 s gap 1.00 s 25 % 3.00 ms")
    (row,) = json.loads(told.stdout)
    assert (row["elapsed_ns"], row["cpu_ns"], row["run_delay_ns"], row["gap"]) == (4 * SECOND, SECOND, 3_000_000, True)


SPUN = """
    import os, subprocess, time

    def delay_ns():
        with open("/proc/thread-self/schedstat") as file:
            return int(file.read().split()[1])

    def compute():
        begun_ns = time.thread_time_ns()
        while time.thread_time_ns() - begun_ns < 300_000_000:
            pass

    os.sched_setaffinity(0, {min(os.sched_getaffinity(0))})
    rivals = [subprocess.Popen(["sh", "-c", "while :; do :; done"]) for _ in range(4)]
    delayed_ns = delay_ns()
    compute()
    print(delay_ns() - delayed_ns)
    for rival in rivals:
        rival.kill()
        rival.wait()
    print(delay_ns())
"""
BECOMES_ANOTHER = "sys.stdout.flush(); os.execv(sys.executable, [sys.executable, '-c', 'pass'])"


@pytest.mark.long
@pytest.mark.alone
def test_the_first_screen_tells_waiting_for_a_processor_as_the_kernel_counted_it(traced, interpose_here):
    done = traced(SPUN)
    computing_ns, whole_ns = map(int, done.stdout.split())
    found = unseen_wait(Analysis(done.experiment).accounts)

    assert computing_ns > 300_000_000
    assert 0.9 * computing_ns <= found.processor_ns <= whole_ns
    assert found.unexplained_ns < 0.1 * computing_ns
    assert f" wait for CPU  {duration(found.processor_ns)}  " in interpose_here("report", done.path).stdout


@pytest.mark.long
def test_what_a_thread_waited_before_it_was_recorded_is_not_counted(traced):
    done = traced(
        SPUN.replace("    print(delay_ns())", f"    {BECOMES_ANOTHER}").replace("import os,", "import sys, os,")
    )
    computing_ns = int(done.stdout)
    (became,) = [each for each in done.experiment.processes if each.lineage]

    assert became.threads[0].record.run_delay_ns < computing_ns


@pytest.mark.parametrize(
    ("delay_ms", "told_ms"),
    [
        (0, (0, 400, 0, 0)),
        (100, (40, 360, 60, 0)),  # of the CPU time two fifths are between the calls
        (750, (350, 50, 400, 0)),  # 350 ms more than was waited in calls
        (5000, (400, 0, 400, 0)),
    ],
)
def test_what_is_waited_for_a_processor_lies_where_the_cpu_time_does(tmp_path, delay_ms, told_ms):
    build = Build(tmp_path / "t.1.er", call_ns=0, inside_ns=0)
    query = build.intrinsic("sqlite3.Cursor.execute", "db")
    build.events([event(0, 700 * MS, 300 * MS, intrinsic=query)])
    used = {"end_ns": START_NS + 1300 * MS, "end_cpu_ns": 500 * MS, "run_delay_ns": delay_ms * MS}
    build.thread(**used, main=1, tid=812, recorded=1)
    build.ended(1300 * MS, 500 * MS)
    accounts = Analysis(Experiment(str(build.write()))).accounts

    assert unseen_wait(accounts) == tuple(each * MS for each in told_ms)


@pytest.mark.parametrize(("delay_ms", "told_ms"), [(100, (100, 300, 0, 0)), (750, (400, 0, 350, 0))])
def test_it_lies_between_calls_where_all_system_calls_are_recorded(tmp_path, delay_ms, told_ms):
    build = Build(tmp_path / "t.1.er", call_ns=0, inside_ns=0)
    build.log_events.append('<interposed by="tracepoints" why=""/>')
    call = build.intrinsic("syscall.read", "file")
    build.events([event(0, 700 * MS, 300 * MS, intrinsic=call)])
    used = {"end_ns": START_NS + 1300 * MS, "end_cpu_ns": 500 * MS, "run_delay_ns": delay_ms * MS}
    build.thread(**used, main=1, tid=812, recorded=1)
    build.ended(1300 * MS, 500 * MS)
    accounts = Analysis(Experiment(str(build.write()))).accounts

    assert unseen_wait(accounts) == tuple(each * MS for each in told_ms)


def test_calls_that_only_waited_for_a_processor_are_not_said_to_be_slow_first(tmp_path, interpose_here):
    build = Build(tmp_path / "t.1.er", call_ns=0, inside_ns=0)
    write = build.intrinsic("os.write", "file")
    build.events([event(at * MS, 100 * MS, 2 * MS, intrinsic=write) for at in range(0, 1000, 100)])
    build.thread(end_ns=START_NS + 1000 * MS, end_cpu_ns=20 * MS, run_delay_ns=950 * MS, main=1, tid=812, recorded=10)
    build.ended(1000 * MS, 20 * MS)

    shown = interpose_here("report", str(build.write())).stdout

    assert "\nSlowest: The program was ready to run, but waited for CPU (950 ms of" in shown
    assert " wait for CPU  950 ms  in calls, estimated: processors were busy\n" in shown


def test_what_is_waited_in_a_call_in_progress_is_explained(tmp_path):
    build = Build(tmp_path / "t.1.er", call_ns=0, inside_ns=0)
    poll = build.intrinsic("select.poll.poll", "idle")
    outer = {"start_ns": START_NS + 300 * MS, "call": 2, "intrinsic": poll, "inner_wall_ns": 100 * MS}
    inner = {"start_ns": START_NS + 800 * MS, "call": 3, "intrinsic": poll}
    build.events([event(400 * MS, 100 * MS, intrinsic=poll)])
    build.thread(open_calls=[outer, inner], main=1, tid=812, recorded=1, made=3)
    build.ended(1000 * MS, 0)
    (account,) = accounts = Analysis(Experiment(str(build.write()))).accounts

    assert unseen_wait(accounts) == (0, 300 * MS, 0, 0)
    (share,) = account.threads.values()
    assert (share.open_wall_ns, share.program_wall_ns) == (600 * MS, 300 * MS)
