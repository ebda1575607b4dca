"""The waits of loops written in C, uvloop's and gevent's: recorded, and idle, as those of asyncio's loop are."""

import os

import pytest
from edges import need
from tracing import events_of, traced  # noqa: F401

from interpose.analysis.analysis import Analysis
from interpose.analysis.findings.engine import found_in
from interpose.analysis.findings.survey import Survey
from interpose.analysis.recording.lineage import tree

pytestmark = [pytest.mark.packages]

RUN = """
import asyncio, socket, subprocess, sys, time
if sys.argv[1] == "uvloop":
    from uvloop import run
else:
    from asyncio import run
"""
CLIENT = """
CLIENT = '''
import socket, sys, time
server = socket.create_connection(("127.0.0.1", int(sys.argv[1])))
for _ in range(10):
    server.sendall(b"x\\\\n")
    server.recv(9)
time.sleep(0.5)
'''
"""
# A server that takes 30 ms for each answer; the client then sends nothing for half a second, and leaves.
SERVED = """
async def serve(reader, writer):
    global answered_ns
    while line := await reader.readline():
        begun_ns = time.monotonic_ns()
        await asyncio.sleep(0.03)
        answered_ns += time.monotonic_ns() - begun_ns
        writer.write(line)
    writer.close()
    gone.set()

async def main():
    global answered_ns, gone
    answered_ns, gone = 0, asyncio.Event()
    server = await asyncio.start_server(serve, "127.0.0.1", 0)
    port = server.sockets[0].getsockname()[1]
    client = subprocess.Popen([sys.executable, "-S", "-c", CLIENT, str(port)])
    await gone.wait()
    client.wait()
    print(answered_ns)
run(main())
"""


# The same without coroutines.
SERVED_BY_GREENLETS = """
from gevent import monkey
monkey.patch_all()
import subprocess, sys, time
import gevent.event, gevent.server
answered_ns, gone = 0, gevent.event.Event()
def serve(connection, address):
    global answered_ns
    lines = connection.makefile("rb")
    while line := lines.readline():
        begun_ns = time.monotonic_ns()
        gevent.sleep(0.03)
        answered_ns += time.monotonic_ns() - begun_ns
        connection.sendall(line)
    gone.set()
server = gevent.server.StreamServer(("127.0.0.1", 0), serve)
server.start()
client = subprocess.Popen([sys.executable, "-S", "-c", CLIENT, str(server.server_port)])
gone.wait()
client.wait()
server.stop()
print(answered_ns)
"""
POLLS = {"asyncio": "select.epoll.poll", "uvloop": "uvloop.Loop.poll", "gevent": "gevent.hub.Loop.poll"}


@pytest.mark.parametrize("loop", POLLS)
def test_a_loop_is_idle_unless_an_answer_is_due(traced, loop):  # noqa: F811
    need(*([loop] if loop != "asyncio" else []))
    program = CLIENT + (SERVED_BY_GREENLETS if loop == "gevent" else RUN + SERVED)
    done = traced(program, loop, INTERPOSE_FOLLOW="off")
    answered_ns = int(done.stdout)
    survey = Survey(Analysis(done.experiment))
    polls = [each for each in survey.calls if each.intrinsic in POLLS.values()]
    waited_ns = {kind: sum(each.wall_ns for each in polls if each.kind == kind) for kind in ("net", "idle")}

    assert 0.9 * answered_ns < waited_ns["net"] < 1.1 * answered_ns
    assert 450_000_000 < waited_ns["idle"] < 1_500_000_000
    assert survey.unseen.unexplained_ns < 0.1 * answered_ns
    assert {each.intrinsic for each in polls} == {POLLS[loop]}


# A server that has asked another one, and connected to it a second time, before its first client comes. Its client
# rests for half a second before ten requests, and after them.
HOLDS_CONNECTIONS = """
UPSTREAM = '''
import socket, threading, time
def serve(connection):
    while line := connection.recv(9):
        time.sleep(0.05)
        connection.sendall(line)
listener = socket.create_server(("127.0.0.1", 0))
print(listener.getsockname()[1], flush=True)
while True:
    threading.Thread(target=serve, args=listener.accept()[:1], daemon=True).start()
'''

VISIT = '''
import socket, sys, time
visit = socket.create_connection(("127.0.0.1", int(sys.argv[1])))
time.sleep(0.5)
'''

async def asks():
    above.write(b"x\\n")
    await answers.readline()

async def beats():
    while True:
        await timed(asks())
        await asyncio.sleep(0.1)

async def timed(work):
    global worked_ns
    begun_ns = time.monotonic_ns()
    await work
    worked_ns += time.monotonic_ns() - begun_ns

async def serve(reader, writer):
    visited.set()
    while line := await reader.readline():
        if sys.argv[2] != "beats":
            await timed(asks() if sys.argv[2] == "asks" else asyncio.sleep(0.05))
        writer.write(line)
    writer.close()
    gone.set()

async def main():
    global answers, above, gone, visited, worked_ns
    worked_ns, gone, visited = 0, asyncio.Event(), asyncio.Event()
    upstream = subprocess.Popen([sys.executable, "-S", "-c", UPSTREAM], stdout=subprocess.PIPE)
    port = int(upstream.stdout.readline())
    answers, above = await asyncio.open_connection("127.0.0.1", port)
    unused = await asyncio.open_connection("127.0.0.1", port)
    await timed(asks())
    server = await asyncio.start_server(serve, "127.0.0.1", 0)
    port = server.sockets[0].getsockname()[1]
    client = subprocess.Popen([sys.executable, "-S", "-c", VISIT + CLIENT, str(port)])
    await visited.wait()
    beating = asyncio.create_task(beats()) if sys.argv[2] == "beats" else None
    await gone.wait()
    print(worked_ns)
    client.wait()
    upstream.kill()
run(main())
"""


