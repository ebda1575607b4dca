"""Notes of an experiment: kept by `interpose run -C`, shown first, added to, edited; hostile ones read in part."""

import os
import stat

import pytest

from interpose.cli.main import main
from interpose.experiments.metadata.lines_of_text import LARGEST_BYTES
from interpose.experiments.metadata.notes import NOTES
from tests.build import Build

pytestmark = pytest.mark.usefixtures("place")


@pytest.fixture
def experiment(tmp_path):
    build = Build(tmp_path / "test.1.er")
    build.ended(10, 5)
    return build.write()


def test_notes_of_a_run_come_before_the_report_s_header(tmp_path, capsys):
    (tmp_path / "app.py").write_text("print(1)\n")

    code = main(["run", "-C", "before the index", "-C", "on the old disk", "app.py"])

    main(["report"])
    lines = capsys.readouterr().out.splitlines()
    assert code == 0
    assert lines[:2] == ["before the index", "on the old disk"]
    assert lines[2].startswith("test.1.er")
    assert stat.S_IMODE(os.stat("test.1.er/notes").st_mode) == 0o600


def test_eleven_notes_are_refused_and_nothing_is_run(capsys):
    code = main(["run", *["-C", "x"] * 11, "true"])

    assert code == 2
    assert capsys.readouterr().err == "interpose: -C: more than 10 notes\n"
    assert not os.path.exists("test.1.er")


def test_notes_are_added_to(experiment, capsys):
    main(["notes", "test.1.er", "--add", "one"])
    main(["notes", "test.1.er", "--add", "two\nthree"])
    main(["notes", "test.1.er"])

    assert capsys.readouterr().out == "one\ntwo\nthree\n"


def test_notes_are_edited_with_the_user_s_editor(experiment, capsys, monkeypatch):
    (experiment / NOTES).write_text("old\n")
    monkeypatch.setenv("EDITOR", "sed -i s/old/new/")
    monkeypatch.delenv("VISUAL", raising=False)

    main(["notes", "test.1.er", "--edit"])

    assert (experiment / NOTES).read_text() == "new\n"


def test_an_editor_that_fails_leaves_the_notes_as_they_were(experiment, capsys, monkeypatch):
    (experiment / NOTES).write_text("old\n")
    monkeypatch.setenv("VISUAL", "false")

    code = main(["notes", "test.1.er", "--edit"])

    assert code == 1
    assert (experiment / NOTES).read_text() == "old\n"
    assert "false ended with 1" in capsys.readouterr().err


def test_notes_cannot_move_the_cursor_nor_fill_the_screen(experiment, capsys):
    (experiment / NOTES).write_text("\x1b[2J\n" + "many\n" * 50)

    main(["report", "test.1.er"])

    lines = capsys.readouterr().out.splitlines()
    assert lines[0] == "\\x1b[2J"
    assert lines[10] == "and 41 more lines: interpose notes"


def test_notes_without_end_are_read_in_part(experiment, capsys):
    (experiment / NOTES).write_bytes(b"x" * (LARGEST_BYTES + 1))

    code = main(["notes", "test.1.er"])

    out, err = capsys.readouterr()
    assert code == 3
    assert len(out) == LARGEST_BYTES + 1
    assert "notes: longer than 64 KiB" in err


def test_notes_are_not_written_through_a_link(experiment, tmp_path, capsys):
    elsewhere = tmp_path / "elsewhere"
    elsewhere.write_text("mine\n")
    (experiment / NOTES).symlink_to(elsewhere)

    main(["notes", "test.1.er", "--add", "x"])

    assert elsewhere.read_text() == "mine\n"
