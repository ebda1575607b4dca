"""How fast an experiment is read to sums by intrinsic, and in how much memory."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

from environments import Environments
from measuring import Effort, Row, take_turns, times

TITLE = "Reading an experiment to sums by intrinsic, on one core"

EXPERIMENT = "large.er"
EVENTS = 2_000_000
CALLS_A_ROUND = 100_000


def measure(environments: Environments, effort: Effort) -> list[Row]:
    """Events a second of both readers, and what memory they take more than a reader that reads no events."""
    path = str(environments.directory / EXPERIMENT)
    record(environments)
    subjects = {name: _reader(environments, path, name) for name in ("none", "plain", "compiled")}
    given = take_turns(subjects, effort.turns)
    empty_bytes = min(turn["peak_bytes"] for turn in given["none"])
    speed = {name: max(turn["events"] / turn["seconds"] for turn in given[name]) for name in subjects}

    def row(name: str, reach: str = "") -> Row:
        figure, ratio = f"{speed[name] / 1e6:.1f} million a second", times(speed[name] / speed["plain"])
        return Row(f"{name} reader", figure, ratio, "plain reader", reach)

    def memory(name: str) -> Row:
        peak_bytes = max(turn["peak_bytes"] for turn in given[name])
        return Row(f"memory, {name} reader", f"+{(peak_bytes - empty_bytes) / 1e6:.1f} MB", reach="bounded")

    return [
        Row("events read", f"{given['compiled'][0]['events']:,}"),
        row("plain"),
        row("compiled", "10 million a second"),
        memory("plain"),
        memory("compiled"),
    ]


def record(environments: Environments) -> None:
    """Make the experiment that is read, unless it is there."""
    if (environments.directory / EXPERIMENT).exists():
        return
    rounds = EVENTS // CALLS_A_ROUND
    environments.run("calls.py", "write", rounds, CALLS_A_ROUND, traced={}, keep=EXPERIMENT)


def _reader(environments: Environments, path: str, name: str) -> Callable[[], dict[str, Any]]:
    return partial(environments.run, "reading.py", path, name)
