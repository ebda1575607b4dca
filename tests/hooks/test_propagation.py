"""Requests sent with INTERPOSE_PROPAGATE: the header names the trace and the call; all else is as without it."""

import json

import pytest

from interpose.exports.identities import seed_of, span_of, trace_of

TRACE, SPAN = "0af7651916cd43dd8448eb211c80319c", "b7ad6b7169203331"
CAME_WITH = f"00-{TRACE}-{SPAN}-01"

# A server on plain sockets keeps the head of each request as it came.
PROGRAM = """
import json, socket, sys, threading
import interpose
heads = []
server = socket.create_server(("127.0.0.1", 0))
port = server.getsockname()[1]
def answer(client):
    with client:
        data = b""
        while b"\\r\\n\\r\\n" not in data:
            data += client.recv(10_000)
        heads.append(data.decode())
        client.sendall(b"HTTP/1.1 200 OK\\r\\nContent-Length: 2\\r\\nConnection: close\\r\\n\\r\\nok")
def serve():
    while True:
        answer(server.accept()[0])
threading.Thread(target=serve, daemon=True).start()
def url():
    return f"http://127.0.0.1:{port}/x"
"""
CLIENTS = {
    "http.client": """
import http.client
def get(headers):
    client = http.client.HTTPConnection("127.0.0.1", port)
    client.request("GET", "/x", headers=headers)
    assert client.getresponse().read() == b"ok"
    client.close()
""",
    "urllib": """
import urllib.request
def get(headers):
    with urllib.request.urlopen(urllib.request.Request(url(), headers=headers)) as answer:
        assert answer.read() == b"ok"
""",
    "requests": """
import requests
def get(headers):
    answer = requests.get(url(), headers=headers)
    assert answer.text == "ok"
    assert "traceparent" not in {name.lower() for name in answer.request.headers} - {name.lower() for name in headers}
""",
    "httpx": """
import httpx
def get(headers):
    answer = httpx.get(url(), headers=headers)
    assert answer.text == "ok"
    assert ("traceparent" in answer.request.headers) == ("traceparent" in {name.lower() for name in headers})
""",
    "httpx awaited": """
import asyncio, httpx
def get(headers):
    async def main():
        async with httpx.AsyncClient() as client:
            assert (await client.get(url(), headers=headers)).text == "ok"
    asyncio.run(main())
""",
    "aiohttp": """
import asyncio, aiohttp
def get(headers):
    async def main():
        async with aiohttp.ClientSession() as session:
            async with session.get(url(), headers=headers) as answer:
                assert await answer.text() == "ok"
    asyncio.run(main())
""",
}
OUTGOING = {
    "http.client": "http.client.HTTPConnection.request",
    "urllib": "urllib.request.urlopen",
    "requests": "urllib3.HTTPConnectionPool.urlopen",
    "httpx": "httpx.Client.send",
    "httpx awaited": "httpx.AsyncClient.send",
    "aiohttp": "aiohttp.ClientSession.request",
}
ASKING = """
given = {"X-Mine": "1"}
get(given)
with interpose.transaction("order"):
    get(given)
theirs = {"TraceParent": "00-11111111111111111111111111111111-2222222222222222-00"}
get(theirs)
assert given == {"X-Mine": "1"} and list(theirs) == ["TraceParent"]
print(json.dumps(heads))
"""
PACKAGES = {"requests": "requests", "httpx": "httpx", "httpx awaited": "httpx", "aiohttp": "aiohttp"}
CASES = [pytest.param(name, marks=[pytest.mark.packages] if name in PACKAGES else []) for name in CLIENTS]


def sent(head, header="traceparent"):
    """The contexts that a request was sent with."""
    lines = [line.partition(":") for line in head.split("\r\n")[1:] if line]
    return [value.strip() for name, _, value in lines if name.lower() == header]


def without_context(head):
    lines = head.split("\r\n")
    return [line for line in lines if not line.startswith(("traceparent:", "Host:"))]


