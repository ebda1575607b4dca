"""Packages recorded beside other tracers, coverage and clocks that stand still."""

import os
import subprocess
import sys
from collections import Counter

import pytest
from edges import CONNECT, counts, need
from tracing import environment, events_of

from interpose.experiments.model.experiment import Experiment

pytestmark = [pytest.mark.packages, pytest.mark.xdist_group("servers")]


# --- beside others that do the like

AGENTS = {
    "opentelemetry": """
from opentelemetry import trace
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter
from opentelemetry.instrumentation.flask import FlaskInstrumentor
from opentelemetry.instrumentation.psycopg2 import Psycopg2Instrumentor
from opentelemetry.instrumentation.redis import RedisInstrumentor
from opentelemetry.instrumentation.requests import RequestsInstrumentor
from opentelemetry.instrumentation.sqlite3 import SQLite3Instrumentor
kept, provider = InMemorySpanExporter(), TracerProvider()
provider.add_span_processor(SimpleSpanProcessor(kept))
trace.set_tracer_provider(provider)
INSTRUMENTORS = SQLite3Instrumentor, Psycopg2Instrumentor, RequestsInstrumentor, RedisInstrumentor, FlaskInstrumentor
def instrument():
    for each in INSTRUMENTORS:
        each().instrument()
def uninstrument():
    for each in INSTRUMENTORS:
        each().uninstrument()
def spans():
    return sorted(span.name for span in kept.get_finished_spans())
""",
    "ddtrace": """
import os
os.environ.update(DD_INSTRUMENTATION_TELEMETRY_ENABLED="false", DD_REMOTE_CONFIGURATION_ENABLED="false",
                  DD_TRACE_STARTUP_LOGS="false", DD_AGENT_PORT="9")
import ddtrace
from ddtrace.trace import TraceFilter, tracer
names = []
class Keep(TraceFilter):
    def process_trace(self, trace):
        names.extend(span.name for span in trace)
tracer.configure(trace_processors=[Keep()])
def instrument():
    ddtrace.patch(sqlite3=True, psycopg=True, requests=True, redis=True, flask=True, raise_errors=True)
def uninstrument():
    pass
def spans():
    return sorted(names)
""",
}
SHOPPING = """
import http.server, threading
def shopping():
    import flask, logging, requests, werkzeug.serving
    one, two = connect("sqlite3"), connect("psycopg2")
    print(fetch(one, "select 1"), fetch(two, "select generate_series(1, 3)"))
    with two.cursor() as cursor:
        cursor.execute("select %s, %s", (1, "two"))
        print(cursor.fetchone())
    two.close()
    three = store()
    print(three.set("agents", "1"), three.get("agents"), three.pipeline().get("agents").delete("agents").execute())
    logging.getLogger("werkzeug").setLevel("ERROR")
    shop = flask.Flask("shop")
    shop.route("/prices")(lambda: "salt")
    server = werkzeug.serving.make_server("127.0.0.1", 0, shop)
    serving = threading.Thread(target=server.serve_forever)
    serving.start()
    print(requests.get(f"http://127.0.0.1:{server.server_port}/prices").text)
    server.shutdown()
    serving.join()
"""
INSTRUMENTED = ("flask", "psycopg2", "redis", "requests", "sqlite3")
SHOPPED = {
    "sqlite3.Cursor.execute": 1, "psycopg2.cursor.execute": 2, "psycopg2.cursor.fetchone": 1, "psycopg2.connect": 1,
    "redis.Redis.execute_command": 2, "redis.Pipeline.execute": 1,
}  # fmt: skip


@pytest.mark.parametrize("first", ["imports", "agent"])
@pytest.mark.parametrize("agent", AGENTS)
def test_what_another_tracer_has_wrapped_is_wrapped_by_both(both, agent, first):
    need(agent, "flask", "psycopg2", "redis", "requests")
    if agent == "opentelemetry":
        need("opentelemetry.sdk", *(f"opentelemetry.instrumentation.{each}" for each in INSTRUMENTED))
    imports = "import flask, psycopg2, redis, requests, sqlite3\n" if first == "imports" else ""

    done = both(f"{AGENTS[agent]}{imports}instrument()\n{SHOPPING}shopping()\nprint(spans())\nuninstrument()")
    found = counts(done)

    assert {name: found[name] for name in SHOPPED} == SHOPPED
    assert len(done.events("requests.Session.send")) == len(done.events("flask.Flask.wsgi_app")) == 1


