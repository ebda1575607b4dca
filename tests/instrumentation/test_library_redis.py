"""The system library's drivers of Redis: what is recorded of each call, and that nothing is missing."""

import shutil
import socket
import subprocess
import time

import pytest
from exercises import assert_program_is_recorded
from servers import need_server

pytestmark = [pytest.mark.packages, pytest.mark.xdist_group("servers")]


@pytest.fixture(autouse=True)
def server():
    need_server("redis")
    pytest.importorskip("redis")


def test_every_call_of_redis_py_is_recorded_as_it_was(traced):
    assert_program_is_recorded(traced, "redis")


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
    done = traced(COUNTED).ended_well()
    process = done.experiment.founder
    names = [process.string(event.detail) for event in done.events("redis.Redis.execute_command")]
    [pipeline] = done.events("redis.Pipeline.execute")

    assert [names.count("SETRANGE"), names.count("INCRBYFLOAT"), pipeline.bytes] == [
        int(each) for each in done.stdout.split()
    ]


def test_every_awaited_call_of_redis_py_is_recorded_as_it_was(traced):
    assert_program_is_recorded(traced, "redis_async")


@pytest.fixture
def cluster(tmp_path):
    """The port of a cluster of one node, which has all slots."""
    if not shutil.which("redis-server"):
        pytest.skip("redis-server is not installed")
    import redis

    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    words = f"redis-server --port {port} --bind 127.0.0.1 --cluster-enabled yes --cluster-port {port - 5000} --save"
    node = subprocess.Popen([*words.split(), "", "--dir", str(tmp_path)], stdout=subprocess.DEVNULL)
    try:
        store = redis.Redis(port=port, retry=None)
        retried(lambda: store.execute_command("CLUSTER", "ADDSLOTSRANGE", 0, 16383))
        retried(lambda: b"cluster_state:ok" in store.execute_command("CLUSTER", "INFO") or 1 / 0)
        yield port
    finally:
        node.kill()
        node.wait()


def retried(act):
    for _ in range(300):
        try:
            return act()
        except Exception:
            time.sleep(0.05)
    raise AssertionError("the cluster does not begin")


def test_every_call_to_a_cluster_is_recorded_as_it_was(traced, cluster):
    assert_program_is_recorded(traced, "redis_cluster", str(cluster))
