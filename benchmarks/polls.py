"""What tracing costs a server's wait for events, by the number of connections that it waits for."""

from __future__ import annotations

from functools import partial

from environments import Environments
from measuring import Effort, Row, take_turns

TITLE = "`select.epoll.poll` of a server, by what it waits for"

ROUNDS = 20
TIMES = 5_000
CROWDS = {"1 client": (1, 0), "2,000 clients": (2000, 0), "2,000 clients, 50 servers": (2000, 50)}


def measure(environments: Environments, effort: Effort) -> list[Row]:
    """Time of a poll that finds nothing, untraced and traced, for each crowd."""
    subjects = {}
    for name, crowd in CROWDS.items():
        run = partial(environments.run, "polls.py", ROUNDS, TIMES, *crowd)
        subjects |= {(name, False): run, (name, True): partial(run, traced={})}
    least_ns = {subject: min(turns) for subject, turns in take_turns(subjects, effort.turns).items()}
    return [_row(name, least_ns[name, False], least_ns[name, True]) for name in CROWDS]


def _row(crowd: str, untraced_ns: float, traced_ns: float) -> Row:
    return Row(crowd, f"{untraced_ns:,.0f} ns, traced {traced_ns - untraced_ns:+,.0f} ns")