@pytest.mark.alone
@pytest.mark.parametrize("work", ["asks", "sleeps", "beats"])
@pytest.mark.parametrize("loop", ["asyncio", "uvloop"])
def test_a_server_waits_for_an_answer_of_others_only_where_one_is_due(traced, loop, work):  # noqa: F811
    need(*([loop] if loop != "asyncio" else []))
    done = traced(CLIENT + RUN + HOLDS_CONNECTIONS, loop, work, INTERPOSE_FOLLOW="off")
    worked_ns = int(done.stdout)
    polls = [each for each in Survey(Analysis(done.experiment)).calls if each.intrinsic == POLLS[loop]]
    waited_ns = {kind: sum(each.wall_ns for each in polls if each.kind == kind) for kind in ("net", "idle")}

    assert 0.5 * worked_ns < waited_ns["net"] < 1.1 * worked_ns
    assert waited_ns["idle"] > (1_000_000_000 - worked_ns if work == "beats" else 900_000_000)


# A client, with a listener that nobody uses, whose answer comes in two parts.
READS_PARTS = """
UPSTREAM = '''
import socket, time
listener = socket.create_server(("127.0.0.1", 0))
print(listener.getsockname()[1], flush=True)
connection, _ = listener.accept()
while connection.recv(9):
    connection.sendall(b"one\\\\n")
    time.sleep(0.3)
    connection.sendall(b"two\\\\n")
'''

async def main():
    unused = await asyncio.start_server(lambda *streams: None, "127.0.0.1", 0)
    await asyncio.sleep(0.01)
    upstream = subprocess.Popen([sys.executable, "-S", "-c", UPSTREAM], stdout=subprocess.PIPE)
    answers, above = await asyncio.open_connection("127.0.0.1", int(upstream.stdout.readline()))
    waited_ns = 0
    for _ in range(2):
        above.write(b"x\\n")
        await answers.readline()
        begun_ns = time.monotonic_ns()
        await answers.readline()
        waited_ns += time.monotonic_ns() - begun_ns
    print(waited_ns)
    upstream.kill()
run(main())
"""


@pytest.mark.alone
@pytest.mark.parametrize("loop", ["asyncio", "uvloop"])
def test_a_client_with_a_listener_that_nobody_uses_waits_for_the_rest_of_an_answer(traced, loop):  # noqa: F811
    need(*([loop] if loop != "asyncio" else []))
    done = traced(RUN + READS_PARTS, loop, INTERPOSE_FOLLOW="off")
    waited_ns = int(done.stdout)
    polls = [each for each in Survey(Analysis(done.experiment)).calls if each.intrinsic == POLLS[loop]]

    assert sum(each.wall_ns for each in polls if each.kind == "net") > 0.5 * waited_ns
    assert sum(each.wall_ns for each in polls if each.kind == "idle") < 0.25 * waited_ns


AWAITS_CHILD = """
async def main():
    child = await asyncio.create_subprocess_exec("sleep", "0.3")
    begun_ns = time.monotonic_ns()
    await child.wait()
    print(time.monotonic_ns() - begun_ns)
run(main())
"""


@pytest.mark.parametrize("loop", ["asyncio", "uvloop"])
def test_a_loop_that_awaits_a_child_waits_for_processes(traced, loop):  # noqa: F811
    need(*(["uvloop"] if loop == "uvloop" else []))
    done = traced(RUN + AWAITS_CHILD, loop, INTERPOSE_FOLLOW="off")
    polls = [each for each in Survey(Analysis(done.experiment)).calls if each.intrinsic == POLLS[loop]]
    waited_ns = {kind: sum(each.wall_ns for each in polls if each.kind == kind) for kind in ("process", "idle")}

    assert 0.9 * int(done.stdout) < waited_ns["process"] < 1.1 * int(done.stdout)
    assert waited_ns["idle"] < 50_000_000


BLOCKED = """
async def blocks():
    for _ in range(5):
        await asyncio.sleep(0.05)
        time.sleep(0.08)

async def others():
    for _ in range(60):
        await asyncio.sleep(0.005)

async def main():
    await asyncio.gather(blocks(), others(), others())
run(main())
"""