# A WSGI application that asks another service, for each of the given headers and values.
SERVING = """
import io
from wsgiref.handlers import SimpleHandler
def application(environ, start_response):
    get({})
    start_response("200 OK", [])
    return [b"ok"]
def served(**headers):
    environ = {"REQUEST_METHOD": "GET", "PATH_INFO": "/x", "SERVER_PROTOCOL": "HTTP/1.0", **headers}
    SimpleHandler(io.BytesIO(), io.BytesIO(), sys.stderr, environ).run(application)
"""


@pytest.mark.parametrize("client", CASES)
def test_a_request_names_its_trace_and_the_call_that_makes_it(traced, client):
    pytest.importorskip(PACKAGES.get(client, "http.client"))

    done = traced(PROGRAM + CLIENTS[client] + ASKING, INTERPOSE_PROPAGATE="1").ended_well()

    outside, inside, theirs = (sent(head) for head in json.loads(done.stdout))
    founder = done.experiment.founder
    seed, whole = seed_of(founder.log), trace_of(seed_of(founder.log))
    first, second, _ = done.events(OUTGOING[client])
    [order] = done.events("interpose.transaction")
    assert outside == [f"00-{whole}-{span_of(seed, first.thread, first.call)}-01"]
    trace = whole[:16] + span_of(seed, order.thread, order.call)
    assert inside == [f"00-{trace}-{span_of(seed, second.thread, second.call)}-01"]
    assert theirs == ["00-11111111111111111111111111111111-2222222222222222-00"]
    assert not [each for each in done.events() if founder.intrinsic(each.intrinsic).name.startswith("interpose.prop")]


@pytest.mark.parametrize("client", CASES)
def test_nothing_else_changes_and_nothing_is_there_without_the_setting(traced, client, tmp_path):
    pytest.importorskip(PACKAGES.get(client, "http.client"))
    program = PROGRAM + CLIENTS[client] + ASKING + """
assert not [name for name in sys.modules if "propagation" in name]
"""
    with_it = traced(PROGRAM + CLIENTS[client] + ASKING, INTERPOSE_PROPAGATE="1")
    without = traced(program)
    bare = traced(program, INTERPOSE="0")

    assert (without.returncode, without.stderr, bare.returncode, bare.stderr) == (0, "", 0, "")
    heads = [[without_context(head) for head in json.loads(done.stdout)] for done in (with_it, without, bare)]
    assert heads[0] == heads[1] == heads[2]
    assert [len(sent(head)) for head in json.loads(without.stdout)] == [0, 0, 1]


def test_what_a_transaction_asks_in_another_thread_is_in_its_trace(traced):
    done = traced(
        PROGRAM
        + CLIENTS["http.client"]
        + """
import contextvars
from concurrent.futures import ThreadPoolExecutor
with ThreadPoolExecutor(1) as pool:
    with interpose.transaction("order"):
        pool.submit(contextvars.copy_context().run, get, {}).result()
    pool.submit(get, {}).result()
print(json.dumps(heads))
""",
        INTERPOSE_PROPAGATE="1",
    ).ended_well()

    inside, outside = (sent(head) for head in json.loads(done.stdout))
    seed = seed_of(done.experiment.founder.log)
    first, second = done.events(OUTGOING["http.client"])
    [order] = done.events("interpose.transaction")
    trace = trace_of(seed)[:16] + span_of(seed, order.thread, order.call)
    assert inside == [f"00-{trace}-{span_of(seed, first.thread, first.call)}-01"]
    assert outside == [f"00-{trace_of(seed)}-{span_of(seed, second.thread, second.call)}-01"]


