"""Spans of threaded programs with tasks: each is in the trace of the span around it."""

import json

import pytest

from interpose.experiments.model.experiment import Experiment
from interpose.exports import live_spans
from interpose.exports.identities import seed_of, span_of
from interpose.exports.live_spans import LiveSpans
from interpose.exports.otlp import requests
from tests.build import SECOND, START_NS, Build, event
from tests.exports.test_exports import exported
from tests.exports.test_spans import spans_in

pytestmark = pytest.mark.every_python

THREADS = """
    import asyncio, sqlite3, sys, threading
    from interpose import transaction
    sys.setswitchinterval(1e-5)
    lock = threading.Lock()
    def compute():
        for _ in range(300):
            with lock:
                sum(range(300))
    async def query(number):
        with transaction(f"query {number}"):
            await asyncio.sleep(0.001)
            sqlite3.connect(":memory:").execute("select 1")
            compute()
    async def both():
        await asyncio.gather(query(1), query(2), asyncio.to_thread(compute))
    def work(number):
        with transaction(f"job {number}"):
            compute()
            asyncio.run(both())
            sqlite3.connect(":memory:").execute("select 2")
        compute()
        asyncio.run(both())
    threads = [threading.Thread(target=work, args=(number,)) for number in range(3)]
    [each.start() for each in threads]
    [each.join() for each in threads]
"""


def attribute(span, key):
    return next((each["value"].get("stringValue") for each in span.get("attributes", ()) if each["key"] == key), None)


def spans_of(done, tmp_path):
    """The spans of the only experiment of a run."""
    return spans_in(map(json.loads, exported(done.path, "otlp", tmp_path).read_text().splitlines()))


def strangers(spans):
    """Spans that are not in the trace of the span around them."""
    traces = {each["spanId"]: each["traceId"] for each in spans}
    assert len(traces) == len(spans)
    return [each for each in spans if traces.get(each.get("parentSpanId"), each["traceId"]) != each["traceId"]]


@pytest.mark.long
def test_every_span_is_in_the_trace_of_its_parent(traced, tmp_path):
    done = traced(THREADS).ended_well()
    spans = spans_of(done, tmp_path)
    live = spans_in(json.loads(request) for request, _ in LiveSpans().requests(done.experiment))
    roots = [each for each in spans if not each.get("parentSpanId")]
    named = {attribute(each, "interpose.detail") for each in roots}

    assert strangers(spans) == strangers(live) == []
    assert len({each["traceId"] for each in spans}) == 1 + 3 + 3 * 2  # the program, its jobs, and queries in no job
    assert {"job 0", "job 1", "job 2", "query 1", "query 2"} <= named
    assert {(each["spanId"], each["traceId"]) for each in live} == {(each["spanId"], each["traceId"]) for each in spans}


SERVED = """
    import http.client, socket, sys, threading
    import fastapi, uvicorn
    sys.setswitchinterval(1e-5)
    shop = fastapi.FastAPI()
    MIDDLEWARE
    @shop.get("/orders/{number}")
    def order(number: int):
        return sum(range(200_000))
    @shop.get("/stock/{number}")
    async def stock(number: int):
        return sum(range(200_000))
    server = uvicorn.Server(uvicorn.Config(shop, log_level="critical", lifespan="off"))
    listening = socket.create_server(("127.0.0.1", 0))
    serving = threading.Thread(target=server.run, args=([listening],))
    serving.start()
    def ask():
        for number in range(8):
            for path in (f"/orders/{number}", f"/stock/{number}"):
                client = http.client.HTTPConnection(*listening.getsockname())
                client.request("GET", path)
                client.getresponse().read()
                client.close()
    asking = [threading.Thread(target=ask) for _ in range(3)]
    [each.start() for each in asking]
    [each.join() for each in asking]
    server.should_exit = True
    serving.join()
"""


IN_ITS_OWN_TASK = """@shop.middleware("http")
    async def middleware(request, call_next):
        return await call_next(request)
"""


@pytest.mark.packages
@pytest.mark.parametrize("middleware", ["", IN_ITS_OWN_TASK])
def test_every_span_of_a_server_with_threads_is_in_the_trace_of_its_parent(traced, tmp_path, middleware):
    for package in ("fastapi", "uvicorn"):
        pytest.importorskip(package)

    done = traced(SERVED.replace("MIDDLEWARE\n", middleware or "\n")).ended_well()
    spans = spans_of(done, tmp_path)
    live = spans_in(json.loads(request) for request, _ in LiveSpans().requests(done.experiment))

    assert strangers(spans) == strangers(live) == []
    assert len({each["traceId"] for each in spans}) == 1 + 3 * 8 * 2
    assert {(each["spanId"], each["traceId"]) for each in live} == {(each["spanId"], each["traceId"]) for each in spans}


@pytest.mark.any_python
@pytest.mark.parametrize("remembered", [live_spans.REMEMBERED, 0])
@pytest.mark.parametrize("order", [(1, 2, 3), (3, 2, 1), (2, 3, 1), (2, 1, 3)])
def test_work_of_threads_for_inner_transactions_has_the_trace_of_the_outermost(
    tmp_path, monkeypatch, order, remembered
):
    monkeypatch.setattr(live_spans, "REMEMBERED", remembered)
    build = Build(tmp_path / "t.1.er")
    serve = build.intrinsic("app.serve", "logic", transaction="is")
    work = build.intrinsic("contextvars.Context.run", "logic", transaction="continues")
    stat = build.intrinsic("os.stat", "file")
    calls = {
        1: [event(11, 80, intrinsic=serve, call=2, parent=1), event(10, 90, intrinsic=serve, call=1)],
        2: [event(21, 2, intrinsic=stat, call=2, parent=1), event(20, 50, intrinsic=work, call=1)],
        3: [event(30, 9, intrinsic=work, call=1)],
    }
    for thread in order:
        build.block([{**each, "thread": thread} for each in calls[thread]])
    for thread in calls:
        build.thread(end_ns=START_NS + SECOND, tid=thread, recorded=len(calls[thread]), made=len(calls[thread]))
    build.ended(SECOND, 0)
    seed = seed_of(Experiment(str(build.write())).founder.log)
    for thread, around, call in ((2, 1, 2), (3, 2, 2)):
        build.context(0xBAD, int(span_of(seed, around, call), 16), thread=thread, call=1)
    experiment = Experiment(str(build.write()))

    kept = spans_in(json.loads(request) for request, _ in requests(experiment))
    live = spans_in(json.loads(request) for request, _ in LiveSpans().requests(experiment))

    assert strangers(kept) == []
    assert len({each["traceId"] for each in kept}) == 2
    assert sorted(each["spanId"] for each in live) == sorted(each["spanId"] for each in kept)
    assert not remembered or sorted(map(str, live)) == sorted(map(str, kept))