def test_clocks_that_stand_still_are_the_programs_alone(both):
    need("freezegun", "redis", "psycopg2")
    done = both("""
import asyncio, datetime, threading, time
import freezegun
with freezegun.freeze_time("2012-01-14 03:21:34") as frozen:
    print(datetime.datetime.now(), time.time(), time.localtime()[:3], time.monotonic() == time.monotonic())
    time.sleep(0.05)
    print(fetch(connect("psycopg2"), "select 1 from pg_sleep(0.05)"), store().ping(), time.time())
    lock = threading.Lock()
    lock.acquire()
    threading.Timer(0, lock.release).start()
    print(lock.acquire())
    frozen.move_to("1969-01-01")
    print(time.time(), fetch(connect("sqlite3"), "select 2"))
print(freezegun.api.real_time is time.time)
@freezegun.freeze_time("2001-01-01", real_asyncio=True)
async def main():
    await asyncio.sleep(0.02)
    return time.time()
print(asyncio.run(main()))
    """)
    [slept] = done.events("time.sleep")
    [asked] = done.events("psycopg2.cursor.execute")

    assert 50e6 <= slept.wall_ns < 10e9
    assert 50e6 <= asked.wall_ns < 10e9
    assert done.experiment.founder.log.start_ns < slept.start_ns


@pytest.mark.long
def test_coverage_measures_the_same_to_the_last_and_of_children(tmp_path):
    """Its own database at the end of the program, and of its children, where it has a start-up file of its own."""
    coverage = pytest.importorskip("coverage")
    (tmp_path / "shop.py").write_text(
        "import subprocess, sys\n"
        "def sell(left):\n    if left:\n        return sell(left - 1)\n    return 'sold'\n"
        "if __name__ == '__main__':\n"
        "    if len(sys.argv) == 1:\n        subprocess.run([sys.executable, __file__, 'child'], check=True)\n"
        "    print(sell(3))\n"
    )
    (tmp_path / "settings").write_text("[run]\nparallel = true\nsource = .\npatch = subprocess\n")
    found = {}
    for on in "01":
        data = tmp_path / f"data{on}"
        data.mkdir()
        words = ["coverage", "run", "--rcfile", "settings", "--data-file", f"{data}/it", "shop.py"]
        words = [sys.executable, "-m", *words]
        done = subprocess.run(words, cwd=tmp_path, env=environment(INTERPOSE=on), capture_output=True, text=True)
        kept = [coverage.CoverageData(str(path)) for path in data.iterdir()]
        [each.read() for each in kept]
        lines = sorted(sorted(each.lines(str(tmp_path / "shop.py")) or []) for each in kept)
        found[on] = (done.returncode, done.stdout, done.stderr, lines)

    assert found["1"] == found["0"]
    assert len(found["1"][3]) == 2


def test_who_asks_for_it_twice_is_recorded_once(tmp_path):
    """By `interpose run` and the variable, by a recording within one, and in a child that is told again."""
    need("redis", "psycopg2")
    (tmp_path / "program.py").write_text(CONNECT + """
import os, subprocess, sys
import psycopg2
print(fetch(connect("psycopg2"), "select 1"), store().ping())
if len(sys.argv) == 1:
    words = [sys.executable, "-m", "interpose", "run", sys.executable, __file__, "child"]
    print(subprocess.run(words, env={**os.environ, "INTERPOSE": "1"}, capture_output=True, text=True).stdout)
""")
    words = [sys.executable, "-m", "interpose", "run", sys.executable, "program.py"]
    env = environment(INTERPOSE="1", XDG_STATE_HOME=str(tmp_path / "state"))
    done = subprocess.run(words, cwd=tmp_path, env=env, capture_output=True, text=True, timeout=120)
    found = Counter()
    for name in sorted(os.listdir(tmp_path)):
        if name.endswith(".er"):
            for process in Experiment(str(tmp_path / name)).processes:
                found.update(process.intrinsic(each.intrinsic).name for each in events_of(process))

    assert done.stdout.count("[1] True") == 2, done.stderr
    assert found["psycopg2.cursor.execute"] == found["redis.Redis.execute_command"] == 2
