"""What tracing costs a program of one, two and four threads that make calls all the time."""

from __future__ import annotations

from functools import partial

from environments import Environments
from measuring import Effort, Row, take_turns, times

TITLE = "One, two and four threads: sqlite3.Cursor.execute and os.write in turn"

ROUNDS = 8
CALLS = 5_000
THREADS = {1: "one thread", 2: "two threads", 4: "four threads"}


def measure(environments: Environments, effort: Effort) -> list[Row]:
    """Time a call, traced and untraced."""
    return [row for count in THREADS for row in measure_threads(environments, effort, count)]


def measure_threads(environments: Environments, effort: Effort, count: int) -> list[Row]:
    run = partial(environments.run, "threads.py", ROUNDS, CALLS, count)
    given = take_turns({"untraced": run, "traced": partial(run, traced={})}, effort.turns)
    untraced_ns, traced_ns = min(given["untraced"]), min(given["traced"])
    figure = f"{traced_ns - untraced_ns:+,.0f} ns a call"
    untraced = f"{THREADS[count]}, untraced"
    return [
        Row(untraced, f"{untraced_ns:,.0f} ns a call"),
        Row(f"{THREADS[count]}, traced", figure, times(traced_ns / untraced_ns), untraced, "1.40 x"),
    ]
