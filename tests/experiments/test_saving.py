"""Copies of an experiment as it is at one instant: asked for, on a signal, or because a trigger fired."""

import os
import signal
import stat
import subprocess
import sys
import time
from itertools import pairwise

import pytest
from tracing import Traced, events_of, until

from interpose.analysis.calls.account import account
from interpose.analysis.consolidation.consolidate import consolidated
from interpose.analysis.recording.ending import ending
from interpose.cli.running.signals import signal_named
from interpose.config.values import parse_trigger
from interpose.errors import UsageError
from interpose.experiments.maintenance.saving import save
from interpose.experiments.metadata.control import Control, control_of
from interpose.experiments.model.experiment import Experiment
from tests.build import SECOND, START_NS, Build, event, size_of

# Writes for ever, each call a byte longer than the one before, modulo a prime; and so does a child of it.
BUSY = """
import os, signal, sys
signal.signal(signal.SIGUSR1, lambda *_: os._exit(77))
buffer = bytes(1000)
if len(sys.argv) > 1 and os.fork():
    print("ready", flush=True)
file = os.open(str(os.getpid()), os.O_CREAT | os.O_WRONLY)
if len(sys.argv) == 1:
    print("ready", flush=True)
number = 0
while True:
    os.pwrite(file, buffer[:number % 997], 0)
    number += 1
"""


@pytest.fixture
def start(started, own_environment):
    """Starts a command whose program has written a line when it is given."""

    def start(*words, **variables):
        variables = {**own_environment, **variables}
        return started([sys.executable, *words], session=True, env=variables, stderr=subprocess.PIPE)

    return start


def founder_account(experiment, process=None):
    process = process or experiment.founder
    return account(process, consolidated(process, ("thread",)).by_thread())


def saved_in(directory):
    return sorted(str(path) for path in directory.glob("*.save.*.er") if (path / "log.xml").exists())


@pytest.mark.slow
@pytest.mark.reach
@pytest.mark.parametrize("ring", ["off", "1MiB"])
def test_a_copy_is_an_experiment_as_it_was_at_one_instant(tmp_path, start, interpose, ring):
    start("-c", BUSY, "twice", INTERPOSE="1", INTERPOSE_RING=ring)
    original = str(tmp_path / "test.1.er")
    until(lambda: len(Experiment(original).processes) == 2)
    (tmp_path / "test.1.er" / "notes").write_text("kept\n")
    for _ in range(4):
        time.sleep(0.1)
        assert interpose("save", original).stdout.endswith(".er\n")

    for path in saved_in(tmp_path):
        copy = Experiment(path)
        assert len(copy.processes) == 2
        for process in copy.processes:
            made = founder_account(copy, process)
            writes = list(events_of(process, "os.pwrite"))
            assert all(after.call == before.call + 1 for before, after in pairwise(writes))
            assert all(after.bytes == (before.bytes + 1) % 997 for before, after in pairwise(writes))
            assert made.ending.state == "saved"
            assert writes[-1].start_ns + writes[-1].wall_ns <= made.ending.end_ns
            assert made.found + made.overwritten >= sum(thread.record.recorded for thread in process.threads)
            assert process.string(writes[-1].detail).endswith(str(process.log.pid))
            assert process.own_line(writes[-1].stack).line == 12
        assert copy.notes == ["kept"]
        assert copy.damages.found == []
        for directory, _, files in os.walk(path):
            assert stat.S_IMODE(os.stat(directory).st_mode) == 0o700
            assert {stat.S_IMODE(os.stat(os.path.join(directory, name)).st_mode) for name in files} == {0o600}
    assert "saved while running" in interpose("report", saved_in(tmp_path)[0]).stdout
    assert [os.path.basename(path) for path in saved_in(tmp_path)] == [f"test.1.save.{n}.er" for n in range(1, 5)]


