"""`interpose run`: signals that pause and let go on, or take labelled samples; an experiment made anew."""

import argparse
import fcntl
import os
import pty
import shutil
import signal
import subprocess
import sys
import termios
import time
from pathlib import Path

import pytest
from tracing import events_of, until

from interpose.cli.running.child import FORWARDED
from interpose.cli.running.signals import Asked, add_signal_arguments, signals_of
from interpose.errors import UsageError
from interpose.experiments.metadata.control import Control
from interpose.experiments.metadata.labels import Window, windows
from interpose.experiments.metadata.pauses import Pauses
from interpose.experiments.model.experiment import Experiment

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
# Handles all that can be handled, and misses none: what comes just before a call that waits does not interrupt it.
# Each line on standard input makes it leave its group; the end of the input ends it.
HANDLES_ALL = """
import os, select, signal
came, note = os.pipe()
os.set_blocking(note, False)
signal.set_wakeup_fd(note)
for number in signal.valid_signals() - {signal.SIGKILL, signal.SIGSTOP, signal.SIGCHLD}:
    signal.signal(number, lambda *_: None)
print("ready", flush=True)
while True:
    if came in select.select([0, came], [], [])[0]:
        for number in os.read(came, 64):
            os.write(1, b"got %d\\n" % number)
    elif os.read(0, 64):
        os.setpgid(0, 0)
        os.write(1, b"left\\n")
    else:
        break
"""
DIES = "import sys; print('ready', flush=True); sys.stdin.read()"


@pytest.fixture
def place(tmp_path):
    """Where the commands of the fixture `interpose` run."""
    return tmp_path / "work"


@pytest.fixture
def begun(interpose, place, own_environment, started):
    """Starts `interpose run` with options and a program in Python, and gives the process once that is ready."""

    def begin(source, *options, **more):
        words = [sys.executable, "-m", "interpose", "run", *options, "--", sys.executable, "-c", source]
        return started(words, **{"cwd": place, "env": own_environment, **more})

    return begin


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


def test_a_signal_to_the_process_group_comes_once(handling_all):
    """What goes to `interpose run` alone is passed on. It passes on what has the lower number first."""
    process = handling_all()

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


@pytest.fixture
def handling_all(begun):
    """The same with a program that handles all signals."""
    return lambda **more: begun(HANDLES_ALL, **{"start_new_session": True, **more})


def got(process):
    return int(process.stdout.readline().removeprefix("got "))


ALL = sorted(FORWARDED)
ENDED = ("", 0)


def ended(process):
    """What else it said, and how it ended."""
    said, _ = process.communicate()
    return said, process.returncode


def test_a_signal_to_us_alone_comes_once(handling_all):
    process = handling_all()

    for number in ALL:
        process.send_signal(number)
        assert got(process) == number
    assert ended(process) == ENDED


def test_sigio_does_not_end_us(handling_all):
    process = handling_all()
    for number in (signal.SIGIO, signal.SIGTERM):
        process.send_signal(number)

    assert got(process) == signal.SIGTERM
    assert ended(process) == ENDED


def test_each_signal_to_the_process_group_comes_once(handling_all):
    process = handling_all()

    for number in ALL:
        os.killpg(process.pid, number)
        assert got(process) == number
    assert ended(process) == ENDED


def test_signals_come_without_the_witness(handling_all):
    process = handling_all()
    os.kill(witness_of(process), signal.SIGKILL)

    for number in ALL:
        process.send_signal(number)
        assert got(process) == number
    assert ended(process) == ENDED


def test_a_program_with_a_group_of_its_own_gets_what_goes_to_ours(handling_all):
    process = handling_all()
    process.stdin.write("leave\n")
    process.stdin.flush()
    assert process.stdout.readline() == "left\n"

    for send in (process.send_signal, lambda number: os.killpg(process.pid, number)):
        for number in (signal.SIGINT, signal.SIGQUIT, signal.SIGWINCH, signal.SIGTERM):
            send(number)
            assert got(process) == number
    assert ended(process) == ENDED


def test_an_interrupt_comes_where_it_is_ignored_by_us(handling_all):
    """As a shell without job control starts what it runs in the background."""
    process = handling_all(preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_IGN))

    for number in (signal.SIGINT, signal.SIGINT, signal.SIGTERM):
        process.send_signal(number)
        assert got(process) == number
    assert ended(process) == ENDED


@pytest.mark.parametrize(
    "name", ["SIGINT", "SIGALRM", "SIGVTALRM", "SIGPROF", "SIGABRT", "SIGSEGV", "SIGRTMIN"]
)
def test_we_end_by_the_signal_that_ends_the_program(begun, name):
    number = getattr(signal, name)
    process = begun(DIES, stderr=subprocess.PIPE)
    process.send_signal(number)

    assert process.wait() == -number


def test_what_a_program_ignores_ends_neither(begun):
    process = begun(f"import signal; signal.signal(signal.SIGINT, signal.SIG_IGN); {DIES}")
    for number in (signal.SIGINT, signal.SIGWINCH, signal.SIGURG):
        process.send_signal(number)

    assert ended(process) == ENDED


@pytest.fixture
def in_terminal(begun):
    """Starts it as the leader of a session with a terminal; gives the process and both ends of the terminal."""

    def begin(source=HANDLES_ALL, **more):
        ours, theirs = pty.openpty()

        def take_terminal():
            os.setsid()
            fcntl.ioctl(theirs, termios.TIOCSCTTY, 0)

        return begun(source, preexec_fn=take_terminal, pass_fds=(theirs,), **more), ours, theirs

    return begin


@pytest.mark.parametrize("is_witnessed", [True, False])
def test_that_the_terminal_is_gone_comes_once(in_terminal, is_witnessed):
    """What came twice would come before SIGTERM, which has a higher number."""
    process, ours, theirs = in_terminal()
    if not is_witnessed:
        os.kill(witness_of(process), signal.SIGKILL)
    os.close(theirs)
    os.close(ours)
    assert sorted([got(process), got(process)]) == [signal.SIGHUP, signal.SIGCONT]
    process.send_signal(signal.SIGTERM)

    assert got(process) == signal.SIGTERM
    assert ended(process) == ENDED


def test_that_the_terminal_is_gone_ends_the_program_and_us(in_terminal):
    process, ours, theirs = in_terminal(DIES, stderr=subprocess.PIPE)
    os.close(theirs)
    os.close(ours)

    assert process.wait() == -signal.SIGHUP


def test_timers_that_were_set_before_are_the_programs(begun):
    timers = (signal.ITIMER_REAL, signal.ITIMER_VIRTUAL, signal.ITIMER_PROF)

    def set_timers():
        for each in timers:
            signal.setitimer(each, 10_000, 7)

    asks = f"import signal\nprint('ready')\nfor each in {tuple(map(int, timers))}: print(*signal.getitimer(each))"
    process = begun(asks, preexec_fn=set_timers)

    told = [tuple(map(float, line.split())) for line in process.stdout]
    assert len(told) == len(timers)
    assert all(5_000 < left_s < 10_001 and round(again_s, 1) == 7 for left_s, again_s in told), told


def test_what_the_terminal_sends_comes_once(in_terminal):
    process, ours, theirs = in_terminal()
    for _ in range(10):
        for key, number in ((b"\x03", signal.SIGINT), (b"\x1c", signal.SIGQUIT)):
            os.write(ours, key)
            assert got(process) == number
        process.send_signal(signal.SIGTERM)
        assert got(process) == signal.SIGTERM
    assert ended(process) == ENDED
    os.close(ours)
    os.close(theirs)


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
