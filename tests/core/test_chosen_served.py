"""Sampling by transaction under servers and workers: what becomes of requests and tasks that overlap, and what is
estimated from those that were kept."""

import sys

import pytest
from chosen import Chosen
from tracing import run_in, write_program

from interpose.analysis.analysis import Analysis
from interpose.analysis.calls.profile import profile

pytestmark = pytest.mark.every_python

REQUESTS, CLIENTS = 120, 6
ONE_IN_THREE = {"INTERPOSE_TRANSACTIONS": "1/3", "INTERPOSE_SEED": "11"}

# A handler asks as often as the number says, and lets others go on in between; clients keep what they were answered.
COMMON = f"""
    import asyncio, http.client, os, socket, sqlite3, sys, threading, time
    REQUESTS, CLIENTS = {REQUESTS}, {CLIENTS}
    connection = sqlite3.connect(":memory:", check_same_thread=False)
    def ask(what):
        connection.execute(f"select 1 as {{what}}")
    def work(number):
        ask(f"begun_{{number}}")
        for _ in range(number % 5):
            ask(f"more_{{number}}")
        time.sleep(0.002)
        ask(f"ended_{{number}}")
        return f"order {{number}}"
    async def work_awaited(number):
        ask(f"begun_{{number}}")
        for _ in range(number % 5):
            await asyncio.sleep(0)
            ask(f"more_{{number}}")
        await asyncio.sleep(0.002)
        ask(f"ended_{{number}}")
        return f"order {{number}}"
    def listening():
        return socket.create_server(("127.0.0.1", 0), backlog=100)
    def order(port, numbers, answers):
        client = http.client.HTTPConnection("127.0.0.1", port, timeout=30)
        for number in numbers:
            client.request("GET", f"/orders/{{number}}")
            answer = client.getresponse()
            kept = [each for each in answer.getheaders() if each[0].lower() not in ("date", "server")]
            answers[number] = (answer.status, kept, answer.read())
        client.close()
    def order_all(port):
        answers = {{}}
        turns = [range(first, REQUESTS, CLIENTS) for first in range(CLIENTS)]
        clients = [threading.Thread(target=order, args=(port, each, answers)) for each in turns]
        [each.start() for each in clients]
        [each.join() for each in clients]
        for number in range(REQUESTS):
            print(number, *answers[number])
"""

FLASK = """
    import flask, logging
    from werkzeug.serving import make_server
    logging.getLogger("werkzeug").setLevel("ERROR")
    shop = flask.Flask("shop")
    shop.get("/orders/<int:number>")(work)
    server = make_server("127.0.0.1", 0, shop, threaded=True)
    serving = threading.Thread(target=server.serve_forever)
    serving.start()
    order_all(server.server_port)
    server.shutdown()
    serving.join()
"""
DJANGO = """
    import django, logging
    from django.conf import settings
    from django.core.servers.basehttp import ThreadedWSGIServer, WSGIRequestHandler
    from django.core.wsgi import get_wsgi_application
    from django.http import HttpResponse
    from django.urls import path
    logging.disable()
    def page(request, number):
        return HttpResponse(work(number))
    urlpatterns = [path("orders/<int:number>", page)]
    settings.configure(ROOT_URLCONF=__name__, ALLOWED_HOSTS=["*"], SECRET_KEY="hush")
    server = ThreadedWSGIServer(("127.0.0.1", 0), WSGIRequestHandler)
    server.set_app(get_wsgi_application())
    serving = threading.Thread(target=server.serve_forever)
    serving.start()
    order_all(server.server_port)
    server.shutdown()
    serving.join()
"""
UVICORN = """
    import uvicorn
    def serve(application):
        taken = listening()
        server = uvicorn.Server(uvicorn.Config(application, log_level="critical", lifespan="off", http="h11"))
        serving = threading.Thread(target=server.run, kwargs={"sockets": [taken]})
        serving.start()
        order_all(taken.getsockname()[1])
        server.should_exit = True
        serving.join()
"""
FASTAPI = UVICORN + """
    import fastapi
    shop = fastapi.FastAPI()
    @shop.get("/orders/{number}")
    async def order_of(number: int):
        return await work_awaited(number)
    serve(shop)
"""
STARLETTE = UVICORN + """
    from starlette.applications import Starlette
    from starlette.responses import PlainTextResponse
    from starlette.routing import Route
    async def order_of(request):
        return PlainTextResponse(await work_awaited(int(request.path_params["number"])))
    serve(Starlette(routes=[Route("/orders/{number}", order_of)]))
"""
MIDDLEWARE = UVICORN + """
    from starlette.applications import Starlette
    from starlette.middleware import Middleware
    from starlette.middleware.base import BaseHTTPMiddleware
    from starlette.responses import PlainTextResponse
    from starlette.routing import Route
    async def order_of(request):
        return PlainTextResponse(await work_awaited(int(request.path_params["number"])))
    class Passing(BaseHTTPMiddleware):
        async def dispatch(self, request, call_next):
            return await call_next(request)
    serve(Starlette(routes=[Route("/orders/{number}", order_of)], middleware=[Middleware(Passing)]))
"""
DJANGO_AWAITED = UVICORN + """
    import django, logging
    from django.conf import settings
    from django.core.asgi import get_asgi_application
    from django.http import HttpResponse
    from django.urls import path
    logging.disable()
    async def page(request, number):
        return HttpResponse(await work_awaited(number))
    urlpatterns = [path("orders/<int:number>", page)]
    settings.configure(ROOT_URLCONF=__name__, ALLOWED_HOSTS=["*"], SECRET_KEY="hush")
    serve(get_asgi_application())
"""
AIOHTTP = """
    from aiohttp import web
    async def order_of(request):
        return web.Response(text=await work_awaited(int(request.match_info["number"])))
    async def main():
        shop = web.Application()
        shop.router.add_get("/orders/{number}", order_of)
        runner = web.AppRunner(shop)
        await runner.setup()
        taken = listening()
        await web.SockSite(runner, taken).start()
        await asyncio.to_thread(order_all, taken.getsockname()[1])
        await runner.cleanup()
    asyncio.run(main())
"""
SERVERS = {
    "flask": (FLASK, ["flask"]),
    "django": (DJANGO, ["django"]),
    "django awaited": (DJANGO_AWAITED, ["django", "uvicorn"]),
    "fastapi": (FASTAPI, ["fastapi", "uvicorn"]),
    "starlette": (STARLETTE, ["starlette", "uvicorn"]),
    "middleware": (MIDDLEWARE, ["starlette", "uvicorn"]),
    "aiohttp": (AIOHTTP, ["aiohttp"]),
}


