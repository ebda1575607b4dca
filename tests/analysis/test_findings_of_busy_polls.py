"""Findings about busy loops that ask for a file, or for the end of a child."""

import pytest

from interpose.analysis.analysis import Analysis
from interpose.analysis.findings.engine import found_in
from interpose.analysis.findings.survey import Survey
from interpose.reports.sentences.advice import advice_for
from interpose.reports.sentences.sentences import Sentences

POLLS = """
import os, subprocess, time
def poll():
    asked = 0
    cpu, begin = time.thread_time_ns(), time.perf_counter_ns()
    while {ask}:  # asks
        asked += 1
    print(asked, time.perf_counter_ns() - begin, time.thread_time_ns() - cpu)
child = subprocess.Popen(["sh", "-c", "sleep 0.6; echo > there"])
poll()
child.wait()
"""


def told(experiment):
    survey = Survey(Analysis(experiment))
    found = found_in(survey)
    return [(each, Sentences(found, "", survey.matters_ns).of(each)) for each in found]


@pytest.mark.parametrize(
    ("ask", "words", "advice"),
    [
        ("not os.path.exists('there')", 'for "there"', "inotify"),
        ("child.poll() is None", "", "wait(), which uses no CPU time"),
    ],
)
def test_a_busy_loop_is_told_with_its_duration_and_its_cpu_time(traced, ask, words, advice):
    done = traced(POLLS.format(ask=ask))
    asked, lasted_ns, used_ns = map(int, done.stdout.split())

    all_told = told(done.experiment)
    ((found, sentence),) = [each for each in all_told if each[0].rule == "busy poll"]

    assert "repeated work" not in [each.rule for each, _ in all_told]
    assert found.calls in (asked, asked + 1)
    assert 0.5 * lasted_ns < found.wall_ns <= lasted_ns
    assert 0.5 * used_ns < found.polled_cpu_ns <= used_ns
    assert words in sentence and "program.py:6 poll" in sentence and "(sh) ran meanwhile" in sentence
    assert (f"{asked:,} times in vain" in sentence) == bool(words)
    assert advice in advice_for(found)


def test_a_poll_that_sleeps_is_no_busy_loop(traced):
    done = traced(POLLS.format(ask="not os.path.exists('there') and not time.sleep(0.002)"))

    assert "busy poll" not in [found.rule for found, _ in told(done.experiment)]


def test_a_file_that_is_never_there_is_no_poll(traced):
    done = traced("""
import os
for _ in range(40000):
    os.path.exists("missing")
""")

    (sentence,) = [sentence for found, sentence in told(done.experiment) if found.rule == "repeated work"]

    assert 'os.stat was called 40,000 times for "missing" from program.py:4 <module>, 40,000 failed' in sentence


def test_a_loop_that_works_and_asks_meanwhile_is_no_poll(traced):
    done = traced(POLLS.format(ask="not os.path.exists('there') and sum(range(8000))"))

    assert "busy poll" not in [found.rule for found, _ in told(done.experiment)]