FORKS = """
import os, signal, time
print("ready", flush=True)
while True:
    child = os.fork()
    if not child:
        while True:
            os.stat("/")
            time.sleep(0.001)
    time.sleep(child % 5 / 1000)
    os.kill(child, signal.SIGKILL)
    os.waitpid(child, 0)
"""


@pytest.mark.long
@pytest.mark.parametrize("ring", ["off", "1MiB"])
def test_a_copy_of_a_program_that_forks_is_undamaged_and_names_no_child_that_it_has_not(
    tmp_path, start, interpose, ring
):
    start("-c", FORKS, INTERPOSE="1", INTERPOSE_RING=ring)
    original = str(tmp_path / "test.1.er")
    until(lambda: len(Experiment(original).processes) > 100)
    for _ in range(2):
        interpose("save", original)

    for path in saved_in(tmp_path):
        assert "undamaged" in interpose("check", path).stdout
        copy = Experiment(path)
        ended = [child.record for child in copy.founder.children if child.has_ended]
        assert 90 < len(ended) < len(Experiment(original).founder.children)
        assert max(each.end_ns for each in ended) <= ending(copy.founder).end_ns


def test_a_copy_of_what_has_ended_has_the_same_events_and_the_same_end(traced, interpose):
    done = traced("import os\nfor _ in range(3000): os.stat('/')\nraise SystemExit(5)")

    path = interpose("save", done.path).stdout.strip()

    copy = Experiment(path)
    assert list(events_of(copy.founder)) == list(events_of(done.experiment.founder))
    assert ending(copy.founder) == ending(done.experiment.founder)
    assert founder_account(copy).threads == founder_account(done.experiment).threads


IMPOSSIBLE = {"wall_ns": 2**64 - 1}


@pytest.mark.parametrize("is_running", [False, True])
@pytest.mark.parametrize("ring", ["off", "1MiB"])
def test_a_copy_of_what_is_damaged_has_the_same_events_and_is_damaged(tmp_path, monkeypatch, ring, is_running):
    now_ns = START_NS + 2 * SECOND  # of a machine that started longer ago than this one, perhaps
    monkeypatch.setattr("time.clock_gettime_ns", lambda _: now_ns)
    build = Build(tmp_path / "test.1.er", settings={"INTERPOSE_RING": ring})
    build.intrinsic("os.stat", "file")
    build.block([event(number, 1, call=number) | (IMPOSSIBLE if number in (2, 5) else {}) for number in range(1, 6)])
    build.block([event(number, 1, call=number) for number in range(6, 9)])
    build.thread(end_ns=START_NS + SECOND, made=8, recorded=8)
    build.ended(SECOND, 0)
    original = Experiment(str(build.write()))

    copy = Experiment(save(original, lambda _: is_running, to=str(tmp_path / "copy.er")))

    assert [each.call for each in events_of(copy.founder)] == [1, 3, 4, 6, 7, 8]
    assert copy.founder.overwritten == 0
    assert [damage.what for damage in copy.damages.found] == ["2 impossible events, left out"]


def test_a_copy_of_what_is_cut_short_has_no_events_that_never_happened(tmp_path):
    build = Build(tmp_path / "test.1.er")
    build.intrinsic("os.stat", "file")
    build.block([event(number, 1, call=number) for number in range(1, 6)])
    build.thread(end_ns=START_NS + SECOND, made=5, recorded=5)
    build.ended(SECOND, 0)
    path = build.write()
    os.truncate(path / "events", size_of("BLOCK") + 3 * size_of("EVENT") + 1)

    copy = Experiment(save(Experiment(str(path)), lambda _: False, to=str(tmp_path / "copy.er")))

    assert [each.call for each in events_of(copy.founder)] == [1, 2, 3]


def test_links_in_an_experiment_are_not_followed(traced, tmp_path, interpose):
    done = traced("import os; os.stat('/')")
    (tmp_path / "secret").write_text("not to be copied")
    os.symlink(tmp_path / "secret", f"{done.path}/notes")
    os.symlink(tmp_path, f"{done.path}/archives")
    os.unlink(f"{done.path}/overview")
    os.symlink(tmp_path / "secret", f"{done.path}/overview")

    saved = interpose("save", done.path)

    assert saved.returncode == 3
    assert set(os.listdir(saved.stdout.strip())).isdisjoint({"notes", "archives", "overview"})


