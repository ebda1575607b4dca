"""Names and attributes of spans by the semantic conventions, from names and details of calls."""

import json

import pytest

from interpose.exports.conventions import CLIENT, INTERNAL, PRODUCER, SERVER, call, request
from tests.build import SECOND, START_NS, Build, event
from tests.exports.test_exports import exported
from tests.exports.test_spans import spans_in
from tests.exports.test_traces import attribute

ROUTE, FLASK = "starlette.routing.Route.handle", "flask.Flask.wsgi_app"
OURS = ("interpose.kind", "interpose.intrinsic", "interpose.detail")


def told(found):
    """Name and attributes without those of interpose."""
    return found.name, {key: value for key, value in found.attributes.items() if key not in OURS}


@pytest.mark.parametrize(
    ("name", "detail", "inside", "expected", "attributes"),
    [
        ("uvicorn.run_asgi", "GET /items/{id}", [], "GET /items/{id}", {"http.route": "/items/{id}"}),
        ("uvicorn.run_asgi", "GET /top", [(ROUTE, "GET /top")], "GET /top", {"http.route": "/top"}),
        ("uvicorn.run_asgi", "GET /none", [], "GET", {"url.path": "/none"}),
        ("http.server.handle", "GET /a/7", [], "GET", {"url.path": "/a/7"}),
        ("gunicorn.handle", "GET /a/7", [(FLASK, "GET /a/<n>")], "GET /a/<n>", {"http.route": "/a/<n>"}),
        ("gunicorn.handle", "GET /a", [(FLASK, "GET /a")], "GET /a", {"url.path": "/a"}),
        ("gunicorn.handle", "GET /a", [("fastapi.routing.APIRoute.handle", "POST /b")], "GET", {"url.path": "/a"}),
        ("django.get_response", "GET /^a/(?P<n>x)", [], "GET /^a/(?P<n>x)", {"http.route": "/^a/(?P<n>x)"}),
    ],
)
def test_a_request_is_named_by_its_method_and_its_route(name, detail, inside, expected, attributes):
    found = request(name, "logic", detail, inside)

    assert told(found) == (expected, {"http.request.method": expected.partition(" ")[0], **attributes})
    assert (found.kind, found.attributes["interpose.intrinsic"]) == (SERVER, name)


@pytest.mark.parametrize(("detail", "expected"), [("nightly batch", "nightly batch"), ("", "interpose.transaction")])
def test_another_transaction_has_its_own_name(detail, expected):
    assert told(request("interpose.transaction", "logic", detail, [])) == (expected, {})


HTTP = {"url.full": "https://shop.example:8443/a", "server.address": "shop.example", "server.port": 8443}


@pytest.mark.parametrize(
    ("name", "kind", "detail", "expected", "attributes"),
    [
        ("httpx.Client.send", "net", "GET https://shop.example:8443/a", "GET", {**HTTP, "http.request.method": "GET"}),
        ("urllib.request.urlopen", "net", "https://shop.example:8443/a", "urllib.request.urlopen", HTTP),
        ("http.client.HTTP.request", "net", "PUT /a", "PUT", {"url.path": "/a", "http.request.method": "PUT"}),
        ("socket.socket.send", "net", "[::1]:80", "socket.socket.send", {"server.address": "::1", "server.port": 80}),
        ("socket.socket.send", "net", "/run/a b", "socket.socket.send", {"server.address": "/run/a b"}),
        ("socket.socket.send", "net", "<socket>", "socket.socket.send", {}),
        ("celery.Task.apply_async", "net", "shop.pack", "celery.Task.apply_async", {}),
        ("sqlite3.connect", "db", "/a.db", "sqlite3.connect", {"db.system.name": "sqlite", "db.namespace": "/a.db"}),
        (
            *("psycopg.connect", "db", "db1/shop", "psycopg.connect"),
            {"db.system.name": "postgresql", "server.address": "db1", "db.namespace": "shop"},
        ),
        ("redis.Redis.execute_command", "db", "GET", "GET", {"db.system.name": "redis", "db.operation.name": "GET"}),
        (
            *("psycopg.Cursor.execute", "db", "select a from orders where b = ?", "SELECT orders"),
            {
                "db.system.name": "postgresql",
                "db.query.text": "select a from orders where b = ?",
                "db.query.summary": "SELECT orders",
            },
        ),
        ("psycopg.execute", "db", "do ?", "psycopg.execute", {"db.system.name": "postgresql", "db.query.text": "do ?"}),
    ],
)
def test_a_client_has_what_was_recorded_of_it_and_no_more(name, kind, detail, expected, attributes):
    found = call(name, kind, detail)

    assert told(found) == (expected, attributes)
    assert found.kind == CLIENT


