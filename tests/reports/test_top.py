"""`interpose top`: functions and calls of the last seconds, of programs that have ended and of one that runs."""

import re
import subprocess
import sys
import time
from pathlib import Path

import pytest
from tracing import environment, write_program

from interpose.analysis.profile.recent import last_seconds
from interpose.cli.main import main
from interpose.experiments.model.experiment import Experiment
from tests.build import SECOND, START_NS, Build, event
from tests.schedules import MS

RUNNING = """
import os, sys, time
sink = os.open(os.devnull, os.O_WRONLY)
def compute():
    return sum(i * i for i in range(20000))
print("ready", flush=True)
until = time.monotonic() + 30
while time.monotonic() < until and not os.path.exists("over"):
    compute()
    os.write(sink, b"x")
"""


def built(directory):
    """A program that computed in `old` for 10 s, then in `new` for 2 s, with calls in both."""
    build = Build(directory, call_ns=0, inside_ns=0)
    query = build.intrinsic("sqlite3.Cursor.execute", "db")
    stack = build.stack(build.site("/home/u/shop/app.py", 7, "save"))
    stacks = [build.sampled_stack(("/home/u/shop/app.py", line, name)) for line, name in ((3, "old"), (9, "new"))]
    for place in range(1, 1201):
        now = place * 10 * MS
        build.thread_sample(START_NS + now, cpu_ns=now * 8 // 10, stack=stacks[now > 10 * SECOND])
    build.block([event(SECOND, 500 * MS, call=1, intrinsic=query, stack=stack)])
    recent = [
        event(10500 * MS, 100 * MS, 10 * MS, call=3, parent=2, intrinsic=query, stack=stack),
        event(10400 * MS, 300 * MS, 10 * MS, call=2, intrinsic=query, stack=stack, inner_wall_ns=100 * MS,
              inner_cpu_ns=10 * MS),
    ]  # fmt: skip
    build.block(recent)
    build.thread(end_ns=START_NS + 12 * SECOND, end_cpu_ns=9600 * MS, tid=1, main=1, recorded=3, made=3)
    build.ended(12 * SECOND, 9600 * MS)
    return build


def test_only_the_last_seconds_count(tmp_path):
    found = last_seconds(Experiment(str(built(tmp_path / "t.1.er").write())), 2 * SECOND)

    rows = {each.name: each for each in found.rows}
    assert rows["new"].cpu_ns == 1590 * MS  # the kernel counted 1600, of which calls have 10
    assert rows["new"].samples == 200
    assert rows["old"].samples == 1  # at the very instant at which they begin
    query = rows["sqlite3.Cursor.execute"]
    assert (query.calls, query.wall_ns, query.cpu_ns) == (2, 300 * MS, 10 * MS)
    assert found.threads == 1


def test_without_a_profile_it_is_said_how_to_get_one(tmp_path, capsys):
    build = built(tmp_path / "t.1.er")
    build.sampled = []

    assert main(["top", "--once", str(build.write())]) == 0

    assert "no functions: there is no profile (interpose attach --record calls,profile PID " in capsys.readouterr().out


def test_a_thread_with_calls_and_samples_counts_once(tmp_path):
    build = Build(tmp_path / "t.1.er", call_ns=0, inside_ns=0)
    query, stack = build.intrinsic("sqlite3.Cursor.execute", "db"), build.sampled_stack(("app.py", 3, "view"))
    for tid, number in ((4711, 1), (4712, 0), (4713, 0)):  # the second has calls, too; the third has none
        build.thread_sample(START_NS + 500 * MS, cpu_ns=8 * MS, stack=stack, thread=number, tid=tid)
    build.block([event(thread * 100 * MS, 20 * MS, 16 * MS, thread=thread, intrinsic=query) for thread in (1, 2)])
    for tid in (4711, 4712):
        build.thread(end_ns=START_NS + SECOND, end_cpu_ns=16 * MS, tid=tid, main=tid == 4711, recorded=1, made=1)
    build.ended(SECOND, 32 * MS)

    assert last_seconds(Experiment(str(build.write())), 2 * SECOND).threads == 3


def test_threads_that_live_for_a_sample_count_and_requests_leave_their_cpu_time_to_functions(tmp_path):
    build = Build(tmp_path / "t.1.er", call_ns=0, inside_ns=0)
    request = build.intrinsic("flask.Flask.wsgi_app", "logic")
    stack = build.sampled_stack(("app.py", 3, "view"))
    for thread in range(1, 11):
        build.thread_sample(START_NS + thread * 100 * MS, cpu_ns=8 * MS, stack=stack, thread=thread, tid=thread,
                            call=1, intrinsic=request)  # fmt: skip
        build.block([event(thread * 100 * MS, 20 * MS, 16 * MS, thread=thread, intrinsic=request)])
        build.thread(end_ns=START_NS + 1200 * MS, end_cpu_ns=16 * MS, tid=thread, main=thread == 1, recorded=1, made=1)
    build.ended(1200 * MS, 160 * MS)

    rows = {each.name: each for each in last_seconds(Experiment(str(build.write())), 2 * SECOND).rows}

    assert (rows["view"].cpu_ns, rows["view"].samples) == (160 * MS, 10)  # all that the kernel counted
    assert (rows["flask.Flask.wsgi_app"].cpu_ns, rows["flask.Flask.wsgi_app"].calls) == (0, 10)


def test_without_samples_code_has_the_cpu_time_between_calls(tmp_path):
    build = Build(tmp_path / "t.1.er", call_ns=0, inside_ns=0)
    sleep = build.intrinsic("time.sleep", "sleep")
    naps = [event(place * 10 * MS, 6 * MS, MS, call=place, intrinsic=sleep, start_cpu_ns=place * 4 * MS)
            for place in range(1, 800)]  # fmt: skip
    build.events(naps)
    build.thread(end_ns=START_NS + 8 * SECOND, end_cpu_ns=3200 * MS, tid=1, main=1, recorded=799, made=799)
    build.ended(8 * SECOND, 3600 * MS)

    found = last_seconds(Experiment(str(build.write())), 2 * SECOND)

    rows = {each.name: each for each in found.rows}
    assert rows["time.sleep"].cpu_ns == pytest.approx(200 * MS, rel=0.01)
    assert rows["code"].cpu_ns == pytest.approx(600 * MS, rel=0.01)
    assert rows["code"].wall_ns == pytest.approx(800 * MS, rel=0.01)
    assert rows["not recorded"].cpu_ns == pytest.approx(100 * MS, rel=0.01)


def test_a_young_recording_counts_for_as_long_as_it_is_there(tmp_path, capsys):
    build = Build(tmp_path / "t.1.er", call_ns=0, inside_ns=0)
    build.thread(end_ns=START_NS + 1600 * MS, end_cpu_ns=800 * MS, tid=1, main=1)
    build.ended(1600 * MS, 800 * MS)

    main(["top", str(build.write()), "--once"])

    assert capsys.readouterr().out.startswith("the last 1.60 s: 1 active thread, CPU 50 % of a processor\n")


def test_code_between_short_calls_keeps_its_cpu_time_if_the_next_sample_is_in_a_call(tmp_path):
    build = Build(tmp_path / "t.1.er", call_ns=0, inside_ns=0)
    query = build.intrinsic("sqlite3.Cursor.execute", "db")
    stack = build.sampled_stack(("/home/u/shop/app.py", 3, "view"))
    for place in range(1, 200):
        in_call = {"call": place, "intrinsic": query, "state": 1} if place % 2 else {}
        build.thread_sample(START_NS + place * 10 * MS, cpu_ns=place * 4 * MS, stack=stack, **in_call)
    build.events([event(place * 10 * MS - MS, 2 * MS, MS, call=place, intrinsic=query, start_cpu_ns=place * 4 * MS - MS)
                  for place in range(1, 200, 2)])  # fmt: skip
    build.thread(end_ns=START_NS + 2 * SECOND, end_cpu_ns=800 * MS, tid=1, main=1, recorded=100, made=100)
    build.ended(2 * SECOND, 800 * MS)

    rows = {each.name: each for each in last_seconds(Experiment(str(build.write())), SECOND).rows}

    assert rows["view"].cpu_ns == pytest.approx(350 * MS, rel=0.02)
    assert rows["sqlite3.Cursor.execute"].cpu_ns == pytest.approx(50 * MS, rel=0.02)


def test_it_is_written_as_tables(tmp_path, capsys):
    path = str(built(tmp_path / "t.1.er").write())

    assert main(["top", path, "--last", "1"]) == 0
    lines = [" ".join(line.split()) for line in capsys.readouterr().out.splitlines()]

    assert lines[0] == "the last 1.00 s: 1 active thread, CPU 80 % of a processor"
    assert lines[2:4] == ["CPU samples functions line", "80.0 % 101 new app.py:9"]
    assert lines[-1] == "no calls"


def test_names_are_data(tmp_path, capsys):
    build = built(tmp_path / "t.1.er")
    build.sampled_strings = [text.replace(b"new", b"n\x1b[2Jw") for text in build.sampled_strings]

    main(["top", str(build.write()), "--once"])

    assert "\x1b" not in capsys.readouterr().out


@pytest.mark.parametrize(
    ("words", "told"),
    [
        (["--every", "x"], "--every: 'x' is not a number of seconds (interpose top --help)"),
        (["--last", "0"], "--last: '0' is not a number of seconds from 0.1 to 86400"),
    ],
)
def test_what_is_no_time_is_refused_in_a_line(tmp_path, monkeypatch, capsys, words, told):
    monkeypatch.chdir(tmp_path)
    built(tmp_path / "t.1.er").write()

    try:
        code = main(["top", "t.1.er", *words])
    except SystemExit as ended:
        code = ended.code

    assert code == 2
    assert told in capsys.readouterr().err


def started(tmp_path):
    """The running program, recorded in test.1.er."""
    return subprocess.Popen(
        [sys.executable, str(write_program(tmp_path, RUNNING))],
        cwd=tmp_path,
        env=environment(INTERPOSE="1", XDG_STATE_HOME=str(tmp_path / "state")),
        stdout=subprocess.PIPE,
        text=True,
    )


def test_a_running_program_is_followed_until_it_ends(tmp_path):
    program = started(tmp_path)
    try:
        program.stdout.readline()
        words = [sys.executable, "-m", "interpose", "top", "test.1.er", "--every", "0.2", "--last", "60"]
        top = subprocess.Popen(words, cwd=tmp_path, stdout=subprocess.PIPE, text=True)
        shown = []
        while sum("os.write" in line for line in shown) < 2:
            shown.append(top.stdout.readline())
        (tmp_path / "over").touch()
        rest = top.communicate(timeout=60)[0]
    finally:
        (tmp_path / "over").touch()
        program.communicate(timeout=60)

    assert top.returncode == 0
    assert "os.write" in rest
    assert "\x1b" not in "".join(shown) + rest
    assert program.returncode == 0


def used_ns(pid):
    """The CPU time of its first thread, by the kernel."""
    with open(f"/proc/{pid}/schedstat") as file:
        return int(file.read().split()[0])


def test_the_cpu_time_of_a_running_program_is_the_kernels(tmp_path):
    program = started(tmp_path)
    try:
        program.stdout.readline()
        time.sleep(0.5)
        before_ns, start_ns = used_ns(program.pid), time.monotonic_ns()
        time.sleep(1.5)
        experiment = Experiment(str(tmp_path / "test.1.er"))
        found = last_seconds(experiment, time.monotonic_ns() - start_ns)
        share = (used_ns(program.pid) - before_ns) / (time.monotonic_ns() - start_ns)
    finally:
        (tmp_path / "over").touch()
        program.communicate(timeout=60)

    assert sum(each.cpu_ns for each in found.rows) / found.length_ns == pytest.approx(share, abs=0.05)
    assert max(found.rows, key=lambda each: each.cpu_ns).name == "code"


def test_a_running_program_may_be_named_by_its_process(tmp_path):
    program = started(tmp_path)
    try:
        program.stdout.readline()
        words = [sys.executable, "-m", "interpose", "top", str(program.pid), "--once", "--last", "60"]
        top = subprocess.run(words, cwd="/", capture_output=True, text=True, timeout=60)
    finally:
        (tmp_path / "over").touch()
        program.communicate(timeout=60)
    gone = subprocess.run([*words[:4], "999999999"], cwd="/", capture_output=True, text=True, timeout=60)

    assert (top.returncode, top.stderr) == (0, "")
    assert "the last " in top.stdout
    assert (gone.returncode, gone.stderr) == (1, "interpose: process 999999999 does not exist\n")


def test_a_process_in_another_namespace_may_be_named_by_its_number_here(tmp_path, interpose_here):
    source = "import os, time\nprint('ready', flush=True)\nwhile not os.path.exists('over'): time.sleep(0.01)"
    words = ["unshare", "-p", "-f", "--mount-proc", sys.executable, "-c", source]
    with subprocess.Popen(words, cwd=tmp_path, env=environment(INTERPOSE="1"), stdout=subprocess.PIPE) as program:
        if program.stdout.readline() != b"ready\n":
            pytest.skip("no right to make a namespace")
        pid = Path(f"/proc/{program.pid}/task/{program.pid}/children").read_text().strip()
        try:
            top = interpose_here("top", pid, "--once")
            paused = interpose_here("control", pid, "pause")
            outer = interpose_here("control", str(program.pid), "pause")
        finally:
            (tmp_path / "over").touch()

    assert (top.returncode, top.stderr) == (0, "")
    assert (paused.returncode, paused.stderr) == (0, "")
    assert [event.kind for event in Experiment(str(tmp_path / "test.1.er")).founder.log.events][:1] == ["pause"]
    assert (outer.returncode, outer.stderr) == (1, f"interpose: process {program.pid} is not recorded\n")


SLEEPER = """
import sqlite3, time
db = sqlite3.connect(":memory:")
db.execute("create table t(a)")
for _ in range(150):
    begun = time.monotonic_ns()
    for each in range(200):
        db.execute("insert into t values (?)", (each,))
    between = time.monotonic_ns()
    time.sleep(0.005)
    print(begun, between, time.monotonic_ns())
"""


def shares(found):
    """The wall times of the rows by name."""
    return {each.name: each.wall_ns for each in found.rows}


def test_with_a_ring_the_seconds_are_those_that_it_has_whole(traced, interpose_here):
    done = traced(SLEEPER, INTERPOSE_RING="1MiB")

    found = last_seconds(done.experiment, 60 * SECOND)
    rounds = [tuple(map(int, line.split())) for line in done.stdout.splitlines()]
    slept_ns = sum(found.within(between, end) for _, between, end in rounds)
    busy_ns = sum(found.within(begun, between) for begun, between, _ in rounds)
    assert done.experiment.founder.overwritten > 0
    assert 0 < found.length_ns < rounds[-1][2] - rounds[0][0]
    assert shares(found)["time.sleep"] == pytest.approx(slept_ns, rel=0.05)
    assert shares(found)["sqlite3.Connection.execute"] + shares(found)["code"] >= 0.9 * busy_ns
    assert sum(shares(found).values()) == pytest.approx(found.length_ns, rel=0.01)
    lines = interpose_here("top", "--once", "--last", "60", done.path).stdout.splitlines()
    assert lines[1].startswith(" before the ring  ")


PAUSER = """
import time
import interpose
def busy(seconds):
    until = time.thread_time() + seconds
    while time.thread_time() < until:
        pass
time.sleep(0.05)
outer, cpu = time.monotonic_ns(), time.thread_time_ns()
interpose.pause()
inner = time.monotonic_ns()
busy(0.2)
time.sleep(0.2)
inner = time.monotonic_ns() - inner
interpose.resume()
print(inner, time.monotonic_ns() - outer, time.thread_time_ns() - cpu)
time.sleep(0.05)
busy(0.1)
"""


def test_what_was_paused_is_not_code(traced):
    done = traced(PAUSER)

    found = last_seconds(done.experiment, 60 * SECOND)
    inner_ns, outer_ns, cpu_ns = map(int, done.stdout.split())
    rows = {each.name: each for each in found.rows}
    assert inner_ns <= rows["paused"].wall_ns <= outer_ns
    assert rows["paused"].cpu_ns == pytest.approx(cpu_ns, rel=0.1)
    assert rows["code"].wall_ns <= found.length_ns - inner_ns
    assert not rows["paused"].is_of_calls


@pytest.mark.parametrize(
    ("variables", "told"),
    [
        ({"INTERPOSE_FILTER": "kind=sleep"}, r" filter  kind=sleep; the time of excluded calls is in code"),
        (
            {"INTERPOSE_LIMIT": "1MiB"},
            r" incomplete  the limit was reached \(INTERPOSE_LIMIT\); [0-9,]+ events lost; "
            "the time of calls that are not recorded is in code",
        ),
        ({}, ""),
    ],
    ids=["filter", "limit", "whole"],
)
def test_what_the_table_lacks_is_said_above_it(traced, interpose_here, variables, told):
    done = traced(SLEEPER, **variables)

    lines = interpose_here("top", "--once", done.path).stdout.splitlines()

    assert re.fullmatch(told, lines[1])
