"""What is kept in the user's state directory: bounded, private, and shown safely."""

import os
import time
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from interpose.config import state


@pytest.fixture(autouse=True)
def home(tmp_path, monkeypatch) -> Path:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path))
    return tmp_path / "interpose"


def test_what_was_noted_is_read_again():
    state.note_not_recorded("app.py", 812, "/data is not writable", "/data")

    (note,) = state.not_recorded()

    assert (note.program, note.pid, note.reason) == ("app.py", 812, "/data is not writable")
    assert abs(note.time_s - time.time()) < 5
    shown = time.strftime("%H:%M", time.localtime(note.time_s))
    assert str(note) == f"app.py, process 812, {shown}: not recorded: /data is not writable"


def test_a_note_of_another_day_says_the_day(home):
    home.mkdir(0o700)
    (home / state.NOT_RECORDED).write_text("86400\t1\tapp.py\tno room\t/data\n")

    (note,) = state.not_recorded()

    assert "1970-01-0" in str(note)


def test_the_directory_and_the_file_are_private(home):
    umask = os.umask(0)
    try:
        state.note_not_recorded("app.py", 1, "why", "/data")
    finally:
        os.umask(umask)

    assert home.stat().st_mode & 0o777 == 0o700
    assert (home / state.NOT_RECORDED).stat().st_mode & 0o777 == 0o600


def test_the_last_hundred_are_kept_and_the_file_stays_small(home):
    for pid in range(1000):
        state.note_not_recorded("p" * 1000, pid, "r" * 1000, "/data")

    assert [note.pid for note in state.not_recorded()] == list(range(900, 1000))
    assert (home / state.NOT_RECORDED).stat().st_size <= 2 * state.LARGEST_FILE_BYTES
    assert [path.name for path in home.iterdir()] == [state.NOT_RECORDED]


@given(program=st.text(), reason=st.text())
def test_whatever_is_noted_is_one_printable_line(program, reason):
    state.note_not_recorded(program, 5, reason, "/data")

    note = state.not_recorded()[-1]

    assert note.pid == 5
    assert str(note).isprintable()


@given(data=st.binary(max_size=500))
def test_a_garbled_file_gives_what_can_be_read(data):
    state.note_not_recorded("app.py", 1, "before", "/data")
    path = Path(os.environ["XDG_STATE_HOME"], "interpose", state.NOT_RECORDED)
    with path.open("ab") as file:
        file.write(data + b"\n")
    state.note_not_recorded("app.py", 2, "after", "/data")

    notes = state.not_recorded()

    assert notes[-1].reason == "after"
    assert all(str(note).isprintable() for note in notes)


def test_links_are_not_followed(home, tmp_path):
    target = tmp_path / "target"
    target.touch()
    home.mkdir(0o700)
    (home / state.NOT_RECORDED).symlink_to(target)

    state.note_not_recorded("app.py", 1, "why", "/data")

    assert target.read_bytes() == b""
    assert state.not_recorded() == []


def test_a_directory_that_others_may_write_is_not_used(home):
    home.mkdir()
    home.chmod(0o777)

    state.note_not_recorded("app.py", 1, "why", "/data")

    assert list(home.iterdir()) == []
    assert state.experiments_directory() is None


def test_where_nothing_can_be_kept_nothing_happens(monkeypatch, tmp_path):
    (tmp_path / "file").touch()
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "file"))

    state.note_not_recorded("app.py", 1, "why", "/data")

    assert state.not_recorded() == []
    assert state.experiments_directory() is None
    assert state.experiments_elsewhere() == []


def test_a_relative_state_home_is_ignored(monkeypatch, tmp_path):
    monkeypatch.setenv("XDG_STATE_HOME", "here")
    monkeypatch.setenv("HOME", str(tmp_path))

    assert state.directory() == str(tmp_path / ".local" / "state" / "interpose")


def test_a_home_that_does_not_exist_is_not_made(monkeypatch, tmp_path):
    monkeypatch.delenv("XDG_STATE_HOME", raising=False)
    monkeypatch.setenv("HOME", str(tmp_path / "nonexistent"))

    assert state.experiments_directory() is None
    assert not (tmp_path / "nonexistent").exists()


def test_experiments_elsewhere_are_found(home):
    directory = Path(state.experiments_directory() or "")
    (directory / "test.1.er").mkdir()
    (directory / "test.1.er" / "log.xml").touch()

    assert directory == home / "experiments"
    assert state.experiments_elsewhere() == [str(directory / "test.1.er")]
