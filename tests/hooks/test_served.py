"""Servers and workers: each request, and each task, is one transaction, from its arrival to its answer."""

import json
import sys

import pytest
from tracing import Traced, run_in

from interpose.analysis.analysis import Analysis
from interpose.analysis.calls.profile import profile
from interpose.analysis.transactions.response_times import transactions

READS_TWICE_NS = 50e6  # between a clock of ours and one of the program's, on a machine that does other things
CLOCKS_DIFFER_NS = 1e6  # between a clock that is set and one that is not

# What every program under test has: a server asks `work` for an answer, a client keeps when it asked and was answered.
COMMON = """
    import http.client, json, os, socket, sqlite3, subprocess, sys, threading, time
    said = open("said", "a", buffering=1)
    def say(**what):
        said.write(json.dumps(what) + "\\n")
    def work(path, seconds=0.03):
        begun = time.monotonic_ns()
        sqlite3.connect(":memory:").execute("select 1")
        time.sleep(seconds)
        say(served=path, begun=begun, ended=time.monotonic_ns())
    def ask(client, path):
        begun = time.monotonic_ns()
        client.request("GET", path + "?token=hush")
        body = client.getresponse().read()
        say(asked=path, begun=begun, ended=time.monotonic_ns())
        return body
    def free_port():
        with socket.socket() as found:
            found.bind(("127.0.0.1", 0))
            return found.getsockname()[1]
    def connected(port):
        for _ in range(400):
            try:
                client = http.client.HTTPConnection("127.0.0.1", port, timeout=20)
                client.connect()
                return client
            except ConnectionRefusedError:
                time.sleep(0.05)
"""


def lines(done):
    return [json.loads(line) for line in (done.directory / "said").read_text().splitlines()]


class Served:
    """What was recorded of the transactions of an experiment, in all its processes."""

    def __init__(self, done):
        self.done = done
        self.outermost, self.inside, self.idle = [], [], []
        for process in done.experiment.processes:
            self._look(process)
        self.outermost.sort(key=lambda each: each[1].start_ns)

    def _look(self, process):
        events = self.done.events(process=process)
        by_number = {(event.thread, event.call): event for event in events}
        for event in events:
            chain = [event]
            while outer := by_number.get((event.thread, chain[-1].parent)):
                chain.append(outer)
            are = [each for each in chain if process.intrinsic(each.intrinsic).transaction == "is"]
            intrinsic = process.intrinsic(event.intrinsic)
            if are == [event]:
                self.outermost.append((process, event))
            if intrinsic.kind in ("db", "sleep") and intrinsic.name != "asyncio.sleep" and are:
                self.inside.append((intrinsic.kind, process, are[-1], [process.string(each.detail) for each in are]))
            if intrinsic.kind == "idle" and are:
                self.idle.append((intrinsic.name, process.string(are[-1].detail)))

    def details(self):
        return [process.string(event.detail) for process, event in self.outermost]

    def check(self, paths, names):
        """Each request of `paths` is one, has its sleep and its database calls inside, and lies where client and
        handler say; idle time is in none. `names`: what the innermost of the calls that stand for it are called."""
        said = lines(self.done)
        asked = {each["asked"]: each for each in said if "asked" in each}
        served = sorted((each for each in said if "served" in each), key=lambda each: each["begun"])
        assert len(self.outermost) == len(served) == len(paths), self.details()
        for (_, event), handler in zip(self.outermost, served, strict=True):
            client = asked[handler["served"]]
            end_ns = event.start_ns + event.wall_ns
            assert client["begun"] <= event.start_ns <= handler["begun"]
            assert handler["ended"] <= end_ns <= client["ended"] + READS_TWICE_NS
            assert event.wall_ns >= event.inner_wall_ns
            kinds = [kind for kind, _, each, _ in self.inside if each is event]
            assert kinds.count("sleep") == 1
            assert kinds.count("db") >= 1
        innermost = sorted(details[0] for kind, _, _, details in self.inside if kind == "sleep")
        assert innermost == sorted(names)
        assert self.idle == []
        assert not any("hush" in detail for detail in self.details())


