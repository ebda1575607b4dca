"""What a transaction runs in other threads, in copies of its context, counts under the transaction's name."""

import json
import sys
import textwrap

import pytest

from interpose.analysis.analysis import Analysis
from interpose.analysis.findings import engine
from interpose.analysis.findings.statements import repeated_statements
from interpose.analysis.findings.survey import Survey
from interpose.analysis.transactions.response_times import transactions

WORK = """
    import asyncio, contextvars, functools, gc, json, os, sqlite3, sys, threading, time
    from concurrent.futures import ThreadPoolExecutor
    from interpose import transaction

    measured = {}
    def sleep(name, seconds=0.01):
        begun = time.perf_counter()
        time.sleep(seconds)
        measured[name] = measured.get(name, 0) + time.perf_counter() - begun
"""
SAID = """
    print(json.dumps(measured))
"""
CONTINUED = "contextvars.Context.run"
ONE_MS = 1_000_000


def found_in(done):
    """The rows of transactions by name; their threads' time adds up to that of all threads."""
    made = transactions(Analysis(done.experiment))
    analysis = Analysis(done.experiment)
    assert abs(sum(row.thread_ns for row in made.rows) - analysis.total.wall_ns) < ONE_MS
    assert all(thread.adds_up for thread in done.experiment.founder.threads)
    return {row.name: row for row in made.rows}


def slept_ns(row):
    return row.split["sleep"].wall_ns if "sleep" in row.split else 0


def as_measured(done, rows):
    """Whether each name has the sleeps that the program measured under it, and no other has any."""
    measured = json.loads(done.stdout)
    for name, seconds in measured.items():
        assert slept_ns(rows[name]) == pytest.approx(seconds * 1e9, rel=0.1, abs=ONE_MS), name
    assert {name for name, row in rows.items() if slept_ns(row) > ONE_MS} == set(measured)
    return True


@pytest.mark.interpreter_lock
def test_what_a_coroutine_runs_in_a_thread_is_its_transactions(traced):
    done = traced(WORK + """
    @transaction("job")
    async def job():
        begun = time.perf_counter()
        await asyncio.to_thread(sleep, "job")
        took.append(time.perf_counter() - begun)
    async def main():
        for _ in range(10):
            await job()
        await asyncio.to_thread(sleep, ".OTHER")  # of none: the thread is not in one
    took = []
    asyncio.run(main())
    measured[".IDLE"] = measured.pop(".OTHER")
    measured[".took"] = sum(took)
    """ + SAID).ended_well()
    rows = found_in(done)
    measured = json.loads(done.stdout)
    job = rows["job"]

    assert job.sums.calls == 10
    assert 10 * 10 * ONE_MS <= slept_ns(job) <= measured["job"] * 1e9  # at least as long as asked for
    assert job.response_ns == pytest.approx(measured[".took"] * 1e9, rel=0.1, abs=2 * ONE_MS)
    assert job.thread_ns + job.overlap_ns == sum(share.wall_ns for share in job.split.values())
    assert {done.experiment.founder.string(each.detail) for each in done.events(CONTINUED)} == {"job"}
    assert len(done.events(CONTINUED)) == 10


def test_a_context_that_is_handed_to_a_thread_carries_its_transaction_and_a_plain_function_does_not(traced):
    done = traced(WORK + """
    def in_pool():
        with transaction("submitted"):
            pool.submit(contextvars.copy_context().run, sleep, "submitted").result()
        with transaction("plain"):
            pool.submit(sleep, ".between").result()
        with transaction("by thread"):
            thread = threading.Thread(target=contextvars.copy_context().run, args=(sleep, "by thread"))
            thread.start()
            thread.join()
        contextvars.copy_context().run(sleep, ".INIT")
    async def in_executor():
        loop = asyncio.get_running_loop()
        with transaction("executor"):
            call = functools.partial(contextvars.copy_context().run, sleep, "executor")
            await loop.run_in_executor(pool, call)
        with transaction("no copy"):
            await loop.run_in_executor(pool, sleep, ".between")
    with ThreadPoolExecutor(1) as pool:
        in_pool()
        asyncio.run(in_executor())
    measured = {name: seconds for name, seconds in measured.items() if name[0] != "."}
    """ + SAID)
    rows = found_in(done)
    named = {name: row for name, row in rows.items() if row.is_named}

    assert done.stderr == ""
    assert as_measured(done, {name: row for name, row in rows.items() if row.is_named})
    assert set(named) == {"submitted", "plain", "by thread", "executor", "no copy"}
    assert [row.sums.calls for row in named.values()] == [1] * 5


