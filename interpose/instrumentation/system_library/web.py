"""Web servers and frameworks: a request that is served, by its method and its route, or path.

What it takes itself, besides what is called inside of it, is the program's own work. A server's call is from the
request's arrival to its answer, a framework's inside of it has the better name.
"""

from interpose.library import Intrinsic, alike

TRANSACTION = {"transaction": "is"}
SERVED = {"detail": "served", **TRANSACTION}
REQUEST = {"detail": "request", "attribute": "method path", **TRANSACTION}
OF_DJANGO = {**REQUEST, "route": "resolver_match.route", "headers": "0.META"}
OF_AIOHTTP = {
    "detail": "request",
    "attribute": "_method _rel_url",
    "route": "_match_info._route._resource._formatter _match_info._route._resource._path",
    "headers": "0._message.raw_headers",
    **TRANSACTION,
}
CYCLE = {"argument": None, "attribute": "scope", "headers": "self.scope", **SERVED}
BACKGROUND = ("starlette.background.BackgroundTask.", "starlette.background:BackgroundTask.")  # after the answer
ROUTE = {"headers": "0", **SERVED}

FRAMEWORKS = [
    Intrinsic("flask.Flask.wsgi_app", "flask.app:Flask.wsgi_app", "logic", keyword="environ", **ROUTE),
    Intrinsic(
        "flask.ctx.RequestContext.match_request",
        "flask.ctx:RequestContext.match_request",
        "logic",
        detail="request",
        argument=None,
        attribute="request.method request.root_path request.path",
        route="request.url_rule.rule",
        effect="route",
    ),
    Intrinsic(
        "django.core.handlers.BaseHandler.get_response",
        "django.core.handlers.base:BaseHandler.get_response",
        "logic",
        **OF_DJANGO,
    ),
    Intrinsic(
        "django.core.handlers.BaseHandler.get_response_async",
        "django.core.handlers.base:BaseHandler.get_response_async",
        "logic",
        **OF_DJANGO,
    ),
    Intrinsic("starlette.routing.Route.handle", "starlette.routing:Route.handle", "logic", **ROUTE),
    Intrinsic("fastapi.routing.APIRoute.handle", "fastapi.routing:APIRoute.handle", "logic", **ROUTE),
    *alike(*BACKGROUND, "__call__", "logic"),
    Intrinsic("aiohttp.web.Application.handle", "aiohttp.web_app:Application._handle", "logic", **OF_AIOHTTP),
]

SERVERS = [
    Intrinsic(
        "django.core.servers.WSGIRequestHandler.handle_one_request",
        "django.core.servers.basehttp:WSGIRequestHandler.handle_one_request",
        "logic",
        detail="request",
        argument=None,
        attribute="command path",
        effect="serve",
        **TRANSACTION,
    ),
    Intrinsic(
        "aiohttp.web.RequestHandler.handle_request",
        "aiohttp.web_protocol:RequestHandler._handle_request",
        "logic",
        **OF_AIOHTTP,
    ),
    Intrinsic(
        "cheroot.wsgi.Gateway.respond",
        "cheroot.wsgi:Gateway.respond",
        "logic",
        argument=None,
        attribute="env",
        headers="self.env",
        **SERVED,
    ),
    Intrinsic(
        "gunicorn.workers.SyncWorker.handle_request",
        "gunicorn.workers.sync:SyncWorker.handle_request",
        "logic",
        argument=1,
        headers="1.headers",
        **REQUEST,
    ),
    Intrinsic(
        "gunicorn.workers.ThreadWorker.handle_request",
        "gunicorn.workers.gthread:ThreadWorker.handle_request",
        "logic",
        headers="0.headers",
        **REQUEST,
    ),
    Intrinsic(
        "gunicorn.workers.AsyncWorker.handle_request",
        "gunicorn.workers.base_async:AsyncWorker.handle_request",
        "logic",
        argument=1,
        headers="1.headers",
        **REQUEST,
    ),
    Intrinsic(
        "gevent.pywsgi.WSGIHandler.handle_one_response",
        "gevent.pywsgi:WSGIHandler.handle_one_response",
        "logic",
        detail="request",
        argument=None,
        attribute="command path",
        headers="self.headers._headers",
        **TRANSACTION,
    ),
    Intrinsic(
        "uvicorn.h11_impl.RequestResponseCycle.run_asgi",
        "uvicorn.protocols.http.h11_impl:RequestResponseCycle.run_asgi",
        "logic",
        **CYCLE,
    ),
    Intrinsic(
        "uvicorn.httptools_impl.RequestResponseCycle.run_asgi",
        "uvicorn.protocols.http.httptools_impl:RequestResponseCycle.run_asgi",
        "logic",
        **CYCLE,
    ),
    Intrinsic(
        "tornado.web.RequestHandler.execute",
        "tornado.web:RequestHandler._execute",
        "logic",
        detail="request",
        argument=None,
        attribute="request.method request.path",
        headers="self.request.headers._as_list",
        **TRANSACTION,
    ),
    Intrinsic(
        "waitress.Task.service",
        "waitress.task:Task.service",
        "logic",
        detail="request",
        argument=None,
        attribute="request.command request.path",
        headers="self.request.headers",
        **TRANSACTION,
    ),
]

INTRINSICS = [*FRAMEWORKS, *SERVERS]
