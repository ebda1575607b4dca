"""What tracing costs where the interpreter lock is given up and taken again."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

from environments import Environments
from measuring import Effort, Row, take_turns

TITLE = "Giving up the interpreter lock and taking it again"

ALONE = (60, 20_000, 1)
TOGETHER = (5, 20_000, 2)  # a round takes as long as all of ALONE


def measure(environments: Environments, effort: Effort) -> list[Row]:
    """Time of one, untraced, traced, and untraced again: what the untraced differ by is noise."""
    run = partial(environments.run, "gil.py")
    alone, again, traced_ns = _turns(run, ALONE, effort)
    together, _, contended_ns = _turns(run, TOGETHER, effort)
    return [
        Row("untraced, the lock is free", f"{alone:.1f} ns"),
        Row("untraced again", f"{again - alone:+.1f} ns"),
        Row("traced", f"{traced_ns - alone:+.1f} ns", reach="at most 20 ns"),
        Row("untraced, two threads take it from each other", f"{together:,.0f} ns"),
        Row("traced", f"{contended_ns - together:+,.0f} ns", f"{contended_ns / together:.2f} x", "untraced"),
    ]


def _turns(run: Callable[..., float], words: tuple[int, ...], effort: Effort) -> tuple[float, float, float]:
    """The least of each: untraced, untraced again, and traced."""
    subjects = {"untraced": partial(run, *words), "again": partial(run, *words)}
    subjects["traced"] = partial(run, *words, traced={})
    least_ns = {name: min(turns) for name, turns in take_turns(subjects, effort.turns).items()}
    return least_ns["untraced"], least_ns["again"], least_ns["traced"]
