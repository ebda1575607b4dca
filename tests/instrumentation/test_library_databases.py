"""The system library's databases: what is recorded of each call."""

from exercises import assert_recorded_as_said, source_of


def test_every_call_of_a_database_is_recorded_as_it_was(traced):
    done = traced(source_of("databases"), INTERPOSE_ROWS="each")

    assert_recorded_as_said(done, "databases")
