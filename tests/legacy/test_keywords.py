"""Control files with the Natural Profiler's keywords: how they are read, and what they mean here."""

import os

import pytest

from interpose.config import keywords, precedence
from interpose.config.keywords import filter_of, parse, settings_of

WHOLE = """\
** a session of the manual's sort
function = init          /* keywords are of any case
RESOURCE=ON
SAMPLING=ON
INTERVAL=4800
CONSOLIDATE=ON
COVERAGE=ON
FUNCTION=FILTER
FILTER=EVENT
EVENT=P,DB , NS
FNAT=OFF
FUNCTION=FILTER
FILTER=PROGRAM
LIBRARY=SHOP
PROGRAM=orders
END-PROFILER

FUNCTION=FILTER
FILTER=COUNT
SKIP=10
COUNT=500
FUNCTION=START
END-PROFILER
"""


def test_several_blocks_are_read_with_the_lines_that_say_each_keyword():
    steps, wrong = parse(WHOLE, "f")

    assert not wrong
    assert [step.name for step in steps] == ["INIT", "FILTER", "FILTER", "FILTER", "START"]
    assert steps[0].keys["INTERVAL"] == ("4800", "f:5")


def test_what_it_says_becomes_settings():
    found, wrong = settings_of(parse(WHOLE, "f")[0], ("calls",))

    assert not wrong
    assert found == {
        "INTERPOSE": "calls,coverage,lines",
        "INTERPOSE_STATEMENTS": "1",
        "INTERPOSE_PAUSED": "0",
        "INTERPOSE_INTERVAL": "4800us",
        "INTERPOSE_CONSOLIDATE": "1",
        "INTERPOSE_FILTER": "event=P,DB,NS; module=SHOP.orders; skip=10; keep=500",
    }


def test_after_init_a_session_is_paused_until_it_is_started():
    found = [
        settings_of(parse(f"{said}\nEND-PROFILER", "f")[0], ())[0]["INTERPOSE_PAUSED"]
        for said in ("FUNCTION=INIT", "FUNCTION=INIT\nFUNCTION=START", "FUNCTION=START\nFUNCTION=PAUSE")
    ]

    assert found == ["1", "0", "1"]


def test_a_filter_that_is_said_again_goes_before_and_off_takes_all_away():
    said = "FUNCTION=FILTER\nLIBRARY=a\nFUNCTION=FILTER\nLIBRARY=b\nEVENT=ALL\nEND-PROFILER"

    assert filter_of(parse(said, "f")[0]) == ("package=b", [])
    assert filter_of(parse(said.replace("EVENT=ALL", "FILTER=OFF"), "f")[0]) == ("package=b", [])
    assert filter_of(parse("FUNCTION=FILTER\nFILTER=OFF\nEND-PROFILER", "f")[0]) == ("", [])


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("FUNCTION=FLY\nHEIGHT=3\nEND-PROFILER", "f:1: FUNCTION=FLY is not one of INIT, FILTER"),
        ("FUNCTION=START\nEVENT=P\nEND-PROFILER", "f:2: EVENT is not a keyword of START"),
        ("EVENT=P\nFUNCTION=START\nEND-PROFILER", "f:1: EVENT stands before any FUNCTION"),
        ("FUNCTION=START\nhello\nEND-PROFILER", "f:2: hello is not KEYWORD=VALUE or END-PROFILER"),
        ("FUNCTION=START", "f: END-PROFILER is missing at the end"),
        ("FUNCTION=INIT\nSAMPLING=MAYBE\nEND-PROFILER", "f:2: SAMPLING=MAYBE is not ON or OFF"),
        ("FUNCTION=INIT\nINTERVAL=0\nEND-PROFILER", "f:2: INTERVAL=0 is not a number of microseconds"),
        ("FUNCTION=FILTER\nFILTER=MOOD\nEND-PROFILER", "f:2: FILTER=MOOD is not one of EVENT"),
        ("FUNCTION=FILTER\nPROGRAM=a;kind=file\nEND-PROFILER", "f:2: PROGRAM=a;kind=file has a ; in it"),
    ],
)
def test_what_is_wrong_is_told_by_its_line_and_the_rest_is_done(text, why):
    steps, wrong = parse(text, "f")

    (line,) = wrong
    assert line.startswith(why)
    assert [step.name for step in steps] == [] if "FLY" in text else len(steps) == 1


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("FUNCTION=FILTER\nEVENT=XX\nEND-PROFILER", "f:1: 'XX' is not an event type"),
        ("FUNCTION=INIT\nSAMPLING=ON\nEND-PROFILER", "f:1: SAMPLING=ON needs an INTERVAL"),
        ("FUNCTION=DELETE\nEND-PROFILER", "f:1: DELETE is done by interpose control --file"),
    ],
)
def test_what_cannot_be_at_the_start_is_told_by_its_line(text, why):
    wrong = settings_of(parse(text, "f")[0], ())[1]

    assert [line[: len(why)] for line in wrong] == [why]


def test_the_file_goes_before_the_other_settings(tmp_path):
    (tmp_path / "f").write_text(WHOLE)

    said = {"INTERPOSE": "1", "INTERPOSE_CONTROL": str(tmp_path / "f"), "INTERPOSE_PAUSED": "1"}

    found = precedence.resolve({}, said, {})

    assert (found.record, found.paused, found.consolidate) == (("calls", "lines", "coverage"), False, True)
    assert found.filter == "event=P,DB,NS; module=SHOP.orders; skip=10; keep=500"
    assert [text.partition(": ")[2] for text in found.warnings] == [
        "INTERPOSE_STATEMENTS=1: statements are not sampled (INTERPOSE_INTERVAL)"
    ]


@pytest.mark.parametrize(("data", "why"), [(None, "No such file"), (b"x" * (keywords.LARGEST_BYTES + 1), "is longer")])
def test_a_file_that_cannot_be_read_is_a_warning(tmp_path, data, why):
    if data:
        (tmp_path / "f").write_bytes(data)

    found = precedence.resolve({}, {"INTERPOSE_CONTROL": str(tmp_path / "f")}, {})

    assert why in found.warnings[0]


def test_what_is_no_plain_file_is_a_warning_and_not_waited_for(tmp_path):
    os.mkfifo(tmp_path / "f")

    found = precedence.resolve({}, {"INTERPOSE_CONTROL": str(tmp_path / "f")}, {})

    assert "is not a regular file" in found.warnings[0]


def test_of_many_lines_that_mean_nothing_the_first_are_told_and_how_many_more():
    wrong = parse("nothing\n" * 3000, "f")[1]

    assert len(wrong) == keywords.TOLD_AT_MOST
    assert wrong[-1] == f"f: {3001 - keywords.TOLD_AT_MOST} more lines mean nothing"


def test_a_program_that_starts_with_a_control_file_is_recorded_as_it_says(traced, tmp_path):
    (tmp_path / "f").write_text("FUNCTION=INIT\nFUNCTION=FILTER\nEVENT=D\nMOOD=3\nEND-PROFILER\n")

    done = traced(
        """
        import interpose, os, sqlite3
        connection = sqlite3.connect(":memory:")
        connection.execute("select 1")
        interpose.start()
        os.stat("/")
        connection.execute("select 2")
        """,
        INTERPOSE_CONTROL=str(tmp_path / "f"),
    ).ended_well()
    founder = done.experiment.founder

    assert [founder.intrinsic(event.intrinsic).name for event in done.events()] == ["sqlite3.Connection.execute"]
    assert [event.text for event in founder.log.events if event.kind == "warning"] == [
        f"{tmp_path}/f:4: MOOD is not a keyword of FILTER"
    ]
