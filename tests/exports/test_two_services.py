"""Two recorded services, one of which calls the other: their spans form one trace in OpenTelemetry's messages."""

import http.client
import json
import os
import signal
import socket
import subprocess
import sys
import textwrap

import pytest
from tracing import environment, until

from interpose.experiments.metadata import names
from tests.exports.test_spans import as_protobuf_has_it, exported

pytestmark = pytest.mark.packages
TRACE, SPAN = "0af7651916cd43dd8448eb211c80319c", "b7ad6b7169203331"
FRONT = """
import http.client, os
import flask
front = flask.Flask("front")
@front.route("/orders/<int:number>")
def order(number):
    client = http.client.HTTPConnection("127.0.0.1", int(os.environ["STOCK_PORT"]))
    client.request("GET", f"/stock/{number}")
    return client.getresponse().read()
"""
STOCK = """
import os, sqlite3
from wsgiref.simple_server import WSGIRequestHandler, make_server
class Quiet(WSGIRequestHandler):
    def log_message(self, *arguments):
        pass
def stock(environ, start_response):
    sqlite3.connect(":memory:").execute("select 1")
    start_response("200 OK", [("Content-Length", "2")])
    return [b"42"]
with make_server("127.0.0.1", 0, stock, handler_class=Quiet) as server:
    with open("port.new", "w") as file:
        file.write(str(server.server_port))
    os.rename("port.new", "port")
    try:
        server.serve_forever()
    except KeyboardInterrupt:
        pass
"""


class Service:
    """A recorded program in a directory of its own, which ends by SIGINT."""

    def __init__(self, directory, source, words, **variables):
        directory.mkdir()
        (directory / "app.py").write_text(textwrap.dedent(source))
        self.directory = directory
        told = environment(INTERPOSE="1", INTERPOSE_PROPAGATE="1", INTERPOSE_FOLLOW="on", **variables)
        self._process = subprocess.Popen([sys.executable, *words], cwd=directory, env=told, stdout=subprocess.DEVNULL)

    def __enter__(self):
        return self

    def wait(self):
        """Wait until it ends by itself."""
        assert self._process.wait(30) == 0

    def __exit__(self, *_):
        self._process.send_signal(signal.SIGINT)
        try:
            self._process.wait(30)
        finally:
            self._process.kill()


def spans_of(directory):
    """The spans of the experiment in it, as OpenTelemetry's own messages have them."""
    service = pytest.importorskip("opentelemetry.proto.collector.trace.v1.trace_service_pb2")
    from google.protobuf import json_format

    found = []
    for line in exported(names.newest(str(directory)), "otlp", directory).read_text().splitlines():
        made = json_format.ParseDict(as_protobuf_has_it(json.loads(line)), service.ExportTraceServiceRequest())
        found += [span for each in made.resource_spans for scope in each.scope_spans for span in scope.spans]
    return found


def outward(span, spans):
    """The names of a span and of those around it, and the identity of the one that is not among them."""
    by_id = {each.span_id: each for each in spans}
    found = [_intrinsic(span)]
    while parent := by_id.get(span.parent_span_id):
        assert parent.trace_id == span.trace_id
        assert parent.start_time_unix_nano <= span.start_time_unix_nano
        span = parent
        found.append(_intrinsic(span))
    return found, span.parent_span_id.hex()


def test_the_spans_of_two_services_form_one_trace(tmp_path):
    for package in ("flask", "gunicorn", "opentelemetry.proto"):
        pytest.importorskip(package)
    with Service(tmp_path / "stock", STOCK, ["app.py"]) as stock:
        until((stock.directory / "port").exists)
        port = (stock.directory / "port").read_text()
        gunicorn = ["-m", "gunicorn", "--log-level", "critical", "--bind", "unix:front.sock", "app:front"]
        with Service(tmp_path / "front", FRONT, gunicorn, STOCK_PORT=port) as front:
            until((front.directory / "front.sock").exists)
            for header in ({"traceparent": f"00-{TRACE}-{SPAN}-01"}, {}):
                client = Client(front.directory / "front.sock")
                client.request("GET", "/orders/7", headers=header)
                assert client.getresponse().read() == b"42"

    of_front, of_stock = spans_of(front.directory), spans_of(stock.directory)
    every = [*of_front, *of_stock]
    assert len({each.span_id for each in every}) == len(every)
    first, second = sorted((each for each in every if each.name == "SELECT"), key=_start)
    names_first, outside = outward(first, every)
    names_second, nothing = outward(second, every)
    assert names_first == names_second
    assert (first.trace_id.hex(), outside, nothing) == (TRACE, SPAN, "")
    assert second.trace_id != first.trace_id
    inner, outer = names_first.index("wsgiref.handlers.BaseHandler.run"), names_first.index("flask.Flask.wsgi_app")
    assert inner < names_first.index("http.client.HTTPConnection.request") < outer
    assert names_first[-1] == "gunicorn.workers.SyncWorker.handle_request"
    in_both = {each.trace_id for each in of_front} & {each.trace_id for each in of_stock}
    assert {first.trace_id, second.trace_id} <= in_both


ASKING = """
import os, urllib.request
for number in range(5):
    with urllib.request.urlopen(f"http://127.0.0.1:{os.environ['STOCK_PORT']}/stock/{number}") as answer:
        assert answer.read() == b"42"
"""


def test_a_span_of_urlopen_lasts_until_the_service_has_answered(tmp_path):
    pytest.importorskip("opentelemetry.proto")
    with Service(tmp_path / "stock", STOCK, ["app.py"]) as stock:
        until((stock.directory / "port").exists)
        port = (stock.directory / "port").read_text()
        with Service(tmp_path / "front", ASKING, ["app.py"], STOCK_PORT=port) as front:
            front.wait()

    asked, of_stock = ({each.span_id: each for each in spans_of(made.directory)} for made in (front, stock))
    served = [each for each in of_stock.values() if each.parent_span_id in asked]
    assert [_intrinsic(asked[each.parent_span_id]) for each in served] == ["urllib.request.urlopen"] * 5
    queries = [each for each in of_stock.values() if each.name == "SELECT"]  # before it answers
    for query in queries:
        around = asked[_outermost(query, of_stock).parent_span_id]
        assert _start(around) <= _start(query)
        assert query.end_time_unix_nano <= around.end_time_unix_nano
    assert len(queries) == 5


def _outermost(span, by_id):
    while parent := by_id.get(span.parent_span_id):
        span = parent
    return span


def _intrinsic(span):
    return next((each.value.string_value for each in span.attributes if each.key == "interpose.intrinsic"), span.name)


def _start(span):
    return span.start_time_unix_nano


class Client(http.client.HTTPConnection):
    """Of a socket in the file system."""

    def __init__(self, path):
        super().__init__("localhost", timeout=30)
        self._path = path

    def connect(self):
        self.sock = socket.socket(socket.AF_UNIX)
        self.sock.connect(os.path.relpath(self._path))
