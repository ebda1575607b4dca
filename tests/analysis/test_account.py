"""The accounting: thread time is divided without remainder, and what nobody saw is estimated and said."""

import os
import signal
import time
from types import SimpleNamespace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from interpose.analysis.analysis import Analysis
from interpose.analysis.calls.account import NOTHING, account
from interpose.analysis.calls.profile import by_kind, profile
from interpose.analysis.calls.rows import wait_ns
from interpose.analysis.consolidation.consolidate import consolidated
from interpose.analysis.recording.elapsed import elapsed_ns
from interpose.analysis.recording.ending import ending, recording_stopped
from interpose.experiments.model import threads
from interpose.experiments.model.experiment import Experiment
from tests.build import SECOND, START_NS, Build, event


def accounted(build):
    process = Experiment(str(build.write())).founder
    return account(process, consolidated(process, ("thread",)).by_thread())


def test_a_statement_costs_what_was_calibrated_for_statements(tmp_path):
    build = Build(tmp_path / "t.1.er", call_ns=100, inside_ns=40, statement_ns=7)
    build.intrinsic("os.stat", "file")
    build.intrinsic("interpose.statement", "logic")
    build.thread(end_ns=START_NS + SECOND, end_cpu_ns=SECOND, recorded=5, made=5, own_wall_ns=1000, own_cpu_ns=1000)
    build.events([event(number * 1_000, 0, call=number, intrinsic=2 if number < 4 else 1) for number in range(1, 6)])

    made = profile(Analysis(Experiment(str(build.write()))), "kind")

    assert (made.total.own_wall_ns, made.total.own_cpu_ns) == (1000 + 2 * 60 + 3 * 7,) * 2


