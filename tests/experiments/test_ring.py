"""Ring mode: only the newest events of a process are kept, in blocks that go round in an area of a chosen size."""

import os
import random
import signal
import sys
import time
from functools import partial
from itertools import pairwise

import pytest
from tracing import environment, events_of

from interpose.analysis.analysis import Analysis
from interpose.analysis.calls.account import account
from interpose.analysis.calls.profile import profile
from interpose.analysis.consolidation.consolidate import consolidated
from interpose.analysis.recording.ring import ALL, before_the_ring
from interpose.analysis.transactions.response_times import transactions
from interpose.experiments.metadata.names import newest
from interpose.experiments.model.experiment import Experiment
from tests.build import BLOCK_BYTES, SECOND, START_NS, Build, event

RING_BYTES = 1 << 20
# Each call moves as many bytes as its number says, modulo a prime.
BUSY = """
import os, sys, threading, time
buffer = bytes(1000)

def work(calls):
    file = os.open(f"{threading.get_ident()}", os.O_CREAT | os.O_WRONLY)
    for number in range(calls):
        os.pwrite(file, buffer[:number % 997], 0)
"""
FOR_EVER = f"{BUSY}\nprint(flush=True)\nfor _ in range(3): threading.Thread(target=work, args=(1 << 40,)).start()\n"


CALLS_ALONE = "all,gil=off"


@pytest.fixture
def traced(traced):
    """The numbers of calls follow one another where waits for the interpreter lock, which have numbers too, are off."""
    return partial(traced, INTERPOSE_KINDS=CALLS_ALONE)


def writes_by_thread(process):
    found = {}
    for each in events_of(process, "os.pwrite"):
        found.setdefault(each.thread, []).append(each)
    return found


def check_end_of(writes):
    """They are the end of what a thread did: nothing is missing in between, and each is as it was."""
    for before, after in pairwise(writes):
        assert after.call == before.call + 1
        assert after.bytes == (before.bytes + 1) % 997
        assert after.start_ns >= before.start_ns + before.wall_ns


@pytest.mark.long
def test_the_newest_events_of_every_thread_are_there_whole_and_the_file_stays_small(traced):
    done = traced(
        f"""{BUSY}
threads = [threading.Thread(target=work, args=(20_000,)) for _ in range(4)]
for each in threads: each.start()
work(60_000)
for each in threads: each.join()
work(500)
""".replace("\n", "\n        "),
        INTERPOSE_RING="1MiB",
    )

    founder = done.experiment.founder
    writes = writes_by_thread(founder)
    main = [each for each in writes[1] if each.call > 60_000]
    assert main[-1].bytes == 499
    assert len(main) >= 500
    for thread, found in writes.items():
        check_end_of(found if thread > 1 else [each for each in found if each not in main])
    assert os.stat(f"{done.path}/events").st_size <= RING_BYTES + 5 * BLOCK_BYTES
    assert founder.overwritten > 100_000
    recorded = sum(thread.record.recorded for thread in founder.threads)
    assert len(list(events_of(founder))) == recorded - founder.overwritten
    assert done.experiment.damages.found == []


def test_where_the_ring_never_turned_over_nothing_is_missing(traced):
    done = traced(f"{BUSY}\nwork(5_000)".replace("\n", "\n        "), INTERPOSE_RING="1MiB")

    founder = done.experiment.founder
    assert [each.bytes for each in events_of(founder, "os.pwrite")] == [each % 997 for each in range(5_000)]
    assert founder.overwritten == 0
    assert before_the_ring(founder) == {}


def test_every_forked_child_has_a_ring_of_its_own(traced):
    done = traced(
        f"""{BUSY}
work(20_000)
for _ in range(2):
    if os.fork() == 0:
        work(30_000)
        os._exit(0)
    os.wait()
""".replace("\n", "\n        "),
        INTERPOSE_RING="1MiB",
    )

    experiment = done.experiment
    assert len(experiment.processes) == 3
    for process in experiment.processes:
        (writes,) = writes_by_thread(process).values()
        check_end_of(writes)
        assert writes[-1].bytes == (29_999 if process.parent else 19_999) % 997
        assert process.overwritten > 0
        assert os.stat(f"{process.directory}/events").st_size <= RING_BYTES + BLOCK_BYTES
    assert experiment.damages.found == []


