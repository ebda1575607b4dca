"""`interpose run --at --for --every -t`: when it is recorded, and that what is recorded is of then."""

import argparse
import sys
from datetime import datetime

import pytest
from tracing import events_of

from interpose.cli.running.schedule import Clockwork, Schedule, add_schedule_arguments, schedule_of
from interpose.errors import UsageError
from interpose.experiments.metadata.control import Control
from interpose.experiments.metadata.pauses import Pauses
from interpose.experiments.model.experiment import Experiment
from tests.build import Build

NOON = datetime(2025, 6, 1, 12, 0, 30)
STEPS = """
import time
for _ in range(150):
    time.sleep(0.01)
"""


def parsed(words):
    parser = argparse.ArgumentParser()
    add_schedule_arguments(parser)
    return schedule_of(parser.parse_args(words.split()), NOON)


@pytest.mark.parametrize(
    ("words", "after_s", "for_s", "every_s"),
    [
        ("--at 14:00", 7_170, None, None),
        ("--at 12:00:30", 0, None, None),
        ("--at 12:00", 86_370, None, None),
        ("--at 02:00 --for 10m", 50_370, 600, None),
        ("--for 2.5s", 0, 2.5, None),
        ("--at 5m --for 10m --every 1h", 300, 600, 3_600),
        ("-t 30", 0, 30, None),
        ("-t 10m", 0, 600, None),
        ("-t 0-5", 0, 5, None),
        ("-t 1m-5m", 60, 240, None),
        ("-t 1.5s-2", 1.5, 0.5, None),
        ("-t 90-0", 90, None, None),
    ],
)
def test_when_to_record_is_as_the_options_say(words, after_s, for_s, every_s):
    assert parsed(words) == Schedule(NOON.timestamp() + after_s, for_s, every_s)


def test_without_options_there_is_no_schedule():
    assert parsed("") is None


@pytest.mark.parametrize(
    "words",
    [
        "--at 25:00",
        "--at noon",
        "--at 12",
        "--for 0s",
        "--for 10",
        "--every 1h",
        "--for 1h --every 1h",
        "--every x --for 1s",
        "-t 0",
        "-t 5-5",
        "-t 5-2",
        "-t soon",
        "-t 5-",
        "-t 5 --for 1s",
        "-t 5 --at 1s",
    ],
)
def test_what_means_nothing_is_told(words):
    with pytest.raises(UsageError, match="-"):
        parsed(words)


@pytest.mark.parametrize(
    ("schedule", "now_s", "is_open", "left_s"),
    [
        (Schedule(100), 90, False, 10),
        (Schedule(100), 100, True, None),
        (Schedule(100, 20), 90, False, 10),
        (Schedule(100, 20), 105, True, 15),
        (Schedule(100, 20), 120, False, None),
        (Schedule(100, 20, 50), 130, False, 20),
        (Schedule(100, 20, 50), 155, True, 15),
        (Schedule(100, 20, 50), 1_071, False, 29),
    ],
)
def test_it_is_recorded_then_and_not_else(schedule, now_s, is_open, left_s):
    assert (schedule.is_open(now_s), schedule.left_s(now_s)) == (is_open, left_s)


def test_the_page_and_the_log_follow_the_clock(tmp_path):
    path = str(Build(tmp_path / "t.1.er").write())
    Control(Experiment(path).founder).write(paused=1)
    now = iter([90, 100, 110, 120, 150, 400])
    work = Clockwork(path, Schedule(100, 20, 50), paused=True, clock=lambda: next(now))

    told = [(work.attend(), Control(Experiment(path).founder).read().paused) for _ in range(6)]

    assert [paused for _, paused in told] == [1, 0, 0, 1, 0, 0]
    assert [left for left, _ in told] == [10, 20, 10, 30, 20, 20]
    assert [each.kind for each in Experiment(path).founder.log.events] == ["resume", "pause", "resume"]


def test_before_the_program_has_begun_it_is_tried_again_soon(tmp_path):
    (tmp_path / "t.1.er").mkdir()
    (tmp_path / "t.1.er" / "log.xml").touch()

    assert Clockwork(str(tmp_path / "t.1.er"), Schedule(0), paused=True).attend() < 1


def sleeps(experiment):
    return len(list(events_of(experiment.founder, "time.sleep")))


def test_a_program_is_recorded_in_its_windows(interpose, tmp_path):
    done = interpose("run", "--at", "300ms", "--for", "200ms", "--every", "500ms", sys.executable, "-c", STEPS)

    experiment = Experiment(str(tmp_path / "work" / "test.1.er"))
    found = Pauses(experiment.founder.log.events)
    assert (done.returncode, done.stderr) == (0, "")
    assert len(found) >= 2
    assert 0 < sleeps(experiment) < 150
    assert not any(thread.record.dropped for thread in experiment.founder.threads)


def test_what_is_recorded_first_is_recorded_from_the_start(interpose, tmp_path):
    interpose("run", "--for", "1h", sys.executable, "-c", "import time; time.sleep(0.01)")

    experiment = Experiment(str(tmp_path / "work" / "test.1.er"))
    assert sleeps(experiment) == 1
    assert not len(Pauses(experiment.founder.log.events))


def test_without_a_beginning_it_is_recorded_from_the_start_for_so_long(interpose, tmp_path):
    program = "import time\nfor _ in range(20): time.sleep(0.1)"
    done = interpose("run", "--for", "500ms", sys.executable, "-c", program)

    experiment = Experiment(str(tmp_path / "work" / "test.1.er"))
    assert (done.returncode, done.stderr) == (0, "")
    assert 0 < sleeps(experiment) < 20
    assert len(Pauses(experiment.founder.log.events)) == 1


def test_a_schedule_that_means_nothing_runs_nothing(interpose, tmp_path):
    done = interpose("run", "--every", "1h", sys.executable, "-c", "print('ran')")

    assert done.returncode == 2
    assert done.stderr == "interpose: --every needs --for with a shorter duration\n"
    assert not list((tmp_path / "work").glob("*.er")) and not done.stdout
