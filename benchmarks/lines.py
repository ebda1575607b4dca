"""What line trace costs programs of many short lines, beside others that look at each line.

line_profiler keeps counts and times as well; coverage.py with its tracer in C keeps which lines ran, no times. What the
interpreter alone takes is measured with a function in C that is told the same events and does nothing, or reads the
time.
"""

from __future__ import annotations

import os
import subprocess
import sys
from functools import partial
from pathlib import Path

from environments import HERE, Environments
from measuring import Effort, Row, take_turns, times

TITLE = "Line trace of programs of many short lines"

PROGRAMS = ("orders", "words", "primes", "ackermann")
OTHERS = {"line_profiler": "line_profiler", "coverage.py, its C tracer": "coverage"}
FLOOR = HERE / "programs" / "floor" / "floor.c"
ROUNDS = 20
REACH = 3.0 if sys.version_info >= (3, 12) else 4.5


def measure(environments: Environments, effort: Effort) -> list[Row]:
    """Time of the same rounds untraced, under line trace, and under the others; who is not installed is left out."""
    directory = environments.directory / "floor"
    others: dict[str, tuple[object, ...]] = {}
    if _compile(environments, directory):
        others |= {"empty callback": ("floor", directory), "callback that reads time": ("reading", directory)}
    others |= {name: (module,) for name, module in OTHERS.items() if environments.has_peer(module, module)}
    return [row for program in PROGRAMS for row in _measure(environments, effort, program, others)]


def _measure(
    environments: Environments, effort: Effort, program: str, others: dict[str, tuple[object, ...]]
) -> list[Row]:
    run = partial(environments.run, "lines.py", program, ROUNDS)
    subjects = {"untraced": run, "line trace": partial(run, traced={"INTERPOSE": "lines"})}
    subjects["statements as events"] = partial(run, traced={"INTERPOSE": "calls,lines", "INTERPOSE_STATEMENTS": "1"})
    subjects |= {name: partial(run, *words) for name, words in others.items()}
    given = take_turns(subjects, effort.turns)
    least = {name: min(turns) for name, turns in given.items()}
    rows = [Row(f"{program}, untraced", f"{least['untraced'] * 1e6:,.0f} us")]
    for name in list(subjects)[1:]:
        ratio = times(least[name] / least["untraced"])
        reach = f"{REACH} x" if name == "line trace" else ""
        rows.append(Row(f"{program}, {name}", f"{least[name] * 1e6:,.0f} us", ratio, "untraced", reach))
    return rows


def _compile(environments: Environments, directory: Path) -> bool:
    """Make the extension module that does nothing; False if there is no compiler."""
    directory.mkdir()
    asked = "import sysconfig; print(sysconfig.get_path('include'))"
    words = [str(environments.with_interpose), "-c", asked]
    headers = subprocess.run(words, capture_output=True, text=True, check=True).stdout.strip()
    compiler = [os.environ.get("CC", "cc"), "-O2", "-shared", "-fPIC", f"-I{headers}"]
    try:
        subprocess.run([*compiler, str(FLOOR), "-o", str(directory / "floor.so")], check=True)
    except (OSError, subprocess.CalledProcessError):
        return False
    return True
