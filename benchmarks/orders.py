"""What tracing costs the example, an order-entry program: as it is, and where nothing has to wait."""

from __future__ import annotations

from functools import partial

from environments import CHECKOUT, Environments
from measuring import Effort, Row, take_turns, times

TITLE = "The order-entry example"

RUNS = 3  # a turn; a run enters the orders once


def measure(environments: Environments, effort: Effort) -> list[Row]:
    """Time of the quickest run, untraced and traced."""
    run = partial(environments.run, "orders.py", CHECKOUT / "examples")
    no_wait = partial(run, "no-wait")
    subjects = {
        "as it is, untraced": run,
        "as it is, traced": partial(run, traced={}),
        "no wait, untraced": no_wait,
        "no wait, traced": partial(no_wait, traced={}),
    }
    least_ms = {name: min(turns) for name, turns in take_turns(subjects, effort.turns * RUNS).items()}

    def rows(manner: str, reach: str = "") -> list[Row]:
        untraced_ms, traced_ms = least_ms[f"{manner}, untraced"], least_ms[f"{manner}, traced"]
        figure = f"{traced_ms - untraced_ms:+,.1f} ms"
        return [
            Row(f"{manner}, untraced", f"{untraced_ms:,.1f} ms"),
            Row(f"{manner}, traced", figure, times(traced_ms / untraced_ms), f"{manner}, untraced", reach),
        ]

    return [*rows("as it is", "1.05 x"), *rows("no wait")]
