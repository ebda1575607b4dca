"""The `traceparent` of served requests: kept with the call that serves each, whatever server hands it on."""

import json

import pytest
from hooks.test_served import CHEROOT, COMMON, GUNICORN, TORNADO, UVICORN

from interpose.cli.main import main
from interpose.timing.shims import trace_parent

TRACE = "0af7651916cd43dd8448eb211c80319{}"
ASKED = [f"00-{TRACE.format(number)}-b7ad6b716920333{number}-01" for number in range(4)]
# What asks sends the context of its request, whose number ends the path; and a secret beside it, which nobody keeps.
ASKING = COMMON.replace(
    'client.request("GET", path + "?token=hush")',
    'number = path[-1]; client.request("GET", path, headers={"TraceParent": '
    'f"00-0af7651916cd43dd8448eb211c80319{number}-b7ad6b716920333{number}-01", "tracestate": "vendor=hush"})',
)


def contexts(done, of="is"):
    """What was kept, with the details of the calls that are outermost among those it was kept with; or that continue
    such a call in another thread."""
    found = []
    for process in done.experiment.processes:
        events = {(event.thread, event.call): event for event in done.events(process=process)}
        for key, context in process.trace_contexts.items():
            transaction = process.intrinsic(events[key].intrinsic).transaction
            assert transaction in ("is", "continues")
            if transaction == of:
                found.append((process.string(events[key].detail), context.as_header()))
    return sorted(found)


def check(done, names):
    """Each of the requests has its context, once for each call of a name."""
    assert {header for _, header in contexts(done)} == set(ASKED[: len(names)])
    traces = {header.split("-")[1] for header in ASKED[: len(names)]}
    assert {header.split("-")[1] for _, header in contexts(done, "continues")} <= traces
    assert [name for name, _ in contexts(done)] == sorted(names)
    for file in done.directory.rglob("*"):
        assert not file.is_file() or file.name == "program.py" or b"vendor=hush" not in file.read_bytes()


def test_http_server_keeps_the_context_of_each_request_of_a_connection(traced):
    done = traced(ASKING + """
    from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"
        def do_GET(self):
            self.send_response(200)
            self.send_header("Content-Length", "2")
            self.end_headers()
            self.wfile.write(b"ok")
        def log_message(self, *arguments):
            pass
    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    threading.Thread(target=server.serve_forever).start()
    client = connected(server.server_port)
    for number in range(3):
        ask(client, f"/orders/{number}")
    client.request("GET", "/plain")
    client.getresponse().read()
    client.close()
    server.shutdown()
    """).ended_well()

    check(done, [f"GET /orders/{number}" for number in range(3)])


def test_wsgiref_keeps_it_once_for_the_server_and_what_it_calls(traced):
    done = traced(ASKING + """
    from wsgiref.simple_server import WSGIRequestHandler, make_server
    class Quiet(WSGIRequestHandler):
        def log_message(self, *arguments):
            pass
    def application(environ, start_response):
        start_response("200 OK", [("Content-Length", "2")])
        return [b"ok"]
    with make_server("127.0.0.1", 0, application, handler_class=Quiet) as server:
        for number in range(2):
            asking = threading.Thread(target=lambda: ask(connected(server.server_port), f"/orders/{number}"))
            asking.start()
            server.handle_request()
            asking.join()
    """).ended_well()

    check(done, ["GET /orders/0", "GET /orders/1"])


BAD = [
    *("", "1", ASKED[0].upper(), ASKED[0][:-1], ASKED[0] + "-1", f" {ASKED[0]}", ASKED[0].replace("00-", "ff-", 1)),
    f"00-{'0' * 32}-b7ad6b7169203331-01",
    f"00-{TRACE.format(1)}-{'0' * 16}-01",
    f"{ASKED[0]}, {ASKED[1]}",
    ASKED[0].encode().decode("utf-16-le", "replace"),
]


@pytest.mark.parametrize("shape", ["environ", "list"])
def test_what_is_not_valid_is_ignored(traced, shape):
    done = traced(
        """
    import io, json, sys
    from wsgiref.handlers import SimpleHandler
    def application(environ, start_response):
        start_response("200 OK", [])
        return [b"ok"]
    for header in json.loads(sys.argv[1]):
        environ = {"REQUEST_METHOD": "GET", "PATH_INFO": "/x", "SERVER_PROTOCOL": "HTTP/1.0"}
        environ["HTTP_TRACEPARENT"] = header if sys.argv[2] == "environ" else [header]
        handler = SimpleHandler(io.BytesIO(), io.BytesIO(), sys.stderr, environ)
        handler.run(application)
    """,
        json.dumps([*BAD, *([] if shape == "environ" else ASKED)]),
        shape,
    ).ended_well()

    assert len(done.events("wsgiref.handlers.BaseHandler.run")) >= len(BAD)
    assert contexts(done) == []


