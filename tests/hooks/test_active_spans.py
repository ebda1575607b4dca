"""Spans of OpenTelemetry and ddtrace, kept with the transactions that they were active in: the truth is what those
tracers exported."""

import json

import pytest

from interpose.cli.main import main
from tests.exports.test_other_readers import Replay
from tests.exports.test_spans import exported, spans_in

pytestmark = pytest.mark.packages

OPENTELEMETRY = """
from opentelemetry import trace
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter
kept, provider = InMemorySpanExporter(), TracerProvider()
provider.add_span_processor(SimpleSpanProcessor(kept))
trace.set_tracer_provider(provider)
span = trace.get_tracer("test").start_as_current_span
def spans():
    found = [(each.name, each.context) for each in kept.get_finished_spans()]
    return {name: f"opentelemetry {context.trace_id:032x} {context.span_id:016x}" for name, context in found}
"""
DDTRACE = """
import os
os.environ.update(DD_INSTRUMENTATION_TELEMETRY_ENABLED="false", DD_REMOTE_CONFIGURATION_ENABLED="false",
                  DD_TRACE_STARTUP_LOGS="false", DD_AGENT_PORT="9")
from ddtrace.trace import TraceFilter, tracer
ended = []
class Keep(TraceFilter):
    def process_trace(self, trace):
        ended.extend(trace)
tracer.configure(trace_processors=[Keep()])
span = tracer.trace
def spans():
    return {each.name: f"ddtrace {each.trace_id:032x} {each.span_id:016x}" for each in ended}
"""
TRACERS = {"opentelemetry": OPENTELEMETRY, "ddtrace": DDTRACE}
WORKING = """
import asyncio, io, json, sys, threading
from wsgiref.handlers import SimpleHandler
from interpose import transaction
def application(environ, start_response):
    with span("served"):
        with span("query"):
            start_response("200 OK", [])
    return [b"ok"]
environ = {"REQUEST_METHOD": "GET", "PATH_INFO": "/x", "SERVER_PROTOCOL": "HTTP/1.0"}
SimpleHandler(io.BytesIO(), io.BytesIO(), sys.stderr, environ).run(application)
with span("outside"):
    with transaction("inside"):
        with span("part of it"):
            pass
with transaction("by itself"):
    pass
async def job(number):
    with transaction(f"job {number}"):
        await asyncio.sleep(0.001 * (5 - number))
        with span(f"span {number}"):
            await asyncio.sleep(0.01)
async def main():
    await asyncio.gather(*map(job, range(5)))
asyncio.run(main())
def in_a_thread():
    with transaction("in a thread"), span("on a thread"):
        pass
thread = threading.Thread(target=in_a_thread)
thread.start()
thread.join()
print(json.dumps(spans()))
"""
EXPECTED = {
    "GET /x": "served",
    "inside": "outside",
    "by itself": None,
    **{f"job {number}": f"span {number}" for number in range(5)},
    "in a thread": "on a thread",
}


def shown(capsys, path):
    """The spans of other tracers by the name of the transaction, as `events` shows them."""
    assert main(["events", path, "--format", "json"]) == 0
    rows = json.loads(capsys.readouterr().out)
    rows = rows if isinstance(rows, list) else rows["rows"]
    return {row["detail"]: row["other_spans"] for row in rows if row["kind"] == "logic" and row["detail"] in EXPECTED}


@pytest.mark.parametrize("tracer", TRACERS)
def test_a_transaction_has_the_first_span_that_was_active_in_it(traced, capsys, tracer):
    pytest.importorskip("opentelemetry.sdk" if tracer == "opentelemetry" else tracer)

    done = traced(TRACERS[tracer] + WORKING)

    assert done.returncode == 0, done.stderr
    theirs = {None: None, **json.loads(done.stdout)}
    assert shown(capsys, done.path) == {name: theirs[span] for name, span in EXPECTED.items()}
    assert main(["export", done.path, "--to", "otlp"]) == 0
    spans = spans_in(map(json.loads, capsys.readouterr().out.splitlines()))
    links = sorted(f"{tracer} {link['traceId']} {link['spanId']}" for span in spans for link in span.get("links", ()))
    expected = sorted(theirs[span] for span in EXPECTED.values() if span)
    assert links == expected
    assert main(["export", done.path, "--to", "chrome"]) == 0
    slices = json.loads(capsys.readouterr().out)["traceEvents"]
    told = [each["args"]["other_spans"] for each in slices if "other_spans" in each.get("args", ())]
    assert sorted(told) == expected
    assert not done.events("opentelemetry.context.ContextVarsRuntimeContext.attach")
    assert not done.events("ddtrace.trace.Tracer.start_span")