def test_the_thread_time_is_divided_without_remainder(traced):
    done = traced(
        """
        import os, sqlite3, time
        time.sleep(0.05)
        connection = sqlite3.connect(":memory:")
        connection.create_function("look", 1, lambda number: bool(os.stat("/")))
        rows = "with recursive n(i) as (select 1 union all select i + 1 from n where i < 40000) "
        connection.execute(rows + "select sum(look(i)) from n").fetchall()
    """,
        INTERPOSE_RING="1MiB",
    )

    experiment = done.experiment
    (outer,) = [each for each in done.events("sqlite3.Connection.execute") if each.inner_wall_ns]
    inside = sum(each.wall_ns for each in done.events("os.stat") if each.parent == outer.call)
    whole = profile(Analysis(experiment), "kind").total
    assert experiment.founder.overwritten > 20_000
    assert whole.before_wall_ns >= 50_000_000 + outer.inner_wall_ns - inside
    assert whole.before_cpu_ns >= outer.inner_cpu_ns // 4
    rows = profile(Analysis(experiment), "kind").rows
    assert sum(row.sums.self_wall_ns for row in rows) == whole.wall_ns
    assert sum(row.sums.self_cpu_ns for row in rows) == whole.cpu_ns


def test_a_thread_of_which_nothing_is_left_was_wholly_before_the_ring(traced):
    done = traced(
        f"""{BUSY}
thread = threading.Thread(target=work, args=(1_000,))
thread.start()
thread.join()
while len(os.listdir("/proc/self/task")) > 1: time.sleep(0.01)  # few calls: they stay in the ring
thread = threading.Thread(target=work, args=(40_000,))
thread.start()
thread.join()
""".replace("\n", "\n        "),
        INTERPOSE_RING="1MiB",
    )

    founder = done.experiment.founder
    before = before_the_ring(founder)
    made = account(founder, consolidated(founder, ("thread",)).by_thread())
    assert before[2] == ALL
    assert made.threads[2].before_wall_ns == made.threads[2].wall_ns
    assert 0 < made.threads[3].before_wall_ns < made.threads[3].wall_ns
    assert 1 not in before


def test_the_report_says_what_the_ring_still_has(traced, interpose_here):
    done = traced(f"{BUSY}\nwork(50_000)".replace("\n", "\n        "), INTERPOSE_RING="1MiB")

    shown = interpose_here("report", done.path)

    founder = done.experiment.founder
    recorded = sum(thread.record.recorded for thread in founder.threads)
    assert f"ring: the last {recorded - founder.overwritten:,} of {recorded:,} calls\n" in shown.stdout
    assert " before the ring " in shown.stdout
    assert " in the ring)" in shown.stdout
    assert "not idle" not in shown.stdout
    assert shown.stderr == ""


@pytest.fixture
def busy(started):
    """Starts a program that overwrites its ring all the time; gives its process when it has begun."""
    variables = environment(INTERPOSE="1", INTERPOSE_KINDS=CALLS_ALONE, INTERPOSE_RING="1MiB")
    return lambda: started([sys.executable, "-c", FOR_EVER], env=variables)


def wait_until_turned_over(directory):
    path = newest(str(directory))
    while not Experiment(path).founder.overwritten:
        time.sleep(0.01)
    return path


@pytest.mark.long
def test_whatever_the_instant_of_a_kill_what_is_left_is_whole(tmp_path, busy):
    for _ in range(10):
        process = busy()
        path = wait_until_turned_over(tmp_path)
        time.sleep(random.uniform(0, 0.05))
        process.send_signal(signal.SIGKILL)
        process.wait()

        experiment = Experiment(path)
        for writes in writes_by_thread(experiment.founder).values():
            check_end_of(writes)
        made = account(experiment.founder, consolidated(experiment.founder, ("thread",)).by_thread())
        assert made.found > 5_000
        assert experiment.damages.found == []


