"""What a native call costs more than untraced, with both clocks, its line and its record."""

from __future__ import annotations

import subprocess
from functools import partial
from pathlib import Path

from environments import HERE, Environments
from measuring import Effort, Row, take_turns

TITLE = "A native call: `pread` of 16 bytes by C code, in the page cache, and a free mutex"

ROUNDS = 60
CALLS = 10_000  # fill twelve blocks, so the growth of the pool is in every round
NATIVE = {"INTERPOSE": "calls,native"}
# What is done, with or without the interpreter lock, and what it may cost more.
WAYS = {
    "a read with the interpreter lock": ("kept", "reads", "at most 120 ns"),
    "a read without the interpreter lock": ("given", "reads", "at most 120 ns"),
    "a free mutex": ("kept", "locks", "at most 15 ns"),
}


def measure(environments: Environments, effort: Effort) -> list[Row]:
    """Time of each, untraced, with calls recorded but not native ones, and with native ones."""
    library = _built(environments.directory)
    rows = []
    for name, (lock, what, reach) in WAYS.items():
        run = partial(environments.run, "native.py", library, ROUNDS, CALLS, lock, what)
        subjects = {"untraced": run, "calls": partial(run, traced={}), "native": partial(run, traced=NATIVE)}
        least_ns = {way: min(turns) for way, turns in take_turns(subjects, effort.turns).items()}
        untraced_ns = least_ns["untraced"]
        rows += [
            Row(f"{name}, untraced", f"{untraced_ns:.0f} ns"),
            Row("only calls recorded", f"{least_ns['calls'] - untraced_ns:+.1f} ns", reach="nothing"),
            Row("native calls as well", f"{least_ns['native'] - untraced_ns:+.0f} ns", reach=reach),
        ]
    return rows


def _built(directory: Path) -> Path:
    library = directory / "native.so"
    source = HERE / "programs" / "native.c"
    subprocess.run(["cc", "-O2", "-shared", "-fPIC", "-o", library, source], check=True)
    return library
