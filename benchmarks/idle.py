"""What tracing costs a program that calls no intrinsic."""

from __future__ import annotations

from functools import partial

from environments import Environments
from measuring import Effort, Row, take_turns, times

TITLE = "A program in pure Python that calls no intrinsic"

ROUNDS = 60


def measure(environments: Environments, effort: Effort) -> list[Row]:
    """Time of the same work untraced, traced, and untraced again: what the untraced differ by is noise."""
    run = partial(environments.run, "idle.py", ROUNDS)
    subjects = {"untraced": run, "traced": partial(run, traced={}), "untraced again": run}
    given = take_turns(subjects, effort.turns)
    least = {name: min(turns) for name, turns in given.items()}

    def row(name: str, reach: str = "") -> Row:
        ratio = least[name] / least["untraced"]
        return Row(name, f"{least[name] * 1000:.3f} ms", times(ratio), "untraced", reach)

    return [
        Row("untraced", f"{least['untraced'] * 1000:.3f} ms"),
        row("untraced again"),
        row("traced", "1.00 x"),
    ]