def test_what_recording_costs_within_calls_is_in_these_and_not_taken_off_code(tmp_path):
    build = Build(tmp_path / "t.1.er", call_ns=100, inside_ns=40)
    build.intrinsic("os.stat", "file")
    own = {"own_wall_ns": 5000, "own_cpu_ns": 5000, "inside_wall_ns": 4000, "inside_cpu_ns": 3000}
    build.thread(end_ns=START_NS + SECOND, end_cpu_ns=SECOND // 2, recorded=5, made=5, **own)
    inner = [event(number * 1000, 500, call=number, parent=1) for number in range(2, 5)]
    build.events(
        [*inner, event(0, 100_000, 100_000, call=1, inner_wall_ns=1500, inner_cpu_ns=1500), event(200_000, 500, call=5)]
    )

    whole = profile(Analysis(Experiment(str(build.write()))), "kind").total

    assert (whole.own_wall_ns, whole.own_cpu_ns) == (1000 + 2 * 60, 2000 + 2 * 60)
    assert (whole.inside_wall_ns, whole.inside_cpu_ns) == (4000 + 3 * 60, 3000 + 3 * 60)
    assert whole.program_wall_ns == SECOND - 100_000 - 500 - whole.own_wall_ns


CALLS_IN_A_TRANSACTION = """
import interpose, os, time
with interpose.transaction("many"):
    for _ in range(200_000):
        os.stat("/")
begun = time.thread_time_ns()
while time.thread_time_ns() - begun < 200_000_000:
    sum(range(100))
print(time.thread_time_ns() - begun)
"""


@pytest.mark.long
def test_what_a_program_computes_beside_a_transaction_is_code_however_many_calls_that_makes(traced):
    done = traced(CALLS_IN_A_TRANSACTION)
    computed_ns = int(done.stdout)
    made = profile(Analysis(done.experiment), "kind")
    (code,) = [row for row in made.rows if row.kind == "code"]

    assert code.sums.self_cpu_ns > 0.97 * computed_ns
    assert sum(row.sums.self_wall_ns for row in made.rows) == made.total.wall_ns
    assert made.total.inside_cpu_ns > 200_000 * 10  # ns a call: at least the readings of the clock


times = st.integers(0, 2 * SECOND)


@st.composite
def random_events(draw):
    rows = []
    for call in range(1, draw(st.integers(0, 12))):
        wall_ns = draw(times)
        rows.append(
            event(
                draw(times),
                wall_ns,
                draw(st.integers(0, wall_ns)),
                call=call,
                thread=draw(st.integers(1, 4)),
                intrinsic=draw(st.integers(1, 4)),
                parent=draw(st.integers(0, 2)),
                inner_wall_ns=draw(times),
                inner_cpu_ns=draw(times),
            )
        )
    return rows


BEFORE = ("before_wall_ns", "before_cpu_ns", "own_wall_ns", "own_cpu_ns")


@pytest.mark.long
@given(
    rows=random_events(),
    threads=st.lists(
        st.fixed_dictionaries(
            {
                "end_ns": st.one_of(st.just(0), times.map(lambda ns: START_NS + ns - SECOND)),
                "start_cpu_ns": times,
                "end_cpu_ns": times,
                "own_wall_ns": times,
                "own_cpu_ns": times,
                "seen_ns": times.map(lambda ns: START_NS + ns),
            }
        ),
        max_size=3,
    ),
    ended=st.booleans(),
    ring=st.one_of(st.just({}), st.fixed_dictionaries(dict.fromkeys(BEFORE, times) | {"recorded": st.integers(0, 3)})),
)
def test_the_column_adds_up_to_the_thread_time_to_the_nanosecond(tmp_path_factory, rows, threads, ended, ring):
    build = Build(tmp_path_factory.mktemp("account") / "t.1.er", settings={"INTERPOSE_RING": "1MiB" if ring else "off"})
    build.heads["threads"] = {"overwritten": 7 if ring else 0}
    build.intrinsic("os.write", "file")
    build.intrinsic("sqlite3.Cursor.execute", "db")
    for thread in threads:
        build.thread(**thread)
    if rows:
        build.block(rows, **ring)
    if ended:
        build.ended(SECOND, SECOND // 2)

    made = profile(Analysis(Experiment(str(build.write()))), "intrinsic")
    whole = made.total
    column = by_kind(made)

    for shown in (made.rows, column):
        assert sum(row.sums.self_wall_ns for row in shown) == whole.wall_ns
        assert sum(row.sums.self_cpu_ns for row in shown) == whole.cpu_ns
        assert all(min(row.sums.self_wall_ns, row.sums.self_cpu_ns, wait_ns(row)) >= 0 for row in shown)


def test_a_thread_is_divided_into_calls_overhead_and_code(tmp_path):
    build = Build(tmp_path / "t.1.er", call_ns=70, inside_ns=30)
    build.block([event(0, 3000, 1000, call=1), event(5000, 2000, 2000, call=2)])
    build.thread(
        end_ns=START_NS + 10_000,
        start_cpu_ns=50,
        end_cpu_ns=6050,
        own_wall_ns=500,
        own_cpu_ns=400,
        recorded=2,
    )
    build.ended(10_000, 6_000)

    share = accounted(build).threads[1]

    assert (share.wall_ns, share.cpu_ns) == (10_000, 6_000)
    assert (share.own_wall_ns, share.own_cpu_ns) == (500 + 2 * 40, 400 + 2 * 40)
    assert share.program_wall_ns == 10_000 - 5_000 - 580
    assert share.program_cpu_ns == 6_000 - 3_000 - 480


def test_a_thread_that_nobody_saw_end_ends_with_its_process(tmp_path):
    build = Build(tmp_path / "t.1.er")
    build.thread(seen_ns=START_NS + 5)
    build.ended(7 * SECOND, 0)

    made = accounted(build)

    assert made.threads[1].wall_ns == 7 * SECOND
    assert not made.estimated


@pytest.mark.parametrize(
    ("thread", "row", "last_ns"),
    [
        ({"seen_ns": START_NS + 90}, event(0, 40), 90),
        ({"seen_ns": START_NS + 10}, event(5, 40), 45),
        ({"open_calls": [{"start_ns": START_NS + 77, "call": 9}]}, event(5, 40), 77),
    ],
)
def test_where_a_process_was_killed_its_threads_end_with_the_last_that_is_known(tmp_path, thread, row, last_ns):
    build = Build(tmp_path / "t.1.er")
    build.block([row])
    build.thread(**thread)

    made = accounted(build)

    assert made.threads[1].wall_ns == last_ns
    assert made.estimated
    assert made.ending.state == "unseen"


def test_the_cpu_time_of_a_thread_is_at_least_that_of_its_calls(tmp_path):
    build = Build(tmp_path / "t.1.er")
    build.block([event(0, 50, 40, call=2), event(60, 20, 20, call=3, parent=4)])
    build.thread(end_cpu_ns=10, seen_ns=START_NS + 100)

    assert accounted(build).threads[1].cpu_ns == 60


def test_events_of_a_thread_that_is_not_there_are_still_accounted(tmp_path):
    build = Build(tmp_path / "t.1.er")
    build.block([event(0, 50, 40, thread=8), event(100, 50, 40, thread=8)])

    made = accounted(build)

    assert made.threads[8].wall_ns == 150
    assert "t.1.er/threads: thread 8 is not there" in map(str, made.process.damages.found)


def test_recorded_calls_that_are_not_there_are_noted(tmp_path):
    build = Build(tmp_path / "t.1.er")
    build.block([event(0, 50)])
    build.thread(recorded=3, dropped=4)

    made = accounted(build)

    assert made.dropped == 4
    assert "t.1.er/events: 2 of 3 recorded calls are not there" in map(str, made.process.damages.found)


def test_calls_that_did_not_wait_are_counted_over_all_threads(tmp_path):
    build = Build(tmp_path / "t.1.er")
    build.thread(end_ns=START_NS + 9, passed=1_000)
    build.thread(end_ns=START_NS + 9, passed=234)

    assert accounted(build).passed == 1_234


def test_a_call_in_the_table_and_among_the_events_has_ended(tmp_path):
    build = Build(tmp_path / "t.1.er")
    build.block([event(0, 50, call=6)])
    build.block([event(100, 50, call=7)])
    opened = [{"start_ns": START_NS + 100, "call": 7}, {"start_ns": START_NS + 200, "call": 8}]
    build.thread(open_calls=opened)

    assert [found.call.call for found in accounted(build).open_calls] == [8]


def test_cpu_time_for_which_code_has_no_wall_time_is_that_of_the_call_in_progress(tmp_path):
    """A server's thread: the clock is read where its wait begins, and at its end, when it has woken up many times."""
    build = Build(tmp_path / "t.1.er", call_ns=0, inside_ns=0)
    wait = build.intrinsic("select.poll.poll", "idle")
    opened = [{"start_ns": START_NS + 1000, "start_cpu_ns": 700, "call": 1, "intrinsic": wait}]
    build.thread(end_ns=START_NS + 10_000, end_cpu_ns=2500, open_calls=opened)
    build.thread(end_ns=START_NS + 10_000, end_cpu_ns=2500, open_calls=[{**opened[0], "start_cpu_ns": 2400}])
    build.ended(10_000, 5_000)

    analysis = Analysis(Experiment(str(build.write())))
    made = profile(analysis, "kind")

    shares = analysis.accounts[0].threads.values()
    divided = [(share.program_cpu_ns, share.open_cpu_ns, share.paused_cpu_ns) for share in shares]
    assert divided == [(700, 1800, 0), (1000, 1500, 0)]
    assert sum(row.sums.self_cpu_ns for row in made.rows) == made.total.cpu_ns == 5000


def test_cpu_time_of_threads_never_seen_is_the_rest_of_the_process(tmp_path):
    build = Build(tmp_path / "t.1.er")
    build.thread(end_ns=START_NS + SECOND, end_cpu_ns=SECOND // 4)
    build.ended(SECOND, SECOND)

    assert accounted(build).unseen_cpu_ns == SECOND - SECOND // 4


def test_an_experiment_without_threads_accounts_to_nothing(tmp_path):
    made = profile(Analysis(Experiment(str(Build(tmp_path / "t.1.er").write()))), "intrinsic")

    assert made.total == NOTHING


def test_a_process_that_lives_is_running(tmp_path):
    build = Build(tmp_path / "t.1.er", pid=os.getpid(), host=os.uname().nodename, time_ns=time.time_ns())

    assert ending(Experiment(str(build.write())).founder).state == "running"


@pytest.mark.parametrize(("runs", "calls"), [(True, 1), (False, 2)])
def test_a_process_that_runs_is_read_as_it_was_when_its_threads_were_read(tmp_path, monkeypatch, runs, calls):
    monkeypatch.setattr(threads, "time", SimpleNamespace(monotonic_ns=lambda: START_NS + 3 * SECOND))
    build = Build(tmp_path / "t.1.er", pid=os.getpid(), host=os.uname().nodename, time_ns=time.time_ns())
    build.events([event(0, SECOND, call=1), event(2 * SECOND, 2 * SECOND, call=2)])
    build.thread(main=1, tid=812, recorded=2, made=2)
    if not runs:
        build.ended(5 * SECOND, 0)
    analysis = Analysis(Experiment(str(build.write())))

    assert analysis.accounts[0].found == calls
    assert elapsed_ns(analysis) == (3 if runs else 5) * SECOND


@pytest.mark.parametrize(
    "log",
    [
        {"pid": os.getpid(), "time_ns": time.time_ns(), "host": "another-host"},
        {"pid": os.getpid(), "time_ns": 1, "host": os.uname().nodename},
        {"pid": 2**22 + 1, "time_ns": time.time_ns(), "host": os.uname().nodename},
    ],
)
def test_another_process_of_the_same_number_is_not_the_one_recorded(tmp_path, log):
    assert ending(Experiment(str(Build(tmp_path / "t.1.er", **log).write())).founder).state == "unseen"


def test_a_process_seen_killed_tells_the_signal(tmp_path):
    build = Build(tmp_path / "t.1.er")
    build.log_events.append(f'<event kind="exit" time_ns="{START_NS + 5}" signal="9"/>')

    end = ending(Experiment(str(build.write())).founder)

    assert (end.state, end.signal, end.end_ns) == ("killed", signal.SIGKILL, START_NS + 5)


@pytest.mark.parametrize(
    ("status", "why"), [(28, "No space left on device"), (0, "error 0"), (2**31 - 1, "error 2147483647")]
)
def test_where_recording_stopped_the_reason_is_told(tmp_path, status, why):
    build = Build(tmp_path / "t.1.er")
    build.sample(time_ns=START_NS, kind=4, status=status)

    assert recording_stopped(Experiment(str(build.write())).founder) == why
