"""What tracing costs a `with` on a lock that is free."""

from __future__ import annotations

from functools import partial

from environments import Environments
from measuring import Effort, Row, take_turns

TITLE = "`with lock:` on a lock that is free"

ROUNDS = 60
TIMES = 20_000


def measure(environments: Environments, effort: Effort) -> list[Row]:
    """Time of a `with`, untraced, traced, and untraced again: what the untraced differ by is noise."""
    run = partial(environments.run, "locks.py", ROUNDS, TIMES)
    subjects = {"untraced": run, "traced": partial(run, traced={}), "untraced again": run}
    least_ns = {name: min(turns) for name, turns in take_turns(subjects, effort.turns).items()}
    untraced_ns = least_ns["untraced"]
    return [
        Row("untraced", f"{untraced_ns:.1f} ns"),
        Row("untraced again", f"{least_ns['untraced again'] - untraced_ns:+.1f} ns"),
        Row("traced", f"{least_ns['traced'] - untraced_ns:+.1f} ns", reach="at most 10 ns"),
    ]
