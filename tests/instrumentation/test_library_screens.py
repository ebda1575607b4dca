"""The system library's screens: what is recorded of each call."""

import pytest
from exercises import assert_program_is_recorded


def test_every_call_of_a_screen_is_recorded_as_it_was(traced):
    curses = pytest.importorskip("curses")
    try:
        curses.setupterm("xterm", 1)
    except curses.error as error:
        pytest.skip(f"this terminal is not described here: {error}")
    assert_program_is_recorded(traced, "screens")
