"""The system library's screens: what is recorded of each call."""

import pytest
from exercises import assert_recorded_as_said, source_of


def test_every_call_of_a_screen_is_recorded_as_it_was(traced):
    curses = pytest.importorskip("curses")
    try:
        curses.setupterm("xterm", 1)
    except curses.error as error:
        pytest.skip(f"this terminal is not described here: {error}")
    done = traced(source_of("screens"))

    assert_recorded_as_said(done, "screens")