def test_within_a_served_request_its_trace_is_continued(traced):
    done = traced(
        PROGRAM
        + CLIENTS["http.client"]
        + SERVING
        + f"""
for header in ({CAME_WITH!r}, {CAME_WITH[:-1] + "0"!r}, {CAME_WITH[:-2] + "ff"!r}):
    served(HTTP_TRACEPARENT=header)
print(json.dumps(heads))
""",
        INTERPOSE_PROPAGATE="1",
    ).ended_well()

    found = [context for head in json.loads(done.stdout) for context in sent(head)]
    calls = done.events("http.client.HTTPConnection.request")
    seed = seed_of(done.experiment.founder.log)
    spans = [span_of(seed, each.thread, each.call) for each in calls]
    assert found == [f"00-{TRACE}-{span}-{flags}" for span, flags in zip(spans, ("01", "00", "03"), strict=True)]


def test_a_descendant_sends_the_trace_of_the_experiment(traced):
    done = traced(
        """
import subprocess, sys
open("child.py", "w").write(sys.argv[1])
subprocess.run([sys.executable, "child.py"], check=True)
""",
        PROGRAM + CLIENTS["http.client"] + "get({})\nprint(json.dumps(heads))\n",
        INTERPOSE_PROPAGATE="1",
        TRACEPARENT=CAME_WITH,
    ).ended_well()

    _, child = done.experiment.processes
    [call] = done.events("http.client.HTTPConnection.request", process=child)
    [context] = [context for head in json.loads(done.stdout) for context in sent(head)]
    assert context == f"00-{TRACE}-{span_of(seed_of(child.log), call.thread, call.call)}-01"


def test_a_transaction_that_is_not_sampled_passes_on_what_it_came_with(traced):
    done = traced(
        PROGRAM
        + CLIENTS["http.client"]
        + SERVING
        + f"""
for number in range(40):
    served(**({{"HTTP_TRACEPARENT": {CAME_WITH!r}, "HTTP_TRACESTATE": "a=1"}} if number % 2 else {{}}))
print(json.dumps(heads))
""",
        INTERPOSE_PROPAGATE="1",
        INTERPOSE_TRANSACTIONS="1/1000000",
    ).ended_well()

    assert [sent(head) for head in json.loads(done.stdout)] == [[], [CAME_WITH]] * 20
    assert [sent(head, "tracestate") for head in json.loads(done.stdout)] == [[], ["a=1"]] * 20


@pytest.mark.parametrize("client", CASES)
def test_the_trace_state_of_a_request_is_passed_on_where_opentelemetry_reads_it(traced, client):
    pytest.importorskip(PACKAGES.get(client, "http.client"))
    propagation = pytest.importorskip("opentelemetry.trace.propagation.tracecontext")
    trace = pytest.importorskip("opentelemetry.trace")

    done = traced(
        PROGRAM
        + CLIENTS[client]
        + SERVING
        + f"""
served(HTTP_TRACEPARENT={CAME_WITH!r}, HTTP_TRACESTATE="congo=t61rcWkgMzE, rojo=00f067aa0ba902b7")
print(json.dumps(heads))
""",
        INTERPOSE_PROPAGATE="1",
    ).ended_well()

    [head] = json.loads(done.stdout)
    carrier = {name: sent(head, name) for name in ("traceparent", "tracestate")}
    context = propagation.TraceContextTextMapPropagator().extract(carrier)
    read = trace.get_current_span(context).get_span_context()
    assert f"{read.trace_id:032x}" == TRACE and f"{read.span_id:016x}" != SPAN
    assert list(read.trace_state.items()) == [("congo", "t61rcWkgMzE"), ("rojo", "00f067aa0ba902b7")]
    for file in done.directory.rglob("*"):
        assert not file.is_file() or file.name == "program.py" or b"t61rcWkgMzE" not in file.read_bytes()


