"""gRPC: an RPC is a transaction of the server and a call of the kind net of the client; threads without work are idle.

The programs measure each request themselves: in its handler, and from the client's call until the server is done.
"""

import json
import subprocess
import sys
from collections import defaultdict

import pytest

from interpose.analysis.analysis import Analysis
from interpose.analysis.transactions.response_times import transactions

pytestmark = [pytest.mark.packages, pytest.mark.xdist_group("servers")]

HANDLERS = """
import asyncio, json, sys, threading, time
from concurrent import futures
import grpc
IS_REGISTERED = sys.argv[1] == "registered"
OF_CLIENT = {"_registered_method": True} if IS_REGISTERED else {}
handled, took, said = [], [], []
def note(name, begun, notes=handled):
    notes.append([name, time.perf_counter_ns() - begun])
def add_handlers(server):
    handlers = {
        "Get": grpc.unary_unary_rpc_method_handler(get),
        "List": grpc.unary_stream_rpc_method_handler(listed),
        "Add": grpc.stream_unary_rpc_method_handler(add),
        "Fail": grpc.unary_unary_rpc_method_handler(fail),
        "Raise": grpc.unary_unary_rpc_method_handler(fault),
        "Hold": grpc.unary_unary_rpc_method_handler(hold),
    }
    server.add_generic_rpc_handlers((grpc.method_handlers_generic_handler("shop.Shop", handlers),))
    if IS_REGISTERED:
        server.add_registered_method_handlers("shop.Shop", handlers)
    return server.add_insecure_port("127.0.0.1:0")
def what_was_said(error):
    return [error.code().name, error.details(), [list(each) for each in error.trailing_metadata() or ()]]
def the_end():
    print(json.dumps(said))
    json.dump([handled, took], open("truth.json", "w"))
"""
SYNCHRONOUS = HANDLERS + """
def get(request, context):
    begun = time.perf_counter_ns()
    context.set_trailing_metadata(dict(context.invocation_metadata()).get("asks", "") and (("answers", "yes"),))
    time.sleep(0.02)
    note("/shop.Shop/Get", begun)
    return request
def listed(request, context):
    begun = time.perf_counter_ns()
    for _ in range(3):
        time.sleep(0.01)
        yield request
    note("/shop.Shop/List", begun)
def add(requests, context):
    begun = time.perf_counter_ns()
    total = b"".join(requests)
    note("/shop.Shop/Add", begun)
    return total
def fail(request, context):
    context.abort(grpc.StatusCode.NOT_FOUND, "none")
def fault(request, context):
    raise ValueError("wrong")
def hold(request, context):
    gone = threading.Event()
    if context.add_callback(gone.set):
        gone.wait()
    return request
def timed(name, call):
    begun = time.perf_counter_ns()
    try:
        said.append(call())
    except grpc.RpcError as error:
        said.append(what_was_said(error))
    pool.submit(int).result()  # the only worker is done
    note(name, begun, took)
pool = futures.ThreadPoolExecutor(1)
server = grpc.server(pool)
port = add_handlers(server)
server.start()
def ask():
    with grpc.insecure_channel(f"127.0.0.1:{port}") as channel:
        grpc.channel_ready_future(channel).result(30)
        one = lambda name: channel.unary_unary(f"/shop.Shop/{name}", **OF_CLIENT)
        for _ in range(4):
            timed("/shop.Shop/Get", lambda: one("Get")(b"hush").decode())
            stream = channel.unary_stream("/shop.Shop/List", **OF_CLIENT)
            timed("/shop.Shop/List", lambda: b" ".join(stream(b"hush")).decode())
        adds = channel.stream_unary("/shop.Shop/Add", **OF_CLIENT)
        timed("/shop.Shop/Add", lambda: adds(iter([b"h", b"ush"])).decode())
        answer, call = one("Get").with_call(b"hush", metadata=(("asks", "yes"),))
        pool.submit(int).result()
        said.append([list(each) for each in call.trailing_metadata()])
        timed("/shop.Shop/Fail", lambda: one("Fail")(b"hush"))
        timed("/shop.Shop/Raise", lambda: one("Raise")(b"hush"))
        timed("late", lambda: one("Hold")(b"hush", timeout=0.005))
        future = one("Hold").future(b"hush")
        said.append([future.cancel(), future.cancelled()])
        pool.submit(int).result()
    server.stop(None)
client = threading.Thread(target=ask)
client.start()
server.wait_for_termination()
client.join()
the_end()
"""
ASYNCHRONOUS = HANDLERS + """
async def get(request, context):
    begun = time.perf_counter_ns()
    context.set_trailing_metadata(dict(context.invocation_metadata()).get("asks", "") and (("answers", "yes"),))
    await asyncio.sleep(0.02)
    note("/shop.Shop/Get", begun)
    return request
async def listed(request, context):
    begun = time.perf_counter_ns()
    for _ in range(3):
        await asyncio.sleep(0.01)
        yield request
    note("/shop.Shop/List", begun)
async def add(requests, context):
    begun = time.perf_counter_ns()
    total = b"".join([each async for each in requests])
    note("/shop.Shop/Add", begun)
    return total
async def fail(request, context):
    await context.abort(grpc.StatusCode.NOT_FOUND, "none")
async def fault(request, context):
    raise ValueError("wrong")
async def hold(request, context):
    await asyncio.Event().wait()
async def until_all_are_answered():
    while any(each.get_name().startswith("HandleExceptions") for each in asyncio.all_tasks()):
        await asyncio.sleep(0)
async def timed(name, call):
    begun = time.perf_counter_ns()
    try:
        said.append(await call())
    except grpc.RpcError as error:
        said.append(what_was_said(error)[:2])
    await until_all_are_answered()
    note(name, begun, took)
async def main():
    server = grpc.aio.server()
    port = add_handlers(server)
    await server.start()
    async with grpc.aio.insecure_channel(f"127.0.0.1:{port}") as channel:
        await channel.channel_ready()
        async def one(name, **more):
            return (await channel.unary_unary(f"/shop.Shop/{name}", **OF_CLIENT)(b"hush", **more)).decode()
        async def several():
            answers = channel.unary_stream("/shop.Shop/List", **OF_CLIENT)(b"hush")
            return b" ".join([each async for each in answers]).decode()
        async def added():
            return (await channel.stream_unary("/shop.Shop/Add", **OF_CLIENT)(iter([b"h", b"ush"]))).decode()
        for _ in range(4):
            await timed("/shop.Shop/Get", lambda: one("Get"))
            await timed("/shop.Shop/List", several)
        await timed("/shop.Shop/Add", added)
        asked = channel.unary_unary("/shop.Shop/Get", **OF_CLIENT)(b"hush", metadata=(("asks", "yes"),))
        said.append([list(each) for each in await asked.trailing_metadata()])
        await until_all_are_answered()
        await timed("/shop.Shop/Fail", lambda: one("Fail"))
        await timed("/shop.Shop/Raise", lambda: one("Raise"))
        await timed("late", lambda: one("Hold", timeout=0.005))
        cancelled = channel.unary_unary("/shop.Shop/Get", **OF_CLIENT)(b"hush")
        said.append(cancelled.cancel())
        try:
            await cancelled
        except asyncio.CancelledError:
            said.append("cancelled")
        await until_all_are_answered()
    await server.stop(None)
asyncio.run(main())
the_end()
"""
PROGRAMS = {"threads": SYNCHRONOUS, "asyncio": ASYNCHRONOUS}
SERVED = {"threads": ("grpc.Server.unary", "grpc.Server.stream"), "asyncio": ("grpc.aio.Server",)}
# Each stands for one request, or for each message of one.
ASKED = {
    "threads": ("grpc.UnaryUnary", "grpc.StreamUnary", "grpc.Call._next"),
    "asyncio": ("grpc.aio.UnaryUnary", "grpc.aio.StreamUnary", "grpc.aio.Call.read"),
}
IDLE = ("grpc.Server.wait_for_termination", "grpc.CompletionQueue.poll", "grpc.Channel.next_call_event")