@pytest.mark.parametrize("tracer", TRACERS)
def test_readers_of_traces_and_tables_see_the_spans_of_other_tracers(traced, capsys, tmp_path, tracer):
    pytest.importorskip("opentelemetry.sdk" if tracer == "opentelemetry" else tracer)
    pytest.importorskip("duckdb")
    done = traced(TRACERS[tracer] + WORKING)
    theirs = {None: None, **json.loads(done.stdout)}
    by_name = {name: theirs[span] for name, span in EXPECTED.items()}

    replay = Replay(exported(done.path, "perfetto", tmp_path))
    arguments = [(of, {each.name_iid: each for each in event.debug_annotations}) for _, _, of, event in replay.slices]
    text = {
        replay.texts[of][told[3].string_value_iid]: replay.texts[of][told[5].string_value_iid] if 5 in told else None
        for of, told in arguments
        if 3 in told
    }
    query = (
        "select detail, tracer, trace, span from calls left join spans using (experiment, process, thread, call)"
        " where kind = 'logic'"
    )
    assert main(["sql", query, done.path, "--format", "json"]) == 0
    rows = json.loads(capsys.readouterr().out)

    assert {name: text[name] for name in EXPECTED} == by_name
    spans = [(row["detail"], row["tracer"] and f"{row['tracer']} {row['trace']} {row['span']}") for row in rows]
    assert {name: dict(spans)[name] for name in EXPECTED} == by_name


def test_both_tracers_may_run_in_one_program(traced, capsys):
    pytest.importorskip("opentelemetry.sdk")
    pytest.importorskip("ddtrace")

    done = traced(
        "import contextlib\n"
        + OPENTELEMETRY
        + "one, ours = span, spans\n"
        + DDTRACE
        + "two, theirs = span, spans\n"
        + "@contextlib.contextmanager\n"
        + "def span(name):\n    with one(name), two(name):\n        yield\n"
        + "def spans():\n    return {name: f'{ours()[name]}, {theirs()[name]}' for name in ours()}\n"
        + WORKING
    )

    assert done.returncode == 0, done.stderr
    theirs = {None: None, **json.loads(done.stdout)}
    assert shown(capsys, done.path) == {name: theirs[span] for name, span in EXPECTED.items()}


def test_the_span_of_another_program_is_no_link(traced, capsys):
    pytest.importorskip("opentelemetry.sdk")

    done = traced(OPENTELEMETRY + """
from interpose import transaction
from opentelemetry.context import attach
from opentelemetry.trace import NonRecordingSpan, SpanContext, set_span_in_context
for is_remote in (True, False):
    attach(set_span_in_context(NonRecordingSpan(SpanContext(5, 7, is_remote))))
    with transaction("inside" if is_remote else "by itself"):
        pass
""").ended_well()

    assert shown(capsys, done.path) == {"inside": None, "by itself": f"opentelemetry {5:032x} {7:016x}"}


def test_a_module_with_such_a_name_that_is_no_tracer_does_no_harm(traced, capsys):
    done = traced("""
import contextvars, sys, types
from interpose import transaction
class Odd:
    def __getattr__(self, name):
        raise SystemExit(1)
class Span(Odd):
    trace_id, span_id = "x", -1
names = ("opentelemetry", "opentelemetry.context", "opentelemetry.context.contextvars_context",
         "opentelemetry.trace", "opentelemetry.trace.propagation", "ddtrace", "ddtrace._trace",
         "ddtrace._trace.tracer", "ddtrace._trace.provider")
for name in names:
    sys.modules[name] = types.ModuleType(name)
class ContextVarsRuntimeContext:
    def attach(self, context):
        raise ValueError(context)
class Tracer:
    def start_span(self, name):
        return name
sys.modules[names[2]].ContextVarsRuntimeContext = ContextVarsRuntimeContext
sys.modules["ddtrace._trace.tracer"].Tracer = Tracer
variable = contextvars.ContextVar("x")
holder = types.SimpleNamespace(_current_context=variable)
for value, context in ((Odd(), Odd()), (Span(), holder), ({"key": Span()}, 5), ({"key": Span()}, holder)):
    variable.set(value)
    sys.modules["opentelemetry.context"]._RUNTIME_CONTEXT = context
    sys.modules["opentelemetry.trace.propagation"]._SPAN_KEY = []
    sys.modules["ddtrace._trace.provider"]._DD_CONTEXTVAR = variable
    with transaction("inside"):
        assert Tracer().start_span("x") == "x"
        try:
            ContextVarsRuntimeContext().attach(1)
        except ValueError as error:
            assert error.args == (1,)
""").ended_well()

    assert shown(capsys, done.path) == {"inside": None}
