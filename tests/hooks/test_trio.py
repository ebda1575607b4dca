"""trio: its tasks have numbers and names, its loop is known as one, and its threads without work are idle."""

import json
from collections import Counter

import pytest
from idling import kinds, other_threads, waits, wall_ns
from tracing import events_of

from interpose.analysis.analysis import Analysis
from interpose.analysis.findings.engine import found_in
from interpose.analysis.findings.survey import Survey
from interpose.analysis.time.turns import LONG_NS
from interpose.analysis.time.waits_for_turns import waits_for_turns

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


TASKS = """
import json, time, trio
took_ns = {}
async def work(name):
    begun_ns = time.monotonic_ns()
    for _ in range(3):
        await trio.sleep(0.02)
        time.sleep(0.001)
    took_ns[name] = time.monotonic_ns() - begun_ns
async def first():
    await work("first")
async def second():
    await work("second")
async def main():
    async with trio.open_nursery() as nursery:
        nursery.start_soon(first)
        nursery.start_soon(second)
        nursery.start_soon(trio.sleep, 0.01)
time.sleep(0.001)
trio.run(main)
time.sleep(0.001)
print(json.dumps(took_ns))
"""


def test_tasks_have_numbers_and_the_names_of_their_functions(traced):
    done = traced(TASKS)
    founder = done.experiment.founder
    took_ns = json.loads(done.stdout)
    calls = Counter((each.task and founder.task_names[each.task]) for each in done.events("time.sleep"))
    slept = Counter(founder.task_names[each.task] for each in done.events("trio.sleep"))

    assert calls == {0: 2, "first": 3, "second": 3}
    assert slept == {"first": 3, "second": 3, "sleep": 1}
    assert len({each.task for each in done.events("trio.sleep")}) == 3
    for name, whole_ns in took_ns.items():
        mine = [each for each in done.events("trio.sleep") if founder.task_names[each.task] == name]
        assert 3 * 20 * MS <= sum(each.wall_ns for each in mine) <= whole_ns
    assert not any(each.task for each in events_of(founder, "select.epoll.poll"))


BLOCKING = """
import json, time, trio
took = {"time.sleep": [], "": []}
def timed(name, work):
    begun_ns, used_ns = time.monotonic_ns(), time.thread_time_ns()
    work()
    took[name].append([time.monotonic_ns() - begun_ns, time.thread_time_ns() - used_ns])
def compute():
    sum(number * number % 7 for number in range(1_500_000))
async def handle():
    for _ in range(3):
        await trio.sleep(0.01)
        timed("time.sleep", lambda: time.sleep(0.06))
        timed("", compute)
        await trio.sleep(0.01)
async def main():
    async with trio.open_nursery() as others:
        for _ in range(4):
            others.start_soon(trio.sleep, 60)
        await handle()
        others.cancel_scope.cancel()
trio.run(main)
print(json.dumps(took))
"""


def test_a_loop_is_said_to_be_blocked_for_as_long_as_the_program_measured(traced):
    done = traced(BLOCKING)
    took = json.loads(done.stdout)
    blocks = Survey(Analysis(done.experiment)).blocks

    slept, code = ([each.wall_ns for each in blocks if each.intrinsic == name] for name in ("time.sleep", ""))
    assert len(slept) == 3 and sum(slept) <= sum(wall_ns for wall_ns, _ in took["time.sleep"])
    assert len(code) >= sum(cpu_ns > max(LONG_NS, 0.6 * wall_ns) + 5 * MS for wall_ns, cpu_ns in took[""])
    assert sum(code) <= sum(cpu_ns for _, cpu_ns in took[""]) + 5 * MS
    assert {(each.task, each.waiting) for each in blocks} == {("main", 4)}


ASKING = """
import json, socketserver, threading, time, trio
class Handler(socketserver.StreamRequestHandler):
    def handle(self):
        while line := self.rfile.readline():
            time.sleep(0.02)
            self.wfile.write(line)
server = socketserver.ThreadingTCPServer(("127.0.0.1", 0), Handler)
threading.Thread(target=server.serve_forever, daemon=True).start()
async def main():
    stream = await trio.open_tcp_stream("127.0.0.1", server.server_address[1])
    begun_ns = time.monotonic_ns()
    for _ in range(20):
        await stream.send_all(b"x\\n")
        await stream.receive_some()
    print(time.monotonic_ns() - begun_ns)
    await trio.sleep(0)
    await stream.aclose()
trio.run(main)
server.shutdown()
"""


def test_the_waits_of_the_loop_are_no_slow_calls(traced):
    done = traced(ASKING)
    asked_ns = int(done.stdout)
    every = found_in(Survey(Analysis(done.experiment)))
    found = [each for each in every if each.first and "epoll" in each.first.intrinsic]

    assert [each.rule for each in found] == ["waits of event loop"]
    assert 0.9 * 20 * 20 * MS <= found[0].wall_ns <= asked_ns