@pytest.mark.long
def test_a_reader_finds_no_holes_while_blocks_are_written_over(tmp_path, busy):
    busy()
    path = wait_until_turned_over(tmp_path)

    for _ in range(20):
        experiment = Experiment(path)
        recorded = {thread.number: thread.record.recorded for thread in experiment.founder.threads}
        for thread, found in writes_by_thread(experiment.founder).items():
            check_end_of(found)
            assert found[-1].call >= recorded[thread]
        assert experiment.damages.found == []


def test_blocks_are_given_in_the_order_in_which_they_were_begun(tmp_path):
    build = Build(tmp_path / "t.1.er", settings={"INTERPOSE_RING": "1MiB"})
    build.heads["threads"] = {"overwritten": 2}
    build.intrinsic("os.stat", "file")
    build.thread(recorded=5, end_ns=START_NS + 10 * SECOND, end_cpu_ns=SECOND)
    for number in (4, 5, 3):
        head = {"sequence": number, "recorded": number - 1, "before_wall_ns": number * SECOND}
        build.block([event(number * SECOND, SECOND // 10, call=number)], **head)
    build.ended(10 * SECOND, SECOND)
    founder = Experiment(str(build.write())).founder

    assert [each.call for each in events_of(founder)] == [3, 4, 5]
    assert before_the_ring(founder)[1].wall_ns == 3 * SECOND
    share = account(founder, consolidated(founder, ("thread",)).by_thread()).threads[1]
    assert share.before_wall_ns == 3 * SECOND
    assert share.wall_ns == share.wall_ns - share.before_wall_ns + 3 * SECOND == 10 * SECOND


def test_a_ring_for_which_the_pool_has_no_room_goes_round_in_what_it_has(traced):
    program = f"{BUSY}\nwork(60_000)".replace("\n", "\n        ")

    done = traced(program, INTERPOSE_RING="8MiB", INTERPOSE_POOL="2MiB")

    founder = done.experiment.founder
    writes = list(events_of(founder, "os.pwrite"))
    check_end_of(writes)
    assert writes[-1].bytes == 59_999 % 997
    assert len(writes) > 22_500
    assert os.stat(f"{done.path}/events").st_size <= 2 * RING_BYTES + BLOCK_BYTES
    assert founder.threads[0].record.dropped == 0


def test_a_block_that_was_being_written_over_is_none(tmp_path):
    build = Build(tmp_path / "t.1.er", settings={"INTERPOSE_RING": "1MiB"})
    build.intrinsic("os.stat", "file")
    build.thread()
    for number in range(1, 4):
        build.block([event(number, 1, call=number)])
    path = build.write()
    with open(path / "events", "r+b") as file:
        file.seek(BLOCK_BYTES)
        file.write(bytes(96))
    experiment = Experiment(str(path))

    assert [each.call for each in events_of(experiment.founder)] == [1, 3]
    assert experiment.damages.found == []


@pytest.mark.alone
def test_the_time_before_the_ring_is_no_transaction_and_neither_is_its_cost_of_recording(traced, interpose_here):
    done = traced(
        """
        import os, time
        import interpose
        begun = time.perf_counter_ns()
        for number in range(20):
            with interpose.transaction("early"):
                time.sleep(0.005)
        early = time.perf_counter_ns() - begun
        for number in range(400):
            with interpose.transaction("late"):
                for _ in range(100):
                    os.stat("/")
        print(early)
    """,
        INTERPOSE_RING="1MiB",
    )

    analysis = Analysis(done.experiment)
    made = transactions(analysis)
    found = {row.name: row for row in made.rows}
    told = interpose_here("transactions", done.path)
    assert "early" not in found and 0 < found["late"].sums.calls < 400
    assert found["before the ring"].thread_ns >= int(done.stdout)
    assert found["before the ring"].thread_ns == pytest.approx(analysis.total.before_wall_ns, rel=0.01)
    assert ".INIT" not in found or found[".INIT"].thread_ns < 5_000_000
    assert sum(row.thread_ns + row.think_ns for row in made.rows) == analysis.total.wall_ns
    for row in made.rows:
        assert sum(share.wall_ns for share in row.split.values()) == row.thread_ns + row.overlap_ns
    assert "before the ring; transactions before it are not counted" in told.stderr
