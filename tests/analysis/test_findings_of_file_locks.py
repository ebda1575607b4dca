"""Findings about locks of files, which processes wait for."""

import re
import shutil
import time

import pytest

from interpose.analysis.analysis import Analysis
from interpose.analysis.findings.engine import found_in
from interpose.analysis.findings.survey import Survey
from interpose.reports.sentences.advice import advice_for
from interpose.reports.sentences.sentences import Sentences

CONTENDED = """
import fcntl, os, time
def work():
    waited = 0
    with open("lock", "w") as file:
        for _ in range(5):
            begin = time.perf_counter_ns()
            fcntl.{take}(file, fcntl.LOCK_EX)  # taken
            waited += time.perf_counter_ns() - begin
            time.sleep(0.04)  # has it
            fcntl.{take}(file, fcntl.LOCK_UN)
            time.sleep(0.002)
    os.write(1, b"%d\\n" % waited)
for _ in range(3):
    if os.fork() == 0:
        work()
        raise SystemExit
for _ in range(3):
    os.wait()
"""
TRIED = """
import fcntl, os, time
def attempt(file):
    while True:
        try:
            return fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            time.sleep(0.005)  # tried again
with open("lock", "w") as held:
    fcntl.flock(held, fcntl.LOCK_EX)
    if os.fork() == 0:
        held.close()
        with open("lock", "w") as file:
            attempt(file)
        raise SystemExit
    time.sleep(0.4)
    fcntl.flock(held, fcntl.LOCK_UN)
os.wait()
"""


def line_of(program, mark):
    return next(number for number, line in enumerate(program.splitlines(), 1) if line.endswith(mark))


def told(experiment):
    survey = Survey(Analysis(experiment))
    found = found_in(survey)
    return [(each, Sentences(found, experiment.founder.log.cwd, survey.matters_ns).of(each)) for each in found]


@pytest.mark.parametrize("take", ["flock", "lockf"])
def test_processes_that_wait_for_the_lock_of_a_file_are_told_with_who_has_it(traced, take):
    program = CONTENDED.format(take=take)
    done = traced(program)
    waited_ns = sum(map(int, done.stdout.split()))

    found, words = next(each for each in told(done.experiment) if each[0].rule == "file lock")

    taken = f"program.py:{line_of(program, '# taken')} work"
    assert words.startswith(f"3 processes waited in 15 calls of fcntl.{take} from {taken} for the lock of lock, ")
    assert f"Meanwhile it was held at {taken} (" in words
    assert 0.8 * waited_ns < found.wall_ns <= waited_ns
    assert 0.8 * found.wall_ns < found.held_ns <= 2 * found.wall_ns


def test_sleeps_in_the_lock_are_why_others_wait(traced):
    program = CONTENDED.format(take="flock")
    done = traced(program)

    sleeps = [(found, words) for found, words in told(done.experiment) if found.first and found.first.verb == "sleep"]

    ((found, words),) = [each for each in sleeps if each[0].first.site.line == line_of(program, "# has it")]
    assert words.endswith("Others waited for the lock of lock, which it had meanwhile.")
    assert "before the lock is taken" in advice_for(found)


def test_sleeps_between_attempts_name_the_lock(traced):
    done = traced(TRIED)

    sleeps = [(found, words) for found, words in told(done.experiment) if found.first and found.first.verb == "sleep"]

    ((found, words),) = [each for each in sleeps if each[0].first.site.line == line_of(TRIED, "# tried again")]
    assert re.search(
        r"(\d+) of \d+ calls of fcntl.flock failed with BlockingIOError: another process had the lock of lock", words
    )
    assert "without LOCK_NB" in advice_for(found)


PACKAGE = """
import fcntl, time
def take(file):
    while True:
        try:
            return fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            time.sleep(0.02)
def release(file):
    fcntl.flock(file, fcntl.LOCK_UN)
"""
TRIED_BY_PACKAGE = """
import os, time
import polled
def work():
    with open("lock", "w") as file:
        for _ in range(4):
            polled.take(file)  # tried by the package
            time.sleep(0.06)  # has it
            polled.release(file)
for _ in range(3):
    if os.fork() == 0:
        work()
        raise SystemExit
for _ in range(3):
    os.wait()
"""