def test_a_kept_connection_of_http_server_has_one_for_each_request(traced):
    done = traced(COMMON + """
    from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"
        def do_GET(self):
            work(self.path.partition("?")[0])
            self.send_response(200)
            self.send_header("Content-Length", "2")
            self.end_headers()
            self.wfile.write(b"ok")
        def log_message(self, *arguments):
            pass
    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    serving = threading.Thread(target=server.serve_forever)
    serving.start()
    client = connected(server.server_port)
    for number in range(3):
        time.sleep(0.1)
        ask(client, f"/orders/{number}")
    client.close()
    for path in ("/first", "/second"):
        say(asked=path, begun=time.monotonic_ns(), ended=time.monotonic_ns() + 10**9)
    with socket.create_connection(("127.0.0.1", server.server_port)) as pipelined:
        pipelined.sendall(b"GET /first HTTP/1.1\\r\\nHost: x\\r\\n\\r\\nGET /second HTTP/1.1\\r\\nHost: x\\r\\n\\r\\n")
        answered = b""
        while answered.count(b"\\r\\n\\r\\nok") < 2:
            answered += pipelined.recv(1000)
    server.shutdown()
    server.server_close()
    """).ended_well()
    served = Served(done)
    paths = ["/orders/0", "/orders/1", "/orders/2", "/first", "/second"]

    assert served.details() == [f"GET {path}" for path in paths]
    served.check(paths, [f"GET {path}" for path in paths])
    last, first = served.outermost[-1][1], served.outermost[-2][1]
    assert first.start_ns + first.wall_ns <= last.start_ns  # the second waited to be read


def test_a_request_that_cannot_be_understood_has_no_name_and_one_that_never_comes_is_none(traced):
    done = traced(COMMON + """
    from http.server import BaseHTTPRequestHandler, HTTPServer
    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"
        def do_GET(self):
            self.send_response(204)
            self.end_headers()
        def log_message(self, *arguments):
            pass
    server = HTTPServer(("127.0.0.1", 0), Handler)
    for sent in (b"GET /a HTTP/1.1\\r\\n\\r\\nNONSENSE\\r\\n\\r\\n", b"", b"PUT /b HTTP/1.1\\r\\n\\r\\n"):
        with socket.create_connection(server.server_address) as asking:
            asking.sendall(sent)
            asking.shutdown(socket.SHUT_WR)
            server.handle_request()
            while asking.recv(1000):
                pass
    server.server_close()
    """).ended_well()

    assert Served(done).details() == ["GET /a", "", "PUT /b"]


def test_a_plain_handler_of_socketserver_is_one(traced):
    done = traced(COMMON + """
    import socketserver
    class Echo(socketserver.StreamRequestHandler):
        def handle(self):
            work(self.rfile.readline().decode().strip())
            self.wfile.write(b"ok")
    class Server(socketserver.ThreadingMixIn, socketserver.TCPServer):
        pass
    with Server(("127.0.0.1", 0), Echo) as server:
        serving = threading.Thread(target=server.serve_forever)
        serving.start()
        for path in ("/one", "/two"):
            begun = time.monotonic_ns()
            with socket.create_connection(server.server_address) as client:
                client.sendall(path.encode() + b"\\n")
                client.recv(10)
                say(asked=path, begun=begun, ended=time.monotonic_ns())
            time.sleep(0.05)
        server.shutdown()
    """).ended_well()
    served = Served(done)
    served.idle.clear()  # it reads its request itself

    assert served.details() == ["Echo", "Echo"]
    served.check(["/one", "/two"], ["Echo", "Echo"])


def test_a_request_of_wsgiref_is_one(traced):
    done = traced(COMMON + """
    from wsgiref.simple_server import WSGIRequestHandler, make_server
    class Quiet(WSGIRequestHandler):
        def log_message(self, *arguments):
            pass
    def application(environ, start_response):
        work(environ["PATH_INFO"])
        start_response("200 OK", [("Content-Length", "2")])
        return [b"ok"]
    with make_server("127.0.0.1", 0, application, handler_class=Quiet) as server:
        for path in ("/one", "/two"):
            asking = threading.Thread(target=lambda: ask(connected(server.server_port), path))
            asking.start()
            server.handle_request()
            asking.join()
    """).ended_well()
    served = Served(done)

    assert served.details() == ["GET /one", "GET /two"]
    served.check(["/one", "/two"], ["GET /one", "GET /two"])


