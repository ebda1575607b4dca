"""Requests that the standard library's servers answer: each from its arrival to its answer.

What it takes itself, besides what is called inside of it, is the program's own work.
"""

from interpose.library import Intrinsic

TRANSACTION = {"transaction": "is"}
WAITED_FOR = {"detail": "request", "argument": None, "attribute": "command path", "effect": "serve", **TRANSACTION}

INTRINSICS = [
    Intrinsic(
        "socketserver.BaseServer.finish_request",
        "socketserver:BaseServer.finish_request",
        "logic",
        detail="type",
        argument=None,
        attribute="RequestHandlerClass",
        choice="connection",
        **TRANSACTION,
    ),
    Intrinsic(
        "http.server.BaseHTTPRequestHandler.handle_one_request",
        "http.server:BaseHTTPRequestHandler.handle_one_request",
        "logic",
        **WAITED_FOR,
    ),
    Intrinsic(
        "wsgiref.simple_server.WSGIRequestHandler.handle",
        "wsgiref.simple_server:WSGIRequestHandler.handle",
        "logic",
        **WAITED_FOR,
    ),
    Intrinsic(
        "http.server.BaseHTTPRequestHandler.parse_request",
        "http.server:BaseHTTPRequestHandler.parse_request",
        "logic",
        headers="self.headers._headers",
        effect="arrive",
    ),
    Intrinsic(
        "wsgiref.handlers.BaseHandler.run",
        "wsgiref.handlers:BaseHandler.run",
        "logic",
        detail="served",
        argument=None,
        attribute="base_env",
        headers="self.base_env",
        **TRANSACTION,
    ),
]
