"""Reading what is being written: it adds up at every instant, nothing is there twice, and a report follows it."""

import json
import os
import pty
import re
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest
from tracing import environment, run_in, write_program

from interpose.analysis.analysis import Analysis
from interpose.analysis.calls.trace import last
from interpose.analysis.consolidation.consolidate import consolidated
from interpose.analysis.time.run_queue import unseen_wait
from interpose.experiments.model.experiment import Experiment
from interpose.monitor import Monitor

BUSY = """
import os, sys, threading
sink = os.open(os.devnull, os.O_WRONLY)
over = threading.Event()
def work():
    while not over.is_set():
        for _ in range(100):
            os.write(sink, b"x")
        over.wait(0.02)  # fewer calls a second than a reader of all of them reads, also on a slow machine
threads = [threading.Thread(target=work) for _ in range(2)]
for thread in threads:
    thread.start()
print("ready", flush=True)
sys.stdin.readline()
over.set()
"""


@pytest.fixture
def busy(request, tmp_path, started):
    """A program that writes without end, until it gets a line or the test ends; or another one."""
    program = write_program(tmp_path, getattr(request, "param", BUSY))
    return started([sys.executable, program], env=environment(INTERPOSE="1", XDG_STATE_HOME=str(tmp_path / "state")))


def opened(directory: Path) -> Experiment:
    return Experiment(str(directory / "test.1.er"))


def numbers_of_calls(experiment: Experiment) -> dict[int, list[int]]:
    found: dict[int, list[int]] = {}
    events = experiment.founder.events
    for block in events.blocks():
        for event in events.events(block):
            found.setdefault(event.thread, []).append(event.call)
    return found


@pytest.mark.long
@pytest.mark.parametrize("watched", [False, True], ids=["alone", "while it is compressed"])
def test_calls_add_up_and_none_is_missing_or_there_twice(busy, tmp_path, watched):
    monitor = Monitor(str(tmp_path / "test.1.er")) if watched else None
    for _ in range(20):
        if monitor:
            monitor.look(time.monotonic() + 0.05)
        experiment = opened(tmp_path)
        before = {each.number: each.record.recorded for each in experiment.founder.threads}
        assert all(thread.adds_up for thread in experiment.founder.threads)
        calls = numbers_of_calls(experiment)
        after = {each.number: each.record.recorded for each in opened(tmp_path).founder.threads}
        for number, found in calls.items():
            assert len(found) == len(set(found))
            assert before.get(number, 0) <= len(found) <= after[number]
        assert experiment.damages.found == []
    if monitor:
        monitor.close()


def test_the_newest_are_found_without_reading_what_came_before(busy, tmp_path, monkeypatch):
    time.sleep(0.5)
    experiment = opened(tmp_path)
    read = []
    whole = experiment.founder.events.block
    monkeypatch.setattr(experiment.founder.events, "block", lambda place: read.append(place) or whole(place))

    rows = list(last(experiment, 50))

    heads = sum(1 for _ in experiment.founder.events.heads())
    assert len(rows) == 50
    assert len(read) <= 6 < heads


def test_a_killed_writer_is_read_once_however_much_is_in_the_middle(busy, tmp_path):
    busy.kill()
    busy.wait()

    experiment = opened(tmp_path)
    found = sum(each.calls for each in consolidated(experiment.founder, ("thread",)).sums().values())

    assert found == sum(thread.record.recorded for thread in experiment.founder.threads)


WAITING = """
import sys, threading, time
def work():
    time.sleep(0.2)
    time.sleep(60)
for _ in range(2):
    threading.Thread(target=work, daemon=True).start()
time.sleep(0.3)
print("ready", flush=True)
sys.stdin.readline()
"""


@pytest.mark.parametrize("busy", [WAITING], indirect=True)
def test_no_thread_has_more_time_than_went_by_while_calls_are_in_progress(busy, tmp_path):
    for _ in range(5):
        analysis = Analysis(opened(tmp_path))
        (account,) = analysis.accounts
        now_ns = time.monotonic_ns()
        records = analysis.records(account.process, ("thread", "intrinsic")).by_thread()
        in_calls_ns = {number: sums.self_wall_ns for number, sums in records.items()}
        for thread in account.process.threads:
            share = account.threads[thread.number]
            assert in_calls_ns.get(thread.number, 0) <= share.wall_ns <= now_ns - thread.record.start_ns
        names = [account.process.intrinsic(each.call.intrinsic).name for each in account.open_calls]
        assert names.count("time.sleep") == 2
        assert all(each.until_ns <= now_ns for each in account.open_calls)
        assert unseen_wait(analysis.accounts).unexplained_ns < max(in_calls_ns.values())
        time.sleep(0.1)


# --- report --follow