@pytest.mark.parametrize("wanted", ["no-suffix", ".er", "there.er"])
def test_a_name_that_cannot_be_is_told_in_one_line(traced, tmp_path, interpose, wanted):
    done = traced("import os; os.stat('/')")
    (tmp_path / "there.er").mkdir()

    saved = interpose("save", done.path, "-o", str(tmp_path / wanted))

    assert saved.returncode in (1, 2)
    assert len(saved.stderr.splitlines()) == 1
    assert wanted in saved.stderr


def test_a_descendant_is_not_saved_alone(traced, interpose):
    done = traced("import os\nif os.fork() == 0: os._exit(0)\nos.wait()")

    saved = interpose("save", f"{done.path}/_f1.er")

    assert (saved.returncode, saved.stderr) == (
        2,
        "interpose: _f1.er: is a child process; save the experiment that contains it\n",
    )


def test_a_signal_to_run_keeps_a_copy_and_does_not_reach_the_program(tmp_path, start):
    run = start("-m", "interpose", "run", "--ring", "1MiB", "--save-on", "SIGUSR1", "--", sys.executable, "-c", BUSY)
    until(lambda: Experiment(str(tmp_path / "test.1.er")).founder.overwritten)
    run.send_signal(signal.SIGUSR1)
    until(lambda: len(saved_in(tmp_path)) == 1)
    run.send_signal(signal.SIGUSR1)
    until(lambda: len(saved_in(tmp_path)) == 2)
    run.send_signal(signal.SIGTERM)

    assert run.wait(30) == -signal.SIGTERM
    said = run.stderr.read()
    for path in saved_in(tmp_path):
        assert f"interpose: saved as {path}\n" in said
        assert founder_account(Experiment(path)).overwritten > 0
        assert Experiment(path).damages.found == []


@pytest.mark.parametrize(
    ("trigger", "act", "times"),
    [
        ("call > 400ms", "time.sleep(0.5)", 1),
        ("call > 600s", "time.sleep(0.03)", 0),
        ("error", "os.stat('/not-there')", 1),
        ("error = FileNotFoundError", "os.stat('/not-there')", 1),
        ("error = builtins.OSError", "os.stat('/not-there')", 1),
        ("error = ValueError", "os.stat('/not-there')", 0),
        ("error = sqlite3.OperationalError", "import sqlite3; sqlite3.connect(':memory:').execute('nonsense')", 1),
        ("error = sqlite3.Error", "import sqlite3; sqlite3.connect(':memory:').execute('nonsense')", 1),
        ("error = OperationalError", "import sqlite3; sqlite3.connect(':memory:').execute('nonsense')", 1),
        ("error = other.OperationalError", "import sqlite3; sqlite3.connect(':memory:').execute('nonsense')", 0),
        ("exit != 0", "sys.exit(4)", 1),
        ("exit != 0", "os._exit(4)", 1),
        ("exit != 0", "sys.exit(0)", 0),
        ("call > 400ms, error = KeyError,exit != 0", "time.sleep(0.5); sys.exit(3)", 2),
    ],
)
def test_a_trigger_is_counted_with_its_time_and_process(traced, trigger, act, times):
    def run(act: str) -> Traced:
        source = f"""
            import os, sys, time
            print(os.getpid(), flush=True)
            try: {act}
            except Exception: pass
        """
        return traced(source, INTERPOSE_TRIGGER=trigger)

    # An interpreter may look for what is not there as it starts.
    before = control_of(run("pass").experiment).triggers if "error" in trigger else 0
    done = run(act)

    page = control_of(done.experiment)
    assert page.triggers == before + times
    if times:
        assert page.trigger_process == int(done.stdout)
        assert done.experiment.founder.log.start_ns < page.trigger_ns <= time.clock_gettime_ns(time.CLOCK_MONOTONIC)