SHOP = """
import json, sqlite3, time
import flask
shop = flask.Flask("shop")
@shop.route("/orders/<int:number>")
def order(number):
    begun = time.monotonic_ns()
    sqlite3.connect(":memory:").execute("select 1")
    time.sleep(0.03)
    with open("said", "a") as said:
        said.write(json.dumps({"served": f"/orders/{number}", "begun": begun, "ended": time.monotonic_ns()}) + "\\n")
    return "ok"
"""

GUNICORN = COMMON + f"    open('shop.py', 'w').write({SHOP!r})" + """
    port = free_port()
    words = ["-m", "gunicorn", "--log-level", "critical", "--bind", f"127.0.0.1:{port}", *sys.argv[1:], "shop:shop"]
    server = subprocess.Popen([sys.executable, *words])
    client = connected(port)
    for number in range(4):
        ask(client, f"/orders/{number}")
        time.sleep(0.1)
    client.close()
    server.terminate()
    print(server.wait(20))
"""


@pytest.mark.packages
@pytest.mark.parametrize("worker", ["sync", "gthread"])
def test_a_request_of_flask_under_gunicorn_is_one_and_has_its_routes_name_inside(traced, worker):
    for package in ("gunicorn", "flask"):
        pytest.importorskip(package)

    done = traced(GUNICORN, "--worker-class", worker)
    served = Served(done)
    paths = [f"/orders/{number}" for number in range(4)]

    assert (done.returncode, done.stdout) == (0, "0\n"), done.stderr
    assert served.details() == [f"GET {path}" for path in paths]
    served.check(paths, ["GET /orders/<int:number>"] * 4)


PYWSGI = """
    from gevent import monkey
    monkey.patch_all()
""" + COMMON + f"    client = {COMMON!r}" + """
    import textwrap, gevent.pywsgi
    def shop(environ, start_response):
        work(environ["PATH_INFO"])
        start_response("200 OK", [("Content-Length", "2")])
        return [b"ok"]
    client = textwrap.dedent(client) + textwrap.dedent('''
        client = connected(int(sys.argv[1]))
        for number in range(3):
            ask(client, f"/orders/{number}")
            time.sleep(0.1)
        client.close()
    ''')
    server = gevent.pywsgi.WSGIServer(("127.0.0.1", 0), shop, log=open("log", "w"))
    server.start()
    asking = [subprocess.Popen([sys.executable, "-S", "-c", client, str(server.server_port)]) for _ in range(2)]
    [each.wait() for each in asking]
    server.stop()
"""


@pytest.mark.packages
def test_overlapping_requests_under_gevents_server_take_as_long_as_its_log_says(traced):
    pytest.importorskip("gevent")

    done = traced(PYWSGI, INTERPOSE_FOLLOW="off").ended_well()
    served, said = Served(done), lines(done)
    logged_s = sorted(float(line.split()[-1]) for line in (done.directory / "log").read_text().splitlines())
    asked_ns = sorted(each["ended"] - each["begun"] for each in said if "asked" in each)
    walls_ns = sorted(event.wall_ns for _, event in served.outermost)

    assert sorted(served.details()) == sorted([f"GET /orders/{number}" for number in range(3)] * 2)
    assert len(logged_s) == len(asked_ns) == 6
    for wall_ns, logged, asked in zip(walls_ns, logged_s, asked_ns, strict=True):
        assert 1e9 * logged - CLOCKS_DIFFER_NS <= wall_ns <= asked + READS_TWICE_NS
    assert [len(chain) for kind, _, _, chain in served.inside if kind == "sleep"] == [1] * 6
    assert served.idle == []