@pytest.mark.interpreter_lock
def test_tasks_that_a_transaction_begins_take_it_to_their_threads(traced):
    done = traced(WORK + """
    async def deeper():
        await asyncio.gather(asyncio.to_thread(sleep, "gathered", 0.1), asyncio.to_thread(sleep, "gathered", 0.1))
    @transaction("gathered")
    async def gathered():
        await asyncio.gather(asyncio.to_thread(sleep, "gathered", 0.1), asyncio.create_task(deeper()))
    async def main():
        await gathered()
        await asyncio.gather(asyncio.to_thread(time.sleep, 0.001))
    asyncio.run(main())
    """ + SAID)
    rows = found_in(done)

    assert slept_ns(rows["gathered"]) == pytest.approx(json.loads(done.stdout)["gathered"] * 1e9, rel=0.1)
    assert (rows["gathered"].sums.calls, len(done.events(CONTINUED))) == (1, 3)
    assert rows["gathered"].response_ns < slept_ns(rows["gathered"])  # three at a time


@pytest.mark.interpreter_lock
def test_transactions_that_overlap_keep_apart_what_one_worker_does_for_them(traced):
    done = traced(WORK + """
    async def serve(name, seconds):
        with transaction(name):
            for _ in range(5):
                call = functools.partial(contextvars.copy_context().run, sleep, name, seconds)
                await asyncio.get_running_loop().run_in_executor(pool, call)
    async def main():
        await asyncio.gather(serve("a", 0.002), serve("b", 0.006))
    with ThreadPoolExecutor(1) as pool:
        asyncio.run(main())
    """ + SAID)
    founder = done.experiment.founder

    assert as_measured(done, found_in(done))
    assert [founder.string(each.detail) for each in done.events(CONTINUED)] == ["a", "b"] * 5


def test_contexts_within_contexts_belong_to_the_outermost_and_a_threads_own_transaction_stays_its_own(traced):
    done = traced(WORK + """
    def deeper():
        inner = contextvars.copy_context()
        inner.run(sleep, "outer")
        with ThreadPoolExecutor(1) as further:  # a thread of a thread
            further.submit(contextvars.copy_context().run, sleep, "outer").result()
        with transaction("inside"):
            sleep("outer")
    def own():
        with transaction("own"):
            of_outer.run(sleep, "own")
    with ThreadPoolExecutor(1) as pool, transaction("outer"):
        of_outer = contextvars.copy_context()
        pool.submit(contextvars.copy_context().run, deeper).result()
        pool.submit(own).result()
    """ + SAID)

    assert as_measured(done, found_in(done))


def test_a_thread_that_goes_on_after_its_transaction_ended_is_still_its(traced):
    done = traced(WORK + """
    with ThreadPoolExecutor(1) as pool:
        with transaction("short"):
            going_on = pool.submit(contextvars.copy_context().run, sleep, "short", 0.05)
        going_on.result()
    """ + SAID)
    rows = found_in(done)

    assert as_measured(done, rows)
    assert rows["short"].response_ns < 40 * ONE_MS
    assert rows["short"].thread_ns > 50 * ONE_MS


def test_an_address_that_is_used_again_carries_nothing(traced):
    done = traced(WORK + """
    def addresses():
        with transaction("gone"):
            return {id(context) for context in [contextvars.copy_context() for _ in range(50)]}
    with ThreadPoolExecutor(1) as pool:
        gone = addresses()
        others = [contextvars.copy_context() for _ in range(50)]
        assert gone & {id(context) for context in others}
        for context in others:
            pool.submit(context.run, time.sleep, 0).result()
    """)

    assert (done.returncode, done.events(CONTINUED)) == (0, [])


