"""What it costs a traced call more when the literals in its statement differ every time."""

from __future__ import annotations

from functools import partial
from statistics import median

from environments import Environments
from measuring import Effort, Row, take_turns

TITLE = "sqlite3.Cursor.execute: a fixed statement, and one whose literals differ at every call"

ROUNDS = 100
CALLS = 1_000
PROCESSES = 2  # of each, a turn

Given = dict[str, dict[str, float]]


def measure(environments: Environments, effort: Effort) -> list[Row]:
    """Medians over processes of what recording adds to a call; in one that is not recorded it is noise."""
    run = partial(environments.run, "statements.py", ROUNDS, CALLS)
    subjects = {"untraced": run, "traced": partial(run, traced={})}
    given = take_turns(subjects, effort.turns * PROCESSES)

    def alone(subject: str) -> str:
        return f"{median(_added_ns(turn, 'changing') - _added_ns(turn, 'fixed') for turn in given[subject]):+,.0f} ns"

    def added(sort: str) -> Row:
        untraced_ns = median(turn["ended"][sort] for turn in given["traced"])
        added_ns = median(_added_ns(turn, sort) for turn in given["traced"])
        return Row(f"{sort} statement ({untraced_ns:,.0f} ns untraced)", f"{added_ns:+,.0f} ns")

    return [
        added("fixed"),
        added("changing"),
        Row("changing literals alone", alone("traced"), reach="at most 200 ns"),
        Row("the same, untraced", alone("untraced")),
    ]


def _added_ns(turn: Given, sort: str) -> float:
    return turn["recorded"][sort] - turn["ended"][sort]
