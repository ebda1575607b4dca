"""Database servers on this host: whether they are there, and what they count themselves."""

from __future__ import annotations

import socket

import pytest

PORTS = {"postgresql": 5432, "mysql": 3306, "redis": 6379, "rabbitmq": 5672}


def need_server(name: str) -> None:
    """Skip the test where no server answers at its standard port."""
    try:
        socket.create_connection(("127.0.0.1", PORTS[name]), timeout=1).close()
    except OSError as error:
        pytest.skip(f"no {name} server at port {PORTS[name]}: {error.strerror}")
