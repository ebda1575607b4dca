"""The system library's drivers of PostgreSQL: what is recorded of each call, and that nothing is missing."""

import pytest
from exercises import assert_recorded_as_said, source_of
from servers import need_server

pytestmark = pytest.mark.packages


@pytest.fixture(autouse=True)
def server():
    need_server("postgresql")


def test_every_call_of_psycopg2_is_recorded_as_it_was(traced):
    pytest.importorskip("psycopg2")
    done = traced(source_of("postgresql"), INTERPOSE_ROWS="each")

    assert_recorded_as_said(done, "postgresql")
