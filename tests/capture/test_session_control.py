"""Session control: what a program says of its own recording, and what somebody outside says while it runs."""

import json
import os
import re
import subprocess
import sys
import time
from collections import Counter

import pytest
from tracing import environment, events_of, run_in, start_in, until

from interpose.analysis.analysis import Analysis
from interpose.analysis.calls.profile import profile
from interpose.config.filters import parse
from interpose.experiments.metadata.control import Control
from interpose.experiments.metadata.filtering import change_filter
from interpose.experiments.metadata.pauses import Switch
from interpose.experiments.model.experiment import Experiment

TOLD = """
    import interpose, os
    null = os.open("/dev/null", os.O_WRONLY)
"""


def written(experiment, process=None):
    return [event.bytes for event in events_of(process or experiment.founder, "os.write")]


def kinds_of_log(experiment):
    return [event.kind for event in experiment.founder.log.events]


def test_between_pause_and_resume_nothing_is_recorded_and_the_time_is_left_out(traced):
    done = traced(TOLD + """
    import time
    os.write(null, b"1")
    interpose.pause()
    interpose.pause()
    os.write(null, b"22")
    time.sleep(0.02)
    interpose.resume()
    interpose.start()
    os.write(null, b"333")
    """).ended_well()
    rows = {row.kind: row.sums.self_wall_ns for row in profile(Analysis(done.experiment), "kind").rows}

    assert written(done.experiment) == [1, 3]
    assert kinds_of_log(done.experiment) == ["pause", "resume", "exit"]
    assert rows["paused"] >= 20e6
    assert "sleep" not in rows


def test_a_pause_in_a_forked_child_is_one_of_the_whole_experiment(traced):
    done = traced(TOLD + """
    child = os.fork()
    if child == 0:
        interpose.pause()
        os.write(null, b"1")
        os._exit(0)
    os.waitpid(child, 0)
    os.write(null, b"22")
    interpose.resume()
    os.write(null, b"333")
    """)
    processes = done.experiment.processes

    assert [written(done.experiment, process) for process in processes] == [[3], []]
    assert kinds_of_log(done.experiment)[:2] == ["pause", "resume"]


def test_a_child_that_is_started_while_paused_records_when_it_goes_on(traced):
    done = traced("""
        import interpose, os, subprocess, sys
        interpose.pause()
        code = "import interpose, os; os.write(1, b'1'); interpose.resume(); os.write(1, b'22')"
        subprocess.run([sys.executable, "-c", code], stdout=subprocess.DEVNULL, check=True)
    """).ended_well()
    (child,) = done.experiment.processes[1:]

    assert written(done.experiment, child) == [2]


def test_a_call_that_a_pause_falls_into_is_whole(traced):
    done = traced("""
        import interpose, threading, time
        def later():
            time.sleep(0.05)
        thread = threading.Thread(target=later)
        thread.start()
        time.sleep(0.01)
        interpose.pause()
        thread.join()
        interpose.resume()
    """)
    slept = max(done.events("time.sleep"), key=lambda event: event.wall_ns)

    assert slept.wall_ns >= 50e6
    assert all(thread.adds_up for thread in done.experiment.founder.threads)


def test_after_stop_nothing_is_recorded_and_everything_is_as_before(traced):
    done = traced("""
        import interpose, os, time
        null = os.open("/dev/null", os.O_WRONLY)
        os.write(null, b"1")
        interpose.stop_process()
        os.write(null, b"22")
        interpose.start()
        interpose.sample("x")
        interpose.user_event("x")
        interpose.pause()
        interpose.stop_process()
        os.write(null, b"333")
        from interpose.timing import shims
        assert not shims.is_recording()
    """).ended_well()

    assert written(done.experiment) == [1]
    assert kinds_of_log(done.experiment) == ["stopped"]


def test_others_may_be_in_calls_when_the_recording_is_stopped(traced):
    done = traced("""
        import interpose, os, threading, time
        def work():
            while not over:
                os.stat("/")
                time.sleep(0.0001)
        over = []
        threads = [threading.Thread(target=work) for _ in range(8)]
        for each in threads: each.start()
        time.sleep(0.05)
        interpose.stop_process()
        time.sleep(0.05)
        over.append(1)
        for each in threads: each.join()
    """).ended_well()

    assert done.events("os.stat")