def test_a_package_that_tries_for_a_lock_and_who_has_it_are_told(traced, tmp_path):
    library = tmp_path / "site-packages"
    library.mkdir()
    (library / "polled.py").write_text(PACKAGE)
    done = traced(TRIED_BY_PACKAGE, PYTHONPATH=str(library))

    sleeps = {
        found.first.site.line: (words, advice_for(found))
        for found, words in told(done.experiment)
        if found.first and found.first.verb == "sleep"
    }

    words, advice = sleeps[line_of(TRIED_BY_PACKAGE, "# tried by the package")]
    assert words.endswith("calls of fcntl.flock failed with BlockingIOError: another process had the lock of lock.")
    assert advice.startswith("A package tries again after each sleep")
    words, advice = sleeps[line_of(TRIED_BY_PACKAGE, "# has it")]
    assert words.endswith("Others waited for the lock of lock, which it had meanwhile.")
    assert "before the lock is taken" in advice


@pytest.mark.skipif(not shutil.which("flock"), reason="there is no flock")
def test_a_lock_that_no_recorded_process_has_is_told_as_that(traced):
    done = traced("""
import fcntl, os, subprocess
other = subprocess.Popen(["flock", "lock", "-c", "echo; sleep 0.3"], stdout=subprocess.PIPE)
other.stdout.readline()
with open("lock", "w") as file:
    fcntl.flock(file, fcntl.LOCK_EX)
other.wait()
""")

    (words,) = [words for found, words in told(done.experiment) if found.rule == "file lock"]

    waited = "1 process waited in 1 call of fcntl.flock from program.py:6 <module>"
    assert words.startswith(f"{waited} for the lock of lock (")
    assert words.endswith("another program may have it, or a process that inherited it.")


HELD_BESIDE_OTHERS = """
import fcntl, os, threading, time
def long_held():
    with open("lock", "w") as file:
        fcntl.flock(file, fcntl.{how})  # has it
        os.write(writer, b"1")
        {beside}
        time.sleep(0.4)
        fcntl.flock(file, fcntl.LOCK_UN)
def short_held():
    with open("lock") as file:
        fcntl.flock(file, fcntl.{how})
        fcntl.flock(file, fcntl.LOCK_UN)
reader, writer = os.pipe()
thread = threading.Thread(target=long_held)
thread.start()
os.read(reader, 1)
if "{how}" == "LOCK_SH":
    short_held()
with open("lock") as file:
    fcntl.flock(file, fcntl.LOCK_EX)
thread.join()
"""


@pytest.mark.parametrize(
    ("how", "beside"), [("LOCK_EX", 'open("lock").close()'), ("LOCK_SH", "pass")], ids=["closed", "shared"]
)
def test_who_has_a_lock_has_it_until_it_is_released_whatever_else_is_done_with_the_file(how, beside, traced):
    program = HELD_BESIDE_OTHERS.format(how=how, beside=beside)

    (words,) = [words for found, words in told(traced(program).experiment) if found.rule == "file lock"]

    assert f"Meanwhile it was held at program.py:{line_of(program, '# has it')} long_held (" in words


def test_of_locks_of_parts_nobody_is_blamed(traced):
    done = traced("""
import fcntl, os, time
reader, writer = os.pipe()
for start in (0, 100):
    if os.fork() == 0:
        with open("lock", "w") as file:
            fcntl.lockf(file, fcntl.LOCK_EX, 10, start)
            os.write(writer, b"1")
            time.sleep(0.4)
        raise SystemExit
for _ in range(2):
    os.read(reader, 1)
with open("lock", "w") as file:
    fcntl.lockf(file, fcntl.LOCK_EX, 10, 100)
os.wait()
os.wait()
""")

    every = told(done.experiment)

    (words,) = [words for found, words in every if found.rule == "file lock"]
    assert words.endswith("Which part of the file, and who had it, is not recorded.")
    assert not any("Others waited for the lock" in words for _, words in every)


MANY = """
import fcntl, os, threading, time
held = threading.Event()
def hold():
    with open("lock", "w") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        held.set()
        time.sleep(0.5)  # has it
thread = threading.Thread(target=hold)
thread.start()
held.wait()
with open("lock", "w") as file:
    for number in range(20_000):
        fcntl.flock(file, fcntl.LOCK_EX)
        fcntl.flock(file, fcntl.LOCK_UN)
for number in range(5_000):
    file = os.open(f"lock{number}", os.O_RDWR | os.O_CREAT)
    fcntl.flock(file, fcntl.LOCK_EX)
    os.close(file)
thread.join()
"""


def test_many_locks_of_one_thread_and_of_many_files_are_read_soon(traced):
    done = traced(MANY)
    before = time.process_time()

    sentences = [words for _, words in told(done.experiment)]

    assert any("Others waited for the lock of lock, which it had meanwhile." in each for each in sentences)
    assert time.process_time() - before < 20  # it took minutes
