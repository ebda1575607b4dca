"""Where the tests of commands are run."""

import pytest


@pytest.fixture(autouse=True)
def work(place, monkeypatch):
    """A working directory beside that of the state."""
    (place / "work").mkdir()
    monkeypatch.chdir(place / "work")
    return place / "work"
