"""How fast an experiment is written in the formats of other tools, how large it is there, and in what memory."""

from __future__ import annotations

from functools import partial

from environments import Environments
from measuring import Effort, Row, take_turns

TITLE = "Exports of 2 million calls, on one core (parquet: on all)"

CALLS = 2_000_000
REACH = {"perfetto": "1 million a second, 12 bytes", "parquet": "2 million a second", "otlp": "0.1 million a second"}
FORMATS = ("perfetto", "parquet", "chrome", "otlp", "pprof", "speedscope", "callgrind", "folded")


def measure(environments: Environments, effort: Effort) -> list[Row]:
    """A row for each format: calls for each second of CPU time, bytes for each call, and the largest memory."""
    keep = "exported.er"
    environments.run("calls.py", "write", 20, CALLS // 20, traced={}, keep=keep)
    environments.install("pyarrow")
    path = environments.directory / keep
    subjects = {to: partial(_exported, environments, path, to) for to in FORMATS}
    rows = []
    for to, turns in take_turns(subjects, max(effort.turns // 3, 1)).items():
        best = min(turns, key=lambda turn: turn["seconds"])
        figure = f"{CALLS / best['seconds'] / 1e6:.2f} million a second"
        if to == "parquet":  # on two
            figure = f"{CALLS / best['elapsed_seconds'] / 1e6:.2f} million a second"
        size = f"{best['bytes'] / CALLS:.1f} bytes, {best['memory_bytes'] / 2**20:.0f} MiB"
        rows.append(Row(to, figure, size, "a call, largest memory", REACH.get(to, "")))
    environments.remove(keep)
    return rows


def _exported(environments: Environments, path: object, to: str) -> dict[str, float]:
    out = environments.directory / f"out.{to}"
    made: dict[str, float] = environments.run("exporting.py", path, to, out)
    if made["code"]:
        raise RuntimeError(f"--to {to} ended with {made['code']}")
    if out.is_dir():
        environments.remove(out.name)
    else:
        out.unlink()
    return made