def test_what_a_program_tells_of_is_an_event_of_its_line(traced):
    done = traced("""
        import interpose
        def order():
            interpose.user_event('paid <"&> \\u00fc\\udcff')
        order()
        interpose.user_event("")
    """).ended_well()
    founder = done.experiment.founder
    told = done.events("interpose.user_event")

    assert [founder.string(event.detail) for event in told] == ['paid <"&> \u00fc?', ""]
    assert founder.own_line(told[0].stack).function == "order"
    assert [(event.wall_ns, event.cpu_ns, event.inner_wall_ns) for event in told] == [(0, 0, 0)] * 2


def test_a_sample_is_taken_where_it_is_asked_for_under_its_label(traced):
    done = traced("""
        import interpose
        interpose.sample('half "way"')
        interpose.sample()
    """)
    founder = done.experiment.founder
    labels = [event.text for event in founder.log.events if event.kind == "sample"]

    assert labels == ['half "way"', ""]
    assert [sample.kind for sample in founder.overview] == [1, 2, 2, 3]


NOTHING = """
import interpose, sys
had = set(sys.modules)
interpose.start(); interpose.pause(); interpose.resume(); interpose.sample("x"); interpose.user_event("x")
interpose.stop_process()
print(*set(sys.modules) - had)
for function in (interpose.sample, interpose.user_event):
    try:
        function(5)
    except TypeError as error:
        print(error)
"""


@pytest.mark.parametrize("recorded", ["0", "1"])
def test_without_a_session_nothing_is_done_and_what_is_no_text_is_refused_in_either_case(tmp_path, recorded):
    done = run_in(tmp_path, [sys.executable, "-c", NOTHING], INTERPOSE=recorded)

    had, *refused = done.stdout.splitlines()
    assert (done.returncode, done.stderr) == (0, "")
    assert set(had.split()) <= {"interpose.boot"}
    assert refused == ["the label of a sample must be a str, not int", "the text of an event must be a str, not int"]


AT_THE_END = """
import interpose
class Last:
    def __del__(self):
        for act in (interpose.start, interpose.pause, interpose.resume, interpose.stop_process, interpose.trace_lines):
            act()
        interpose.sample("end")
        interpose.user_event("end")
        print("ended", flush=True)
last = Last()
last.kept = last
"""


@pytest.mark.parametrize("recorded", ["0", "1"])
def test_at_the_interpreters_end_nothing_is_done(tmp_path, recorded):
    done = run_in(tmp_path, [sys.executable, "-c", AT_THE_END], INTERPOSE=recorded)

    assert (done.returncode, done.stdout, done.stderr) == (0, "ended\n", "")


TURNING = """
import os, sys, interpose
others = []
for _ in range(3):
    pid = os.fork()
    if pid == 0:
        others = None
        break
    others.append(pid)
for _ in range(1000):
    interpose.pause()
    interpose.resume()
if others is None:
    os._exit(0)
print(flush=True)
for pid in others:
    os.waitpid(pid, 0)
interpose.resume()
"""


@pytest.mark.long
def test_whoever_pauses_at_the_same_moment_the_log_is_whole_and_says_what_is(tmp_path):
    program = subprocess.Popen(
        [sys.executable, "-c", TURNING], cwd=tmp_path, env=environment(INTERPOSE="1"), stdout=subprocess.PIPE
    )
    path = tmp_path / "test.1.er"
    while not (path / "_f1.er" / "log.xml").exists():
        assert program.poll() is None
    switch = Switch(Experiment(str(path)).founder)
    while program.poll() is None:
        switch.turn(True)
        switch.turn(False)
    program.communicate()

    experiment = Experiment(str(path))
    turns = [kind for kind in kinds_of_log(experiment) if kind != "exit"]
    assert program.returncode == 0
    assert not experiment.damages.found
    assert "exit" in kinds_of_log(experiment)
    assert turns[-1] == ("pause" if Control(experiment.founder).read().paused else "resume")


# --- from outside

BUSY = """
import os, sys, threading
over = []
def work(number):
    made = 0
    while not over:
        os.stat("/")
        made += 1
    counts[number] = made
counts = [0] * 8
threads = [threading.Thread(target=work, args=(number,)) for number in range(8)]
for each in threads: each.start()
print(flush=True)
sys.stdin.readline()
over.append(1)
for each in threads: each.join()
"""