@pytest.mark.parametrize(
    ("trigger", "act", "times"),
    [
        # communicate, wait and waitpid are one in the other.
        ("call > 300ms", 'subprocess.Popen(["sleep", "0.4"], stdout=subprocess.PIPE).communicate()', 1),
        ("call > 300ms", 'subprocess.run(["sleep", "0.4"]); subprocess.run(["sleep", "0.4"])', 2),
        ("call > 300ms", "with transaction('t'): time.sleep(0.4); time.sleep(0.4)", 2),
        ("error = IsADirectoryError", "with transaction('t'): os.open('/', os.O_WRONLY)", 1),
    ],
)
def test_calls_that_lie_in_one_another_fire_a_trigger_once(traced, trigger, act, times):
    done = traced(
        f"""
        import os, subprocess, time
        from interpose import transaction
        try:
            {act}
        except OSError: pass
        """,
        INTERPOSE_TRIGGER=trigger,
    )

    assert control_of(done.experiment).triggers == times


def test_waiting_for_work_does_not_fire_a_trigger(traced):
    done = traced(
        """
        import os
        os.posix_spawn("/bin/sleep", ["sleep", "0.3"], os.environ)
        os.wait()
    """,
        INTERPOSE_TRIGGER="call > 200ms",
    ).ended_well()

    assert control_of(done.experiment).triggers == 0


@pytest.mark.long
def test_run_keeps_a_copy_for_each_trigger_up_to_so_many(tmp_path, interpose):
    act = "import time\nfor _ in range(5): time.sleep(0.3)"

    done = interpose("run", "--trigger", "call > 200ms", "--saves", "2", "--", sys.executable, "-c", act)

    saved = saved_in(tmp_path / "work")
    assert done.returncode == 0
    assert [os.path.basename(path) for path in saved] == ["test.1.save.1.er", "test.1.save.2.er"]
    assert all(control_of(Experiment(path)).triggers for path in saved)
    assert done.stderr.count("saved as") == 2
    report = interpose("report", str(tmp_path / "work" / "test.1.er")).stdout
    assert " a trigger fired 5 times, last after 1" in report


@pytest.mark.parametrize(
    "text",
    [
        "",
        "call",
        "call > ",
        "call > 2",
        "call > off",
        "call < 2s",
        "error =",
        "error = a b",
        "error = 1x",
        "exit = 0",
        "exit != 1",
        "error,",
        "error = " + "a" * 501,
    ],
)
def test_a_trigger_that_means_nothing_is_refused(text):
    with pytest.raises(ValueError):
        parse_trigger(text)


def test_several_triggers_are_one():
    trigger = parse_trigger("call > 2s,error = a.B , call > 1s, exit != 0, error")

    assert (trigger.above_ns, trigger.errors, trigger.exit) == (1_000_000_000, ("a.B", "*"), True)


def test_signals_are_called_by_name_or_number():
    assert {signal_named(text, "-y") for text in ("USR1", "sigusr1", "10")} == {signal.SIGUSR1}
    for text in ("KILL", "SIGINT", "11", "nosuch", ""):
        with pytest.raises(UsageError, match="signal"):
            signal_named(text, "-y")


def test_a_copy_does_not_say_that_it_is_watched_or_paused(traced, interpose):
    done = traced("import os; os.stat('/')")
    Control(done.experiment.founder).write(monitor=77, paused=1)

    page = control_of(Experiment(interpose("save", done.path).stdout.strip()))

    assert (page.monitor, page.paused) == (0, 0)


def test_an_environment_with_a_ring_that_cannot_be_is_told(interpose):
    done = interpose("run", "--ring", "17GiB", "echo")

    assert (done.returncode, done.stderr) == (2, "interpose: --ring 17GiB: a ring can have at most 16GiB\n")
