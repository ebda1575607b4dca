"""Every system call that recording makes fails, is late, or is the last: the program does what it does without us."""

import random
import re
import shutil
import subprocess
import sys
from collections import Counter

import pytest
from tracing import environment, write_program

pytestmark = [
    pytest.mark.slow,
    pytest.mark.reach,
    pytest.mark.skipif(not shutil.which("strace"), reason="strace is not installed"),
]

# Threads, a fork, another program, a Python child, texts and stacks: of each of our files something.
PROGRAM = """
import os, subprocess, sys, threading, warnings
warnings.simplefilter("ignore")  # from 3.12 on, of forks where a thread is just ending
nothing = os.open(os.devnull, os.O_WRONLY)
def work():
    for number in range(1000):
        os.write(nothing, b"x")
        os.path.exists(f"/nonexistent/{number % 7}")
threads = [threading.Thread(target=work) for _ in range(2)]
for thread in threads: thread.start()
for thread in threads: thread.join()
if os.fork() == 0:
    work()
    os._exit(3)
print(os.waitstatus_to_exitcode(os.wait()[1]))
print(subprocess.call(["true"]), subprocess.call([sys.executable, "-c", "import os; os.stat('/')"]))
"""
FAULTS = {
    "EIO": "error=EIO",
    "EINTR": "error=EINTR",
    "ENOSPC": "error=ENOSPC",
    "late": "delay_enter=30000",
    "SIGKILL": "signal=SIGKILL",
}
# What each of these may fail with besides.
OWN_FAULTS = {
    "fallocate": "ENOSPC",
    "openat": "EMFILE",
    "mmap": "ENOMEM",
    "pwrite64": "ENOSPC",
    "mkdir": "ENOSPC",
    "writev": "EIO",
}
TURNS = 10  # of each call so many, at random: those on the first file and those on the last, in each process
ENDS = ("exit", "exit_group")  # which cannot fail


def outcome_of(done):
    return done.returncode, done.stdout, done.stderr


@pytest.fixture(scope="module")
def place(tmp_path_factory):
    """A directory with the program."""
    directory = tmp_path_factory.mktemp("calls")
    write_program(directory, PROGRAM)
    return directory


def run(place, *words, **variables):
    shutil.rmtree(place / "test.1.er", ignore_errors=True)
    own = environment(XDG_STATE_HOME=str(place / "state"), **variables)
    words = [*words, sys.executable, "program.py"]
    return subprocess.run(words, cwd=place, env=own, capture_output=True, text=True, timeout=120)


def names_of(place):
    return Counter(re.findall(r"^\d+ +(\w+)\(", (place / "calls").read_text(), re.M))


@pytest.fixture(scope="module")
def plain(place):
    """What the program does without us."""
    return outcome_of(run(place))


@pytest.fixture(scope="module")
def watched(place):
    """The files that recording opens, as strace is told of them, and the calls that are made on each name."""
    strace = ("strace", "-f", "-y", "-o", "calls")
    done = run(place, *strace, INTERPOSE="1")
    if done.returncode and "ptrace" in done.stderr:
        pytest.skip(f"strace may not trace here: {done.stderr.strip()}")
    inside = re.escape(str(place / "test.1.er"))
    paths = sorted(set(re.findall(rf'["<]({inside}[^">]*)[">]', (place / "calls").read_text())))
    assert len(paths) > 20
    return [word for path in paths for word in ("-P", path)]


@pytest.fixture(scope="module")
def ours(place, watched):
    """The system calls on our files, and how often each is made."""
    run(place, "strace", "-f", "-o", "calls", *watched, INTERPOSE="1")
    return {name: number for name, number in names_of(place).items() if name not in ENDS}


@pytest.fixture(scope="module")
def only_ours(place):
    """The system calls on no file of ours that the program makes only where it is recorded."""
    run(place, "strace", "-f", "-o", "calls")
    without = names_of(place)
    run(place, "strace", "-f", "-o", "calls", INTERPOSE="1")
    return {name: number for name, number in names_of(place).items() if name not in without}


def run_failing(place, watched, name, fault, turn):
    """Run it with the call of that name failing once, in its turn."""
    inject = ["-e", f"trace={name}", "-e", f"inject={name}:{fault}:when={turn}"]
    return run(place, "strace", "-f", "--seccomp-bpf", "-o", "calls", *watched, *inject, INTERPOSE="1")


def try_all(place, plain, tally, interpose_here, calls, watched, fault):
    """Have each of the calls fail, many a time if it is made often."""
    for name, number in calls.items():
        for turn in sorted(random.sample(range(1, number + 1), min(number, tally.times(TURNS)))):
            done = run_failing(place, watched, name, FAULTS[fault], turn)
            what = f"{fault} of {name} {turn}"
            if fault != "SIGKILL":
                tally.check(outcome_of(done) == plain, f"{what}: {outcome_of(done)}")
            else:
                shown = interpose_here("report", str(place / "test.1.er"))
                tally.check(is_told(place, shown), f"{what}: {shown.returncode} {shown.stderr}")


def is_told(place, shown):
    """Whether the report of a process that was killed is there; of one that had not begun to record, one line."""
    if (place / "test.1.er" / "log.xml").exists():
        return shown.returncode == 0 and "Traceback" not in shown.stderr
    return shown.returncode > 0 and shown.stderr.count("\n") == 1


@pytest.mark.parametrize("fault", FAULTS)
def test_a_call_on_our_files_that_fails_changes_nothing(place, plain, tally, interpose_here, ours, watched, fault):
    assert {"openat", "fallocate", "mmap", "writev", "close"} <= set(ours)

    try_all(place, plain, tally, interpose_here, ours, watched, fault)

    tally.end()


@pytest.mark.parametrize("name", OWN_FAULTS)
def test_each_call_on_our_files_that_fails_in_its_turn_changes_nothing(place, plain, tally, ours, watched, name):
    for turn in range(1, ours[name] + 1):
        done = run_failing(place, watched, name, f"error={OWN_FAULTS[name]}", turn)
        tally.check(outcome_of(done) == plain, f"{OWN_FAULTS[name]} of {name} {turn}: {outcome_of(done)}")
    tally.end()


@pytest.mark.parametrize("fault", FAULTS)
def test_a_call_that_only_recording_makes_changes_nothing(place, plain, tally, interpose_here, only_ours, fault):
    assert only_ours

    try_all(place, plain, tally, interpose_here, only_ours, [], fault)

    tally.end()
