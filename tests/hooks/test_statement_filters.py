"""Which lines are events: by filters, by what is asked for at the start and while the program runs."""

from __future__ import annotations

import sys
from collections import Counter

import pytest
from line_events import ON, executed, lines_of, place, statements
from tracing import start_in, write_program

from interpose.analysis.analysis import Analysis
from interpose.analysis.calls.profile import profile
from interpose.analysis.calls.rows import own_lines
from interpose.config import filters, keywords, precedence, values
from interpose.legacy.codes import STATEMENT

pytestmark = [pytest.mark.any_python, pytest.mark.interpreter_lock]

FILTERED = """
import os, threading

def one():
    x = 1
    return x

def two():
    one()
    os.stat("/")
    return 2

def both():
    one()
    two()

both()
thread = threading.Thread(target=one)
thread.start()
thread.join()
"""


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("event=NS", {"one": 6, "two": 3, "both": 2}),
        ("event=S; function=one", {"one": 6}),
        ("event=NS; thread=main", {"one": 4, "two": 3, "both": 2}),
        ("event=NS; within=two", {"one": 2, "two": 3}),
        ("event=NS; line=program.py:10-11", {"two": 2}),
        ("event=NS; from=1h", {}),
        ("event=NS; function=one,two; skip=1; keep=3", {"one": 2, "two": 1}),
        ("event=-NS", {}),
        ("kind=file", {}),
        ("event=PS,DB", {}),
        ("event=PS,NS; function=both", {"both": 2}),
    ],
)
def test_filters_hold_for_them(traced, text, expected):
    done = traced(FILTERED, **ON, INTERPOSE_FILTER=text)

    founder = done.experiment.founder
    found = Counter(place(founder, event)[0] for event in statements(founder))
    del found["<module>"]
    assert dict(found) == expected
    assert {event.kind for event in founder.log.events if event.kind == "warning"} == set()


@pytest.mark.parametrize("text", ["event=NS", "event=S,DB"])
def test_a_filter_that_asks_for_them_switches_them_on_with_lines(traced, text):
    done = traced(FILTERED, INTERPOSE="1", INTERPOSE_FILTER=text)

    assert lines_of(done, "both") == [14, 15]
    assert executed(done.experiment) > 0
    assert done.experiment.founder.log.settings["INTERPOSE_STATEMENTS"] == "1"
    assert own_lines(profile(Analysis(done.experiment), "site").rows) == []


def test_a_control_file_that_asks_for_them_switches_them_on_with_lines(traced, tmp_path):
    (tmp_path / "control").write_text("FUNCTION=FILTER\nEVENT=DB,NS\nFUNCTION=START\nEND-PROFILER\n")
    done = traced(FILTERED, INTERPOSE="1", INTERPOSE_CONTROL=str(tmp_path / "control"))

    assert lines_of(done, "both") == [14, 15]
    assert done.events("os.stat") == []


def test_statement_on_in_a_control_file_counts_lines_as_ever():
    steps, wrong = keywords.parse("FUNCTION=FILTER\nSTATEMENT=ON\nEND-PROFILER", "f")

    assert wrong == []
    assert keywords.settings_of(steps, ("calls",)) == ({"INTERPOSE": "calls,lines"}, [])


def test_other_event_types_of_their_kind_do_not_stand_for_them():
    assert ("event", True, ("name", STATEMENT)) in filters.parse("event=PS").rules
    assert ("event", True, ("name", STATEMENT)) not in filters.parse("event=PS,NS").rules
    assert ("event", True, ("name", STATEMENT)) not in filters.parse("event=DB").rules


@pytest.mark.parametrize("record", ["0", "lines"])
def test_a_filter_that_asks_for_them_records_nothing_where_calls_are_not(record):
    found = precedence.resolve({}, {"INTERPOSE": record, "INTERPOSE_FILTER": "event=NS"}, {})

    assert (found.record, found.statements) == (values.parse_record(record), False)


@pytest.mark.parametrize(
    ("environment", "why"),
    [
        ({**ON, "INTERPOSE": "lines"}, "STATEMENTS=1: statements are recorded among calls (INTERPOSE=calls,lines)"),
        ({**ON, "INTERPOSE_INTERVAL": "1ms"}, "STATEMENTS=1: statements are not sampled (INTERPOSE_INTERVAL)"),
        (
            {"INTERPOSE": "1", "INTERPOSE_STATEMENTS": "0", "INTERPOSE_FILTER": "event=NS"},
            "FILTER=event=NS: no statements are recorded (INTERPOSE_STATEMENTS=0)",
        ),
    ],
)
def test_what_cannot_be_is_told_in_one_line_and_all_else_is_done(environment, why):
    found = precedence.resolve({}, environment, {})

    assert not found.statements
    assert found.warnings == [f"INTERPOSE_{why}"]


ONLY_WITH_LINES = (
    "INTERPOSE_STATEMENTS=1: only while lines are recorded (INTERPOSE=calls,lines): none before the program switches"
    " these on"
)


def test_where_lines_are_not_recorded_it_is_told_that_statements_need_them(traced, interpose_here):
    done = traced("import os\nos.stat('/')\n", INTERPOSE="1", INTERPOSE_STATEMENTS="1")

    assert statements(done.experiment.founder) == []
    assert [event.text for event in done.experiment.founder.log.events if event.kind == "warning"] == [ONLY_WITH_LINES]
    assert f" warning  {ONLY_WITH_LINES}" in interpose_here("report", done.path, variables={"COLUMNS": "200"}).stdout


def test_a_filter_that_asks_for_them_brings_lines_whether_or_not_statements_were_asked_for_as_well():
    asked = {"INTERPOSE": "1", "INTERPOSE_FILTER": "event=NS"}
    found, said = (precedence.resolve({}, {**asked, **more}, {}) for more in ({}, {"INTERPOSE_STATEMENTS": "1"}))

    for each in (found, said):
        assert (each.record, each.statements, each.warnings) == (("calls", "lines"), True, [])


def test_a_filter_while_the_program_runs_is_refused_where_there_are_none(tmp_path, interpose_here):
    program = write_program(tmp_path, "import os, sys\nprint('ready', flush=True)\nsys.stdin.readline()\n")
    with start_in(tmp_path, [sys.executable, str(program)], INTERPOSE="1") as process:
        assert process.stdout is not None
        assert process.stdin is not None
        process.stdout.readline()
        refused = interpose_here("control", str(process.pid), "filter", "event=NS")
        (tmp_path / "control").write_text("FUNCTION=FILTER\nEVENT=NS\nEND-PROFILER\n")
        told = interpose_here("control", "--file", str(tmp_path / "control"), str(process.pid))
        process.stdin.write("\n")
    assert (refused.returncode, told.returncode) == (2, 2)
    asked = "begin the program with INTERPOSE=calls,lines INTERPOSE_STATEMENTS=1"
    why = f"statements are not recorded in test.1.er; {asked}"
    assert refused.stderr == f"interpose: filter event=NS: {why}\n"
    assert told.stderr == f"interpose: {tmp_path}/control:1: filter event=NS: {why}\n"
