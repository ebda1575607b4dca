"""Spans of OpenTelemetry: every call once, in the right trace, and what becomes of them on their way to a collector."""

import base64
import gzip
import json
import threading
from collections import Counter
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import pytest

from interpose.cli.main import main
from interpose.exports import otlp, sending
from tests.build import SECOND, START_NS, TIME_NS, Build, event
from tests.exports.test_exports import events, exported, hostile, recorded  # noqa: F401
from tests.schedules import MS


def spans_in(requests):
    return [span for request in requests for resource in request["resourceSpans"]
            for scope in resource["scopeSpans"] for span in scope["spans"]]  # fmt: skip


def spans(path, tmp_path):
    return spans_in(map(json.loads, exported(path, "otlp", tmp_path).read_text().splitlines()))


def served(directory):
    """Two requests of one thread, each with a query; a query between them; an error in the second request."""
    build = Build(directory / "t.1.er")
    handle = build.intrinsic("app.handle", "logic", transaction="is")
    query = build.intrinsic("psycopg2.cursor.execute", "db")
    detail, error = build.string("select ?"), build.string("OperationalError")
    build.events(
        [
            event(12 * MS, 5 * MS, intrinsic=query, detail=detail, call=2, parent=1),
            event(10 * MS, 10 * MS, intrinsic=handle, call=1),
            event(25 * MS, 5 * MS, intrinsic=query, detail=detail, call=3),
            event(42 * MS, 5 * MS, intrinsic=query, detail=detail, error=error, call=5, parent=4),
            event(40 * MS, 10 * MS, intrinsic=handle, call=4),
        ]
    )
    build.thread(end_ns=START_NS + SECOND, tid=1, main=1, recorded=5, made=5)
    build.ended(SECOND, 0)
    return str(build.write())


def test_each_call_is_a_span_with_its_times_below_the_one_around_it(recorded, tmp_path):  # noqa: F811
    found = spans(recorded, tmp_path)
    of_calls = [each for each in found if "attributes" in each]

    assert len(of_calls) == len(events(recorded))
    lasted = sum(int(each["endTimeUnixNano"]) - int(each["startTimeUnixNano"]) for each in of_calls)
    assert lasted == sum(each.wall_ns for each in events(recorded))
    assert len({each["spanId"] for each in found}) == len(found)
    known = {(each["traceId"], each["spanId"]) for each in found}
    roots = [each for each in found if "parentSpanId" not in each]
    assert len(roots) == 1  # the program; the child process is below it
    assert all((each["traceId"], each["parentSpanId"]) in known for each in found if each not in roots)


def test_a_transaction_is_a_trace_of_its_own(tmp_path):
    found = spans(served(tmp_path), tmp_path)

    traces = Counter(each["traceId"] for each in found)
    assert sorted(traces.values()) == [2, 2, 2]  # two requests; the process and the query between them
    roots = [each for each in found if "parentSpanId" not in each]
    assert sorted(each["name"] for each in roots) == ["app.handle", "app.handle", "python orders.py"]
    first = min(found, key=lambda each: (int(each["startTimeUnixNano"]), each["name"] != "app.handle"))
    assert first["startTimeUnixNano"] == str(TIME_NS)
    (failed,) = [each for each in found if each.get("status")]
    assert failed["status"] == {"code": 2, "message": "OperationalError"}
    told = {each["key"]: each["value"] for each in failed["attributes"]}
    assert told["db.query.text"] == {"stringValue": "select ?"}
    assert told["db.system.name"] == {"stringValue": "postgresql"}
    assert failed["kind"] == 3


def test_a_call_about_messages_has_their_topic_where_they_go(tmp_path):
    build = Build(tmp_path / "t.1.er")
    sends, names = build.intrinsic("confluent_kafka.Producer.produce", "db"), build.string("orders")
    build.events([event(10 * MS, 5 * MS, intrinsic=sends, detail=names, call=1)])
    build.thread(end_ns=START_NS + SECOND, tid=1, main=1, recorded=1, made=1)
    build.ended(SECOND, 0)
    found = spans(str(build.write()), tmp_path)
    (sent,) = [each for each in found if each["name"] == "produce orders"]
    told = {each["key"]: each["value"] for each in sent["attributes"]}

    assert told["messaging.system"] == {"stringValue": "kafka"}
    assert told["messaging.destination.name"] == {"stringValue": "orders"}
    assert told["messaging.operation.type"] == {"stringValue": "send"}
    assert sent["kind"] == 4
    assert not [key for key in told if key.startswith("db.")]


