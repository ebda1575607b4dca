"""Database servers on this host: whether they are there and let us in, and what they count themselves."""

from __future__ import annotations

import functools
import shutil
import socket
import subprocess

import pytest

PORTS = {"postgresql": 5432, "mysql": 3306, "redis": 6379, "rabbitmq": 5672}
#: What opens a session in the database `test`, as the tests do; and what makes that database where it is missing.
SESSIONS = {
    "postgresql": ("psql -h 127.0.0.1 -U postgres -w -d test -c", "select 1"),
    "mysql": ("mariadb -h 127.0.0.1 -u root test -e", "select 1"),
}
MAKES_DATABASE = {
    "postgresql": ("psql -h 127.0.0.1 -U postgres -w -d postgres -c", "create database test"),
    "mysql": ("mariadb -h 127.0.0.1 -u root -e", "create database test"),
}


def need_server(name: str) -> None:
    """Skip the test where no server answers at its standard port, or it refuses what the tests need."""
    try:
        socket.create_connection(("127.0.0.1", PORTS[name]), timeout=1).close()
    except OSError as error:
        pytest.skip(f"no {name} server at port {PORTS[name]}: {error.strerror}")
    if refusal := _refusal(name):
        pytest.skip(f"the {name} server refuses a session in the database test: {refusal}")


@functools.cache
def _refusal(name: str) -> str:
    """Why the server lets nobody into the database `test`, which is made where it is missing; empty where it does."""
    if name not in SESSIONS or not shutil.which(SESSIONS[name][0].split()[0]):
        return ""
    if not _said_of(SESSIONS[name]):
        return ""
    _said_of(MAKES_DATABASE[name])  # beside another worker that makes it too
    return _said_of(SESSIONS[name])


def _said_of(command: tuple[str, str]) -> str:
    """What this client says of what it could not do, in a line; empty where it could."""
    words, statement = command
    try:
        done = subprocess.run([*words.split(), statement], capture_output=True, text=True, timeout=10)
    except subprocess.TimeoutExpired:
        return "no answer within 10 s"
    return " ".join(done.stderr.split()) if done.returncode else ""
