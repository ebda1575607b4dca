"""The system library's drivers of Redis: what is recorded of each call, and that nothing is missing."""

import pytest
from exercises import assert_recorded_as_said, source_of
from servers import need_server

pytestmark = pytest.mark.packages


@pytest.fixture(autouse=True)
def server():
    need_server("redis")
    pytest.importorskip("redis")


def test_every_call_of_redis_py_is_recorded_as_it_was(traced):
    done = traced(source_of("redis"))

    assert_recorded_as_said(done, "redis")


# Commands that hardly anybody else calls meanwhile: the server counts all of its clients'.
COUNTED = """
import redis
store = redis.Redis(host="127.0.0.1")
def counts():
    told = store.info("commandstats")
    return [told.get(f"cmdstat_{name}", {"calls": 0})["calls"] for name in ("setrange", "incrbyfloat", "lpos")]
before = counts()
for number in range(40):
    store.setrange("counted:1", 0, "text")
    store.incrbyfloat("counted:2", 1.5)
pipeline = store.pipeline(transaction=False)
for number in range(25):
    pipeline.lpos("counted:3", "text")
pipeline.execute()
print(*(after - each for each, after in zip(before, counts())))
store.delete("counted:1", "counted:2")
"""


def test_commands_are_counted_as_the_server_counts_them(traced):
    done = traced(COUNTED)
    process = done.experiment.founder
    names = [process.string(event.detail) for event in done.events("redis.Redis.execute_command")]
    [pipeline] = done.events("redis.Pipeline.execute")

    assert (done.returncode, done.stderr) == (0, "")
    assert [names.count("SETRANGE"), names.count("INCRBYFLOAT"), pipeline.bytes] == [
        int(each) for each in done.stdout.split()
    ]


def test_every_awaited_call_of_redis_py_is_recorded_as_it_was(traced):
    done = traced(source_of("redis_async"))

    assert_recorded_as_said(done, "redis_async")