def test_what_a_later_version_has_in_common_with_this_one_is_taken():
    later = ASKED[0].replace("00-", "cc-", 1)

    assert trace_parent(f"{later}-what-the-future-will-be-like".encode()) == ASKED[0]
    assert trace_parent(later.encode()) == ASKED[0]
    assert trace_parent(f"{later}.what".encode()) == ""
    assert trace_parent(f"{later[:-2]}ff".encode()) == ASKED[0]


@pytest.mark.packages
@pytest.mark.parametrize("worker", ["sync", "gthread"])
def test_flask_under_gunicorn(traced, worker):
    for package in ("gunicorn", "flask"):
        pytest.importorskip(package)

    done = traced(GUNICORN.replace(COMMON, ASKING), "--worker-class", worker)

    assert (done.returncode, done.stdout) == (0, "0\n"), done.stderr
    check(done, [f"GET /orders/{number}" for number in range(4)])


@pytest.mark.packages
@pytest.mark.parametrize("application", ["fastapi", "in a task of its own", "plain"])
@pytest.mark.parametrize("protocol", ["h11", "httptools"])
def test_overlapping_requests_under_uvicorn(traced, protocol, application):
    for package in ("fastapi", "uvicorn", protocol):
        pytest.importorskip(package)

    done = traced(UVICORN.replace(COMMON, ASKING), protocol, application).ended_well()

    route = ["GET /orders/{number}"] * 4
    plain = [f"GET /orders/{number}" for number in range(4)]
    check(done, {"plain": plain, "fastapi": route, "in a task of its own": route * 2}[application])


@pytest.mark.packages
def test_flask_under_waitress(traced):
    for package in ("waitress", "flask"):
        pytest.importorskip(package)

    done = traced(ASKING + """
    import flask, waitress
    shop = flask.Flask("shop")
    @shop.route("/orders/<int:number>")
    def order(number):
        return "ok"
    server = waitress.create_server(shop, host="127.0.0.1", port=0, threads=1)
    threading.Thread(target=server.run, daemon=True).start()
    client = connected(server.effective_port)
    for number in range(3):
        ask(client, f"/orders/{number}")
    client.request("GET", "/orders/9")  # by its answer the one before has ended
    client.getresponse().read()
    client.close()
    """)

    assert done.returncode == 0 and "Traceback" not in done.stderr  # on a busy machine it speaks of its queue
    check(done, [f"GET /orders/{number}" for number in range(3)])


@pytest.mark.packages
def test_gevents_server(traced):
    pytest.importorskip("gevent")

    done = traced("    from gevent import monkey; monkey.patch_all()" + ASKING + """
    import gevent, gevent.pywsgi
    def shop(environ, start_response):
        gevent.sleep(0.01)
        start_response("200 OK", [("Content-Length", "2")])
        return [b"ok"]
    server = gevent.pywsgi.WSGIServer(("127.0.0.1", 0), shop, log=None)
    server.start()
    asking = [gevent.spawn(lambda n=n: ask(connected(server.server_port), f"/orders/{n}")) for n in range(3)]
    gevent.joinall(asking)
    gevent.sleep(0.1)
    server.stop()
    """).ended_well()

    check(done, [f"GET /orders/{number}" for number in range(3)])


@pytest.mark.packages
@pytest.mark.parametrize(("package", "program"), [("tornado", TORNADO), ("cheroot", CHEROOT)])
def test_a_server_alone(traced, package, program):
    pytest.importorskip(package)

    check(traced(ASKING + program).ended_well(), [f"GET /orders/{number}" for number in range(3)])


@pytest.mark.packages
@pytest.mark.parametrize("without_extensions", ["", "1"])
def test_aiohttp(traced, without_extensions):
    pytest.importorskip("aiohttp")

    done = traced(
        ASKING + """
    import asyncio
    from aiohttp import web
    async def order(request):
        await asyncio.sleep(0.01)
        return web.Response(text="ok")
    def asks(port, number):
        client = connected(port)
        ask(client, f"/orders/{number}")
        client.close()
    async def main():
        shop = web.Application()
        shop.router.add_get("/orders/{number}", order)
        runner = web.AppRunner(shop)
        await runner.setup()
        site = web.TCPSite(runner, "127.0.0.1", 0)
        await site.start()
        port = site._server.sockets[0].getsockname()[1]
        await asyncio.gather(*(asyncio.to_thread(asks, port, number) for number in range(4)))
        await runner.cleanup()
    asyncio.run(main())
    """,
        AIOHTTP_NO_EXTENSIONS=without_extensions,
    ).ended_well()

    check(done, ["GET /orders/{number}"] * 4)