def by_name(truth):
    found = defaultdict(list)
    for name, wall_ns in truth:
        found[name].append(wall_ns)
    return found


@pytest.fixture(params=["generic", "registered"])
def registers(request):
    return request.param


@pytest.fixture(params=PROGRAMS)
def way(request):
    return request.param


@pytest.fixture
def done(traced, way, registers):
    pytest.importorskip("grpc")
    return traced(PROGRAMS[way], registers)


def test_a_grpc_program_does_under_the_tracer_what_it_does_without(done, way, registers, tmp_path):
    program = tmp_path / "plain.py"
    program.write_text(PROGRAMS[way])
    plain = subprocess.run(
        [sys.executable, program, registers], capture_output=True, text=True, cwd=tmp_path, timeout=120
    )

    assert (done.returncode, done.stdout) == (plain.returncode, plain.stdout) == (0, plain.stdout)
    assert done.stderr.count("ValueError: wrong") == plain.stderr.count("ValueError: wrong")


def test_an_rpc_is_a_transaction_that_takes_as_long_as_its_handler_and_its_client_measure(done, way):
    handled, took = [by_name(each) for each in json.loads((done.directory / "truth.json").read_text())]
    founder = done.experiment.founder
    served = by_name((founder.string(each.detail), each.wall_ns) for name in SERVED[way] for each in done.events(name))
    rows = {row.name: row for row in transactions(Analysis(done.experiment)).rows}

    for name in ("/shop.Shop/Get", "/shop.Shop/List", "/shop.Shop/Add", "/shop.Shop/Fail", "/shop.Shop/Raise"):
        assert len(served[name]) >= len(took[name])
        assert all(wall_ns >= own_ns for wall_ns, own_ns in zip(served[name], handled[name], strict=False)), name
        assert all(wall_ns <= own_ns for wall_ns, own_ns in zip(served[name], took[name], strict=False)), name
        assert rows[name].sums.calls == len(served[name])
        assert rows[name].response_ns == sum(served[name])
    assert all(name.startswith((".", "/shop.Shop/")) for name in rows)


