"""What it costs to record where memory is allocated, beside memray and tracemalloc."""

from __future__ import annotations

import json
import subprocess
import tempfile
from collections.abc import Callable, Mapping
from functools import partial
from pathlib import Path

from environments import CHECKOUT, HERE, Environments
from measuring import Effort, Row, take_turns, times

TITLE = "The heap: what recording it costs"

ROUNDS = 20
WEEKS = 4
SAMPLED, ALL = {"INTERPOSE": "heap"}, {"INTERPOSE": "heap", "INTERPOSE_HEAP": "all"}
REACH = {"sampled": "1.03 x", "all": "1.3 x"}
PROGRAMS: Mapping[str, tuple[object, ...]] = {
    "orders, no wait": ("orders.py", CHECKOUT / "examples", "no-wait", WEEKS),
    "objects, texts and JSON": ("heap.py", ROUNDS),
}


def measure(environments: Environments, effort: Effort) -> list[Row]:
    """For each program a row for each way; ratios are of the quickest rounds."""
    has_memray = environments.has_peer("memray", "memray")
    return [row for name, words in PROGRAMS.items() for row in _rows(environments, effort, name, words, has_memray)]


def _rows(
    environments: Environments, effort: Effort, name: str, words: tuple[object, ...], has_memray: bool
) -> list[Row]:
    run = partial(environments.run, *map(str, words))
    subjects: dict[str, Callable[[], object]] = {
        "untraced": run,
        "sampled": partial(run, traced=SAMPLED),
        "all": partial(run, traced=ALL),
        "tracemalloc": partial(_by_peer, environments, ("-X", "tracemalloc"), words),
    }
    if has_memray:
        memray = ("-m", "memray", "run", "-qo", "recorded")
        subjects["memray, the C library's allocator alone"] = partial(_by_peer, environments, memray, words)
        python_too = (*memray, "--trace-python-allocators")
        subjects["memray, Python's allocators too"] = partial(_by_peer, environments, python_too, words)
    least = {way: min(map(_least, turns)) for way, turns in take_turns(subjects, effort.turns).items()}
    untraced_ms = least.pop("untraced")
    rows = [Row(f"{name}, untraced", f"{untraced_ms:,.1f} ms")]
    for way, ms in least.items():
        ratio = times(ms / untraced_ms)
        rows.append(Row(f"{name}, {way}", f"{ms - untraced_ms:+,.1f} ms", ratio, "untraced", REACH.get(way, "")))
    return rows


def _least(given: object) -> float:
    """A program gives the milliseconds of its rounds, or of the only one."""
    return min(given) if isinstance(given, list) else float(str(given))


def _by_peer(environments: Environments, before: tuple[str, ...], words: tuple[object, ...]) -> object:
    program, *arguments = map(str, words)
    with tempfile.TemporaryDirectory(dir=environments.directory) as place:
        done = subprocess.run(
            [str(environments.with_interpose), *before, str(Path(HERE, "programs", program)), *arguments],
            env=environments.variables(place, None),
            cwd=place,
            stdout=subprocess.PIPE,
            text=True,
            check=True,
        )
    return json.loads(done.stdout.splitlines()[0])
