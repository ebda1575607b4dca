"""What interpose costs at the start of Python: installed, switched on, and in a child that is followed."""

from __future__ import annotations

import os
import subprocess
import tempfile
import time
from collections.abc import Mapping, Sequence
from contextlib import chdir
from functools import partial
from glob import glob
from pathlib import Path
from statistics import median

from environments import Environments
from measuring import Effort, Row, take_turns, times

TITLE = "Start and end of `python -c pass`"
CHILDREN = 5


def measure(environments: Environments, effort: Effort) -> list[Row]:
    """Medians of single starts: without interpose, with it and INTERPOSE not set, and set."""
    subjects = {
        "without interpose": partial(start_ms, environments, environments.without, None),
        "INTERPOSE not set": partial(start_ms, environments, environments.with_interpose, None),
        "INTERPOSE=1": partial(start_ms, environments, environments.with_interpose, {}),
    }
    take_turns(subjects, 3)  # until everything lies in memory
    middle = {name: median(turns) for name, turns in take_turns(subjects, effort.starts).items()}
    base_ms = middle["without interpose"]

    def row(name: str, reach: str) -> Row:
        figure = f"{middle[name] - base_ms:+.2f} ms"
        return Row(name, figure, times(middle[name] / base_ms), "without interpose", reach)

    return [
        Row("without interpose", f"{base_ms:.2f} ms"),
        row("INTERPOSE not set", "within 0.3 ms"),
        row("INTERPOSE=1", "within 4.5 ms"),
        *measure_children(environments, effort),
    ]


# Children one after another, as a job starts them; the time of each from start to end, in nanoseconds.
PARENT = """
import subprocess, sys, time
for _ in range(int(sys.argv[1])):
    begun_ns = time.perf_counter_ns()
    subprocess.run([sys.executable, *sys.argv[2:], "-c", "pass"], check=True)
    print(time.perf_counter_ns() - begun_ns)
"""


def measure_children(environments: Environments, effort: Effort) -> list[Row]:
    """Medians of `python -c pass` as a child: of a program that is not traced, and followed."""
    rows = []
    for options in ([], ["-S"]):
        subjects = {
            name: partial(_children_ms, environments, traced, options) for name, traced in (("not", None), ("", {}))
        }
        middle = {name: median(turns) for name, turns in take_turns(subjects, effort.starts).items()}
        figure = f"{middle[''] - middle['not']:+.2f} ms"
        name = f"a child {' '.join(['python', *options])} -c pass, followed"
        rows.append(Row(name, figure, times(middle[""] / middle["not"]), "not traced", "within 6 ms"))
    return rows


def _children_ms(environments: Environments, traced: Mapping[str, str] | None, options: list[str]) -> float:
    place = tempfile.mkdtemp(dir=environments.directory)
    done = subprocess.run(
        [environments.with_interpose, "-c", PARENT, str(CHILDREN), *options],
        env=environments.variables(place, traced),
        cwd=place,
        capture_output=True,
        check=True,
    )
    followed = len(glob(os.path.join(place, "test.1.er", "_c*.er")))
    if followed != (0 if traced is None else CHILDREN):
        raise RuntimeError(f"{followed} of {CHILDREN} children were followed")
    return median(map(int, done.stdout.split())) / 1e6


def start_ms(
    environments: Environments,
    python: Path,
    traced: Mapping[str, str] | None,
    words: Sequence[str] = ("-c", "pass"),
) -> float:
    """Python with these words, from start to end, in milliseconds. Raises RuntimeError if it is not recorded as
    requested."""
    # What a start leaves stays till the end: for minutes ext4 passes over inodes that were just deleted, one by one,
    # and a file made then costs half a millisecond.
    place = tempfile.mkdtemp(dir=environments.directory)
    variables = environments.variables(place, traced)
    with chdir(place):
        begun_ns = time.perf_counter_ns()
        child = os.posix_spawn(python, [str(python), *words], variables)
        _, status = os.waitpid(child, 0)
        ended_ns = time.perf_counter_ns()
    recorded = os.path.exists(os.path.join(place, "test.1.er"))
    if status or recorded != (traced is not None):
        raise RuntimeError(f"{python}: status {status}, {'recorded' if recorded else 'not recorded'}")
    return (ended_ns - begun_ns) / 1e6
