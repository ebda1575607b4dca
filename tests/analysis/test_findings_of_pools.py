"""Findings of a pool's work: calls without a line of the program on the stack."""

import json

import pytest
from shops import MS

from interpose.analysis.analysis import Analysis
from interpose.analysis.findings.engine import found_in
from interpose.analysis.findings.survey import Survey
from interpose.reports.sentences.sentences import Sentences
from tests.build import SECOND

HANDED_OVER = """
import asyncio, http.server, json, threading, time, urllib.request
from concurrent.futures import ThreadPoolExecutor
from multiprocessing.pool import ThreadPool
class Handler(http.server.BaseHTTPRequestHandler):
    def do_GET(self):
        begun_ns = time.monotonic_ns()
        time.sleep(0.02)
        self.send_response(200)
        served_ns.append(time.monotonic_ns() - begun_ns)
        self.end_headers()
    def log_message(self, *args):
        pass
async def in_threads(work, all_given):
    await asyncio.gather(*(asyncio.to_thread(work, each) for each in all_given))
served_ns, server = [], http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
threading.Thread(target=server.serve_forever, daemon=True).start()
urls = ["http://127.0.0.1:%d/%d" % (server.server_port, number) for number in range(40)]
{run}
print(json.dumps(served_ns))
server.shutdown()
"""
WORKERS = "concurrent/futures/thread.py"


@pytest.mark.parametrize(
    "run",
    [
        "with ThreadPoolExecutor(4) as pool: list(pool.map(urllib.request.urlopen, urls))",
        "with ThreadPool(4) as pool: pool.map(urllib.request.urlopen, urls)",
        "asyncio.run(in_threads(urllib.request.urlopen, urls))",
    ],
)
def test_a_library_function_that_a_pool_calls_is_named(traced, run):
    done = traced(HANDED_OVER.replace("{run}", run))
    served_ns = sum(json.loads(done.stdout))

    found = found_in(Survey(Analysis(done.experiment)))

    (requests,) = (each for each in found if each.intrinsic == "urllib.request.urlopen")
    words = Sentences(found, "/nowhere", SECOND).of(requests)
    assert (requests.rule, requests.calls, requests.site.function) == ("slow calls", 40, "urlopen")
    assert requests.wall_ns > 0.95 * served_ns
    assert words.startswith("40 calls of urllib.request.urlopen from request.py:")
    assert words.endswith("). A pool made them: no line of the program is on the stack.")


def test_an_intrinsic_that_a_pool_calls_itself_is_named(traced):
    done = traced("""
        import time
        from concurrent.futures import ThreadPoolExecutor
        with ThreadPoolExecutor(4) as pool:
            list(pool.map(time.sleep, [0.02] * 20))
    """)

    (sleeps,) = (each for each in found_in(Survey(Analysis(done.experiment))) if each.intrinsic == "time.sleep")

    assert (sleeps.rule, sleeps.calls, sleeps.wall_ns >= 20 * 20 * MS) == ("slow calls", 20, True)
    assert sleeps.site.file.endswith(WORKERS)


def test_the_same_in_a_function_of_the_program_is_named_by_its_line(traced):
    done = traced("""
        import time
        from concurrent.futures import ThreadPoolExecutor
        with ThreadPoolExecutor(4) as pool:
            list(pool.map(lambda seconds: time.sleep(seconds), [0.02] * 20))
    """)

    first, *_ = found_in(Survey(Analysis(done.experiment)))

    assert (first.first.site.line, first.calls, first.unit) == (5, 20, "")


def in_thread(shop, *inner, pool=True):
    """The number of a stack, of the frames `inner` from the innermost outward, in a thread of a pool or another one."""
    frames = [("threading.py", 1030, "Thread._bootstrap")]
    frames += [(WORKERS, 92, "_worker"), (WORKERS, 58, "_WorkItem.run")] if pool else []
    stack = 0
    for file, line, function in [*frames, *reversed(inner)]:
        stack = shop.stack(shop.site(f"/lib/python3/{file}", line, function, own=0), stack)
    return stack


GET = ("site-packages/requests/api.py", 73, "get")
SEND = ("site-packages/requests/sessions.py", 703, "Session.send")
RECEIVE = ("socket.py", 720, "SocketIO.readinto")


def found_of_stack(shop, name, kind, *inner, pool=True):
    shop.call(name, kind, each_ns=100 * MS, times=5, thread=2, stack=in_thread(shop, *inner, pool=pool))
    return [each for each in found_in(shop.survey()) if each.rule == "slow calls"]


def test_work_of_a_pool_is_named_by_its_outermost_line(shop):
    (found,) = found_of_stack(shop, "requests.Session.send", "net", SEND, GET)

    assert (found.calls, found.wall_ns, found.site.line) == (5, 500 * MS, 73)


def test_work_of_a_pool_that_failed_is_named_with_its_errors(shop):
    stack = in_thread(shop, SEND, GET)
    shop.call("requests.Session.send", "net", each_ns=100 * MS, times=4, thread=2, stack=stack)
    error = shop.string("ReadTimeout")
    shop.call("requests.Session.send", "net", each_ns=250 * MS, times=2, thread=2, stack=stack, error=error)

    found = [each for each in found_in(shop.survey()) if each.rule in ("failed calls", "slow calls")]

    assert [(each.rule, each.calls, each.wall_ns) for each in found] == [("failed calls", 2, 500 * MS)]
    assert Sentences(found, "/nowhere", SECOND).of(found[0]) == (
        "2 of 6 calls of requests.Session.send from api.py:73 get failed with ReadTimeout, 250 ms each"
        " (500 ms of 1.00 s). A pool made them: no line of the program is on the stack."
    )


@pytest.mark.parametrize(
    ("name", "kind", "inner", "pool"),
    [
        ("socket.socket.recv_into", "net", (RECEIVE, ("site-packages/kafka/beat.py", 9, "Heartbeat.run")), False),
        ("time.sleep", "sleep", (("site-packages/monitor.py", 9, "watch"),), False),
        ("time.sleep", "sleep", (("site-packages/monitor.py", 9, "watch"),), True),
        ("socket.socket.recv", "net", (), True),
        ("socket.socket.recv_into", "net", (RECEIVE, ("site-packages/pushed.py", 9, "listen")), True),
        ("ssl.SSLSocket.read", "db", (RECEIVE, ("site-packages/pushed.py", 9, "listen")), True),
        ("select.epoll.poll", "net", (("selectors.py", 468, "EpollSelector.select"),), True),
        ("threading.Lock.acquire", "sync", (("threading.py", 355, "Condition.wait"),), True),
        ("queue.SimpleQueue.get", "idle", (), True),
    ],
)
def test_library_threads_that_wait_for_their_turn_are_none(shop, name, kind, inner, pool):
    assert found_of_stack(shop, name, kind, *inner, pool=pool) == []
