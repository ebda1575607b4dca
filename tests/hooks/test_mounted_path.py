"""Applications that are mounted in others: the name of a request has the whole path, each part once."""

from collections import Counter

import pytest

from interpose.analysis.analysis import Analysis
from interpose.analysis.transactions.response_times import transactions

ASKING = """
    import asyncio, sys
    def scope(path, root):
        made = {"type": "http", "method": "GET", "headers": [], "query_string": b""}
        return {**made, "path": root + path, "root_path": root, "server": ("testserver", 80), "scheme": "http"}
    async def ask(app, paths, root=""):
        async def receive():
            return {"type": "http.request"}
        async def send(message):
            assert message.get("status", 200) == 200, message
        for path in paths:
            await app(scope(path, root), receive, send)
"""

STARLETTE = ASKING + """
    from starlette.applications import Starlette
    from starlette.responses import PlainTextResponse
    from starlette.routing import Mount, Route
    async def answer(request):
        return PlainTextResponse("ok")
    items = [Route("/", answer), Route("/items/{item}", answer)]
    api = Mount("/api", routes=[Route("/long", answer), Mount("/in", app=Starlette(routes=items))])
    numbered = Mount("/v/{version:int}", routes=[Route("/deep/{tenant}", answer)])
    tenants = Mount("/t/{tenant}", app=Starlette(routes=[*items, numbered]))
    shop = Starlette(routes=[Route("/top", answer), api, tenants])
    asyncio.run(ask(shop, sys.argv[2:], sys.argv[1]))
"""

NAMES = {
    "/top": "GET /top",
    "/api/long": "GET /api/long",
    "/api/in/": "GET /api/in/",
    "/api/in/items/5": "GET /api/in/items/{item}",
    "/t/acme/": "GET /t/{tenant}/",
    "/t/acme/items/acme": "GET /t/{tenant}/items/{item}",
    "/t/t/items/5": "GET /t/t/items/{item}",  # which of the two is the parameter cannot be known
    "/t/acme/v/2/deep/other": "GET /t/acme/v/{version}/deep/{tenant}",  # the route has a parameter of that name itself
}


def counts(done):
    """How many of each name there are."""
    assert (done.returncode, done.stderr) == (0, "")
    rows = transactions(Analysis(done.experiment)).rows
    return Counter({row.name: row.sums.calls for row in rows if row.name.startswith("GET ")})


@pytest.mark.packages
@pytest.mark.parametrize("root", ["", "/proxy"])
def test_a_route_of_starlette_is_named_below_its_mounts_and_without_the_servers_own_path(traced, root):
    pytest.importorskip("starlette")

    done = traced(STARLETTE, root, *NAMES)

    assert counts(done) == Counter(NAMES.values())


DEEP = ASKING + """
    from starlette.applications import Starlette
    from starlette.responses import PlainTextResponse
    from starlette.routing import Mount, Route
    async def answer(request):
        return PlainTextResponse("ok")
    files = Mount("/files/{below:path}", routes=[Route("/end", answer)])
    asyncio.run(ask(Starlette(routes=[Mount("/{tenant}", routes=[files])]), sys.argv[1:]))
"""


@pytest.mark.packages
def test_a_path_of_very_many_parts_is_told_as_it_is(traced):
    pytest.importorskip("starlette")
    few, many = "/b/files/c/end", f"/a/files{'/a' * 40}/end"

    done = traced(DEEP, few, many)

    assert counts(done) == Counter([f"GET {many}", "GET /{tenant}/files/{below}/end"])


FASTAPI = """
    import http.client, socket, threading, time
    import fastapi, uvicorn
    shop, first, second = fastapi.FastAPI(), fastapi.FastAPI(), fastapi.FastAPI()
    router = fastapi.APIRouter(prefix="/v3")
    for app in (first, second, router):
        @app.get("/items")
        async def items():
            return 1
    shop.mount("/v1", first)
    shop.mount("/v2", second)
    shop.include_router(router)
    server = uvicorn.Server(uvicorn.Config(shop, log_level="critical", lifespan="off", root_path="/proxy"))
    listening = socket.create_server(("127.0.0.1", 0))
    serving = threading.Thread(target=server.run, args=([listening],))
    serving.start()
    for path in ("/v1/items", "/v2/items", "/v2/items", "/v3/items", "/v3/items", "/v3/items"):
        client = http.client.HTTPConnection(*listening.getsockname())
        client.request("GET", path)
        assert client.getresponse().read() == b"1"
        client.close()
    server.should_exit = True
    serving.join()
"""


@pytest.mark.packages
def test_mounted_applications_of_fastapi_with_the_same_route_are_told_apart(traced):
    for package in ("fastapi", "uvicorn"):
        pytest.importorskip(package)

    done = traced(FASTAPI)

    assert counts(done) == {"GET /v1/items": 1, "GET /v2/items": 2, "GET /v3/items": 3}


FLASK = """
    import flask
    from werkzeug.middleware.dispatcher import DispatcherMiddleware
    from werkzeug.test import Client
    def made():
        app = flask.Flask("shop")
        part = flask.Blueprint("part", "part", url_prefix="/part")
        @app.route("/items/<int:item>")
        @part.route("/of/<name>")
        def items(**_):
            return "ok"
        app.register_blueprint(part)
        return app
    shop = DispatcherMiddleware(made(), {"/v1": made(), "/v2": made()})
    client = Client(shop)
    for path in ("/items/3", "/part/of/x", "/v1/items/3", "/v2/items/3", "/v2/items/4", "/v2/part/of/x", "/v2/none"):
        client.get(path)
"""


@pytest.mark.packages
def test_mounted_applications_of_flask_and_its_blueprints_are_told_apart(traced):
    pytest.importorskip("flask")

    done = traced(FLASK)

    assert counts(done) == {
        "GET /items/<int:item>": 1,
        "GET /part/of/<name>": 1,
        "GET /v1/items/<int:item>": 1,
        "GET /v2/items/<int:item>": 2,
        "GET /v2/part/of/<name>": 1,
        "GET /v2/none": 1,
    }


DJANGO = """
    import django
    from django.conf import settings
    from django.http import HttpResponse
    from django.test import Client
    from django.urls import include, path
    settings.configure(ROOT_URLCONF=__name__, ALLOWED_HOSTS=["*"], SECRET_KEY="x", USE_TZ=True)
    django.setup()
    def answer(request, **_):
        return HttpResponse("ok")
    items = [path("items/<int:item>", answer)]
    urlpatterns = [path("v1/", include(items)), path("<tenant>/", include(items))]
    for asked in ("/v1/items/3", "/acme/items/3", "/other/items/4"):
        Client().get(asked)
"""


@pytest.mark.packages
def test_included_patterns_of_django_are_told_apart(traced):
    pytest.importorskip("django")

    done = traced(DJANGO)

    assert counts(done) == {"GET /v1/items/<int:item>": 1, "GET /<tenant>/items/<int:item>": 2}