def test_a_trace_state_is_passed_on_with_its_trace_alone(traced):
    done = traced(
        PROGRAM
        + CLIENTS["http.client"]
        + SERVING
        + f"""
get({{}})
served(HTTP_TRACESTATE="a=1")
served(HTTP_TRACEPARENT="00-1", HTTP_TRACESTATE="a=2")
served(HTTP_TRACEPARENT={CAME_WITH!r})
served(HTTP_TRACEPARENT={CAME_WITH!r}, HTTP_TRACESTATE="A=3")
served(HTTP_TRACEPARENT={CAME_WITH!r}, HTTP_TRACESTATE=",".join("k%d=%s" % (n, "v" * 70) for n in range(20)))
served(HTTP_TRACEPARENT={CAME_WITH!r}, HTTP_TRACESTATE="a=4")
get({{"tracestate": "mine=1"}})
get({{}})
print(json.dumps(heads))
""",
        INTERPOSE_PROPAGATE="1",
        TRACEPARENT=CAME_WITH,
        TRACESTATE="outer=1",
    ).ended_well()

    found = [sent(head, "tracestate") for head in json.loads(done.stdout)]
    many = ",".join(f"k{n}=" + "v" * 70 for n in range(6))
    assert len(many) <= 512 < len(f"{many},k6=" + "v" * 70)
    assert found == [["outer=1"], [], [], [], [], [many], ["a=4"], ["mine=1"], ["outer=1"]]
    assert [len(sent(head)) for head in json.loads(done.stdout)] == [1, 1, 1, 1, 1, 1, 1, 0, 1]


def test_lines_of_a_trace_state_are_one_list(traced):
    done = traced(
        PROGRAM
        + CLIENTS["http.client"]
        + f"""
from http.server import BaseHTTPRequestHandler, HTTPServer
class Handler(BaseHTTPRequestHandler):
    def do_GET(self):
        get({{}})
        self.send_response(204)
        self.end_headers()
    def log_message(self, *words):
        pass
with HTTPServer(("127.0.0.1", 0), Handler) as front, socket.create_connection(front.server_address) as asking:
    lines = "GET / HTTP/1.0", "TraceParent: {CAME_WITH}", "TraceState: a=1", "X: y", "tracestate: b=2 ,c=3", "", ""
    asking.sendall("\\r\\n".join(lines).encode())
    front.handle_request()
print(json.dumps(heads))
""",
        INTERPOSE_PROPAGATE="1",
    ).ended_well()

    assert [sent(head, "tracestate") for head in json.loads(done.stdout)] == [["a=1,b=2,c=3"]]


@pytest.mark.packages
def test_awaited_requests_that_overlap_keep_their_trace_states(traced):
    pytest.importorskip("uvicorn")
    done = traced(
        PROGRAM
        + CLIENTS["http.client"]
        + f"""
import asyncio, uvicorn
async def application(scope, receive, send):
    await asyncio.sleep(0.1)
    get({{}})
    await send({{"type": "http.response.start", "status": 204, "headers": []}})
    await send({{"type": "http.response.body", "body": b""}})
async def ask(to, number):
    reader, writer = await asyncio.open_connection("127.0.0.1", to)
    traced = f"TraceParent: 00-{TRACE[:-1]}{{number}}-{SPAN}-01", f"TraceState: n={{number}}"
    writer.write("\\r\\n".join(("GET / HTTP/1.1", "Host: x", *traced, "Connection: close", "", "")).encode())
    assert b"204" in await reader.read()
    writer.close()
async def main():
    with socket.socket() as found:
        found.bind(("127.0.0.1", 0))
        to = found.getsockname()[1]
    front = uvicorn.Server(uvicorn.Config(application, port=to, log_level="critical", lifespan="off"))
    serving = asyncio.create_task(front.serve())
    while not front.started:
        await asyncio.sleep(0.01)
    await asyncio.gather(*[ask(to, number) for number in range(5)])
    front.should_exit = True
    await serving
asyncio.run(main())
print(json.dumps(heads))
""",
        INTERPOSE_PROPAGATE="1",
    ).ended_well()

    found = [(sent(head)[0][34], sent(head, "tracestate")) for head in json.loads(done.stdout)]
    assert sorted(found) == [(str(number), [f"n={number}"]) for number in range(5)]