@pytest.mark.interpreter_lock
@pytest.mark.parametrize("loop", ["asyncio", "uvloop"])
def test_what_blocks_a_loop_is_told(traced, loop):  # noqa: F811
    need(*(["uvloop"] if loop == "uvloop" else []))
    first, *_ = found_in(Survey(Analysis(traced(RUN + BLOCKED, loop).experiment)))

    assert (first.rule, first.intrinsic, first.units) == ("blocked event loop", "time.sleep", 5)
    assert 0.9 * 400_000_000 < first.bound_ns < 1.2 * 400_000_000


def test_the_loop_is_as_before_when_recording_has_ended(traced):  # noqa: F811
    need("uvloop")
    done = traced(
        RUN
        + """
from interpose.timing import shims
async def main():
    await asyncio.sleep(0.01)
run(main())
print(shims.end())
run(main())
""",
        "uvloop",
    )

    assert done.stdout == "0\n"
    assert 1 <= len(done.events("uvloop.Loop.poll")) < 20


# The loop of a thread waits for an answer, the main thread's only for a timer. Then a thread serves without a loop.
APART = """
import threading
def asks():
    async def main():
        ours, theirs = socket.socketpair()
        server = await asyncio.start_server(lambda reader, writer: reader.read(1), "127.0.0.1", 0)
        reader, writer = await asyncio.open_connection(*server.sockets[0].getsockname())
        writer.write(b"x")
        asked.set()
        try:
            await asyncio.wait_for(reader.read(1), 0.5)
        except TimeoutError:
            pass
    run(main())

def serves(listener):
    connection, _ = listener.accept()
    connection.recv(1)
    time.sleep(0.5)

async def sleeps():
    if sys.argv[2] == "serves":
        listener = socket.create_server(("127.0.0.1", 0))
        threading.Thread(target=serves, args=[listener]).start()
        client = socket.create_connection(listener.getsockname())
        client.sendall(b"x")
    await asyncio.sleep(0.4)

asked = threading.Event()
if sys.argv[2] == "asks":
    threading.Thread(target=asks).start()
    asked.wait()
run(sleeps())
"""


@pytest.mark.parametrize("other", ["asks", "serves"])
def test_what_other_threads_wait_for_is_nothing_to_a_loop(traced, other):  # noqa: F811
    need("uvloop")
    done = traced(RUN + APART, "uvloop", other)
    (main,) = [each.number for each in done.experiment.founder.threads if each.record.main]
    founder = done.experiment.founder
    waited_ns = {"net": 0, "idle": 0}
    for event in done.events("uvloop.Loop.poll"):
        waited_ns[founder.intrinsic(event.intrinsic).kind] += event.wall_ns if event.thread == main else 0

    assert waited_ns["net"] < 50_000_000
    assert waited_ns["idle"] > 350_000_000


STOPPED = """
import threading, interpose
async def main():
    while not over:
        await asyncio.sleep(0)
over = []
threads = [threading.Thread(target=lambda: run(main())) for _ in range(2)]
for each in threads:
    each.start()
time.sleep(0.05)
interpose.stop_process()
time.sleep(0.02)
over.append(1)
for each in threads:
    each.join()
"""


def test_recording_may_end_while_loops_run(traced):  # noqa: F811
    need("uvloop")
    for _ in range(8):
        assert traced(RUN + STOPPED, "uvloop").returncode == 0


STARTS = """
import asyncio, os, sys
async def main():
    words = {
        "no site": [sys.executable, "-S", "-c", "import time; time.sleep(0.01); raise SystemExit(3)"],
        "other": ["sh", "-c", "kill -9 $$"],
        "missing": ["/no/such/program"],
    }
    for name, given in words.items():
        for env in (None, {"PATH": os.environ["PATH"]}):
            try:
                child = await asyncio.create_subprocess_exec(*given, env=env)
                print(name, await child.wait())
            except FileNotFoundError:
                print(name, "not found")
run(main())
print(sorted(each for each in os.environ if each.startswith(("INTERPOSE", "LD_")) and each != "INTERPOSE_DIR"))
"""


def test_children_of_a_loop_in_c_are_known_with_their_programs_and_ends(traced):  # noqa: F811
    need("uvloop")
    done = traced(RUN + STARTS, "uvloop")

    told = ["no site 3", "no site 3", "other -9", "other -9", "missing not found", "missing not found", "['INTERPOSE']"]
    assert (done.returncode, done.stderr, done.stdout.splitlines()) == (0, "", told)
    (founder,) = tree(done.experiment)
    became = [(each.ending, each.below) for each in sorted(founder.below, key=lambda node: node.start_ns)]
    assert [(end.state, end.status) for end, _ in became[4:]] == [("exit", 127)] * 2
    assert {end.state for end, _ in became[:4]} == {"exec"}
    first, second, *others = [node for _, (node,) in became[:4]]
    for node in (first, second):
        assert (node.is_followed, node.ending.state, node.ending.status) == (True, "exit", 3)
        assert "time.sleep" in [node.process.intrinsic(each.intrinsic).name for each in events_of(node.process)]
    for node in others:
        assert (os.path.basename(node.child.command), node.child.why) == ("sh", "not Python")
        assert (node.ending.state, node.ending.signal) == ("killed", 9)
    assert {each.started_as.is_exact for each in done.experiment.founder.descendants} == {True}
