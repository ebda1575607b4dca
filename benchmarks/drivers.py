"""What tracing costs a call of a database's driver: one in C, interposed in place, and two in Python, by wrapt."""

from __future__ import annotations

import socket
from functools import partial

from environments import Environments
from measuring import Effort, Row, take_turns, times

TITLE = "Drivers of databases: what the client has already is fetched, what sends nothing is executed"

ROUNDS = 20
CALLS = 5_000
PACKAGES = ("psycopg2-binary", "psycopg[binary]", "redis")
SUBJECTS = {
    "psycopg2": ("psycopg2.cursor.fetchone, in place", "at most 150 ns more"),
    "psycopg": ("psycopg.Cursor.fetchone, by wrapt", "at most 1,000 ns more"),
    "redis": ("redis.Redis.execute_command, by wrapt", "at most 1,000 ns more"),
}
SERVER = ("127.0.0.1", 5432)


def measure(environments: Environments, effort: Effort) -> list[Row]:
    """What the quickest rounds take more when they are traced, rows put together and each recorded."""
    why_not = _why_not(environments)
    if why_not:
        return [Row("not measured", why_not)]
    run = partial(environments.run, "drivers.py", ROUNDS, CALLS)
    given = take_turns(
        {"bare": run, "traced": partial(run, traced={}), "each": partial(run, traced={"INTERPOSE_ROWS": "each"})},
        effort.turns,
    )
    return [row for name in SUBJECTS for row in _rows(name, given)]


def _rows(name: str, given: dict[str, list[dict[str, float]]]) -> list[Row]:
    what, reach = SUBJECTS[name]
    least_ns = {sort: min(turn[name] for turn in turns) for sort, turns in given.items()}
    bare_ns = least_ns["bare"]

    def more(said: str, sort: str) -> Row:
        return Row(said, f"{least_ns[sort] - bare_ns:+,.0f} ns", times(least_ns[sort] / bare_ns), "bare", reach)

    fetched = [more("each row recorded", "each")] if name != "redis" else []
    return [Row(what, f"{bare_ns:,.0f} ns"), more("traced", "traced"), *fetched]


def _why_not(environments: Environments) -> str:
    try:
        socket.create_connection(SERVER, timeout=1).close()
    except OSError as error:
        return f"no PostgreSQL at port {SERVER[1]}: {error.strerror}"
    return "" if environments.install(*PACKAGES) else "the drivers cannot be installed"