def test_names_are_data(tmp_path):
    made = exported(hostile(tmp_path), "otlp", tmp_path).read_bytes()

    assert b"\x1b" not in made
    assert len(spans_in(map(json.loads, made.splitlines()))) == 2


# --- a collector


class Collector:
    """Answers as it is told, the last answer again and again, and keeps what it took."""

    def __init__(self, *answers):
        self.answers = list(answers)
        self.taken, self.asked, self.headers, self.location = [], 0, {}, ""
        outer = self

        class Handler(BaseHTTPRequestHandler):
            def do_POST(self):
                outer.asked += 1
                outer.headers = {**self.headers, "path": self.path}
                data = gzip.decompress(self.rfile.read(int(self.headers["Content-Length"])))
                status, body = outer.answers.pop(0) if len(outer.answers) > 1 else outer.answers[0]
                if status == 0:
                    self.close_connection = True
                    return
                if status == 200:
                    outer.taken.append(json.loads(data))
                self.send_response(status)
                self.send_header("Content-Length", str(len(body)))
                if outer.location:
                    self.send_header("Location", outer.location)
                self.end_headers()
                self.wfile.write(body)

            def log_message(self, *_):
                pass

        self.server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.url = f"http://127.0.0.1:{self.server.server_port}"

    def __enter__(self):
        self.thread = threading.Thread(target=self.server.serve_forever)
        self.thread.start()
        return self

    def __exit__(self, *_):
        self.server.shutdown()
        self.server.server_close()
        self.thread.join()


OK = (200, b"{}")


def send(path, collector, *words):
    return main(["export", path, "--to", "otlp", "--endpoint", collector.url, *words])


@pytest.fixture(autouse=True)
def hurried(monkeypatch):
    monkeypatch.setattr(sending, "WAITS_S", (0.0,) * len(sending.WAITS_S))


def test_a_collector_takes_every_span_once(recorded, tmp_path, capsys):  # noqa: F811
    with Collector(OK) as collector:
        assert send(recorded, collector, "--header", "Authorization: Bearer x") == 0

    taken = spans_in(collector.taken)
    assert sorted(each["spanId"] for each in taken) == sorted(each["spanId"] for each in spans(recorded, tmp_path))
    assert collector.headers["path"] == "/v1/traces"
    assert collector.headers["Authorization"] == "Bearer x"
    assert capsys.readouterr().err == f"interpose: {len(taken):,} spans sent to {collector.url}/v1/traces\n"


@pytest.mark.parametrize("answer", [(503, b""), (429, b""), (0, b"")])
def test_what_is_refused_for_a_while_is_sent_again(tmp_path, answer):
    with Collector(answer, answer, OK) as collector:
        assert send(served(tmp_path), collector) == 0

    assert len(spans_in(collector.taken)) == 6


def test_a_collector_that_goes_away_is_not_asked_for_each_request(tmp_path, capsys, monkeypatch):
    monkeypatch.setattr(otlp, "SPANS_IN_A_REQUEST", 2)
    with Collector(OK, (0, b"")) as collector:
        assert send(served(tmp_path), collector) == 1

    assert "2 spans sent" in capsys.readouterr().err
    assert collector.asked == 1 + 1 + len(sending.WAITS_S)


@pytest.mark.parametrize(("answer", "asked"), [((500, b""), 1), ((400, b""), 1), ((503, b""), 5), ((0, b""), 5)])
def test_what_is_refused_for_good_is_counted_and_said_in_a_line(tmp_path, capsys, answer, asked):
    with Collector(answer) as collector:
        assert send(served(tmp_path), collector) == 1

    told = capsys.readouterr().err
    assert "0 spans sent" in told
    assert "6 lost (" in told
    assert told.count("\n") == 1
    assert collector.asked == asked


def test_spans_that_a_collector_does_not_take_are_lost(tmp_path, capsys):
    answer = json.dumps({"partialSuccess": {"rejectedSpans": "2", "errorMessage": "too old"}}).encode()
    with Collector((200, answer)) as collector:
        assert send(served(tmp_path), collector) == 1

    assert f"4 spans sent to {collector.url}/v1/traces; 2 lost (too old)" in capsys.readouterr().err