class Busy:
    """A traced program that calls at full speed, in eight threads, until it is told to end."""

    def __init__(self, directory):
        self.process = start_in(directory, [sys.executable, "-c", BUSY], INTERPOSE="1")
        self.process.stdout.readline()
        self.path = str(directory / "test.1.er")

    @property
    def founder(self):
        return Experiment(self.path).founder

    def end(self):
        self.process.communicate("\n", timeout=60)
        return Experiment(self.path)


@pytest.fixture
def busy(tmp_path):
    found = Busy(tmp_path)
    yield found
    found.process.kill()
    found.process.communicate()


def now_ns():
    return time.clock_gettime_ns(time.CLOCK_MONOTONIC)


def nothing_is_torn(experiment):
    """Every event is one that there can be, each call's number is there once, and none was dropped."""
    founder = experiment.founder
    events = list(events_of(founder))
    numbers = {(event.thread, event.call) for event in events}
    names = {founder.intrinsic(event.intrinsic).name for event in events}
    assert len(numbers) == len(events)
    assert "" not in names
    assert all(event.cpu_ns <= event.wall_ns and event.inner_wall_ns <= event.wall_ns for event in events)
    assert all(thread.adds_up for thread in founder.threads)
    assert not any(thread.record.dropped for thread in founder.threads)
    assert not experiment.damages.found
    return True


@pytest.mark.long
@pytest.mark.alone
@pytest.mark.interpreter_lock  # without it, a thread may lose its processor between the look at the switch and the call
def test_nothing_is_torn_or_lost_at_the_cuts_of_many_pauses_and_filters_at_full_speed(busy):
    founder, cuts = busy.founder, []
    switch = Switch(founder)
    for text in ("kind=db", "off", "thread=2,3", "module=nowhere", "off") * 4:
        filter_ = parse(text)
        change_filter(founder, text, filter_.compiled(founder.log.start_ns) if filter_ else b"")
        switch.pause()
        time.sleep(0.012)
        quiet_from_ns = now_ns()
        time.sleep(0.004)
        cuts.append((quiet_from_ns, now_ns()))
        switch.resume()
        time.sleep(0.01)
    experiment = busy.end()

    begun = [event.start_ns for event in events_of(experiment.founder, "os.stat")]
    assert nothing_is_torn(experiment)
    assert not [start for start in begun if any(first <= start < last for first, last in cuts)]
    assert len(begun) > 100


def recorded_of(founder):
    """How many calls of each thread are recorded by now."""
    return Counter({thread.number: thread.record.recorded for thread in founder.threads})


def wait_for_calls_of(busy, *threads):
    """Until each of these threads has recorded some more."""
    before = recorded_of(busy.founder)
    until(lambda: all(recorded_of(busy.founder)[thread] > before[thread] + 1 for thread in threads))


@pytest.mark.long
def test_a_filter_holds_for_all_threads_within_ten_milliseconds(busy):
    founder, all_eight = busy.founder, range(2, 10)
    wait_for_calls_of(busy, *all_eight)
    change_filter(founder, "thread=2,3", parse("thread=2,3").compiled(founder.log.start_ns))
    holds_ns = now_ns() + 10_000_000
    until(lambda: now_ns() > holds_ns)
    wait_for_calls_of(busy, 2, 3)
    change_filter(founder, "off", b"")
    opened_ns = now_ns()
    wait_for_calls_of(busy, *all_eight)
    experiment = busy.end()

    begun = [(each.thread, each.start_ns) for each in events_of(experiment.founder, "os.stat")]
    late = Counter(thread for thread, start_ns in begun if holds_ns <= start_ns < opened_ns)
    assert nothing_is_torn(experiment)
    assert late[2] and late[3]
    # A thread that has looked, and is then kept from the processor, begins the call that it looked for.
    assert all(calls <= 1 for thread, calls in late.items() if thread not in (2, 3))


