"""What statement coverage costs, beside SlipCover and coverage.py with each of its cores."""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
from collections.abc import Mapping
from functools import partial
from resource import RUSAGE_CHILDREN, getrusage
from statistics import median
from typing import Any

from environments import HERE, Environments
from measuring import Effort, Row, take_turns, times

TITLE = "Statement coverage"

PROGRAMS = {
    "short": "short functions",
    "loops": "long loops",
    "recursion": "deep recursion",
    "generators": "generators",
    "exceptions": "exceptions",
    "classes": "classes",
    "closures": "closures and comprehensions",
    "suite": "a test suite",
    "imports": "an import of 60 modules, once",
}
ROUNDS = 30
MODULES = 60
NEWER = sys.version_info >= (3, 12)
CORES = ("ctrace", "sysmon") if NEWER else ("ctrace",)
# Only the last has a target.
TRACED = {"interpose, by its trace function": {"INTERPOSE_PROBES": "0"}}
OURS: dict[str, dict[str, str]] = {"interpose": {}} if NEWER else {**TRACED, "interpose": {}}


def measure(environments: Environments, effort: Effort) -> list[Row]:
    """CPU time of the quickest rounds, as ratios; and of starts."""
    packages = os.path.join(environments.directory, "packages")
    os.mkdir(packages)
    environments.run("imported.py", packages, MODULES)
    subjects = _subjects(environments)
    rows = [
        row for program in PROGRAMS for row in _measure(environments, effort, subjects, program, packages)
    ]
    return [*rows, *_starts(environments, effort, subjects)]


def _subjects(environments: Environments) -> dict[str, tuple[tuple[str, ...], Mapping[str, str]]]:
    """The words in front of the program, and the variables, of each who measures."""
    found: dict[str, tuple[tuple[str, ...], Mapping[str, str]]] = {
        "bare": ((), {}),
        **{name: ((), {"INTERPOSE": "coverage", **variables}) for name, variables in OURS.items()},
    }
    if environments.has_peer("slipcover", "slipcover"):
        found["SlipCover"] = (("-m", "slipcover", "--json", "--out", os.devnull), {})
    if environments.has_peer("coverage", "coverage"):
        for core in CORES:
            found[f"coverage.py, {core}"] = (("-m", "coverage", "run", "--rcfile="), {"COVERAGE_CORE": core})
    return found


def _run(
    environments: Environments, subject: tuple[tuple[str, ...], Mapping[str, str]], *words: object
) -> tuple[str, float]:
    """What the program prints, and the CPU seconds of its process from start to end."""
    before, variables = subject
    with tempfile.TemporaryDirectory(dir=environments.directory, ignore_cleanup_errors=True) as place:
        given = dict(variables) if "INTERPOSE" in variables else None
        inherited = environments.variables(place, given) | dict(variables)
        used = getrusage(RUSAGE_CHILDREN)
        done = subprocess.run(
            [str(environments.with_interpose), *before, *map(str, words)],
            env=inherited,
            cwd=place,
            stdout=subprocess.PIPE,
            text=True,
            check=True,
        )
        now = getrusage(RUSAGE_CHILDREN)
    return done.stdout, now.ru_utime + now.ru_stime - used.ru_utime - used.ru_stime


def _round(environments: Environments, subject: Any, program: str, packages: str) -> dict[str, float]:
    rounds = 1 if program == "imports" else ROUNDS
    printed, _ = _run(environments, subject, HERE / "programs" / "covering.py", program, rounds, packages)
    line = next(line for line in printed.splitlines() if line.startswith("{"))
    found = line.removeprefix("{").split("}")[0].replace('"', "").split(", ")
    return {name: float(value) for name, value in (pair.split(": ") for pair in found)}


def _measure(
    environments: Environments, effort: Effort, subjects: dict[str, Any], program: str, packages: str
) -> list[Row]:
    given = take_turns(
        {name: partial(_round, environments, subject, program, packages) for name, subject in subjects.items()},
        effort.turns,
    )
    least = {name: min(turn["least"] for turn in turns) for name, turns in given.items()}
    rows = [Row(f"{PROGRAMS[program]}, bare", f"{least['bare'] * 1e3:,.2f} ms")]
    peers = [least[name] for name in subjects if name != "bare" and name not in OURS]
    for name in list(subjects)[1:]:
        reach = f"{times(1.03 * min(peers) / least['bare'])}" if name == list(OURS)[-1] and peers else ""
        ratio = times(least[name] / least["bare"])
        rows.append(Row(f"{PROGRAMS[program]}, {name}", f"{least[name] * 1e3:,.2f} ms", ratio, "bare", reach))
    return rows


def _starts(environments: Environments, effort: Effort, subjects: dict[str, Any]) -> list[Row]:
    """Medians of the CPU time of an empty program."""
    empty = os.path.join(environments.directory, "empty.py")
    with open(empty, "w"):
        pass
    run = {name: partial(_run, environments, subject, empty) for name, subject in subjects.items()}
    take_turns(run, 2)
    given = take_turns(run, max(effort.starts // 5, 3))
    middle = {name: median(seconds for _, seconds in turns) for name, turns in given.items()}
    rows = [Row("an empty program, bare", f"{middle['bare'] * 1e3:.1f} ms")]
    for name in list(subjects)[1:]:
        figure = f"{(middle[name] - middle['bare']) * 1e3:+.1f} ms"
        reach = "below 66 ms" if name in OURS else ""
        rows.append(
            Row(f"an empty program, {name}", figure, times(middle[name] / middle["bare"]), "bare", reach)
        )
    return rows
