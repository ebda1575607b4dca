"""What a call costs more than untraced while the recording is paused, and where a filter or sampling leaves it out."""

from __future__ import annotations

from functools import partial

from environments import Environments
from measuring import Effort, Row, take_turns, times

TITLE = "A call of which nothing is recorded: what it costs more than untraced"

ROUNDS, CALLS = 200, 2_000
CALLED = {"fetch": "a C method (sqlite3.Cursor.fetchone)", "write": "a write to a file (os.write)"}
UNTRACED, RECORDED, PAUSED = "untraced", "recorded", "paused"
FILTERS = {
    "by kind": "kind=process",
    "by module": "module=elsewhere",
    "by transaction": "transaction=elsewhere",
    "by function on the stack": "within=elsewhere",
    "after so many": "keep=1",
    "before its time": "from=9h",
}
PASSED_OVER = "within a transaction that is passed over"
SETTINGS: dict[str, dict[str, str] | None] = {
    UNTRACED: None,
    RECORDED: {},
    PAUSED: {"INTERPOSE_PAUSED": "1"},
    PASSED_OVER: {"INTERPOSE_TRANSACTIONS": "1/1000000", "INTERPOSE_SEED": "1"},
    **{name: {"INTERPOSE_FILTER": text} for name, text in FILTERS.items()},
}
REACH = {PAUSED: "at most 5 ns", PASSED_OVER: "a few ns", **dict.fromkeys(FILTERS, "at most 20 ns")}


def measure(environments: Environments, effort: Effort) -> list[Row]:
    """A row for each state, and each of the calls."""
    subjects = {name: partial(_run, environments, name) for name in SETTINGS}
    given = take_turns(subjects, effort.turns)
    least = {name: {call: min(turn[call] for turn in turns) for call in CALLED} for name, turns in given.items()}
    return [_row(least, name, call) for call in CALLED for name in SETTINGS if name != UNTRACED]


def _row(least: dict[str, dict[str, float]], name: str, call: str) -> Row:
    added_ns = least[name][call] - least[UNTRACED][call]
    recorded_ns = least[RECORDED][call] - least[UNTRACED][call]
    ratio = times(added_ns / recorded_ns)
    return Row(f"{CALLED[call]}, {name}", f"{added_ns:+.1f} ns", ratio, RECORDED, REACH.get(name, ""))


def _run(environments: Environments, name: str) -> dict[str, float]:
    words = ["within"] if name == PASSED_OVER else []
    given: dict[str, float] = environments.run("control.py", ROUNDS, CALLS, *words, traced=SETTINGS[name])
    return given
