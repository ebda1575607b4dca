"""What tracing costs a method of a package that is interposed with wrapt, and a step of one that is awaited."""

from __future__ import annotations

from functools import partial

from environments import Environments
from measuring import Effort, Row, take_turns, times

TITLE = "Methods of packages, interposed with wrapt, and steps of awaits"

ROUNDS = 60
TIMES = 5_000


def measure(environments: Environments, effort: Effort) -> list[Row]:
    """What a wrapped call and a step take more than bare ones, measured in turns in one process."""
    turns = take_turns({"": partial(environments.run, "wrapped.py", ROUNDS, TIMES)}, effort.turns)[""]
    least_ns = {name: min(turn[name] for turn in turns) for name in turns[0]}
    rows = []
    for act in ("call", "step"):
        bare_ns, wrapped_ns = least_ns[f"bare {act}"], least_ns[f"wrapped {act}"]
        rows += [
            Row(f"{act}, bare", f"{bare_ns:.0f} ns"),
            Row(
                f"{act}, traced",
                f"{wrapped_ns - bare_ns:+.0f} ns",
                times(wrapped_ns / bare_ns),
                "bare",
                "at most 1,000 ns more",
            ),
        ]
    return rows
