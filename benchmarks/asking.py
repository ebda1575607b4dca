"""Two clients send requests without a pause: measures requests a second, and the worker's CPU time of a request."""

from __future__ import annotations

import http.client
import time
from concurrent.futures import ThreadPoolExecutor

CLIENTS = 2
PATIENCE_S = 60


def wait_for(port: int) -> None:
    """Wait until the server answers. Raises OSError if it does not for a minute."""
    until_s = time.monotonic() + PATIENCE_S
    while True:
        try:
            _cpu_ns(port)
            return
        except OSError:
            if time.monotonic() > until_s:
                raise
            time.sleep(0.05)


def ask(port: int, requests: int) -> dict[str, float]:
    """Requests a second (`per_second`), and the CPU time of one in microseconds (`cpu_us`). Raises RuntimeError
    or OSError where a request fails."""
    before_ns, begun_ns = _cpu_ns(port), time.perf_counter_ns()
    with ThreadPoolExecutor(CLIENTS) as clients:
        for each in [clients.submit(_ask, port, requests // CLIENTS) for _ in range(CLIENTS)]:
            each.result()
    wall_ns = time.perf_counter_ns() - begun_ns
    return {"per_second": requests / (wall_ns / 1e9), "cpu_us": (_cpu_ns(port) - before_ns) / requests / 1e3}


def _cpu_ns(port: int) -> int:
    return int(_get(http.client.HTTPConnection("127.0.0.1", port), "/cpu"))


def _ask(port: int, requests: int) -> None:
    connection = http.client.HTTPConnection("127.0.0.1", port)
    for number in range(requests):
        _get(connection, f"/orders/{number}")


def _get(connection: http.client.HTTPConnection, path: str) -> bytes:
    connection.request("GET", path)
    answer = connection.getresponse()
    text = answer.read()
    if answer.status != 200:
        raise RuntimeError(f"{path}: {answer.status}")
    return text