SAME = """
    import asyncio, contextvars, functools, gc, sys, threading, weakref
    from concurrent.futures import ThreadPoolExecutor
    from interpose import transaction
    variable = contextvars.ContextVar("variable", default="nothing")
    def change(value, *more, **named):
        before = variable.get()
        variable.set(value)
        return before, more, named
    def fails():
        raise KeyError("no such order")
    def names():
        return [each.name for each in contextvars.copy_context()]
    def deep(context, depth=0):
        try:
            return contextvars.copy_context().run(deep, context, depth + 1)
        except RecursionError:
            return depth
    def ends():
        marker = object()
        return marker
    async def awaited():
        variable.set("awaited")
        await asyncio.gather(asyncio.to_thread(change, "in a thread"), asyncio.sleep(0))
        waiting = asyncio.sleep(0)
        await asyncio.create_task(waiting)
        return variable.get(), names(), await asyncio.to_thread(names), weakref.getweakrefcount(waiting)
    with ThreadPoolExecutor(1) as pool, transaction("all"):
        context = contextvars.copy_context()
        print(pool.submit(context.run, change, "one", 2, three=4).result(), context[variable], variable.get())
        print(pool.submit(functools.partial(context.run, change, value="two")).result(), context[variable])
        for run in (context.run, functools.partial(pool.submit, context.run)):
            for arguments in ((), (1,), (fails,), (fails, 1), (context.run, fails)):
                try:
                    result = run(*arguments)
                    result.result()
                except Exception as error:
                    chain = error.__traceback__
                    print(type(error), str(error).split(" at 0x")[0], error.__context__)
        print(names(), pool.submit(context.run, names).result(), asyncio.run(awaited()))
        print(contextvars.copy_context().run is contextvars.copy_context().run, context.run == context.run)
        print(context.run.__name__, context.run.__self__ is context, contextvars.copy_context.__name__, type(context))
        sys.setrecursionlimit(300)
        print(deep(context))
        sys.setrecursionlimit(1000)
        print(weakref.getweakrefcount(context), sys.getrefcount(context), len(gc.get_referrers(context)))
        again = weakref.ref(context)
        del run, result, chain, context, arguments
        pool.submit(ends).result()
        gc.collect()
        print(again())
        try:
            asyncio.Task.__init__(1)
        except TypeError as error:
            print(error)
        try:
            contextvars.Context.run(1)
        except TypeError as error:
            print(error)
"""


def test_the_program_notices_nothing(both):
    assert both(textwrap.dedent(SAME)).returncode == 0


@pytest.mark.skipif(sys.version_info < (3, 14), reason="threads inherit contexts from CPython 3.14 on")
def test_a_pools_thread_that_inherits_a_context_is_not_its_transactions_for_good(traced):
    done = traced(WORK + """
    with ThreadPoolExecutor(1) as pool:
        with transaction("first"):
            pool.submit(time.sleep, 0.001).result()  # which starts the thread, in a copy of the context
        pool.submit(sleep, ".later").result()
    """, PYTHON_THREAD_INHERIT_CONTEXT="1")

    assert done.events(CONTINUED) == []


@pytest.mark.interpreter_lock
def test_statements_in_threads_are_reported_with_their_transaction(traced):
    done = traced(WORK + """
    def query():
        connection = sqlite3.connect(":memory:")
        for number in range(20):
            connection.execute("SELECT 1 + ?", (number,)).fetchall()
        connection.close()
    @transaction("shop")
    async def shop():
        await asyncio.gather(*(asyncio.to_thread(query) for _ in range(2)))
    async def main():
        for _ in range(5):
            await shop()
    asyncio.run(main())
    """)
    (finding,) = engine.found_in(Survey(Analysis(done.experiment)), 0, (repeated_statements,))

    assert (finding.transactions, finding.units, finding.unit) == (["shop"], 5, "transaction")


