"""trio: its threads without work are idle, and others are named by their work."""

import json
from collections import Counter

import pytest
from idling import kinds, other_threads, waits, wall_ns

from interpose.analysis.analysis import Analysis
from interpose.analysis.findings.engine import found_in
from interpose.analysis.findings.survey import Survey

pytest.importorskip("trio")
pytestmark = [pytest.mark.packages]
MS = 1_000_000

THREADS = """
import json, os, time, trio
rested_ns = []
def work():
    time.sleep(0.08)
async def main():
    for _ in range(3):
        async with trio.open_nursery() as nursery:
            for _ in range(4):
                nursery.start_soon(trio.to_thread.run_sync, work)
        begun_ns = time.monotonic_ns()
        await trio.sleep(0.2)
        rested_ns.append(time.monotonic_ns() - begun_ns)
begun_ns = time.monotonic_ns()
trio.run(main)
print(json.dumps([time.monotonic_ns() - begun_ns, *rested_ns]))
"""


def test_a_cached_thread_without_work_is_idle(traced):
    done = traced(THREADS)
    ran_ns, *rested_ns = json.loads(done.stdout)
    workers = [waits(done, thread=number) for number in other_threads(done.experiment.founder)]
    survey = Survey(Analysis(done.experiment))

    assert [Counter(kinds(each)) for each in workers] == [
        {("time.sleep", "sleep"): 3, ("threading.Lock.acquire", "idle"): 2}
    ] * 4
    assert all(sum(rested_ns[:2]) - 50 * MS < wall_ns(each, "idle") < ran_ns for each in workers)
    assert "lock not released" not in [each.rule for each in found_in(survey)]
    assert survey.idle_ns > 4 * (sum(rested_ns) - 3 * 50 * MS)


HANDED_OVER = """
import anyio, json, threading, time, trio, urllib.request
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
class Handler(BaseHTTPRequestHandler):
    def do_GET(self):
        begun_ns = time.monotonic_ns()
        time.sleep(0.02)
        self.send_response(200)
        served_ns.append(time.monotonic_ns() - begun_ns)
        self.end_headers()
    def log_message(self, *args):
        pass
async def main():
    async with trio.open_nursery() as nursery:
        for number in range(40):
            nursery.start_soon({run_sync}, urllib.request.urlopen, url + str(number))
served_ns, server = [], ThreadingHTTPServer(("127.0.0.1", 0), Handler)
threading.Thread(target=server.serve_forever, daemon=True).start()
url = "http://127.0.0.1:%d/" % server.server_port
{run}(main)
print(json.dumps(served_ns))
server.shutdown()
"""


@pytest.mark.parametrize(
    ("run_sync", "run"),
    [
        ("trio.to_thread.run_sync", "trio.run"),
        ("anyio.to_thread.run_sync", "(lambda main: anyio.run(main, backend='trio'))"),
    ],
)
def test_a_library_function_in_a_thread_is_named(traced, run_sync, run):
    pytest.importorskip("anyio")
    done = traced(HANDED_OVER.replace("{run_sync}", run_sync).replace("{run}", run))
    served_ns = sum(json.loads(done.stdout))

    found = found_in(Survey(Analysis(done.experiment)))

    (requests,) = (each for each in found if each.intrinsic == "urllib.request.urlopen")
    assert (requests.rule, requests.calls, requests.site.function) == ("slow calls", 40, "urlopen")
    assert requests.wall_ns > 0.95 * served_ns
