"""Web frameworks: a request that is served, by its method and path or route.

What it takes itself, besides what is called inside of it, is the program's own work.
"""

from interpose.library import Intrinsic

INTRINSICS = [
    Intrinsic("flask.Flask.wsgi_app", "flask.app:Flask.wsgi_app", "logic", detail="served", keyword="environ"),
    Intrinsic(
        "django.core.handlers.BaseHandler.get_response",
        "django.core.handlers.base:BaseHandler.get_response",
        "logic",
        detail="request",
        attribute="method path",
    ),
    Intrinsic(
        "django.core.handlers.BaseHandler.get_response_async",
        "django.core.handlers.base:BaseHandler.get_response_async",
        "logic",
        detail="request",
        attribute="method path",
    ),
    Intrinsic("starlette.routing.Route.handle", "starlette.routing:Route.handle", "logic", detail="served"),
    Intrinsic(
        "aiohttp.web.Application.handle",
        "aiohttp.web_app:Application._handle",
        "logic",
        detail="request",
        attribute="_method _rel_url",
    ),
]
