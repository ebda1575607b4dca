"""What threads spent in pauses: compared with what the program itself measured there."""

import pytest
from shops import MS

from interpose.analysis.analysis import Analysis
from interpose.analysis.time.run_queue import unseen_wait
from interpose.analysis.transactions.response_times import transactions
from interpose.experiments.model.experiment import Experiment
from tests.build import SECOND, START_NS, Build, event

# Each thread sleeps and computes by turns; during the middle third, recording is paused.
PHASES = """
import sys, threading, time, interpose
def compute():
    return sum(range(int(sys.argv[2])))
def phase():
    begun_ns, until = time.thread_time_ns(), time.monotonic() + 0.5
    while time.monotonic() < until:
        time.sleep(0.002)
        compute()
    return time.thread_time_ns() - begun_ns
def work():
    for each in range(3):
        turn.wait()
        taken_ns = phase()  # the others may have added theirs by then
        used[each] += taken_ns
        turn.wait()
used, turn = [0, 0, 0], threading.Barrier(int(sys.argv[1]) + 1)
threads = [threading.Thread(target=work) for _ in range(int(sys.argv[1]))]
for each in threads:
    each.start()
for each in (None, interpose.pause, interpose.resume):
    each and each()
    turn.wait()
    turn.wait()
for each in threads:
    each.join()
print(*used)
"""


@pytest.mark.long
@pytest.mark.parametrize(("threads", "numbers"), [(1, 20_000), (3, 5_000)])
def test_the_cpu_time_of_a_pause_is_what_was_used_in_it(traced, threads, numbers):
    done = traced(PHASES, str(threads), str(numbers))
    first_ns, paused_ns, last_ns = map(int, done.stdout.split())
    analysis = Analysis(done.experiment)
    total = analysis.total

    assert 0.85 * paused_ns < total.paused_cpu_ns < 1.15 * paused_ns + 10 * MS
    # The program's own CPU time includes that of its calls, and of its start.
    assert 0.6 * (first_ns + last_ns) < total.program_cpu_ns < first_ns + last_ns + 100 * MS
    assert total.paused_wall_ns > 0.95 * threads * 500 * MS


def test_a_wait_for_cpu_during_a_pause_is_none_of_recorded_calls(tmp_path):
    build = Build(tmp_path / "t.1.er", call_ns=0, inside_ns=0)
    build.log_events += [
        f'<event kind="pause" time_ns="{START_NS}"/>',
        f'<event kind="resume" time_ns="{START_NS + 500 * MS}"/>',
    ]
    sleep = build.intrinsic("time.sleep", "sleep")
    build.events([event(500 * MS, 450 * MS, 0, intrinsic=sleep, start_cpu_ns=300 * MS)])
    ended = {"end_ns": START_NS + SECOND, "end_cpu_ns": 300 * MS, "run_delay_ns": 200 * MS}
    build.thread(main=1, tid=812, recorded=1, made=1, **ended)
    build.ended(SECOND, 300 * MS)
    (account,) = accounts = Analysis(Experiment(str(build.write()))).accounts
    (share,) = account.threads.values()

    assert (share.paused_wall_ns, share.paused_cpu_ns, share.program_wall_ns) == (500 * MS, 300 * MS, 50 * MS)
    assert unseen_wait(accounts) == (0, 50 * MS, 0, 0)


WITHIN = """
import os, time, interpose
until = time.monotonic() + 0.5
while time.monotonic() < until:
    pass
with interpose.transaction("long"):
    for _ in range(2_000):
        os.stat("/")
    interpose.pause()
    time.sleep(0.3)
    interpose.resume()
    for _ in range(2_000):
        os.stat("/")
"""


def test_a_pause_within_a_call_that_ends_much_later_is_part_of_it(traced):
    total = Analysis(traced(WITHIN).experiment).total

    assert total.paused_wall_ns < 10 * MS
    assert total.program_wall_ns > 400 * MS


AWAITED = """
import asyncio, time, interpose
async def waits():
    await asyncio.sleep(0.6)
async def main():
    waiting = [asyncio.create_task(waits()) for _ in range(3)]
    await asyncio.sleep(0.1)
    begun_ns, used_ns = time.monotonic_ns(), time.thread_time_ns()
    interpose.pause()
    await asyncio.sleep(0.2)
    until = time.monotonic() + 0.1
    while time.monotonic() < until:
        pass
    interpose.resume()
    print(time.monotonic_ns() - begun_ns, time.thread_time_ns() - used_ns)
    await asyncio.gather(*waiting)
asyncio.run(main())
"""


def test_a_pause_while_awaits_are_suspended_is_outside_of_them(traced):
    done = traced(AWAITED)
    wall_ns, cpu_ns = map(int, done.stdout.split())
    total = Analysis(done.experiment).total

    assert 0.95 * wall_ns < total.paused_wall_ns <= 1.05 * wall_ns
    assert 0.85 * cpu_ns < total.paused_cpu_ns <= 1.15 * cpu_ns + 5 * MS