@pytest.mark.packages
@pytest.mark.parametrize("client", ["Client", "AsyncClient"])
def test_django(traced, client):
    pytest.importorskip("django")

    done = traced(
        f"""
    import asyncio, sys, django
    from django.conf import settings
    from django.http import HttpResponse
    from django.test import AsyncClient, Client
    from django.urls import path
    settings.configure(ROOT_URLCONF=__name__, ALLOWED_HOSTS=["*"], SECRET_KEY="x")
    django.setup()
    urlpatterns = [path("pages/<name>", lambda request, name: HttpResponse(name))]
    if {client!r} == "Client":
        Client().get("/pages/a", HTTP_TRACEPARENT={ASKED[0]!r})
    else:
        asyncio.run(AsyncClient().get("/pages/a", headers={{"traceparent": {ASKED[0]!r}}}))
    """
    ).ended_well()

    check(done, ["GET /pages/<name>"])


@pytest.mark.packages
def test_a_task_of_celery(traced):
    pytest.importorskip("celery")

    done = traced(f"""
    import celery
    from celery.contrib.testing.worker import start_worker
    shop = celery.Celery("shop", broker="memory://", backend="cache+memory://")
    @shop.task(name="shop.pack")
    def pack(name):
        return name
    with start_worker(shop, perform_ping_check=False, pool="solo", loglevel="ERROR"):
        for header in ({{"traceparent": {ASKED[0]!r}}}, {{"traceparent": {ASKED[1]!r}}}, {{}}):
            pack.apply_async(["salt"], headers=header).get(timeout=20)
    """)

    assert done.returncode == 0, done.stderr
    check(done, ["shop.pack"] * 2)


def test_events_show_it_and_spans_have_it(tmp_path, traced, capsys):
    done = traced(f"""
    import io, os, sys
    from wsgiref.handlers import SimpleHandler
    def application(environ, start_response):
        os.stat("/")
        start_response("200 OK", [])
        return [b"ok"]
    environ = {{"REQUEST_METHOD": "GET", "PATH_INFO": "/x", "SERVER_PROTOCOL": "HTTP/1.0"}}
    environ["HTTP_TRACEPARENT"] = {ASKED[0]!r}
    SimpleHandler(io.BytesIO(), io.BytesIO(), sys.stderr, environ).run(application)
    """)

    assert main(["events", done.path, "--format", "json"]) == 0
    rows = json.loads(capsys.readouterr().out)
    rows = rows if isinstance(rows, list) else rows["rows"]
    assert [row["trace_parent"] for row in rows if row["trace_parent"]] == [ASKED[0]]
    assert main(["export", done.path, "--to", "otlp"]) == 0
    lines = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    spans = [span for line in lines for span in line["resourceSpans"][0]["scopeSpans"][0]["spans"]]
    ours = [span for span in spans if span["traceId"] == TRACE.format(0)]
    [root] = [span for span in ours if span["kind"] == 2]
    assert (root["name"], root["parentSpanId"]) == ("GET", "b7ad6b7169203330")
    [stat] = [span for span in ours if span["name"] == "os.stat"]
    assert stat["parentSpanId"] == root["spanId"]


MANY = """
import io, sys
from wsgiref.handlers import SimpleHandler
def application(environ, start_response):
    start_response("200 OK", [])
    return [b"ok"]
for number in range(20_000):
    environ = {"REQUEST_METHOD": "GET", "PATH_INFO": "/x", "SERVER_PROTOCOL": "HTTP/1.0"}
    environ["HTTP_TRACEPARENT"] = f"00-{number + 1:032x}-{number + 1:016x}-01"
    SimpleHandler(io.BytesIO(), io.BytesIO(), sys.stderr, environ).run(application)
"""


def parents(done):
    return sorted(int(each.parent, 16) for each in done.experiment.founder.trace_contexts.values())


def test_a_ring_keeps_the_newest(traced):
    done = traced(MANY, INTERPOSE_RING="1MiB").ended_well()

    kept = parents(done)
    assert kept == list(range(20_001 - len(kept), 20_001)) and 16_000 < len(kept) < 16_384
    assert (done.directory / done.experiment.name / "trace_contexts").stat().st_size <= 1 << 20


def test_they_count_for_the_limit_and_end_with_the_events(traced):
    done = traced(MANY, INTERPOSE_LIMIT="2MiB").ended_well()

    kept = parents(done)
    assert kept == list(range(1, len(kept) + 1)) and 1_000 < len(kept) < 20_000
    taken = (done.directory / done.experiment.name / "trace_contexts").stat().st_size
    assert taken + (done.directory / done.experiment.name / "events").stat().st_size <= 2_500_000
