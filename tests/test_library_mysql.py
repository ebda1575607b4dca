"""The system library's drivers of MySQL and MariaDB: what is recorded of each call, and that nothing is missing."""

import pytest
from exercises import assert_recorded_as_said, source_of
from servers import need_server

pytestmark = pytest.mark.packages


@pytest.fixture(autouse=True)
def server():
    need_server("mysql")


def test_every_call_of_mysqlclient_is_recorded_as_it_was(traced):
    pytest.importorskip("MySQLdb")
    done = traced(source_of("mysql"), INTERPOSE_ROWS="each")

    assert_recorded_as_said(done, "mysql")