def test_several_pauses_in_one_gap_and_one_within_a_call(tmp_path):
    build = Build(tmp_path / "t.1.er", call_ns=0, inside_ns=0)
    for begin_ms, end_ms in ((100, 200), (250, 300), (500, 600), (950, 1000)):
        build.log_events.append(f'<event kind="pause" time_ns="{START_NS + begin_ms * MS}"/>')
        build.log_events.append(f'<event kind="resume" time_ns="{START_NS + end_ms * MS}"/>')
    sleep = build.intrinsic("time.sleep", "sleep")
    calls = [(400, 250, 80), (700, 10, 80), (900, 60, 80)]  # the last one ends in a pause
    build.events(
        [
            event(at * MS, wall * MS, 0, intrinsic=sleep, call=number, start_cpu_ns=cpu * MS)
            for number, (at, wall, cpu) in enumerate(calls, 1)
        ]
    )
    build.thread(main=1, tid=812, recorded=3, made=3, end_ns=START_NS + SECOND, end_cpu_ns=100 * MS)
    build.ended(SECOND, 100 * MS)
    (share,) = Analysis(Experiment(str(build.write()))).accounts[0].threads.values()

    assert share.paused_wall_ns == (100 + 50 + 40) * MS
    assert share.paused_cpu_ns == (80 * 150 // 400 + 20) * MS


AROUND = """
import os, threading, time, interpose
def compute(seconds):
    begun = time.thread_time()
    while time.thread_time() - begun < seconds:
        pass
def waits():
    begun_ns = time.monotonic_ns()
    os.read(reads, 1)
    waited_ns.append(time.monotonic_ns() - begun_ns)
def is_waiting():
    time.sleep(0.01)
    with open(f"/proc/self/task/{waiting.native_id}/stat") as file:
        return ") S " in file.read()
waited_ns, (reads, writes) = [], os.pipe()
waiting = threading.Thread(target=waits)
waiting.start()
while not is_waiting():
    pass
begun_ns = time.thread_time_ns()
interpose.pause()
compute(0.2)
interpose.resume()
paused_ns = time.thread_time_ns() - begun_ns
time.sleep(0.01)
with interpose.transaction("pay"):
    compute(0.05)
os.write(writes, b".")
waiting.join()
print(*waited_ns, paused_ns, time.process_time_ns())
"""


def test_transactions_are_without_pauses_but_for_calls_that_last_through_them(traced, interpose_here):
    done = traced(AROUND)
    waited_ns, paused_ns, used_ns = map(int, done.stdout.split())
    analysis = Analysis(done.experiment)
    made, total = transactions(analysis), analysis.total
    rows = {row.name: row for row in made.rows}

    assert made.thread_ns == total.wall_ns - total.paused_wall_ns
    assert sum(row.cpu_ns for row in made.rows) == total.cpu_ns - total.paused_cpu_ns
    assert rows[".OTHER"].response_ns >= waited_ns
    assert rows[".INIT"].cpu_ns <= used_ns - paused_ns
    assert [row.overlap_ns for row in made.rows] == [0] * len(rows)
    assert "overlap" not in interpose_here("transactions", done.experiment.directory).stderr


def test_the_cpu_time_of_a_pause_belongs_to_no_transaction(tmp_path):
    build = Build(tmp_path / "t.1.er", call_ns=0, inside_ns=0)
    for kind, at_ms in (("pause", 300), ("resume", 500)):
        build.log_events.append(f'<event kind="{kind}" time_ns="{START_NS + at_ms * MS}"/>')
    sleep, pay = build.intrinsic("time.sleep", "sleep"), build.intrinsic("pay", "web", transaction="is")
    calls = [(0, 300, sleep, 10, 0), (500, 200, pay, 220, 50), (750, 50, sleep, 280, 0)]
    build.events(
        [
            event(at * MS, wall * MS, cpu * MS, intrinsic=intrinsic, call=number, start_cpu_ns=start * MS)
            for number, (at, wall, intrinsic, start, cpu) in enumerate(calls, 1)
        ]
    )
    build.thread(main=1, tid=812, recorded=3, made=3, end_ns=START_NS + SECOND, end_cpu_ns=300 * MS)
    build.ended(SECOND, 300 * MS)
    rows = {row.name: row for row in transactions(Analysis(Experiment(str(build.write())))).rows}

    assert {name: (row.response_ns // MS, row.cpu_ns // MS) for name, row in rows.items()} == {
        ".INIT": (300, 10),
        "pay": (200, 50),
        ".EXIT": (300, 30),
    }


def test_the_first_screen_says_that_a_part_was_paused_and_not_that_it_was_idle(traced, interpose_here):
    done = traced(
        """
        import time
        import interpose
        time.sleep(0.05)
        interpose.pause()
        time.sleep(0.3)
        interpose.resume()
        time.sleep(0.05)
        """
    )

    of_one = interpose_here("report", done.path).stdout
    of_many = interpose_here("report", done.path, done.path).stdout
    for shown in (of_one, of_many):
        (line,) = [line for line in shown.splitlines() if "thread time" in line and "elapsed" in line]
        assert " ms not paused)" in line