def asked_for(number):
    """What the handler of that number asks, in its order."""
    return [f"begun_{number}", *[f"more_{number}"] * (number % 5), f"ended_{number}"]


ASKED = sum(len(asked_for(number)) for number in range(REQUESTS))


def untraced(tmp_path, source):
    done = run_in(tmp_path, [sys.executable, str(write_program(tmp_path, source))])
    assert (done.returncode, done.stderr) == (0, "")
    return done.stdout


@pytest.mark.packages
@pytest.mark.parametrize("server", SERVERS)
def test_requests_that_overlap_are_kept_whole_or_passed_over_whole_and_what_all_called_is_within_the_margin(
    traced, tmp_path, server
):
    source, packages = SERVERS[server]
    for package in packages:
        pytest.importorskip(package)
    plain = untraced(tmp_path, COMMON + source)

    done = traced(COMMON + source, **ONE_IN_THREE)
    chosen = Chosen(done)
    kept = [statements for statements in chosen.within.values() if statements]
    made = profile(Analysis(done.experiment), "intrinsic")
    (row,) = [row for row in made.rows if row.intrinsic == "sqlite3.Connection.execute"]
    population = made.estimate.population

    assert (done.returncode, done.stderr, done.stdout) == (0, "", plain)
    assert not chosen.within.get((0, 0))
    assert all(statements == asked_for(int(statements[0].partition("_")[2])) for statements in kept)
    assert len({statements[0] for statements in kept}) == len(kept) == sum(fate for _, fate in chosen.fates)
    assert (population.kept, population.seen) == (len(kept), len(chosen.fates)) == (len(kept), REQUESTS)
    assert row.sums.calls == (REQUESTS * sum(map(len, kept)) + len(kept) // 2) // len(kept)
    assert abs(row.sums.calls - ASKED) <= 2 * row.margin.calls  # the order, and so which are kept, differs each time
    assert all(thread.adds_up for thread in chosen.process.threads)


SHOP = """
import os, sqlite3
import celery
shop = celery.Celery("shop", broker="filesystem://", backend="file://" + os.getcwd())
folders = {"data_folder_in": "sent", "data_folder_out": "sent", "control_folder": "control", "polling_interval": 0.02}
shop.conf.broker_transport_options = folders
connection = sqlite3.connect(":memory:", check_same_thread=False)

@shop.task(name="shop.pack")
def pack(number):
    connection.execute(f"select 1 as begun_{number}")
    for _ in range(number % 5):
        connection.execute(f"select 1 as more_{number}")
    connection.execute(f"select 1 as ended_{number}")
    return f"order {number}"
"""
WORKERS = f"""
    import os, signal, subprocess, sys
    for name in ("sent", "control"):
        os.makedirs(name, exist_ok=True)
    from shop import pack
    words = f"-m celery -A shop worker --pool {{sys.argv[1]}} --concurrency 2 --loglevel CRITICAL --without-gossip"
    worker = subprocess.Popen([sys.executable, *words.split()], stdout=subprocess.DEVNULL)
    for sent in [pack.delay(number) for number in range({REQUESTS})]:
        print(sent.get(timeout=60))
    worker.send_signal(signal.SIGTERM)
    print(worker.wait(60))
"""


@pytest.mark.packages
@pytest.mark.parametrize(("pool", "workers"), [("prefork", 2), ("threads", 1)])
def test_each_worker_chooses_among_the_tasks_that_it_runs(traced, tmp_path, pool, workers):
    pytest.importorskip("celery")
    (tmp_path / "shop.py").write_text(SHOP)

    done = traced(WORKERS, pool, **ONE_IN_THREE)
    experiment = done.experiment
    found = [Chosen(done, process) for process in experiment.processes]
    ran = [chosen for chosen in found if chosen.fates]
    kept = [statements for chosen in ran for statements in chosen.within.values() if statements]
    made = profile(Analysis(experiment), "intrinsic")
    (row,) = [row for row in made.rows if row.intrinsic == "sqlite3.Connection.execute"]

    assert done.returncode == 0, done.stderr
    assert done.stdout.splitlines() == [*(f"order {number}" for number in range(REQUESTS)), "0"]
    assert len(ran) == workers
    assert sum(len(chosen.fates) for chosen in ran) == made.estimate.population.seen == REQUESTS
    assert not any(chosen.within.get((0, 0)) for chosen in found)
    assert all(statements == asked_for(int(statements[0].partition("_")[2])) for statements in kept)
    assert all(0 < sum(kept for _, kept in chosen.fates) < len(chosen.fates) for chosen in ran)
    assert len({statements[0] for statements in kept}) == len(kept) == made.estimate.population.kept
    assert row.sums.calls == (REQUESTS * sum(map(len, kept)) + len(kept) // 2) // len(kept)
    assert abs(row.sums.calls - ASKED) <= 2 * row.margin.calls  # which task is whose differs each time
    assert len({chosen.process.log.settings["INTERPOSE_SEED"] for chosen in ran}) == 1
    assert {process.log.within for process in experiment.processes} == {""}


def stand_in(directory, sources):
    """Modules of packages that may be installed as well: each level has an `__init__.py`, so these are found first."""
    for name, source in sources.items():
        file = directory / f"{name}.py"
        file.parent.mkdir(parents=True)
        file.write_text(source)
        for level in list(file.relative_to(directory).parents)[:-1]:
            (directory / level / "__init__.py").touch()


ROUTE = """
class Route:
    async def handle(self, scope, receive, send):
        await receive()
"""
ANSWERED_TWICE = """
    import asyncio
    from starlette.routing import Route
    async def receive():
        await asyncio.sleep(0)
    async def main():
        for number in range(40):
            scope = {"type": "http", "method": "GET", "path": f"/{number}"}
            first, second = (Route().handle(scope, receive, None) for _ in range(2))
            await asyncio.create_task(first)
            await asyncio.create_task(second)
    asyncio.run(main())
"""


@pytest.mark.interpreter_lock
@pytest.mark.parametrize("sampled", [{}, ONE_IN_THREE])
def test_a_request_whose_scope_another_has_that_has_not_begun_is_inside_of_nothing(traced, tmp_path, sampled):
    stand_in(tmp_path, {"starlette/routing": ROUTE})

    done = traced(ANSWERED_TWICE, **sampled).ended_well()
    parents = [event.parent for event in done.events("starlette.routing.Route.handle")]

    assert parents == [0] * 80


CYCLE = """
class RequestResponseCycle:
    def __init__(self, scope):
        self.scope = scope
    async def run_asgi(self, app):
        return await app(self.scope, None, None)
"""
GIVEN_UP = """
    import asyncio
    from starlette.routing import Route
    from uvicorn.protocols.http.h11_impl import RequestResponseCycle
    async def receive():
        await asyncio.sleep(0)
    async def main():
        enough = asyncio.Event()
        async def serve(scope, *_):
            del scope
            await enough.wait()
        for number in range(100):
            cycle = RequestResponseCycle({"type": "http", "method": "GET", "path": f"/{number}"})
            served = asyncio.create_task(cycle.run_asgi(serve))
            await asyncio.sleep(0)
            cycle.scope = None
            other = {"type": "http", "method": "GET", "path": "/other"}  # often where the other was
            await asyncio.create_task(Route().handle(other, receive, None))
            enough.set()
            await served
            enough.clear()
    asyncio.run(main())
"""


@pytest.mark.interpreter_lock
def test_a_request_is_inside_of_none_whose_scope_was_given_up(traced, tmp_path):
    stand_in(tmp_path, {"starlette/routing": ROUTE, "uvicorn/protocols/http/h11_impl": CYCLE})

    done = traced(GIVEN_UP).ended_well()

    assert len(done.events("uvicorn.h11_impl.RequestResponseCycle.run_asgi")) == 100
    assert [event.parent for event in done.events("starlette.routing.Route.handle")] == [0] * 100