UVICORN = COMMON + """
    import asyncio, fastapi, uvicorn
    shop = fastapi.FastAPI()
    @shop.get("/orders/{number}")
    async def order(number: int):
        begun = time.monotonic_ns()
        sqlite3.connect(":memory:").execute("select 1")
        await asyncio.sleep(0.02 * (4 - number))
        time.sleep(0.005)
        say(served=f"/orders/{number}", begun=begun, ended=time.monotonic_ns())
    async def plain(scope, receive, send):
        begun = time.monotonic_ns()
        sqlite3.connect(":memory:").execute("select 1")
        await asyncio.sleep(0.02)
        time.sleep(0.005)
        say(served=scope["path"], begun=begun, ended=time.monotonic_ns())
        await send({"type": "http.response.start", "status": 200, "headers": [(b"content-length", b"2")]})
        await send({"type": "http.response.body", "body": b"ok"})
    if sys.argv[2] == "in a task of its own":
        @shop.middleware("http")
        async def passing(request, further):
            return await further(request)
    application = plain if sys.argv[2] == "plain" else shop
    port = free_port()
    config = uvicorn.Config(application, port=port, http=sys.argv[1], log_level="critical", lifespan="off")
    server = uvicorn.Server(config)
    serving = threading.Thread(target=server.run)
    serving.start()
    connected(port).close()
    asking = [threading.Thread(target=lambda n=n: ask(connected(port), f"/orders/{n}")) for n in range(4)]
    [each.start() for each in asking]
    [each.join() for each in asking]
    time.sleep(0.1)
    server.should_exit = True
    serving.join()
"""


@pytest.mark.packages
@pytest.mark.parametrize("application", ["fastapi", "in a task of its own", "plain"])
@pytest.mark.parametrize("protocol", ["h11", "httptools"])
def test_overlapping_requests_under_uvicorn_are_one_each(traced, protocol, application):
    for package in ("fastapi", "uvicorn", protocol):
        pytest.importorskip(package)

    done = traced(UVICORN, protocol, application).ended_well()
    served = Served(done)
    paths = [f"/orders/{number}" for number in range(4)]
    names = ["GET /orders/{number}"] * 4 if application != "plain" else [f"GET {path}" for path in paths]

    assert sorted(served.details()) == sorted(names)
    in_order(served).check(paths, names)
    assert max(each.start_ns for _, each in served.outermost) < min(
        each.start_ns + each.wall_ns for _, each in served.outermost
    )


ASKED_IN_TURN = """
    port = free_port()
    server = uvicorn.Server(uvicorn.Config(shop, port=port, loop="asyncio", log_level="critical", lifespan="off"))
    serving = threading.Thread(target=server.run)
    serving.start()
    connected(port).close()
    for path in paths:
        ask(connected(port), path)
    server.should_exit = True
    serving.join()
"""

IN_A_TASK_OF_ITS_OWN = COMMON + """
    import asyncio, fastapi, uvicorn
    shop = fastapi.FastAPI()
    def compute(times):
        begun = time.thread_time_ns()
        sum(number * number % 7 for number in range(times))
        say(used=time.thread_time_ns() - begun)
    @shop.get("/orders")
    async def order():
        compute(400_000)
        await asyncio.sleep(0.03)
        compute(400_000)
    @shop.middleware("http")
    async def passing(request, further):
        return await further(request)
    paths = 3 * ["/orders"]
""" + ASKED_IN_TURN


@pytest.mark.packages
@pytest.mark.parametrize("consolidates", ["0", "1"])
def test_a_request_behind_middleware_has_the_cpu_time_of_its_endpoint(traced, consolidates):
    for package in ("fastapi", "uvicorn"):
        pytest.importorskip(package)

    done = traced(IN_A_TASK_OF_ITS_OWN, INTERPOSE_CONSOLIDATE=consolidates)
    used_ns = [each["used"] for each in lines(done) if "used" in each]
    analysis = Analysis(done.experiment)
    made = transactions(analysis)
    (row,) = [each for each in made.rows if each.is_named]

    assert (row.name, row.sums.calls, len(used_ns)) == ("GET /orders", 3, 6)
    assert sum(used_ns) <= row.cpu_ns <= row.thread_ns
    assert row.response_ns == sum(share.wall_ns for share in row.split.values())
    assert row.split["sleep"].wall_ns >= 3 * 30_000_000
    assert sum(each.sums.cpu_ns for each in made.rows) == profile(analysis, "kind").total.cpu_ns


