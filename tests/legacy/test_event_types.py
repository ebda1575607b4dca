"""The event types of the Natural Profiler: which codes there are, and which events calls stand for."""

import json
from collections import Counter

from interpose.analysis.calls.trace import trace
from interpose.experiments.model.experiment import Experiment
from interpose.legacy.codes import BY_CODE, CODES, GROUPS
from interpose.legacy.event_types import codes_of, event_types
from tests.build import START_NS, Build, event

REFERENCE = "SI ST PL PS PT PR DB DA IB IA CB CA RO RI RS NS E U MP N"


def test_every_code_of_the_reference_is_known_once_under_a_name_of_today():
    assert [each.code for each in CODES] == REFERENCE.split()
    assert len({each.name for each in CODES}) == len(CODES)
    assert all(code in BY_CODE for codes in GROUPS.values() for code in codes)


def test_each_kind_of_call_has_its_codes():
    assert codes_of("db", "sqlite3.Connection.execute") == ("DB", "DA")
    assert codes_of("net", "requests.Session.send") == codes_of("net", "socket.socket.connect") == ("RO",)
    assert codes_of("net", "socket.socket.send") == codes_of("net", "http.client.HTTPConnection.getresponse") == ()
    assert codes_of("screen", "io.FileIO.write") == codes_of("screen", "input") == ("IB", "IA")
    assert codes_of("screen", "io.FileIO.close") == codes_of("screen", "termios.tcsetattr") == ()
    assert codes_of("logic", "interpose.transaction") == ("PS", "PT")
    assert codes_of("logic", "wsgiref.handlers.BaseHandler.run") == ("RI", "RS", "PT")
    assert codes_of("logic", "interpose.user_event") == ("U",)
    assert codes_of("logic", "interpose.statement") == ("NS",)
    assert codes_of("file", "os.stat") == ()


def test_calls_are_events_before_and_after_in_the_order_of_time_among_the_sessions_own(tmp_path):
    build = Build(tmp_path / "t.1.er")
    for name, kind in (("interpose.transaction", "logic"), ("sqlite3.connect", "db"), ("os.stat", "file")):
        build.intrinsic(name, kind)
    error = build.string("OSError")
    build.thread(end_ns=START_NS + 10_000, recorded=3, made=3)
    build.events(
        [
            event(1_100, 200, call=2, parent=1, intrinsic=2),
            event(1_400, 100, call=3, parent=1, intrinsic=3, error=error),
            event(1_000, 1_000, call=1),
        ]
    )
    for kind, after_ns in (("pause", 3_000), ("resume", 4_000)):
        build.log_events.append(f'<event kind="{kind}" time_ns="{START_NS + after_ns}"/>')
    build.ended(10_000, 8_000)
    experiment = Experiment(str(build.write()))

    found = [(each.code, each.name, each.text) for each in event_types(experiment, trace(experiment))]

    assert found == [
        ("SI", "session start", ""),
        ("PS", "transaction start", ""),
        ("DB", "before database call", ""),
        ("DA", "after database call", ""),
        ("", "file call", ""),
        ("E", "error", "OSError"),
        ("PT", "transaction end", ""),
        ("MP", "pause", ""),
        ("", "resume", ""),
        ("ST", "session end", ""),
    ]


def test_the_codes_stand_beside_the_names_in_reports(traced, interpose_here):
    done = traced("""
        import interpose, sqlite3
        sqlite3.connect(":memory:")
        interpose.user_event("paid")
    """)

    events = json.loads(interpose_here("events", "--codes", "natural", "--format", "json", done.path).stdout)
    kinds = interpose_here("report", "--codes", "natural", done.path).stdout.splitlines()
    told = [(row["code"], row["event"], row["intrinsic"]) for row in events if row["code"]]
    assert told[0] == ("SI", "session start", None)
    assert told[-1] == ("ST", "session end", None)
    assert ("DB", "before database call", "sqlite3.connect") in told
    assert ("U", "user event", "interpose.user_event") in told
    assert any(line.startswith("DB DA") and " db " in line for line in kinds)
    assert interpose_here("report", "--codes", "natural", "--by", "site", done.path).returncode == 2


REQUESTS = """
    import http.server, sys, threading, urllib.request

    class Handler(http.server.BaseHTTPRequestHandler):
        def do_GET(self):
            self.send_response(200)
            self.end_headers()
            self.wfile.write(b"well")

        def log_message(self, *words):
            pass

    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    for number in range(4):
        with urllib.request.urlopen(f"http://127.0.0.1:{server.server_port}/{number}") as answer:
            assert answer.read() == b"well"
    server.shutdown()
    print("done", flush=True)
"""


def test_a_request_is_one_outbound_request_and_closing_a_stream_no_terminal_io(traced, interpose_here):
    done = traced(REQUESTS)

    events = json.loads(interpose_here("events", "--codes", "natural", "--format", "json", done.path).stdout)
    found = Counter((row["code"], row["intrinsic"]) for row in events)
    assert {key: number for key, number in found.items() if key[0] == "RO"} == {("RO", "urllib.request.urlopen"): 4}
    assert {key[1] for key in found if key[0] == "IB"} <= {"io.FileIO.write"}
    assert done.events("io.FileIO.close")
