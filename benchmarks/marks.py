"""What it costs to mark a transaction, with a recording and without one."""

from __future__ import annotations

from functools import partial

from environments import Environments
from measuring import Effort, Row, take_turns, times

TITLE = "Marked transactions"

ROUNDS = 30
TIMES = 5_000


def measure(environments: Environments, effort: Effort) -> list[Row]:
    """What a decorated call takes more than a bare one, and a block more than the loop around it, in bare calls."""
    subjects = {
        "not recorded": partial(environments.run, "marks.py", ROUNDS, TIMES),
        "recorded": partial(environments.run, "marks.py", ROUNDS, TIMES, traced={}),
    }
    rows = []
    for name, turns in take_turns(subjects, effort.turns).items():
        least_ns = {act: min(turn[act] for turn in turns) for act in turns[0]}
        for act, bare in (("call, decorated", "call, bare"), ("block", "loop"), ("block in a coroutine", "loop")):
            more_ns = least_ns[act] - least_ns[bare]
            ratio = times(more_ns / least_ns["call, bare"])
            rows.append(Row(f"{act}, {name}", f"{more_ns:+.0f} ns", ratio, "a bare call"))
    return rows