def follow(directory, *words, terminal=None):
    return subprocess.Popen(
        [sys.executable, "-m", "interpose", "report", *words, "test.1.er"],
        cwd=directory,
        env={**environment(XDG_STATE_HOME=str(directory / "state")), "TERM": "xterm", "LINES": "12", "COLUMNS": "80"},
        stdout=terminal if terminal is not None else subprocess.PIPE,
        stderr=subprocess.PIPE,
    )


def calls_told(text: str) -> list[int]:
    return [int(each.replace(",", "")) for each in re.findall(r"^(?:elapsed|CPU) .*?([0-9,]+) calls", text, re.M)]


def test_what_is_followed_is_written_again_and_the_last_when_the_program_has_ended(busy, tmp_path):
    following = follow(tmp_path, "--follow", "0.2")
    seen = b""
    while len(calls_told(seen.decode())) < 2:
        seen += following.stdout.readline()
    busy.communicate("\n")
    out, err = following.communicate(timeout=60)

    text = (seen + out).decode()
    told = calls_told(text)
    assert (following.returncode, err) == (0, b"")
    assert len(told) >= 3
    assert told == sorted(told) and told[0] < told[-1]
    assert "running" in text.split("\n\n")[0]
    assert "exit 0" in text[text.rindex("test.1.er  ") :].splitlines()[0]
    assert "\x1b" not in text


def test_a_terminal_is_written_from_its_first_line_on_and_ends_with_all(busy, tmp_path):
    ours, theirs = pty.openpty()
    following = follow(tmp_path, "--follow", "0.2", terminal=theirs)
    os.close(theirs)
    shown = read_until(ours, lambda text: text.count("\x1b[H") >= 2)
    busy.communicate("\n")
    shown += read_until(ours, lambda text: False)
    os.close(ours)
    assert following.wait(60) == 0
    following.stderr.close()

    screens = shown.split("\x1b[H")[1:]
    assert len(screens) >= 3
    for screen in screens[:-1]:
        assert screen.endswith("\x1b[J")
        assert screen.count("\n") <= 11
        assert all(line.endswith("\x1b[K") for line in screen.removesuffix("\x1b[J").splitlines() if line)
    assert screens[-1].startswith("\x1b[J")
    assert "exit 0" in screens[-1]


def read_until(terminal: int, enough: Callable[[str], bool]) -> str:
    """What is written to a terminal until it is enough, or nobody has it open."""
    found = b""
    while not enough(found.decode(errors="replace")):
        try:
            found += os.read(terminal, 65536)
        except OSError:
            break
    return found.decode()


def test_an_interrupt_ends_it_with_130(busy, tmp_path):
    following = follow(tmp_path, "--follow", "0.2")
    assert following.stdout.readline()

    following.send_signal(signal.SIGINT)
    _, err = following.communicate(timeout=60)

    assert (following.returncode, err) == (130, b"")


def test_what_has_ended_is_written_once(busy, tmp_path):
    busy.communicate("\n")

    once, followed = (follow(tmp_path, *words).communicate(timeout=60)[0] for words in ([], ["--follow"]))

    age, *rest = once.decode().splitlines()
    assert age.startswith("test.1.er")
    assert followed.decode().splitlines()[1:] == rest


@pytest.mark.parametrize(
    ("words", "what"),
    [
        (["--follow", "0"], "'0' is not a number of seconds"),
        (["--follow", "nan"], "'nan' is not a number of seconds"),
        (["--follow", "1e9"], "'1e9' is not a number of seconds"),
        (["--follow", "1", "--format", "json"], "--follow writes text to standard output"),
        (["--follow", "1", "-o", "file"], "--follow writes text to standard output"),
    ],
)
def test_what_cannot_be_followed_is_told(interpose, words, what):
    done = interpose("report", *words)

    assert done.returncode == 2
    assert what in done.stderr.splitlines()[-1]


def test_a_table_is_followed_as_well(busy, tmp_path):
    following = follow(tmp_path, "--follow", "0.2", "--by", "intrinsic")
    assert b"intrinsic" in following.stdout.readline() + following.stdout.readline()
    busy.communicate("\n")
    following.communicate(timeout=60)

    assert following.returncode == 0


def test_events_lists_the_newest_of_a_program_that_runs(busy, tmp_path):
    done = run_in(
        tmp_path,
        [sys.executable, "-m", "interpose", "events", "--last", "50", "--format", "json", "test.1.er"],
        XDG_STATE_HOME=str(tmp_path / "state"),
    )

    assert (done.returncode, done.stderr) == (0, "")
    assert busy.poll() is None
    assert len(rows_of(json.loads(done.stdout))) == 50


def rows_of(table) -> list:
    return table["rows"] if isinstance(table, dict) else table
