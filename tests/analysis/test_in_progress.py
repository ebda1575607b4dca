"""The time of calls in progress counts for them, not for code, however the program ended, and while it runs."""

import os
import re
import sys
import time

import pytest
from shops import MS
from tracing import start_in, write_program

from interpose.analysis.analysis import Analysis
from interpose.analysis.calls.profile import profile
from interpose.analysis.findings.survey import Survey
from interpose.experiments.model.experiment import Experiment
from interpose.reports.formats.colour import Paint
from interpose.reports.screen.remarks import calls_in_progress
from interpose.reports.screen.screen import Screen
from tests.build import SECOND, START_NS, Build, event

# Three threads wait for work, one computes, and the main one sleeps; then it does what the test asks, or nothing.
WAITING = """
import os, queue, sys, threading, time
work = queue.SimpleQueue()
for _ in range(3):
    threading.Thread(target=work.get, daemon=True).start()
begun_ns = time.monotonic_ns()
for _ in range(5):
    time.sleep(0.1)
print(time.monotonic_ns() - begun_ns, flush=True)
if sys.argv[1] == "ends":
    sys.exit()
if sys.argv[1] == "kills":
    os.kill(os.getpid(), 9)
sys.stdin.readline()
"""


def waiting(tmp_path, what):
    """The program, and how long its main thread slept; its threads waited as long."""
    program = start_in(
        tmp_path,
        [sys.executable, str(write_program(tmp_path, WAITING)), what],
        INTERPOSE="1",
        XDG_STATE_HOME=str(tmp_path / "state"),
    )
    return program, int(program.stdout.readline())


def survey_of(tmp_path):
    return Survey(Analysis(Experiment(str(tmp_path / "test.1.er"))))


@pytest.mark.parametrize("what", ["ends", "kills", "is asked to end"])
def test_waiting_for_work_is_idle_however_the_program_ended(tmp_path, what):
    program, slept_ns = waiting(tmp_path, what)
    if what == "is asked to end":
        program.terminate()
    program.communicate()
    survey = survey_of(tmp_path)

    (account,) = survey.analysis.accounts
    lived_ns = account.latest_ns - account.process.log.start_ns

    assert 3 * slept_ns <= survey.idle_ns <= 3 * lived_ns
    assert slept_ns <= survey.matters_ns <= lived_ns + 0.5 * slept_ns  # of the others only how they begin
    assert survey.unseen.unexplained_ns < 0.2 * slept_ns


def test_who_waits_while_others_read_waits_until_now(tmp_path):
    program, slept_ns = waiting(tmp_path, "runs")
    began_ns = time.monotonic_ns() - slept_ns
    time.sleep(1)
    least_ns = time.monotonic_ns() - began_ns
    survey = survey_of(tmp_path)
    idle_ns, whole_ns = survey.idle_ns, survey.times.whole_ns
    most_ns = time.monotonic_ns() - survey.analysis.accounts[0].process.log.start_ns
    program.communicate("\n")

    assert 3 * least_ns <= idle_ns <= 3 * most_ns
    assert 4 * least_ns <= whole_ns <= 4 * most_ns


def test_the_time_of_nested_calls_is_each_ones_own(tmp_path):
    build = Build(tmp_path / "t.1.er", call_ns=0, inside_ns=0)
    request, query, receive = (
        build.intrinsic(name, kind) for name, kind in (("page", "logic"), ("execute", "db"), ("libc.recv", "net"))
    )
    build.events([event(200 * MS, 50 * MS, intrinsic=query, parent=1, call=2)])
    opened = [
        {"start_ns": START_NS + 100 * MS, "call": 1, "intrinsic": request, "inner_wall_ns": 50 * MS},
        {"start_ns": START_NS + 300 * MS, "call": 3, "intrinsic": query},
        {"start_ns": START_NS + 400 * MS, "call": 4, "intrinsic": receive},
    ]
    build.thread(open_calls=opened, main=1, tid=812, recorded=1, made=4)
    build.ended(SECOND, 0)
    analysis = Analysis(Experiment(str(build.write())))
    (account,) = analysis.accounts
    (share,) = account.threads.values()

    assert [each.self_wall_ns for each in account.open_calls] == [150 * MS, 100 * MS, 600 * MS]
    assert (share.program_wall_ns, share.open_wall_ns) == (250 * MS, 700 * MS)  # a page contains code
    assert [(each.kind, each.calls, each.wall_ns) for each in Survey(analysis).calls if each.kind != "logic"] == [
        ("db", 2, 750 * MS)  # what a database receives is part of its call
    ]


