"""Findings about locks of files, which processes wait for."""

import re
import shutil

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
    assert words.endswith("another program may have it.")
