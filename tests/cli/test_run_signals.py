"""`interpose run`: signals that pause and let go on, or take labelled samples; an experiment made anew."""

import argparse
import os
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
from tracing import events_of, until

from interpose.cli.running.signals import Asked, add_signal_arguments, signals_of
from interpose.errors import UsageError
from interpose.experiments.metadata.control import Control
from interpose.experiments.metadata.labels import Window, windows
from interpose.experiments.metadata.pauses import Pauses
from interpose.experiments.model.experiment import Experiment

pytestmark = pytest.mark.any_python

# Each line on standard input is a call of `os.stat`, which is answered; nothing else is recorded in between.
STEPS = """
import os, sys
print("ready", flush=True)
for line in sys.stdin:
    os.stat(line.strip())
    print("done", flush=True)
"""
HANDLES = """
import os, signal, sys
def handle(number, frame):
    os.write(1, b"got %d\\n" % number)  # print may be in progress
    if number == signal.SIGUSR2:
        raise SystemExit(5)
for number in (signal.SIGHUP, signal.SIGTERM, signal.SIGUSR2):
    signal.signal(number, handle)
print("ready", flush=True)
sys.stdin.read()
"""


@pytest.fixture
def place(tmp_path):
    """Where the commands of the fixture `interpose` run."""
    return tmp_path / "work"


@pytest.fixture
def begun(interpose, place, own_environment):
    """Starts `interpose run` with options and a program in Python, and gives the process once that is ready."""
    started = []

    def begin(source, *options, **more):
        process = subprocess.Popen(
            [sys.executable, "-m", "interpose", "run", *options, "--", sys.executable, "-c", source],
            **{"cwd": place, "env": own_environment, "text": True, **more},
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
        )
        started.append(process)
        assert process.stdout.readline() == "ready\n"
        return process

    yield begin
    for process in started:
        process.kill()
        process.communicate()


@pytest.fixture
def steps(begun):
    """The same with a program that waits for steps."""
    return lambda *options: begun(STEPS, *options, stderr=subprocess.PIPE)


def step(process, path="/"):
    process.stdin.write(f"{path}\n")
    process.stdin.flush()
    assert process.stdout.readline() == "done\n"


def page_of(place):
    return Control(Experiment(str(place / "test.1.er")).founder).read()


def toggle(process, place, paused):
    process.send_signal(signal.SIGUSR1)
    until(lambda: page_of(place).paused == paused)


@pytest.mark.parametrize(("said", "recorded"), [("USR1", ["/usr", "/etc"]), ("USR1,r", ["/", "/tmp"])])
def test_a_signal_pauses_and_lets_go_on(steps, place, said, recorded):
    process = steps("-y", said)
    begins_paused = not said.endswith("r")
    for paused, path in enumerate(("/", "/usr", "/tmp", "/etc")):
        step(process, path)
        if path != "/etc":
            toggle(process, place, paused=(paused + begins_paused + 1) % 2)
    _, said_by_run = process.communicate()

    experiment = Experiment(str(place / "test.1.er"))
    paths = [experiment.founder.string(event.detail) for event in events_of(experiment.founder, "os.stat")]
    paths = [path for path in paths if path in ("/", "/usr", "/tmp", "/etc")]
    assert (process.returncode, said_by_run) == (0, "")
    assert paths == recorded
    assert len(Pauses(experiment.founder.log.events)) == 2


def test_a_signal_takes_a_sample_and_begins_a_window(steps, place, interpose):
    process = steps("-l", "SIGUSR2", "-S", "off")
    for number, path in enumerate(("/", "/usr", "/etc")):
        step(process, path)
        if path != "/etc":
            process.send_signal(signal.SIGUSR2)
            until(lambda number=number: page_of(place).samples_wanted == number + 1)
            until(lambda number=number: len(Experiment(str(place / "test.1.er")).marks) == 2 * number + 1)
    process.communicate()

    experiment = Experiment(str(place / "test.1.er"))
    (first,), (second,) = (windows(experiment.marks, name) for name in ("sample1", "sample2"))
    assert (first.stop_ns, second) == (second.start_ns, Window(second.start_ns, (1 << 64) - 1))
    # The beginning, one after each signal, and the end.
    times_ns = [sample.time_ns for sample in experiment.founder.overview]
    assert len(times_ns) == 4
    assert times_ns[0] < first.start_ns < times_ns[1] < second.start_ns < times_ns[2] < times_ns[3]
    shown = interpose("events", "--label", "sample1", "--format", "csv").stdout
    assert "/usr" in shown
    assert "/etc" not in shown


def test_a_label_that_begins_now_takes_a_sample(steps, place, interpose):
    process = steps("-S", "off")
    step(process)
    assert interpose("label", "-n", "load", "-t", "start", "-o", "test.1.er").returncode == 0
    step(process)
    process.communicate()

    assert len(Experiment(str(place / "test.1.er")).founder.overview) == 3


def test_every_process_takes_its_sample(interpose, place, own_environment):
    source = "import os, sys, time\nos.fork()\nprint('ready', flush=True)\nsys.stdin.readline()\nos.stat('/')"
    words = [sys.executable, "-m", "interpose", "run", "-l", "USR1", "-S", "off", "--", sys.executable, "-c", source]
    process = subprocess.Popen(
        words, cwd=place, env=own_environment, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    )
    assert [process.stdout.readline() for _ in range(2)] == ["ready\n"] * 2
    process.send_signal(signal.SIGUSR1)
    until(lambda: page_of(place).samples_wanted)
    process.communicate("\n\n")

    until(lambda: all(len(each.overview) >= 3 for each in Experiment(str(place / "test.1.er")).processes))
    assert len(Experiment(str(place / "test.1.er")).processes) == 2


