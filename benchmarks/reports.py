"""What reports of large experiments take: many requests, and calls whose details or names all differ."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from environments import Environments
from measuring import Effort, Row, take_turns

TITLE = "Reports of large experiments: CPU time and largest memory"

QUICK_SHARE = 10  # of the calls, with --quick
SCREEN, PAGE, TRANSACTIONS, PROFILE = ("report",), ("report", "--format", "html"), ("transactions",), ("profile",)
# What the program makes, how many, and the reports of it with what they must reach.
REPORTS = (
    ("served", 870_000, {TRANSACTIONS: "1.5 s", SCREEN: "", PAGE: "3 s"}),
    ("details", 600_000, {SCREEN: "2 s, 150 MB", PAGE: ""}),
    ("details", 2_400_000, {SCREEN: "linear"}),
    ("names", 60_000, {TRANSACTIONS: "", SCREEN: "", PAGE: "", PROFILE: ""}),
    ("names", 600_000, {SCREEN: "linear"}),
)


@dataclass(order=True)
class Took:
    """What a report took."""

    cpu_s: float
    peak_bytes: int


def measure(environments: Environments, effort: Effort) -> list[Row]:
    """A row for each report: the least CPU time of some turns, and the largest memory in that turn."""
    share = QUICK_SHARE if effort.turns < 3 else 1
    rows = [Row("load of the machine", f"{os.getloadavg()[0]:.1f}")]
    for what, number, reports in REPORTS:
        kept = f"{what}-{number}.er"
        environments.run("requests.py", what, number // share, traced={}, keep=kept)
        path = environments.directory / kept
        subjects = {words: partial(_report, environments, path, words) for words in reports}
        for words, turns in take_turns(subjects, effort.turns).items():
            best = min(turns)
            name = f"{' '.join(words)}, {number // share:,} {what}"
            rows.append(Row(name, f"{best.cpu_s:.2f} s, {best.peak_bytes / 1e6:.0f} MB", reach=reports[words]))
        environments.remove(kept)
    return rows


def _report(environments: Environments, path: Path, words: Sequence[str]) -> Took:
    command = [str(environments.with_interpose), "-m", "interpose", *words, str(path)]
    variables = environments.variables(str(environments.directory), None)
    process = subprocess.Popen(command, env=variables, stdout=subprocess.DEVNULL, cwd=environments.directory)
    _, status, used = os.wait4(process.pid, 0)
    process.returncode = os.waitstatus_to_exitcode(status)
    if process.returncode:
        raise RuntimeError(f"{' '.join(words)} ended with {process.returncode}")
    return Took(used.ru_utime + used.ru_stime, used.ru_maxrss * 1024)