BEHIND_A_SLEEP = COMMON + """
    import asyncio, fastapi, uvicorn
    shop = fastapi.FastAPI()
    @shop.get("/computes")
    async def computes():
        begun = time.perf_counter_ns()
        sum(number * number % 7 for number in range(800_000))
        say(served=time.perf_counter_ns() - begun)
    @shop.get("/awaits")
    async def awaits():
        begun = time.perf_counter_ns()
        due = asyncio.Event()
        asyncio.get_running_loop().call_later(0.1, due.set)
        await due.wait()
        say(served=time.perf_counter_ns() - begun)
    @shop.middleware("http")
    async def sleeping(request, further):
        begun = time.perf_counter_ns()
        await asyncio.sleep(0.1)
        say(slept=time.perf_counter_ns() - begun)
        return await further(request)
    paths = 5 * [sys.argv[1]]
""" + ASKED_IN_TURN


@pytest.mark.packages
@pytest.mark.parametrize("consolidates", ["0", "1"])
@pytest.mark.parametrize(("path", "kind"), [("/computes", "logic"), ("/awaits", "sync")])
def test_what_middleware_sleeps_is_not_taken_for_the_wait_for_its_endpoint(traced, path, kind, consolidates):
    for package in ("fastapi", "uvicorn"):
        pytest.importorskip(package)

    done = traced(BEHIND_A_SLEEP, path, INTERPOSE_CONSOLIDATE=consolidates)
    slept_ns, served_ns = (sum(each.get(what, 0) for each in lines(done)) for what in ("slept", "served"))
    (row,) = [each for each in transactions(Analysis(done.experiment)).rows if each.is_named]
    took_ns = {each: share.wall_ns for each, share in row.split.items()}
    else_ns = row.response_ns - slept_ns - served_ns

    assert (row.name, row.sums.calls) == (f"GET {path}", 5)
    assert row.response_ns == sum(took_ns.values())
    assert 5 * 95_000_000 <= took_ns["sleep"] <= slept_ns + else_ns
    assert took_ns[kind] <= served_ns + else_ns
    assert took_ns[kind] >= (5 * 95_000_000 if path == "/awaits" else row.cpu_ns // 2)


@pytest.mark.packages
def test_what_middleware_sleeps_is_kept_without_stacks(traced):
    for package in ("fastapi", "uvicorn"):
        pytest.importorskip(package)

    done = traced(BEHIND_A_SLEEP, "/awaits", INTERPOSE_STACK="none")
    (row,) = [each for each in transactions(Analysis(done.experiment)).rows if each.is_named]

    assert row.response_ns == sum(share.wall_ns for share in row.split.values())
    assert row.split["sleep"].wall_ns >= 5 * 95_000_000


def in_order(served):
    """Requests that overlap, in the order in which their handlers began: that of the database calls inside."""
    begun = {}
    for kind, _, event, _ in served.inside:
        if kind == "db":
            begun.setdefault(event.call, len(begun))
    served.outermost.sort(key=lambda each: begun[each[1].call])
    return served


WERKZEUG = COMMON + f"    open('shop.py', 'w').write({SHOP!r})" + """
    from werkzeug.serving import make_server
    from shop import shop
    server = make_server("127.0.0.1", 0, shop, threaded=True)
    serving = threading.Thread(target=server.serve_forever)
    serving.start()
    for number in range(4):
        ask(connected(server.server_port), f"/orders/{number}")
    server.shutdown()
    serving.join()
"""

DJANGO = COMMON + """
    import django, uvicorn
    from django.conf import settings
    from django.core.handlers.asgi import ASGIHandler
    from django.http import HttpResponse
    from django.urls import path
    settings.configure(ROOT_URLCONF=__name__, ALLOWED_HOSTS=["*"], SECRET_KEY="x", USE_TZ=True)
    django.setup()
    async def order(request, number):
        return HttpResponse("ok")
    urlpatterns = [path("orders/<int:number>", order)]
    port = free_port()
    server = uvicorn.Server(uvicorn.Config(ASGIHandler(), port=port, log_level="critical", lifespan="off"))
    serving = threading.Thread(target=server.run)
    serving.start()
    for number in range(4):
        ask(connected(port), f"/orders/{number}")
    server.should_exit = True
    serving.join()
"""


KILLED = COMMON + """
    import django, wsgiref.simple_server
    from django.conf import settings
    from django.core.handlers.wsgi import WSGIHandler
    from django.http import StreamingHttpResponse
    from django.urls import path
    settings.configure(ROOT_URLCONF=__name__, ALLOWED_HOSTS=["*"], SECRET_KEY="x", USE_TZ=True)
    django.setup()
    def stream(request):
        return StreamingHttpResponse(parts())
    def parts():
        global streams
        streams += 1
        for part in range(3):
            time.sleep(0.02)
            yield b"x" * 1000
            if streams == 5:
                os.kill(os.getpid(), 9)
    streams, urlpatterns = 0, [path("stream", stream)]
    class Quiet(wsgiref.simple_server.WSGIRequestHandler):
        def log_message(self, *arguments):
            pass
    server = wsgiref.simple_server.make_server("127.0.0.1", 0, WSGIHandler(), handler_class=Quiet)
    serving = threading.Thread(target=server.serve_forever)
    serving.start()
    for number in range(5):
        ask(connected(server.server_port), "/stream")
"""


@pytest.mark.packages
def test_a_streamed_answer_of_django_that_was_killed_is_none_of_those_that_were_given(traced):
    pytest.importorskip("django")
    done = traced(KILLED)
    rows = {row.name: row for row in transactions(Analysis(done.experiment)).rows if "stream" in row.name}
    took_ns = [each["ended"] - each["begun"] for each in lines(done)]

    assert len(took_ns) == 4
    assert {name: row.sums.calls for name, row in rows.items()} == {"GET /stream": 4, ".OPEN GET /stream": 1}
    assert rows["GET /stream"].sums.wall_least_ns >= 60_000_000
    assert rows["GET /stream"].response_ns <= sum(took_ns) + READS_TWICE_NS


MARKED_WITHIN = """
    import asyncio, interpose
    from starlette.applications import Starlette
    from starlette.responses import PlainTextResponse
    from starlette.routing import Route
    async def order(request):
        with interpose.transaction("order"):
            await asyncio.sleep(0.001)
        return PlainTextResponse("ok")
    shop = Starlette(routes=[Route("/orders/{number}", order)])
    async def ask(number):
        scope = {"type": "http", "method": "GET", "path": f"/orders/{number}", "headers": [], "query_string": b""}
        async def receive():
            return {"type": "http.request"}
        async def send(message):
            pass
        await shop(scope, receive, send)
    async def main():
        await asyncio.gather(*[ask(number) for number in range(10)])
    asyncio.run(main())
"""


@pytest.mark.packages
def test_a_request_that_is_not_sampled_has_the_name_that_the_program_gave_it(traced):
    pytest.importorskip("starlette")

    done = traced(MARKED_WITHIN, INTERPOSE_TRANSACTIONS="1/1000000", INTERPOSE_SEED="1").ended_well()

    assert Served(done).details() == ["order"] * 10


@pytest.mark.packages
@pytest.mark.parametrize("program, package", [(WERKZEUG, "flask"), (GUNICORN, "flask"), (DJANGO, "django")])
def test_a_request_that_is_not_sampled_has_the_name_of_its_route(traced, program, package):
    for each in (package, *(each for each in ("gunicorn", "uvicorn") if f" {each}" in program)):
        pytest.importorskip(each)

    done = traced(program, INTERPOSE_TRANSACTIONS="1/1000000", INTERPOSE_SEED="1")
    served = Served(done)

    assert done.returncode == 0, done.stderr
    assert all(process.intrinsic(event.intrinsic).passed_over for process, event in served.outermost)
    assert served.details() == ["GET /orders/<int:number>"] * 4


@pytest.mark.packages
def test_requests_that_aiohttp_serves_are_one_each(traced):
    pytest.importorskip("aiohttp")

    done = traced(COMMON + """
    import asyncio
    from aiohttp import web
    async def order(request):
        work(request.path)
        return web.Response(text="ok")
    async def main():
        shop = web.Application()
        shop.router.add_get("/orders/{number}", order)
        runner = web.AppRunner(shop)
        await runner.setup()
        await web.TCPSite(runner, "127.0.0.1", port := free_port()).start()
        def asking():
            client = connected(port)
            for number in range(3):
                ask(client, f"/orders/{number}")
                time.sleep(0.1)
            client.close()
        await asyncio.to_thread(asking)
        await runner.cleanup()
    asyncio.run(main())
    """).ended_well()
    served = Served(done)

    assert served.details() == ["GET /orders/{number}"] * 3
    served.check([f"/orders/{number}" for number in range(3)], ["GET /orders/{number}"] * 3)


TORNADO = """
    import asyncio
    from tornado import httpserver, netutil, web
    class Order(web.RequestHandler):
        async def get(self, number):
            await asyncio.sleep(0.01)
            work(self.request.path)
            self.write("ok")
    async def main():
        server = httpserver.HTTPServer(web.Application([("/orders/(.*)", Order)]))
        sockets = netutil.bind_sockets(0, "127.0.0.1")
        server.add_sockets(sockets)
        def asking():
            client = connected(sockets[0].getsockname()[1])
            for number in range(3):
                ask(client, f"/orders/{number}")
                time.sleep(0.1)
            client.close()
        await asyncio.to_thread(asking)
        server.stop()
        await server.close_all_connections()
    asyncio.run(main())
"""
CHEROOT = """
    from cheroot import wsgi
    def application(environ, start_response):
        work(environ["PATH_INFO"])
        start_response("200 OK", [("Content-Length", "2")])
        return [b"ok"]
    server = wsgi.Server(("127.0.0.1", 0), application, numthreads=2)
    server.prepare()
    serving = threading.Thread(target=server.serve)
    serving.start()
    client = connected(server.bind_addr[1])
    for number in range(3):
        ask(client, f"/orders/{number}")
        time.sleep(0.1)
    client.close()
    server.stop()
    serving.join()
"""


@pytest.mark.packages
@pytest.mark.parametrize(("package", "program"), [("tornado", TORNADO), ("cheroot", CHEROOT)])
def test_requests_that_a_server_alone_serves_are_one_each(traced, package, program):
    pytest.importorskip(package)

    done = traced(COMMON + program).ended_well()
    served = Served(done)
    paths = [f"/orders/{number}" for number in range(3)]

    assert served.details() == [f"GET {path}" for path in paths]
    served.check(paths, served.details())


@pytest.mark.packages
def test_a_task_of_celery_is_one(traced):
    pytest.importorskip("celery")

    done = traced(COMMON + """
    import celery
    from celery.contrib.testing.worker import start_worker
    shop = celery.Celery("shop", broker="memory://", backend="cache+memory://")
    @shop.task(name="shop.pack")
    def pack(name):
        work(name)
    with start_worker(shop, perform_ping_check=False, pool="solo", loglevel="ERROR"):
        for name in ("salt", "oil"):
            begun = time.monotonic_ns()
            pack.delay(name).get(timeout=20)
            say(asked=name, begun=begun, ended=time.monotonic_ns())
    """)
    served = Served(done)

    assert done.returncode == 0, done.stderr
    assert served.details() == ["shop.pack", "shop.pack"]
    served.check(["salt", "oil"], ["shop.pack", "shop.pack"])


def test_commits_end_one(traced):
    done = traced("""
        import sqlite3
        connection = sqlite3.connect(":memory:")
        connection.execute("create table t (x)")
        with connection:
            connection.execute("insert into t values (1)")
        connection.commit()
        connection.rollback()
    """)
    founder = done.experiment.founder
    ends = [founder.intrinsic(event.intrinsic) for event in done.events()]

    assert [each.name for each in ends if each.transaction == "ends"] == [
        "sqlite3.Connection.__exit__",
        "sqlite3.Connection.commit",
    ]


# --- reads of a terminal

AT_A_TERMINAL = """
    import os, pty, sys, threading
    master, slave = pty.openpty()
    pid = os.fork()
    if pid == 0:
        os.login_tty(slave)
        os.environ["TERM"] = "xterm"
        os.execv(sys.executable, [sys.executable, "asked.py"])
    os.close(slave)
    answers = sys.argv[1].encode().decode("unicode_escape").encode().split(b"|")
    shown = b""
    try:
        while part := os.read(master, 1000):
            shown += part
            if b"?" in part and answers:
                os.write(master, answers.pop(0))
    except OSError:
        pass
    _, status = os.waitpid(pid, 0)
    sys.stdout.write(shown.decode(errors="replace").replace("\\x1b", "<"))
    sys.exit(os.waitstatus_to_exitcode(status))
"""


def at_a_terminal(tmp_path, program, answers):
    """A program that ran at a terminal of its own, where each question was answered."""
    (tmp_path / "asked.py").write_text(program)
    (tmp_path / "terminal.py").write_text("\n".join(line[4:] for line in AT_A_TERMINAL.splitlines()))
    done = run_in(tmp_path, [sys.executable, "terminal.py", answers], INTERPOSE="1", INTERPOSE_FOLLOW="on")
    return Traced(tmp_path, done)


def marked_reads(tmp_path, program, answers):
    """What was marked of it: the names of the calls of the kind screen that wait for somebody, how, and at what."""
    done = at_a_terminal(tmp_path, program, answers)
    assert done.returncode == 0, done.stdout + done.stderr
    (process,) = [each for each in done.experiment.processes if each.log.arguments[-1:] == ["asked.py"]]
    assert process.log.user["streams"] == "0 1 2"
    found = []
    for event in done.events(process=process):
        intrinsic = process.intrinsic(event.intrinsic)
        if intrinsic.terminal and intrinsic.kind == "screen":
            found.append((intrinsic.name, intrinsic.terminal, process.string(event.detail)))
    return found


def test_reads_of_lines_are_marked(tmp_path):
    program = """import os, sys, getpass
print(input("name? "))
print(getpass.getpass("secret? ") == "hush")
sys.stdout.write("line? ")
sys.stdout.flush()
print(sys.stdin.readline())
print("read? ", flush=True)
print(os.read(0, 100))
with open("asked.py") as file:
    file.read()
"""
    found = marked_reads(tmp_path, program, r"Ann\n|hush\n|text\n|more\n")

    assert [each[:2] for each in found if each[0] in ("input", "getpass.getpass", "os.read")] == [
        ("input", "line"),
        ("getpass.getpass", "line"),
        ("os.read", "line"),
    ]
    assert ("io.FileIO.readinto", "line", "<stdin>") in found


def test_keys_of_curses_are_marked(tmp_path):
    curses = pytest.importorskip("curses")
    try:
        curses.setupterm("xterm", 1)
    except curses.error as error:
        pytest.skip(f"this terminal is not described here: {error}")
    program = """import curses
def main(window):
    window.addstr("key?")
    window.refresh()
    key = window.getch()
    window.addstr("line?")
    window.refresh()
    curses.echo()
    assert (key, window.getstr()) == (ord("x"), b"text")
curses.wrapper(main)
"""
    found = marked_reads(tmp_path, program, r"x|text\r")

    assert [each[:2] for each in found if each[0].startswith("curses")] == [
        ("curses.window.getch", "keys"),
        ("curses.window.getstr", "line"),
    ]


@pytest.mark.packages
def test_what_prompt_toolkit_asks_is_marked(tmp_path):
    pytest.importorskip("prompt_toolkit")
    program = """import prompt_toolkit
session = prompt_toolkit.PromptSession()
assert session.prompt("name? ") == "Ann"
"""
    found = marked_reads(tmp_path, program, r"Ann\r")

    names = {each[:2] for each in found}
    assert ("prompt_toolkit.PromptSession.prompt", "line") in names
    assert ("prompt_toolkit.input.Vt100Input.read_keys", "keys") in names
