"""How far shares of CPU time that samples tell are from those that all calls tell, and how few events that takes.

Shares are of the program's own CPU time, without what recording takes, which is more where all is recorded.
"""

from __future__ import annotations

from functools import partial
from typing import Any

from environments import CHECKOUT, Environments
from measuring import Effort, Row, take_turns

TITLE = "Sampling: shares of CPU time, and events"

ROUNDS = 2_000
WEEKS = 20
PROGRAMS: dict[str, tuple[tuple[object, ...], str]] = {
    "three subprograms": (("sampled.py", ROUNDS), "100us"),
    "orders": (("orders.py", CHECKOUT / "examples", "no-wait", WEEKS), "150us"),
}
KIND, FUNCTION = "kind", "function"
OURS = "interpose"


def measure(environments: Environments, effort: Effort) -> list[Row]:
    """The largest difference of a share: of a sampled run from the full one beside it, and of full runs."""
    rows = []
    for name, (words, interval) in PROGRAMS.items():
        subjects = {
            "full": partial(_run, environments, words, {}),
            "sampled": partial(_run, environments, words, {"INTERPOSE_INTERVAL": interval}),
        }
        given = take_turns(subjects, effort.turns)
        full, sampled = given["full"], given["sampled"]
        share = sampled[0]["events"] / full[0]["events"]
        rows.append(Row(f"{name}, each {interval}", f"{sampled[0]['events']:,} events", f"{share:.1%}", "all", "1.7 %"))
        for by in (KIND, FUNCTION):
            apart = max(_apart(one[by], other[by]) for one, other in zip(full, sampled, strict=True))
            between = max(_apart(one[by], other[by]) for one in full for other in full)
            rows.append(Row(f"{name}, by {by}", f"{apart:.2f} points apart", reach="at most 2"))
            rows.append(Row(f"{name}, by {by}, full runs", f"{between:.2f} points apart"))
    return rows


def _run(environments: Environments, words: tuple[Any, ...], traced: dict[str, str]) -> dict[str, Any]:
    keep = "sampling.er"
    environments.run(*words, traced=traced, keep=keep)
    path = environments.directory / keep
    found = {by: environments.run("shares.py", path, by) for by in (KIND, FUNCTION)}
    environments.remove(keep)
    return {"events": found[KIND]["events"], **{by: _of_program(found[by]["shares"]) for by in found}}


def _of_program(shares: dict[str, float]) -> dict[str, float]:
    """The same without what recording takes."""
    whole = sum(shares.values()) - shares.get(OURS, 0)
    return {name: 100 * share / whole for name, share in shares.items() if name != OURS}


def _apart(one: dict[str, float], other: dict[str, float]) -> float:
    return max(abs(one.get(name, 0) - other.get(name, 0)) for name in {*one, *other})