@pytest.mark.parametrize(
    ("name", "detail", "expected"),
    [
        ("socket.socket.sendall", "127.0.0.1:6379", {"server.address": "127.0.0.1", "server.port": 6379}),
        ("socket.socket.connect", "/run/db/a", {"server.address": "/run/db/a"}),
        ("socket.getaddrinfo", "db1:5432", {"server.address": "db1", "server.port": 5432}),
        ("ssl.SSLSocket.read", "db1:5432", {"server.address": "db1", "server.port": 5432}),
        ("sqlite3.open", "/a.db", {"db.system.name": "sqlite", "interpose.detail": "/a.db"}),
    ],
)
def test_what_a_driver_calls_with_no_statement_has_no_text_of_a_query(name, detail, expected):
    found = call(name, "db", detail, has_statement=False)

    assert (found.name, found.kind, found.attributes) == (name, CLIENT, {"interpose.kind": "db", **expected})


def test_only_calls_that_have_statements_have_the_text_of_a_query(tmp_path):
    build = Build(tmp_path / "t.1.er")
    numbers = [build.intrinsic("shop.Driver.execute", "db"), build.intrinsic("shop.Driver.send", "net", "db")]
    details = [build.string("select a from b"), build.string("db1:5432")]
    sending = numbers[1] + 1  # as a call of the kind db
    build.events(
        [
            event(10, 1, intrinsic=numbers[0], detail=details[0], call=1),
            event(20, 1, intrinsic=sending, detail=details[1], call=2),
        ]
    )
    build.thread(end_ns=START_NS + SECOND, recorded=2, main=1)
    build.ended(SECOND, 0)

    lines = exported(str(build.write()), "otlp", tmp_path).read_text().splitlines()
    found = {each["name"]: attribute(each, "db.query.text") for each in spans_in(map(json.loads, lines))}

    assert found["SELECT b"] == "select a from b"
    assert found["shop.Driver.send"] is None


def test_a_message_that_is_sent_has_its_topic():
    sent, got = call("confluent_kafka.Producer.produce", "db", "t"), call("confluent_kafka.Consumer.poll", "idle", "t")

    assert (sent.name, sent.kind) == ("produce t", PRODUCER)
    assert (got.name, got.kind, got.attributes["messaging.operation.type"]) == ("poll t", CLIENT, "receive")
    assert call("os.stat", "file", "/a") == ("os.stat", INTERNAL, {"interpose.kind": "file", "file.path": "/a"})


SHOP = """
    import asyncio, http.client, socket, threading
    import fastapi, uvicorn
    shop, part = fastapi.FastAPI(), fastapi.FastAPI()
    @part.get("/items")
    async def items():
        return 1
    @shop.get("/orders/{number}")
    def order(number: int):
        return number
    shop.mount("/v1", part)
    server = uvicorn.Server(uvicorn.Config(shop, log_level="critical", lifespan="off"))
    listening = socket.create_server(("127.0.0.1", 0))
    serving = threading.Thread(target=server.run, args=([listening],))
    serving.start()
    for path in ("/v1/items", "/orders/3", "/none"):
        client = http.client.HTTPConnection(*listening.getsockname())
        client.request("GET", path)
        client.getresponse().read()
        client.close()
    server.should_exit = True
    serving.join()
"""


@pytest.mark.packages
def test_the_requests_of_fastapi_are_one_server_span_each_named_after_the_route(traced, tmp_path):
    for package in ("fastapi", "uvicorn"):
        pytest.importorskip(package)

    done = traced(SHOP).ended_well()
    lines = exported(done.path, "otlp", tmp_path).read_text().splitlines()
    found = [each for each in spans_in(map(json.loads, lines)) if each["kind"] == SERVER]

    assert sorted((each["name"], attribute(each, "http.route"), attribute(each, "url.path")) for each in found) == [
        ("GET", None, "/none"),
        ("GET /orders/{number}", "/orders/{number}", None),
        ("GET /v1/items", "/v1/items", None),
    ]