def asked(words):
    parser = argparse.ArgumentParser()
    add_signal_arguments(parser)
    return signals_of(parser.parse_args(words.split()))


def test_it_goes_on_after_it_was_stopped_for_a_while(steps):
    """As by Ctrl-Z and `fg`, for longer than it waits between two looks."""
    process = steps()

    for _ in range(3):
        process.send_signal(signal.SIGSTOP)
        time.sleep(0.8)
        process.send_signal(signal.SIGCONT)
        time.sleep(0.1)
    said = process.communicate("/\n")

    assert (process.returncode, said) == (0, ("done\n", ""))


@pytest.fixture
def handling(begun):
    """The same with a program that handles signals, as a process group of its own."""
    return lambda: begun(HANDLES, start_new_session=True)


def test_a_signal_to_the_process_group_comes_once(handling):
    """What goes to `interpose run` alone is passed on. It passes on what has the lower number first."""
    process = handling()

    for _ in range(30):
        os.killpg(process.pid, signal.SIGHUP)
        assert process.stdout.readline() == f"got {int(signal.SIGHUP)}\n"
        process.send_signal(signal.SIGTERM)
        assert process.stdout.readline() == f"got {int(signal.SIGTERM)}\n"
    said, _ = process.communicate()

    assert (process.returncode, said) == (0, "")


def witness_of(process):
    """The number of the other process of `interpose run` that is in its group."""
    for number in Path(f"/proc/{process.pid}/task/{process.pid}/children").read_text().split():
        if Path(f"/proc/{number}/comm").read_text() == "group-witness\n":
            return int(number)
    raise LookupError


def test_the_witness_of_signals_to_the_group_may_be_killed(handling):
    process = handling()
    os.kill(witness_of(process), signal.SIGKILL)

    for _ in range(5):
        process.send_signal(signal.SIGTERM)
        assert process.stdout.readline() == f"got {int(signal.SIGTERM)}\n"
    said, _ = process.communicate()

    assert (process.returncode, said) == (0, "")


def test_the_witness_ends_with_us(handling):
    process = handling()
    witness = witness_of(process)
    process.kill()
    process.wait()

    def is_gone():
        try:
            return Path(f"/proc/{witness}/stat").read_text().rpartition(")")[2].split()[0] == "Z"
        except FileNotFoundError:
            return True

    until(is_gone)


def test_a_signal_that_the_program_handles_does_not_end_us(handling):
    for _ in range(5):
        process = handling()
        os.killpg(process.pid, signal.SIGSTOP)
        os.killpg(process.pid, signal.SIGUSR2)
        os.killpg(process.pid, signal.SIGCONT)
        said, _ = process.communicate()

        assert (process.returncode, said) == (5, f"got {int(signal.SIGUSR2)}\n")


def test_which_signal_asks_for_what():
    assert asked("") == Asked(None, None, False, None)
    assert asked("-y USR1,r -l 12 --save-on hup") == Asked(signal.SIGHUP, signal.SIGUSR1, True, signal.SIGUSR2)


@pytest.mark.parametrize(
    "words",
    ["-y USR1 -l USR1", "-y USR1,x", "-y ,r", "-y USR1,", "-l KILL", "-l nosuch", "-y 9", "--save-on 10 -l USR1"],
)
def test_signals_that_cannot_ask_are_refused(words):
    with pytest.raises(UsageError, match="signal"):
        asked(words)


@pytest.mark.parametrize("words", [("--for", "1s"), ("-t", "5"), ("--at", "1s")])
def test_a_toggle_and_a_clock_do_not_go_together(interpose, words):
    done = interpose("run", "-y", "USR1", *words, "true")

    assert (done.returncode, done.stderr.count("\n")) == (2, 1)
    assert done.stderr.startswith("interpose: -y excludes -t")


def test_an_experiment_is_made_anew_in_the_place_of_another(interpose, place):
    for number in range(2):
        assert interpose("run", "-O", "out/my.er" if number else "my.er", "-n", "true").returncode == 0
    assert not (place / "my.er").exists()
    for _ in range(2):
        assert interpose("run", "-O", "my.er", sys.executable, "-c", "import time; time.sleep(0.001)").returncode == 0

    assert sorted(path.name for path in place.iterdir() if path.suffix == ".er") == ["my.er"]
    assert len(list(events_of(Experiment(str(place / "my.er")).founder, "time.sleep"))) == 1


@pytest.mark.long
def test_what_is_no_experiment_or_still_runs_is_not_overwritten(interpose, steps, place):
    (place / "data.er").mkdir()
    (place / "data.er" / "thesis").write_text("ten years")
    steps()
    os.mkdir(place / "kept")
    shutil.copytree(place / "test.1.er", place / "kept" / "old.er")
    (place / "kept" / "old.er" / "_f2.er").write_text("ten years")
    os.symlink("kept/old.er", place / "link.er")

    for path, why in [
        ("data.er", "not an experiment"),
        ("kept/old.er", "kept/old.er/_f2.er: not a file of the experiment"),
        ("link.er", "is a link; name the experiment itself"),
        ("test.1.er", "still runs"),
        ("name", "its name must end with .er"),
    ]:
        done = interpose("run", "-O", path, sys.executable, "-c", "print('ran')")
        assert (done.returncode in (1, 2), done.stdout, done.stderr.count("\n")) == (True, "", 1), path
        assert why in done.stderr
    assert (place / "data.er" / "thesis").read_text() == (place / "kept/old.er/_f2.er").read_text() == "ten years"
    assert interpose("run", "-o", "a.er", "-O", "a.er", "true").returncode == 2