def test_sampled_transactions_decide_for_their_threads(traced):
    done = traced(WORK + """
    with ThreadPoolExecutor(1) as pool:
        for number in range(64):
            with transaction("one of many"):
                pool.submit(contextvars.copy_context().run, os.stat, "/").result()
    """, INTERPOSE_TRANSACTIONS="1/4", INTERPOSE_SEED="7")
    row = {each.name: each for each in transactions(Analysis(done.experiment)).rows}["one of many"]
    founder = done.experiment.founder
    kept = [each for each in done.events(CONTINUED) if not founder.intrinsic(each.intrinsic).passed_over]
    stats = [each for each in done.events("os.stat") if founder.string(each.detail) == "/"]

    assert (row.sums.calls, len(done.events(CONTINUED))) == (64, 64)
    assert 0 < row.kept < 64
    assert (len(kept), len(stats)) == (row.kept, row.kept)


ASGI = """
    async def call(path):
        bodies = [{"type": "http.request", "body": b"", "more_body": False}]
        async def receive():
            return bodies.pop() if bodies else await asyncio.Event().wait()
        async def send(message):
            statuses.append(message.get("status"))
        scope = {"type": "http", "method": "GET", "path": path, "raw_path": path.encode(), "query_string": b"",
                 "headers": [(b"host", b"x")], "http_version": "1.1", "scheme": "http", "root_path": "",
                 "server": ("x", 80), "client": ("y", 1), "asgi": {"version": "3.0"}}
        await app(scope, receive, send)
    statuses = []
"""


def test_endpoints_that_starlette_runs_in_threads(traced):
    pytest.importorskip("starlette")
    pytest.importorskip("anyio")
    done = traced(WORK + ASGI + """
    from starlette.applications import Starlette
    from starlette.responses import Response
    from starlette.routing import Route
    def plain(request):
        sleep(f"GET {request.url.path.rstrip('0123456789')}{{number}}")
        return Response("plain")
    app = Starlette(routes=[Route("/orders/{number}", plain), Route("/customers/{number}", plain)])
    async def main():
        for number in range(3):
            await asyncio.gather(call(f"/orders/{number}"), call(f"/customers/{number}"))
    asyncio.run(main())
    """ + SAID)
    rows = found_in(done)

    assert as_measured(done, rows)
    assert [rows[f"GET /{name}/{{number}}"].sums.calls for name in ("orders", "customers")] == [3, 3]


def test_views_that_django_runs_in_threads(traced):
    pytest.importorskip("django")
    done = traced(WORK + ASGI + """
    from django.conf import settings
    settings.configure(SECRET_KEY="x", ROOT_URLCONF="__main__", ALLOWED_HOSTS=["*"])
    import django
    django.setup()
    from django.http import HttpResponse
    from django.urls import path
    def plain(request, number):
        sleep("GET orders/<int:number>")
        return HttpResponse("plain")
    urlpatterns = [path("orders/<int:number>", plain)]
    from django.core.asgi import get_asgi_application
    app = get_asgi_application()
    async def main():
        for number in range(3):
            await call(f"/orders/{number}")
    asyncio.run(main())
    """ + SAID)
    rows = found_in(done)
    name = next(name for name in rows if "<int:number>" in name)

    assert slept_ns(rows[name]) == pytest.approx(sum(json.loads(done.stdout).values()) * 1e9, rel=0.1)
    assert rows[name].sums.calls == 3


def test_a_class_that_is_a_dict_and_a_coroutine_leaves_dicts_as_they_are(traced):
    done = traced("""
import asyncio, collections.abc
from interpose import transaction
class Both(dict, collections.abc.Coroutine):
    def send(self, value):
        raise StopIteration(7)
    def throw(self, *arguments):
        raise arguments[0]
    def close(self):
        pass
    def __await__(self):
        yield
async def main():
    with transaction("t"):
        print(await asyncio.Task(Both()))
asyncio.run(main())
nested = {}
for _ in range(200_000):
    nested = {"a": nested}
del nested
""")

    assert (done.returncode, done.stdout) == (0, "7\n")
