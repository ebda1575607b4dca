"""Names and attributes of spans by OpenTelemetry's semantic conventions (HTTP, databases, messaging), from what was
recorded of a call. What was not recorded, such as the status of an answer, is not there.

A request is named by its method and route. The route is a pattern, or what a framework found; a server knows only the
path, which has too many values for a name.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any, NamedTuple

from interpose.exports.summaries import summary_of

INTERNAL, SERVER, CLIENT, PRODUCER = 1, 2, 3, 4
_DATABASES = {"sqlite3": "sqlite", "psycopg2": "postgresql", "psycopg": "postgresql", "asyncpg": "postgresql",
              "pymysql": "mysql", "MySQLdb": "mysql", "redis": "redis"}  # fmt: skip
_MESSAGES = {"confluent_kafka": "kafka", "librdkafka": "kafka"}
_OPERATIONS = {"Producer.produce": "send", "Producer.produce_batch": "send", "Consumer.poll": "receive",
               "Consumer.consume": "receive", "Consumer.commit": "settle"}  # fmt: skip
_DETAILS = {"db": "db.query.text", "file": "file.path", "process": "process.command_line"}
_TASKS = ("celery", "rq", "dramatiq")
_FRAMEWORKS = ("flask", "django", "aiohttp")
_ROUTERS = ("starlette.routing.", "fastapi.routing.")
_SERVED = re.compile(r"([A-Za-z_-]+) ([/^*].*)", re.DOTALL)
_ASKED = re.compile(r"(?:([A-Za-z_-]+) )?([a-z][a-z0-9+.-]*://[^/]*.*|/.*)", re.DOTALL)
_PATTERN = re.compile(r"[{<^]|\(\?")
_SOCKETS = ("socket", "ssl")
_ADDRESS = re.compile(r"(?:\[([^\]]+)\]|([^:]*))(?::(\d+))?")


class Described(NamedTuple):
    """A span's name, its kind, and the attributes of its detail."""

    name: str
    kind: int
    attributes: dict[str, Any]


def call(name: str, kind: str, text: str, has_statement: bool = True) -> Described:
    """Any call but an outermost transaction; `text` is its detail: of a database a statement, or something else."""
    library = name.partition(".")[0]
    found: dict[str, Any] = {"interpose.kind": kind}
    if library in _MESSAGES:
        return _message(name, kind, text, {**found, "messaging.system": _MESSAGES[library]})
    if kind == "db":
        return _database(name, text, found, has_statement)
    if kind == "net" and text:
        return _network(name, text, found)
    if text:
        found[_DETAILS.get(kind, "interpose.detail")] = text
    return Described(name, CLIENT if kind == "net" else INTERNAL, found)


def request(name: str, kind: str, text: str, inside: Sequence[tuple[str, str]]) -> Described:
    """An outermost transaction; `inside` are the names and details of the first transactions in it."""
    found: dict[str, Any] = {"interpose.kind": kind, "interpose.intrinsic": name}
    served = _SERVED.fullmatch(text)
    if not served:
        found |= {"interpose.detail": text} if text else {}
        return Described(text or name, SERVER, found)
    same = [(name, text), *((each, detail) for each, detail in inside if detail.startswith(f"{served[1]} "))]
    framework, text = next((each for each in same if _is_of_framework(each[0])), same[0])
    method, _, target = text.partition(" ")
    is_route = framework.startswith(_ROUTERS) or bool(_PATTERN.search(target))
    found |= {"interpose.detail": text, "http.request.method": method}
    found["http.route" if is_route else "url.path"] = target
    return Described(text if is_route or _is_of_framework(framework) else method, SERVER, found)


def _is_of_framework(name: str) -> bool:
    return name.startswith(_ROUTERS) or name.partition(".")[0] in _FRAMEWORKS


def _message(name: str, kind: str, topic: str, found: dict[str, Any]) -> Described:
    method = name.partition(".")[2]
    operation = _OPERATIONS.get(method)
    if topic:
        found["messaging.destination.name"] = topic
    role = PRODUCER if operation == "send" else CLIENT if operation or kind in ("db", "net") else INTERNAL
    if not operation:
        return Described(name, role, found)
    short = method.rpartition(".")[2]
    found |= {"messaging.operation.name": short, "messaging.operation.type": operation, "interpose.intrinsic": name}
    return Described(f"{short} {topic}".rstrip(), role, found)


def _database(name: str, text: str, found: dict[str, Any], has_statement: bool) -> Described:
    library, _, method = name.partition(".")
    if library in _DATABASES:
        found["db.system.name"] = _DATABASES[library]
    if not text:
        return Described(name, CLIENT, found)
    if library in _SOCKETS:
        return Described(name, CLIENT, {**found, **_address(text)})
    if library == "dbm":
        return Described(name, CLIENT, {**found, "file.path": text})
    if method.endswith("connect"):
        return Described(name, CLIENT, {**found, **_connected(library, text)})
    if library == "redis":
        return Described(text, CLIENT, {**found, "interpose.intrinsic": name, "db.operation.name": text})
    if not has_statement:
        return Described(name, CLIENT, {**found, "interpose.detail": text})
    found["db.query.text"] = text
    summary = summary_of(text)
    if not summary:
        return Described(name, CLIENT, found)
    return Described(summary, CLIENT, {**found, "interpose.intrinsic": name, "db.query.summary": summary})


def _connected(library: str, text: str) -> dict[str, Any]:
    """Of what was connected to: `host/database`, a file of SQLite, a host of Redis."""
    if library == "sqlite3":
        return {"db.namespace": text}
    host, slash, database = text.rpartition("/")
    if library == "redis" or not slash:
        return _address(text)
    return {**({} if host == "[local]" else _address(host)), **({"db.namespace": database} if database else {})}


def _network(name: str, text: str, found: dict[str, Any]) -> Described:
    library = name.partition(".")[0]
    asked = _ASKED.fullmatch(text) if library not in _SOCKETS else None
    if library in _TASKS:
        return Described(name, CLIENT, {**found, "interpose.detail": text})
    if not asked:
        return Described(name, CLIENT, {**found, **_address(text)})
    method, url = asked.groups()
    if "://" in url:
        authority = url.partition("://")[2].partition("/")[0]
        found |= {"url.full": url, **(_address(authority) if authority else {})}
    else:
        found["url.path"] = url
    if not method:
        return Described(name, CLIENT, found)
    return Described(method, CLIENT, {**found, "interpose.intrinsic": name, "http.request.method": method})


def _address(text: str) -> dict[str, Any]:
    """`127.0.0.1:80`, `[::1]:80`, a name, or the path of a local socket."""
    if text.startswith("<"):
        return {"interpose.detail": text}
    found = _ADDRESS.fullmatch(text)
    if not found:
        return {"server.address": text}
    host, port = found[1] or found[2], found[3]
    return {"server.address": host, **({"server.port": int(port)} if port else {})}
