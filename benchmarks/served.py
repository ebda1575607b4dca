"""What tracing costs a service: Flask under gunicorn, asked without a pause, beside ddtrace and OpenTelemetry."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import tempfile
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from functools import partial
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from statistics import median

from asking import PATIENCE_S, ask, wait_for
from environments import HERE, Environments
from measuring import Effort, Row, take_turns, times

TITLE = "A service: Flask under gunicorn, one worker of two threads"

PACKAGES = ("flask", "gunicorn")
PEERS = {
    "ddtrace": ("ddtrace",),
    "OpenTelemetry": (
        *("opentelemetry-sdk", "opentelemetry-instrumentation-flask", "opentelemetry-instrumentation-sqlite3"),
    ),
}
REQUESTS = 300  # for each turn of FULL
WARMING = 100
UNTRACED = "untraced"
PROGRAMS = HERE / "programs" / "served"


def measure(environments: Environments, effort: Effort) -> list[Row]:
    """Medians of turns: requests a second, and the CPU time of one in the worker."""
    if not environments.install(*PACKAGES):
        return [Row("flask and gunicorn cannot be installed", "")]
    run = partial(serve, environments, effort.turns * REQUESTS)
    subjects = {
        UNTRACED: run,
        "INTERPOSE=1 INTERPOSE_RING=64MiB": partial(run, {"INTERPOSE_RING": "64MiB"}),
        "INTERPOSE=1 INTERPOSE_CONSOLIDATE=1": partial(run, {"INTERPOSE_CONSOLIDATE": "1"}),
    }
    for name, packages in PEERS.items():
        if environments.has_peer(name, *packages):
            subjects[name] = partial(run, peer=name)
    with Agent() as agent:
        os.environ["DD_TRACE_AGENT_URL"] = agent
        turns = take_turns(subjects, effort.turns)
        del os.environ["DD_TRACE_AGENT_URL"]
    return [row for name in subjects for row in _rows(name, turns[name], turns[UNTRACED])]


def _rows(name: str, turns: list[dict[str, float]], untraced: list[dict[str, float]]) -> list[Row]:
    is_ours = name.startswith("INTERPOSE")

    def row(key: str, what: str, form: str, reach: str) -> Row:
        figure, base = (median(turn[key] for turn in each) for each in (turns, untraced))
        if name == UNTRACED:
            return Row(f"{name}: {what}", form.format(figure))
        return Row(f"{name}: {what}", form.format(figure), times(figure / base), UNTRACED, reach if is_ours else "")

    return [
        row("per_second", "requests a second", "{:,.0f}", "0.95 x"),
        row("cpu_us", "CPU time of a request", "{:,.0f} us", "1.05 x"),
    ]


def serve(
    environments: Environments, requests: int, traced: Mapping[str, str] | None = None, peer: str = ""
) -> dict[str, float]:
    """Requests a second (`per_second`) and the worker's CPU time of one (`cpu_us`), traced or with a peer."""
    with server(environments, traced, peer) as port:
        return ask(port, requests)


@contextmanager
def server(environments: Environments, traced: Mapping[str, str] | None = None, peer: str = "") -> Iterator[int]:
    """Runs a server that has answered its first requests; yields its port. Raises RuntimeError at the end if the server
    was recorded but should not have been, or was not recorded but should have been."""
    bin_directory = environments.with_interpose.parent
    with tempfile.TemporaryDirectory(dir=environments.directory, ignore_cleanup_errors=True) as place:
        port = _free_port()
        variables = {
            **environments.variables(place, traced),
            "SERVED_DATABASE": os.path.join(place, "orders.db"),
            "SERVED_WITH": peer.lower(),
        }
        gunicorn = [bin_directory / "gunicorn", "--threads", "2", "-k", "gthread", "-b", f"127.0.0.1:{port}", "app:app"]
        words = [*([bin_directory / "ddtrace-run"] if peer == "ddtrace" else []), *gunicorn]
        silent = {"stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL}
        running = subprocess.Popen([str(word) for word in words], env=variables, cwd=PROGRAMS, **silent)
        try:
            wait_for(port)
            ask(port, WARMING)
            yield port
        finally:
            running.send_signal(signal.SIGTERM)
            running.wait(PATIENCE_S)
        if (traced is not None) != any(Path(place).glob("*.er")):
            raise RuntimeError(f"{peer or traced}: recorded, or not, against what was wanted")


def _free_port() -> int:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        return int(free.getsockname()[1])


class Agent:
    """Takes what ddtrace sends, and throws it away; returns its address."""

    def __enter__(self) -> str:
        self._server = ThreadingHTTPServer(("127.0.0.1", 0), _Taking)
        threading.Thread(target=self._server.serve_forever, daemon=True).start()
        return f"http://127.0.0.1:{self._server.server_port}"

    def __exit__(self, *error: object) -> None:
        self._server.shutdown()
        self._server.server_close()


class _Taking(BaseHTTPRequestHandler):
    def do_PUT(self) -> None:
        self.rfile.read(int(self.headers.get("Content-Length", 0)))
        self.send_response(200)
        self.send_header("Content-Length", "2")
        self.end_headers()
        self.wfile.write(b"{}")

    do_GET = do_POST = do_PUT

    def log_message(self, *what: object) -> None:
        pass
