"""Pauses: what the log tells of them, how long they were, and what becomes of the time."""

import sys

import pytest
from tracing import start_in

from interpose.analysis.analysis import Analysis
from interpose.analysis.calls.profile import profile
from interpose.experiments.metadata.endings import append
from interpose.experiments.metadata.log import LogEvent
from interpose.experiments.metadata.pauses import NO_END_NS, Pauses, Switch
from interpose.experiments.model.experiment import Experiment
from tests.build import START_NS, Build, event


def pauses(*instants):
    """Those of `+5` (pause) and `-7` (resume)."""
    return Pauses(
        LogEvent("pause" if each > 0 else "resume", abs(each), status=None, signal=None, why="") for each in instants
    )


@pytest.mark.parametrize(
    ("begin_ns", "end_ns", "paused_ns"),
    [(0, 5, 0), (0, 12, 2), (11, 14, 3), (12, 50, 18), (30, 35, 0), (0, 1000, 910), (120, 130, 10), (50, 20, 0)],
)
def test_the_time_paused_between_two_instants(begin_ns, end_ns, paused_ns):
    assert pauses(10, -20, 40, -50, 110).within(begin_ns, end_ns) == paused_ns


@pytest.mark.parametrize(
    ("begin_ns", "end_ns", "parts"),
    [
        (0, 10, []),
        (0, 11, [(10, 11)]),
        (5, 50, [(10, 20), (40, 50)]),
        (15, 18, [(15, 18)]),
        (20, 40, []),
        (60, 99, [(60, 99)]),
        (50, 20, []),
    ],
)
def test_the_parts_of_pauses_between_two_instants(begin_ns, end_ns, parts):
    assert list(pauses(10, -20, 40).overlapping(begin_ns, end_ns)) == parts


def test_what_is_said_twice_or_of_nothing_counts_once():
    found = pauses(-5, 10, 15, -20, -25, 2**64 - 1)

    assert len(found) == 2
    assert found.within(0, NO_END_NS) == 10


def log_event(kind, after_ns):
    return f'<event kind="{kind}" time_ns="{START_NS + after_ns}"/>'


def rows(path):
    made = profile(Analysis(Experiment(str(path))), "kind")
    whole = made.total
    assert sum(row.sums.self_wall_ns for row in made.rows) == whole.wall_ns
    assert sum(row.sums.self_cpu_ns for row in made.rows) == whole.cpu_ns
    return {row.kind: (row.sums.self_wall_ns, row.sums.self_cpu_ns) for row in made.rows}


def paused_experiment(tmp_path, *events):
    """Of 10,000 ns, of which 8,000 on the CPU, and two calls of 1,000 ns; nothing is calibrated."""
    build = Build(tmp_path / "t.1.er", call_ns=0, inside_ns=0)
    build.intrinsic("os.write", "file")
    build.thread(end_ns=START_NS + 10_000, end_cpu_ns=8_000, recorded=2, made=2)
    build.events([event(1_000, 1_000, start_cpu_ns=1_000), event(8_000, 1_000, call=2, start_cpu_ns=7_000)])
    build.log_events += events
    build.ended(10_000, 8_000)
    return build.write()


def test_time_paused_is_not_the_programs_and_all_adds_up(tmp_path):
    path = paused_experiment(tmp_path, log_event("pause", 3_000), log_event("resume", 7_000))

    found = rows(path)

    assert found["paused"] == (4_000, 4_000)
    assert found["code"] == (4_000, 4_000)
    assert found["file"] == (2_000, 0)


def test_what_a_call_took_of_a_pause_stays_with_the_call(tmp_path):
    path = paused_experiment(tmp_path, log_event("pause", 1_500), log_event("resume", 3_000))

    assert rows(path)["paused"][0] == 1_000


def test_a_pause_that_has_no_end_lasts_as_long_as_the_thread(tmp_path):
    path = paused_experiment(tmp_path, log_event("pause", 9_500))

    assert rows(path)["paused"][0] == 500


def test_where_nothing_was_paused_there_is_no_row(tmp_path):
    assert "paused" not in rows(paused_experiment(tmp_path))


def test_a_program_that_begins_paused_is_recorded_from_when_it_is_told(tmp_path, interpose_here):
    source = "import sys, time; time.sleep(0.001); print(flush=True); sys.stdin.readline(); time.sleep(0.1)"
    program = start_in(tmp_path, [sys.executable, "-c", source], INTERPOSE="1", INTERPOSE_PAUSED="1")
    program.stdout.readline()
    Switch(Experiment(str(tmp_path / "test.1.er")).founder).resume()
    program.communicate("\n")

    experiment = Experiment(str(tmp_path / "test.1.er"))
    made = profile(Analysis(experiment), "intrinsic")
    calls = {row.intrinsic: row.sums.calls for row in made.rows if row.is_of_calls}
    assert program.returncode == 0
    assert calls["time.sleep"] == 1
    assert [each.kind for each in experiment.founder.log.events] == ["pause", "resume", "exit"]
    assert any(row.kind == "paused" and row.sums.self_wall_ns > 0 for row in made.rows)
    assert "paused" in interpose_here("report", experiment.directory).stdout


def test_two_that_write_into_the_log_at_once_lose_nothing_of_what_is_written_last(tmp_path):
    path = Build(tmp_path / "t.1.er").write()
    log = (path / "log.xml").read_text()
    line = '  <event kind="exit" time_ns="9" status="0"/>\n</experiment>\n'
    begun = log[: log.index("</experiment>")]
    # What is left where the process wrote its end over an event longer than that.
    (path / "log.xml").write_text(begun + line + 'time_ns="123"/>\n</experiment>\n')

    assert append(str(path), b'  <event kind="pause" time_ns="10"/>\n')

    experiment = Experiment(str(path))
    assert [each.kind for each in experiment.founder.log.events] == ["exit", "pause"]
    assert not experiment.damages.found


def test_each_of_many_pauses_is_in_the_log(tmp_path):
    path = Build(tmp_path / "t.1.er").write()
    switch = Switch(Experiment(str(path)).founder)

    for _ in range(20):
        switch.pause()
        switch.resume()

    assert len(Pauses(Experiment(str(path)).founder.log.events)) == 20


def test_an_experiment_that_is_gone_is_no_place_to_write(tmp_path):
    assert not append(str(tmp_path / "gone.er"), b"x")