REQUESTS = """
import httpx, threading, time, trio
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
class Handler(BaseHTTPRequestHandler):
    def do_GET(self):
        time.sleep(0.02)
        self.send_response(200)
        self.end_headers()
    def log_message(self, *args):
        pass
async def get(client, number):
    await client.get(url + str(number))
async def main():
    async with httpx.AsyncClient() as client:
        begun_ns = time.monotonic_ns()
        for number in range(25):
            await get(client, number)
        print(time.monotonic_ns() - begun_ns)
        async with trio.open_nursery() as nursery:
            for number in range(5):
                nursery.start_soon(get, client, number)
server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
threading.Thread(target=server.serve_forever, daemon=True).start()
url = "http://127.0.0.1:%d/" % server.server_port
trio.run(main)
server.shutdown()
"""


def test_requests_one_by_one_are_those_that_one_task_made(traced):
    pytest.importorskip("httpx")
    done = traced(REQUESTS)
    asked_ns = int(done.stdout)

    (found,) = (each for each in found_in(Survey(Analysis(done.experiment))) if each.rule == "awaits one by one")

    assert (found.calls, found.units) == (25, 1)
    assert 25 * 20 * MS <= found.wall_ns <= asked_ns


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


LOCKED = """
import time, trio
async def locked(lock):
    async with lock:
        await trio.sleep(0.05)
async def main():
    lock, begun_ns = trio.Lock(), time.monotonic_ns()
    async with trio.open_nursery() as nursery:
        for _ in range(5):
            nursery.start_soon(locked, lock)
    print(time.monotonic_ns() - begun_ns)
trio.run(main)
"""


def test_tasks_that_wait_for_a_lock_wait_for_their_turn(traced):
    done = traced(LOCKED)
    ran_ns = int(done.stdout)

    survey = Survey(Analysis(done.experiment))
    ((found,),) = [loop for each in survey.per_process() for loop in waits_for_turns(*each)]

    assert (found.intrinsic, found.site.function) == ("trio.Lock.acquire", "locked")
    assert 4 * 50 * MS <= found.wall_ns <= ran_ns


FREE = """
import json, time, trio
contended, waited_ns = [], []
async def alone():
    lock = trio.Lock()
    for _ in range(4):
        contended.append(lock.locked())
        async with lock:
            time.sleep(0.005)
async def others(lock):
    begun_ns, was_held = time.monotonic_ns(), lock.locked()
    async with lock:
        contended.append(was_held)
        if was_held:
            waited_ns.append(time.monotonic_ns() - begun_ns)
        await trio.sleep(0.05)
async def main(work, *arguments):
    async with trio.open_nursery() as nursery:
        for _ in range(20):
            nursery.start_soon(work, *arguments)
trio.run(main, alone)
if {contends}:
    trio.run(main, others, trio.Lock())
print(json.dumps([len(contended), sum(contended), sum(waited_ns)]))
"""


@pytest.mark.parametrize("contends", [False, True])
def test_a_free_lock_of_trio_is_counted_and_only_one_that_others_had_was_waited_for(traced, contends):
    done = traced(FREE.replace("{contends}", str(contends)))
    acquired, contended, waited_ns = json.loads(done.stdout)
    calls = done.events("trio.Lock.acquire")
    survey = Survey(Analysis(done.experiment))
    found = [each for every in survey.per_process() for loop in waits_for_turns(*every) for each in loop]
    (thread,) = done.experiment.founder.threads

    assert contended == (19 if contends else 0)
    assert len(calls) == sum(each.calls for each in found) == contended
    assert thread.record.passed >= acquired - contended
    assert sum(each.wall_ns for each in calls) <= waited_ns
    assert [len(each.tasks) for each in found] == ([19] if contends else [])


HOOKS = """
import sys, trio
def first(generator):
    print("first", generator.__name__)
async def items():
    yield 1
async def main():
    async with trio.open_nursery() as nursery:
        nursery.start_soon(trio.sleep, 0)
    print([each async for each in items()], sys.get_asyncgen_hooks().firstiter is not None)
print(repr(sys.set_asyncgen_hooks), sys.set_asyncgen_hooks.__doc__)
for given in ((1,), (None, 2), (None, None, None)):
    try:
        sys.set_asyncgen_hooks(*given)
    except TypeError as error:
        print(error)
trio.run(main)
sys.set_asyncgen_hooks(firstiter=first)
try:
    items().__anext__().send(None)
except StopIteration as end:
    print(end.value)
sys.set_asyncgen_hooks(*[None, None])
print(sys.get_asyncgen_hooks())
"""


def test_the_hooks_of_loops_behave_as_without_us(traced):
    on, off = traced(HOOKS), traced(HOOKS, INTERPOSE="0")

    assert off.stdout.count("\n") > 6
    assert (on.stdout, on.stderr, on.returncode) == (off.stdout, off.stderr, off.returncode)
