"""What greenlets wait for inside database and network calls: the waits of their loop, and findings."""

import json

import pytest
from edges import CONNECT, need
from tracing import traced  # noqa: F401

from interpose.analysis.analysis import Analysis
from interpose.analysis.findings.event_loops import awaits_one_by_one, slow_awaits
from interpose.analysis.findings.survey import Survey
from interpose.analysis.transactions.response_times import transactions

pytestmark = [pytest.mark.packages]

# A server of its own, which is not recorded, and says how long it took for each answer.
SLOW = '''
import http.server, time
class Slow(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    def do_GET(self):
        begun = time.monotonic_ns()
        time.sleep(0.05)
        body = str(time.monotonic_ns() - begun).encode()
        self.send_response(200)
        self.send_header("content-length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)
    def log_message(self, *arguments):
        pass
server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Slow)
print(server.server_port, flush=True)
server.serve_forever()
'''
# Both give how long the other end took.
ASKS = {
    "requests": """
import requests
def begin():
    return None
def ask(session):
    return int(requests.get(f"http://127.0.0.1:{port}/price").text)
""",
    "psycopg": CONNECT + """
import psycopg
def begin():
    made = connect("psycopg")
    made.autocommit = True
    return made
def ask(session):
    took = "1e9 * extract(epoch from clock_timestamp() - now())"
    return int(session.execute(f"select {took} from pg_sleep(0.05)").fetchone()[0])
""",
}
TIMED = """
import json, subprocess, sys, time
spans = {"asked": [], "rested": []}
took = []
def timed(name, work, *given):
    begun = time.monotonic_ns()
    result = work(*given)
    spans[name].append((begun, time.monotonic_ns()))
    return result
"""
GREENLETS = f"""
from gevent import monkey
monkey.patch_all()
import gevent
{TIMED}
slow = subprocess.Popen([sys.executable, "-S", "-c", {SLOW!r}], stdout=subprocess.PIPE, text=True)
port = int(slow.stdout.readline())
"""
END = """
slow.kill()
slow.wait()
print(json.dumps([spans, took]))
"""
INTRINSICS = {"requests": "requests.Session.send", "psycopg": "psycopg.Cursor.execute"}


@pytest.mark.parametrize("package", ASKS)
def test_a_loop_of_greenlets_is_idle_unless_one_awaits_an_answer(traced, package):  # noqa: F811
    need("gevent", package)

    done = traced(GREENLETS + ASKS[package] + """
def work():
    session = begin()
    for _ in range(3):
        took.append(timed("asked", ask, session))
        timed("rested", gevent.sleep, 0.05)
gevent.spawn(work).join()
""" + END, INTERPOSE_FOLLOW="off").ended_well()
    spans, _ = json.loads(done.stdout)
    process = done.experiment.founder
    polls = [(process.intrinsic(each.intrinsic).kind, each) for each in done.events("gevent.hub.Loop.poll")]

    def kinds_in(begun_ns, ended_ns):
        return {kind for kind, each in polls if begun_ns <= each.start_ns and each.start_ns + each.wall_ns <= ended_ns}

    assert [kinds_in(*span) for span in spans["asked"]] == [{"net"}] * 3
    assert [kinds_in(*span) for span in spans["rested"]] == [{"idle"}] * 3


@pytest.mark.parametrize("greenlets", [1, 4])
@pytest.mark.parametrize("package", ASKS)
def test_what_greenlets_awaited_is_a_finding_with_their_times(traced, package, greenlets):  # noqa: F811
    need("gevent", package)

    done = traced(GREENLETS + ASKS[package] + f"""
def work():
    session = begin()
    for _ in range({24 // greenlets}):
        took.append(timed("asked", ask, session))
if {greenlets > 1}:
    gevent.joinall([gevent.spawn(work) for _ in range({greenlets})])
else:  # the main one
    work()
""" + END, INTERPOSE_FOLLOW="off").ended_well()
    spans, took_ns = json.loads(done.stdout)
    survey = Survey(Analysis(done.experiment))
    [awaited] = [each for each in survey.awaited if each.intrinsic == INTRINSICS[package]]
    [slow] = [each for each in slow_awaits(survey) if each.rows and each.rows[0].intrinsic == awaited.intrinsic]

    assert len(awaited.spans) == slow.calls == len(took_ns) == 24
    assert sum(took_ns) <= awaited.sum_ns <= sum(ended - begun for begun, ended in spans["asked"])
    assert slow.bound_ns == awaited.wall_ns >= sum(took_ns) / greenlets
    assert slow.first.site.function == "ask"


def test_the_wait_of_a_driver_is_the_databases_in_a_greenlets_transaction(traced):  # noqa: F811
    need("gevent", "psycopg")

    done = traced(GREENLETS + ASKS["psycopg"] + """
import interpose
def work():
    session = begin()
    for _ in range(4):
        with interpose.transaction("order"):
            took.append(timed("asked", ask, session))
gevent.joinall([gevent.spawn(work) for _ in range(2)])
""" + END, INTERPOSE_FOLLOW="off").ended_well()
    spans, took_ns = json.loads(done.stdout)
    [order] = [row for row in transactions(Analysis(done.experiment)).rows if row.name == "order"]

    assert sum(took_ns) <= order.split["db"].wall_ns <= sum(ended - begun for begun, ended in spans["asked"])


KEPT = """
from gevent import pywsgi
def serve(environ, start_response):
    for _ in range(7):
        took.append(timed("asked", ask, session))
    start_response("200 OK", [("Content-Length", "2")])
    return [b"ok"]
session = begin()
server = pywsgi.WSGIServer(("127.0.0.1", 0), serve, log=None)
server.start()
VISIT = '''
import http.client, sys, time
client = http.client.HTTPConnection("127.0.0.1", int(sys.argv[1]))
for number in range(3):
    client.request("GET", f"/orders/{number}")
    client.getresponse().read()
    time.sleep(1.5)
'''
visitor = subprocess.Popen([sys.executable, "-S", "-c", VISIT, str(server.server_port)])
while visitor.poll() is None:
    gevent.sleep(0.05)
server.stop()
"""


def test_awaits_of_a_kept_connections_requests_are_one_by_one_in_each(traced):  # noqa: F811
    need("gevent", "psycopg")

    done = traced(GREENLETS + ASKS["psycopg"] + KEPT + END, INTERPOSE_FOLLOW="off").ended_well()
    awaited = awaits_one_by_one(Survey(Analysis(done.experiment)))
    [found] = [each for each in awaited if each.first.intrinsic == INTRINSICS["psycopg"]]

    assert (found.calls, found.units, found.unit) == (21, 3, "transaction")
    assert found.first.site.function == "ask"
