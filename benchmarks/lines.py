"""What line trace costs programs of many short lines, beside others that look at each line.

line_profiler keeps counts and times as well; coverage.py with its tracer in C keeps which lines ran, no times.
"""

from __future__ import annotations

import subprocess
import sys
from functools import partial

from environments import Environments
from measuring import Effort, Row, take_turns, times

TITLE = "Line trace of programs of many short lines"

PROGRAMS = ("orders", "words", "primes", "ackermann")
OTHERS = {"line_profiler": "line_profiler", "coverage.py, its C tracer": "coverage"}
ROUNDS = 20
REACH = 3.0 if sys.version_info >= (3, 12) else 4.5


def measure(environments: Environments, effort: Effort) -> list[Row]:
    """Time of the same rounds untraced, under line trace, and under the others; who is not installed is left out."""
    others = dict(OTHERS) if _install(environments) else {}
    return [row for program in PROGRAMS for row in _measure(environments, effort, program, others)]


def _measure(
    environments: Environments, effort: Effort, program: str, others: dict[str, str]
) -> list[Row]:
    run = partial(environments.run, "lines.py", program, ROUNDS)
    subjects = {"untraced": run, "line trace": partial(run, traced={"INTERPOSE": "lines"})}
    subjects |= {name: partial(run, module) for name, module in others.items()}
    given = take_turns(subjects, effort.turns)
    least = {name: min(turns) for name, turns in given.items()}
    rows = [Row(f"{program}, untraced", f"{least['untraced'] * 1e6:,.0f} us")]
    for name in list(subjects)[1:]:
        ratio = times(least[name] / least["untraced"])
        reach = f"{REACH} x" if name == "line trace" else ""
        rows.append(Row(f"{program}, {name}", f"{least[name] * 1e6:,.0f} us", ratio, "untraced", reach))
    return rows


def _install(environments: Environments) -> bool:
    """Put the others beside interpose; False where they cannot be had."""
    words = [str(environments.with_interpose), "-m", "pip", "install", "--quiet", "line_profiler", "coverage"]
    done = subprocess.run(words, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, check=False)
    return done.returncode == 0
