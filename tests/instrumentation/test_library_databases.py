"""The system library's databases: what is recorded of each call."""

from exercises import assert_program_is_recorded


def test_every_call_of_a_database_is_recorded_as_it_was(traced):
    assert_program_is_recorded(traced, "databases", INTERPOSE_ROWS="each")