def test_each_act_of_the_command_is_done_while_the_program_runs(busy, interpose_here):
    def control(*words):
        done = interpose_here("control", str(busy.process.pid), *words)
        assert (done.returncode, done.stderr) == (0, "")
        return done.stdout

    assert "recording  filter off" in control()
    control("pause")
    control("pause")
    assert "paused" in control("status")
    control("filter", "kind=db; module=-x")
    control("start")
    assert "recording  filter kind=db; module=-x" in control()
    control("sample", "half way")
    saved = control("save").strip()
    experiment = busy.end()

    log = [(event.kind, event.text) for event in experiment.founder.log.events]
    assert log == [
        ("pause", ""),
        ("filter", "kind=db; module=-x"),
        ("resume", ""),
        ("sample", "half way"),
        ("exit", ""),
    ]
    assert Experiment(saved).founder.log.pid == busy.process.pid
    assert "ended  filter kind=db; module=-x" in interpose_here("control", experiment.directory).stdout


def test_what_cannot_be_controlled_is_told_in_a_line(busy, interpose_here, tmp_path):
    target = str(busy.process.pid)

    def told(*words, code):
        done = interpose_here("control", *words)
        assert done.returncode == code
        assert re.fullmatch(r"interpose: .*\n", done.stderr), done.stderr
        return done.stderr

    assert "'colour' is not one of kind" in told(target, "filter", "colour=red", code=2)
    assert "nothing would be recorded" in told(target, "filter", "kind=db,-db", code=2)
    assert "needs clauses" in told(target, "filter", code=2)
    assert "stop is not an action: use start" in told(target, "stop", code=2)
    assert "remove 'now'" in told(target, "pause", "now", code=2)
    assert "does not exist" in told("4000000000", "pause", code=1)
    assert f"process {os.getpid()} is not recorded" in told(str(os.getpid()), "pause", code=1)
    assert "No such file" in told("--file", "missing", target, code=1)
    busy.end()
    assert "none of its processes runs" in told(busy.path, "pause", code=1)


def test_an_interval_is_suggested_from_a_wanted_number_of_events(interpose_here):
    done = interpose_here("control", "suggest", "--cpu", "2400s", "--events", "500000")

    assert done.stdout == "4800us\n"
    assert interpose_here("control", "suggest", "--cpu", "x", "--events", "5").returncode == 2
    assert interpose_here("control", "suggest").returncode == 2
    too_much = interpose_here("control", "suggest", "4800us", "--cpu", "2400s", "--events", "500000")
    assert (too_much.returncode, too_much.stdout) == (2, "")


CONTROL = """\
FUNCTION=PAUSE
END-PROFILER
** a comment
FUNCTION=FILTER     /* another
FILTER=EVENT
EVENT=D,IB,IA
COLOUR=RED
FUNCTION=START
END-PROFILER
"""


def test_a_control_file_is_followed_step_by_step_and_what_is_unknown_told(busy, interpose_here, tmp_path):
    (tmp_path / "steps").write_text(CONTROL)

    done = interpose_here("control", "--file", str(tmp_path / "steps"), str(busy.process.pid))

    experiment = busy.end()
    assert done.returncode == 2
    assert done.stderr == f"interpose: {tmp_path}/steps:7: COLOUR is not a keyword of FILTER\n"
    log = [(event.kind, event.text) for event in experiment.founder.log.events]
    assert log[:3] == [("pause", ""), ("filter", "event=D,IB,IA"), ("resume", "")]


def test_a_control_file_runs_the_functions_that_process_what_was_recorded(traced, interpose_here, tmp_path):
    done = traced("import os; os.stat('/')")
    steps = [f"FUNCTION={name}\n" for name in ("READ", "CONSOLIDATE", "LIST", "DELETE")]
    (tmp_path / "steps").write_text("".join([*steps, "END-PROFILER\n"]))

    given = interpose_here("control", "--file", str(tmp_path / "steps"), done.path, cwd=tmp_path)

    assert (given.returncode, given.stderr.count("consolidated")) == (0, 1)
    assert "os.stat" in given.stdout
    assert "test.1.er" in given.stdout
    assert not os.path.exists(done.path)


def test_what_was_decided_of_a_process_shows_in_the_events(traced, interpose_here):
    done = traced("import interpose; interpose.user_event('paid')")

    given = interpose_here("events", "--format", "json", done.path)

    assert "paid" in [row["detail"] for row in json.loads(given.stdout)]
