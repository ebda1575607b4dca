"""How much smaller compressed events are than the raw records, and how fast both are read to sums by intrinsic."""

from __future__ import annotations

from functools import partial

from environments import CHECKOUT, Environments
from measuring import Effort, Row, take_turns

TITLE = "Compressed events: size, and reading to sums by intrinsic on one core"

EXPERIMENTS = {
    "calls": ("calls.py", "write", 20, 100_000),
    "orders": ("orders.py", CHECKOUT / "examples", "no-wait"),
    "locks": ("locks.py", 20, 100_000),
}
READ = "calls"  # the largest


def measure(environments: Environments, effort: Effort) -> list[Row]:
    """By how much each experiment shrinks, and events a second from raw and from compressed events."""
    rows = []
    for name, words in EXPERIMENTS.items():
        keep = f"{name}.er"
        environments.run(*words, traced={"INTERPOSE_SYNC": "all"}, keep=keep)
        path = environments.directory / keep
        raw = environments.directory / f"{name}.raw"
        sizes = environments.run("compressing.py", path, raw)
        shrunk = 1 - sizes["stored_bytes"] / sizes["raw_bytes"]
        figure = f"{sizes['stored_bytes'] / sizes['events']:.2f} of {sizes['record_bytes']} bytes an event"
        rows.append(Row(f"{name}, {sizes['events']:,} events", figure, f"-{shrunk:.1%}", "raw", "-85 %"))
    subjects = {
        what: partial(environments.run, "reading.py", environments.directory / directory, "compiled")
        for what, directory in (("raw", f"{READ}.raw"), ("compressed", f"{READ}.er"))
    }
    given = take_turns(subjects, effort.turns)
    for what in subjects:
        speed = max(turn["events"] / turn["seconds"] for turn in given[what])
        rows.append(Row(f"reading, {what}", f"{speed / 1e6:.1f} million a second", reach="10 million a second"))
    return rows