def test_what_a_client_of_grpc_waits_for_is_net(done, way):
    handled, took = [by_name(each) for each in json.loads((done.directory / "truth.json").read_text())]
    founder = done.experiment.founder
    unary, adding, reading = [list(done.events(name)) for name in ASKED[way]]

    assert {founder.intrinsic(each.intrinsic).kind for each in (*unary, *adding, *reading)} == {"net"}
    for each, own_ns, all_ns in zip(unary, handled["/shop.Shop/Get"], took["/shop.Shop/Get"], strict=False):
        assert own_ns <= each.wall_ns <= all_ns
    assert len(reading) == 4 * 4  # three messages, and the end
    assert sum(each.wall_ns for each in reading) <= sum(took["/shop.Shop/List"])
    assert adding[0].wall_ns <= took["/shop.Shop/Add"][0]
    assert kinds_of_waits_in(done, reading) <= {"net"}


def kinds_of_waits_in(done, calls):
    """The kinds of the waits for conditions and locks by which these calls wait."""
    within, founder = {(each.thread, each.call) for each in calls}, done.experiment.founder
    waits = [each for each in done.events("threading.Condition.wait") if (each.thread, each.parent) in within]
    of_waits = {(each.thread, each.call) for each in waits}
    waits += [each for each in done.events("threading.Lock.acquire") if (each.thread, each.parent) in of_waits]
    return {founder.intrinsic(each.intrinsic).kind for each in waits}


CHATS = """
import asyncio, json, time
from concurrent import futures
import grpc
waited_ns = []
def chat(requests, context):
    begun = time.monotonic_ns()
    for each in requests:
        waited_ns.append(time.monotonic_ns() - begun)
        yield each
        begun = time.monotonic_ns()
    waited_ns.append(time.monotonic_ns() - begun)
async def chat_of_task(requests, context):
    begun = time.monotonic_ns()
    async for each in requests:
        waited_ns.append(time.monotonic_ns() - begun)
        yield each
        begun = time.monotonic_ns()
    waited_ns.append(time.monotonic_ns() - begun)
def messages():
    for number in range(3):
        yield b"hush"
        time.sleep(0.2)
def talk(port):
    with grpc.insecure_channel(f"127.0.0.1:{port}") as channel:
        list(channel.stream_stream("/shop.Shop/Chat")(messages()))
def listening(server, chat):
    handlers = {"Chat": grpc.stream_stream_rpc_method_handler(chat)}
    server.add_generic_rpc_handlers((grpc.method_handlers_generic_handler("shop.Shop", handlers),))
    return server.add_insecure_port("127.0.0.1:0")
def serve():
    server = grpc.server(futures.ThreadPoolExecutor(1))
    port = listening(server, chat)
    server.start()
    talk(port)
    server.stop(None).wait()
async def serve_by_tasks():
    server = grpc.aio.server()
    port = listening(server, chat_of_task)
    await server.start()
    await asyncio.to_thread(talk, port)
    await server.stop(None)
{serves}
print(json.dumps(waited_ns))
"""
CHATTING = {"threads": "serve()", "asyncio": "asyncio.run(serve_by_tasks())"}
WAITS_WITHIN = {"threads": ("grpc.Server.receive", "threading.Condition.wait"), "asyncio": ("select.epoll.poll",)}


def test_a_server_whose_client_is_silent_waits_for_work(traced, way):
    pytest.importorskip("grpc")
    done = traced(CHATS.replace("{serves}", CHATTING[way]))
    waited_ns = json.loads(done.stdout)
    founder = done.experiment.founder
    (served,) = (each for name in SERVED[way] for each in done.events(name))
    walls_ns = defaultdict(int)
    for each in (each for name in WAITS_WITHIN[way] for each in done.events(name)):
        if each.thread == served.thread:
            walls_ns[founder.intrinsic(each.intrinsic).kind] += each.wall_ns

    assert len(waited_ns) == 4
    assert walls_ns["net"] + walls_ns["sync"] < sum(waited_ns) / 2 < walls_ns["idle"]
    received = done.events("grpc.Server.receive")
    assert len(received) == (4 if way == "threads" else 0)
    assert all(each.wall_ns <= own_ns for each, own_ns in zip(received, waited_ns, strict=False))


def test_threads_of_grpc_without_work_are_idle(traced):
    pytest.importorskip("grpc")
    done = traced(SYNCHRONOUS, "generic")
    founder = done.experiment.founder

    for name in IDLE:
        assert {founder.intrinsic(each.intrinsic).kind for each in done.events(name)} == {"idle"}, name
