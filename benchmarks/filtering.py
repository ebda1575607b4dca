"""How fast filters decide of events, beside only reading these."""

from __future__ import annotations

from functools import partial

from environments import Environments
from measuring import Effort, Row, take_turns, times
from reading import EXPERIMENT, record

TITLE = "Filters over the events of an experiment, on one core"

FILTERS = {
    "none": "",
    "of kinds": "KIND IN ('db', 'net')",
    "of a kind and a time": "KIND == 'file' && WALL > 5ms",
    "of a frame": "FNAME('calls') SOME IN STACK",
    "of four parts": "KIND == 'file' && (WALL > 5ms || WAIT > CPU) && DETAIL =~ 'null$'",
}


def measure(environments: Environments, effort: Effort) -> list[Row]:
    """Events a second, read one by one and decided of."""
    path = str(environments.directory / EXPERIMENT)
    record(environments)
    subjects = {name: partial(environments.run, "filtering.py", path, text) for name, text in FILTERS.items()}
    given = take_turns(subjects, effort.turns)
    best_s = {name: min(turn["seconds"] for turn in turns) for name, turns in given.items()}
    events = given["none"][0]["events"]

    def row(name: str) -> Row:
        speed = f"{events / best_s[name] / 1e6:.2f} million a second"
        return Row(f"filter {name}", speed, times(best_s[name] / best_s["none"]), "only read")

    return [Row("events", f"{events:,}"), *map(row, FILTERS)]
