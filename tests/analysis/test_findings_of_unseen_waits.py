"""Findings of waits outside recorded calls: samples tell where most of such a wait was."""

from random import Random

import pytest

from interpose.analysis.analysis import Analysis
from interpose.analysis.findings.engine import found_in
from interpose.analysis.findings.survey import Survey
from interpose.experiments.model.experiment import Experiment
from interpose.reports.sentences.advice import advice_for
from interpose.reports.sentences.sentences import Sentences
from tests.build import SECOND, START_NS, Build
from tests.schedules import MS, WAITS, Schedule, put_thread


def told(build):
    """The sentence and the advice of the unexplained wait."""
    survey = Survey(Analysis(Experiment(str(build.write()))))
    (wait,) = [each for each in found_in(survey) if each.rule == "unexplained wait"]
    return Sentences([wait], "/", SECOND).of(wait), advice_for(wait)


@pytest.mark.parametrize(
    ("waits_ms", "where"),
    [
        ({"fetch": 700, "save": 200}, ", mostly at app.py:2 fetch (900 ms"),
        ({"fetch": 300, "parse": 300, "save": 300}, " (900 ms"),
    ],
)
def test_the_line_with_most_of_it_is_named(tmp_path, waits_ms, where):
    build = Build(tmp_path / "t.1.er", call_ns=0, inside_ns=0)
    waits = [("wait", function, ms * MS) for function, ms in waits_ms.items()]
    schedule = Schedule([*waits, ("run", "save", 100 * MS)])
    put_thread(build, schedule, Random(0))
    build.ended(schedule.wall_ns, 100 * MS)

    sentence, advice = told(build)

    assert sentence.startswith(f"The program waited outside all recorded calls{where}")
    assert ("INTERPOSE=calls,native" in advice) == ("mostly" in where)


def test_where_no_python_code_ran_it_is_said(tmp_path):
    build = Build(tmp_path / "t.1.er", call_ns=0, inside_ns=0)
    for ms in range(10, 1000, 10):
        build.thread_sample(START_NS + ms * MS, cpu_ns=0, state=WAITS, stack=0, thread=1)
    build.thread(end_ns=START_NS + SECOND, end_cpu_ns=0, tid=1, main=True, made=0, recorded=0)
    build.ended(SECOND, 0)

    sentence, advice = told(build)

    assert sentence.startswith("The program waited outside all recorded calls, and ran no Python code meanwhile (1.00")
    assert "server in C" in advice
