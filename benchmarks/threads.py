"""What tracing costs a program of four threads that make calls all the time."""

from __future__ import annotations

from functools import partial

from environments import Environments
from measuring import Effort, Row, take_turns, times

TITLE = "Four threads: sqlite3.Cursor.execute and os.write in turn"

ROUNDS = 8
CALLS = 5_000


def measure(environments: Environments, effort: Effort) -> list[Row]:
    """Time a call, traced and untraced."""
    run = partial(environments.run, "threads.py", ROUNDS, CALLS)
    given = take_turns({"untraced": run, "traced": partial(run, traced={})}, effort.turns)
    untraced_ns, traced_ns = min(given["untraced"]), min(given["traced"])
    figure = f"{traced_ns - untraced_ns:+,.0f} ns a call"
    return [
        Row("untraced", f"{untraced_ns:,.0f} ns a call"),
        Row("traced", figure, times(traced_ns / untraced_ns), "untraced", "1.40 x"),
    ]