def test_a_pause_during_a_call_in_progress_is_part_of_it(tmp_path):
    build = Build(tmp_path / "t.1.er", call_ns=0, inside_ns=0)
    poll = build.intrinsic("select.poll.poll", "idle")
    build.thread(open_calls=[{"start_ns": START_NS + 300 * MS, "call": 1, "intrinsic": poll}], main=1, tid=812, made=1)
    build.log_events += [
        f'<event kind="pause" time_ns="{START_NS + 100 * MS}"/>',
        f'<event kind="resume" time_ns="{START_NS + 500 * MS}"/>',
    ]
    build.ended(SECOND, 0)
    (share,) = Analysis(Experiment(str(build.write()))).accounts[0].threads.values()

    assert (share.open_wall_ns, share.paused_wall_ns, share.program_wall_ns) == (700 * MS, 200 * MS, 100 * MS)


def test_calls_in_progress_that_are_alike_are_one_line(tmp_path, interpose_here):
    program, _ = waiting(tmp_path, "kills")
    program.communicate()

    shown = interpose_here("report", str(tmp_path / "test.1.er")).stdout

    assert len(re.findall(r"in progress  3 x queue.SimpleQueue.get at \S+, the longest \d+ m", shown)) == 1
    assert " in progress " in shown and "calls not ended" in shown
    assert " not idle)" in shown


def test_a_call_of_a_running_program_lasted_until_its_threads_were_read(tmp_path):
    build = Build(tmp_path / "t.1.er", pid=os.getpid(), host=os.uname().nodename, time_ns=time.time_ns())
    poll = build.intrinsic("select.poll.poll", "idle")
    build.thread(open_calls=[{"start_ns": START_NS, "call": 1, "intrinsic": poll}], main=1, tid=812, made=1)
    analysis = Analysis(Experiment(str(build.write())))
    analysis.accounts[0].process.threads_read_ns = START_NS + 2 * SECOND  # a long report is printed later
    screen = Screen(profile(analysis, "kind"), 0.0, 80, Paint(False), Survey(analysis))

    assert list(calls_in_progress(screen)) == [" in progress  select.poll.poll for 2.00 s so far"]


CUT_OFF = """
import os, signal, socket, sys, threading, time
from interpose import transaction

def stop(number, frame):
    raise TimeoutError

def asks():
    listener = socket.create_server(("127.0.0.1", 0))
    asking = socket.create_connection(listener.getsockname())
    asking.sendall(b"anybody there?")
    threading.Timer(0.5, os.kill, [os.getpid(), 9]).start()
    asking.recv(100)

def sleeps():
    signal.signal(signal.SIGALRM, stop)
    signal.setitimer(signal.ITIMER_REAL, 0.5)
    try:
        with transaction("hard"):
            time.sleep(60)
    except TimeoutError:
        pass

globals()[sys.argv[1]]()
"""


@pytest.mark.parametrize(
    ("what", "sentence"),
    [
        ("sleeps", r"1 sleep from program\.py:\d+ sleeps within hard, cut off by an exception \("),
        ("asks", r"1 call of \S*recv from program\.py:\d+ asks, in progress at the end \("),
    ],
)
def test_a_call_that_was_cut_off_is_not_told_as_one_that_took_its_time(what, sentence, traced, interpose_here):
    done = traced(CUT_OFF, what)
    told = " ".join(interpose_here("report", "--by", "finding", done.path).stdout.split())

    assert re.search(sentence, told), told
    assert " each " not in told