@pytest.mark.parametrize(
    "url",
    [
        *("localhost", "ftp://x", "http://", "file:///etc/passwd", "http://[::1", "http://u:secret@x:port/"),
        *("http://x/ä", "http://x/a b", "http://x:0"),
    ],
)
def test_what_is_no_endpoint_is_refused(tmp_path, capsys, url):
    assert main(["export", served(tmp_path), "--to", "otlp", "--endpoint", url]) == 2
    told = capsys.readouterr().err
    assert told.count("\n") == 1
    assert "secret" not in told


def test_a_password_in_the_address_is_sent_and_not_shown(tmp_path, capsys):
    with Collector(OK) as collector:
        collector.url = collector.url.replace("//", "//bob:s%40cret@")
        assert send(served(tmp_path), collector) == 0

    assert collector.headers["Authorization"] == f"Basic {base64.b64encode(b'bob:s@cret').decode()}"
    told = capsys.readouterr().err
    assert "6 spans sent to http://127.0.0.1:" in told and "bob" not in told and "cret" not in told


def test_a_key_in_the_address_is_sent_and_not_shown(tmp_path, capsys):
    with Collector(OK) as collector:
        collector.url += "/v1/traces?key=secret"
        assert send(served(tmp_path), collector) == 0

    assert collector.headers["path"] == "/v1/traces?key=secret"
    assert "secret" not in capsys.readouterr().err


@pytest.mark.parametrize("body", [b"[" * 60_000, b'{"partialSuccess": {"rejectedSpans": Infinity}}', b"\xff"])
def test_an_answer_that_makes_no_sense_loses_nothing(tmp_path, capsys, body):
    with Collector((200, body)) as collector:
        assert send(served(tmp_path), collector) == 0

    assert "lost" not in capsys.readouterr().err


@pytest.mark.parametrize("header", ["X: \u20ac", "Bearer secret", ": secret"])
def test_what_is_no_header_is_refused_and_not_shown(tmp_path, capsys, header):
    with Collector(OK) as collector:
        assert send(served(tmp_path), collector, "--header", header) == 2

    told = capsys.readouterr().err
    assert "--header" in told and "secret" not in told


def test_nobody_is_followed_to_another_address(tmp_path, capsys):
    with Collector(OK) as other, Collector((307, b"")) as collector:
        collector.location = other.url
        assert send(served(tmp_path), collector, "--header", "Authorization: Bearer x") == 1

    assert other.asked == 0
    assert "6 lost (307" in capsys.readouterr().err


def test_headers_are_for_endpoints_alone(tmp_path, capsys):
    assert main(["export", served(tmp_path), "--to", "otlp", "--header", "a: b"]) == 2
    assert capsys.readouterr().err == "interpose: --header needs --endpoint\n"


@pytest.mark.packages
def test_opentelemetrys_own_messages_have_the_same(recorded, tmp_path):  # noqa: F811
    service = pytest.importorskip("opentelemetry.proto.collector.trace.v1.trace_service_pb2")
    from google.protobuf import json_format

    lines = exported(recorded, "otlp", tmp_path).read_text().splitlines()
    whole = service.ExportTraceServiceRequest()
    for line in lines:
        made = json_format.ParseDict(as_protobuf_has_it(json.loads(line)), service.ExportTraceServiceRequest())
        whole.MergeFrom(made)

    found = [span for each in whole.resource_spans for scope in each.scope_spans for span in scope.spans]
    assert len(found) == len(spans(recorded, tmp_path))
    assert {(len(each.trace_id), len(each.span_id)) for each in found} == {(16, 8)}
    assert any(each.status.code == each.status.STATUS_CODE_ERROR for each in found)


def as_protobuf_has_it(value):
    """In OpenTelemetry's JSON identities are hexadecimal; in that of Protocol Buffers bytes are base64."""
    if isinstance(value, list):
        return [as_protobuf_has_it(each) for each in value]
    if not isinstance(value, dict):
        return value
    ids = ("traceId", "spanId", "parentSpanId")
    return {
        key: base64.b64encode(bytes.fromhex(each)).decode() if key in ids else as_protobuf_has_it(each)
        for key, each in value.items()
    }
