"""What the administrator forbids: the file of this machine, and what becomes of programs that it is about."""

import os
import pwd
import sys

import pytest
from tracing import events_of, run_in

from interpose.capture import session
from interpose.cli.main import main
from interpose.config import policy, state
from interpose.config.policy import Forbidden, check, matches, parse
from interpose.experiments.model.experiment import Experiment

USER = pwd.getpwuid(os.getuid()).pw_name
BEGIN = """
import os, sys
from interpose.capture import session
session.POLICY = sys.argv.pop(1)
os.environ["INTERPOSE"] = "1"
from interpose import boot
boot.boot()
import sqlite3
os.stat("/")
sqlite3.connect(":memory:")
"""


@pytest.fixture
def begun(tmp_path, monkeypatch):
    """Begin recording a program as the start-up file does, on a machine with such a file; gives the experiment, or
    None, and why there is none."""
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))

    def run(text, **variables):
        (tmp_path / "interpose.conf").write_text(text)
        (tmp_path / "wages.py").write_text(BEGIN)
        done = run_in(tmp_path, [sys.executable, "wages.py", str(tmp_path / "interpose.conf")], **variables)
        assert (done.returncode, done.stderr) == (0, "")
        made = tmp_path / "test.1.er"
        noted = [note.reason for note in state.not_recorded()]
        return Experiment(str(made)) if made.exists() else None, noted

    return run


@pytest.mark.parametrize(
    "line",
    ["users = *", f"users = nobody-else, {os.getuid()}", "programs = wages.py", "programs = */wages.py", "kinds = *"],
)
def test_nothing_is_recorded_of_what_is_forbidden_and_the_reason_is_kept(begun, tmp_path, line):
    experiment, noted = begun(f"# of this machine\n{line}\n")

    assert experiment is None
    assert f"forbidden by {tmp_path}/interpose.conf:2: " in noted[-1]


def test_others_are_recorded(begun):
    experiment, _ = begun("users = nobody-else\nprograms = other.py, /opt/*\n")

    assert experiment is not None


def test_calls_of_kinds_that_are_forbidden_are_not_recorded_whatever_is_asked_for(begun, tmp_path):
    experiment, _ = begun("kinds = db, lines\n", INTERPOSE_LEVELS="sqlite3=time", INTERPOSE_KINDS="all")
    founder = experiment.founder
    kinds = {founder.intrinsic(event.intrinsic).kind for event in events_of(founder)}

    assert "file" in kinds
    assert "db" not in kinds
    warnings = [event.text for event in founder.log.events if event.kind == "warning"]
    assert warnings[0] == f"{tmp_path}/interpose.conf:1: kinds = db: not recorded"


@pytest.mark.parametrize(
    "text",
    [
        "users = al*\n",
        "users = alice, @stud?nts\n",
        "users\n",
        "colour = red\n",
        "kinds = disk\n",
        "users = ,\n",
        "programs = " + "x" * 999,
    ],
)
def test_a_file_that_means_nothing_forbids_all_and_says_where(begun, tmp_path, text):
    experiment, noted = begun(text)

    assert experiment is None
    assert f"{tmp_path}/interpose.conf:1: " in noted[-1]


def test_where_there_is_no_file_nothing_is_forbidden(tmp_path):
    assert policy.read(str(tmp_path / "missing")) is None
    assert policy.read(str(tmp_path / "missing" / "below")) is None


def test_a_file_that_cannot_be_read_forbids(tmp_path):
    with pytest.raises(Forbidden, match="Is a directory"):
        policy.read(str(tmp_path))


def test_what_is_no_plain_file_forbids_and_is_not_waited_for(tmp_path):
    os.mkfifo(tmp_path / "interpose.conf")

    with pytest.raises(Forbidden, match="is not a regular file"):
        policy.read(str(tmp_path / "interpose.conf"))


def test_users_are_told_by_name_by_number_and_by_group():
    for name in (USER, str(os.getuid()), f"@{os.getgid()}"):
        with pytest.raises(Forbidden):
            check(parse(f"users = {name}", "f"), ["python", "a.py"])

    assert check(parse("users = nobody-else, @nobody-else", "f"), ["python", "a.py"]) is None


@pytest.mark.parametrize(
    ("pattern", "arguments"),
    [
        ("a.py", ["python", "/x/a.py"]),
        ("/x/*", ["python", "-u", "/x/a.py"]),
        ("http.server", ["python", "-m", "http.server"]),
        ("-m http.*", ["python", "-m", "http.server"]),
        ("python3*", ["/usr/bin/python3.12", "-c", "1"]),
        ("-c", ["python", "-c", "1"]),
    ],
)
def test_programs_are_told_by_path_by_name_and_by_module(pattern, arguments):
    with pytest.raises(Forbidden, match="forbidden by f:1: programs = "):
        check(parse(f"programs = {pattern}", "f"), arguments)


@pytest.mark.parametrize(
    ("pattern", "text", "does"),
    [
        ("*", "", True),
        ("", "", True),
        ("", "a", False),
        ("a*c", "abbc", True),
        ("a*c", "abcd", False),
        ("?b", "ab", True),
        ("?b", "b", False),
        ("*a*b", "xxaxxab", True),
        ("*a*b*", "b", False),
    ],
)
def test_a_star_stands_for_anything_and_a_question_mark_for_a_letter(pattern, text, does):
    assert matches(pattern, text) is does


def test_doctor_names_the_line_that_forbids_the_program(tmp_path, monkeypatch, capsys):
    (tmp_path / "interpose.conf").write_text("users = nobody-else\nprograms = */wages.py\n")
    monkeypatch.setattr(session, "POLICY", str(tmp_path / "interpose.conf"))
    for name in ("wages.py", "orders.py"):
        (tmp_path / name).write_text("")

    codes = [main(["doctor", "--", sys.executable, str(tmp_path / name)]) for name in ("wages.py", "orders.py")]

    told = [line for line in capsys.readouterr().out.splitlines() if "in the way" in line]
    assert codes[0] == 1
    assert f"forbidden by {tmp_path}/interpose.conf:2: programs = */wages.py" in told[0]
    assert "forbidden" not in told[1]
