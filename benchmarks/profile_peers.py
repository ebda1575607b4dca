"""Other samplers, run on the same programs as ours: py-spy, Austin, pyinstrument, Scalene, and Python 3.15's.

Each is asked for a hundred samples a second and for stacks; shares are those of the functions that the program names.
"""

from __future__ import annotations

import json
import shutil
from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

from environments import Environments

RATE = 100
PYTHON_315 = "python3.15"


class Peer(NamedTuple):
    """A peer: its command without the program's own words, and how its output says which functions had how much.

    `packages` are installed for it. The interpreter follows the command, unless `is_python`: then that is one.
    """

    command: Callable[[Path], list[str]]
    shares: Callable[[Path, Mapping[str, float]], dict[str, float]]
    packages: tuple[str, ...] = ()
    is_python: bool = False
    separator: tuple[str, ...] = ()


def in_percent(found: Mapping[str, float]) -> dict[str, float]:
    """Shares of the sum."""
    whole = sum(found.values())
    return {name: 100 * part / whole for name, part in found.items()} if whole else {}


def _of_folded(path: Path, names: Mapping[str, float], part: int, separator: str) -> dict[str, float]:
    """Shares by folded stacks: frames with semicolons between them, a number at the end; `part` of a frame is its
    function."""
    found: Counter[str] = Counter()
    for line in path.read_text().splitlines():
        stack, _, number = line.rpartition(" ")
        functions = [frame.split(separator) for frame in reversed(stack.split(";"))]
        named = (each[part] for each in functions if len(each) > max(part, -part - 1) and each[part] in names)
        owner = next(named, None)
        if owner and number.isdigit():
            found[owner] += int(number)
    return in_percent(found)


def _of_tree(path: Path, names: Mapping[str, float]) -> dict[str, float]:
    """Shares by pyinstrument's tree, where each function has its time with that of what it called."""
    found: Counter[str] = Counter()

    def add(frame: dict[str, Any]) -> None:
        if frame["function"] in names:
            found[frame["function"]] += frame["time"]
        else:
            for each in frame["children"]:
                add(each)

    add(json.loads(path.read_text())["root_frame"])
    return in_percent(found)


def _of_functions(path: Path, names: Mapping[str, float]) -> dict[str, float]:
    """Shares by Scalene's functions, which have what they called in files of others."""
    called = {"small": "many_calls", "Point.__init__": "objects"}
    found: Counter[str] = Counter()
    for file in json.loads(path.read_text())["files"].values():
        for each in file["functions"]:
            owner = called.get(each["line"], each["line"])
            if owner in names:
                found[owner] += each["n_cpu_percent_python"] + each["n_cpu_percent_c"] + each["n_sys_percent"]
    return in_percent(found)


def _peers(binary: Path) -> dict[str, Peer]:
    found = {
        "py-spy": Peer(
            lambda out: [f"{binary}/py-spy", "record", "-r", str(RATE), "-f", "raw", "-o", str(out), "--"],
            partial(_of_folded, part=0, separator=" "),
            ("py-spy",),
        ),
        "Austin": Peer(
            lambda out: [f"{binary}/austin", "-s", "-t", "10000", "-i", str(1_000_000 // RATE), "-o", str(out)],
            partial(_of_folded, part=-2, separator=":"),
            ("austin-dist<4",),
        ),
        "pyinstrument": Peer(
            lambda out: [f"{binary}/python", "-m", "pyinstrument", "-i", str(1 / RATE), "-r", "json", "-o", str(out)],
            _of_tree,
            ("pyinstrument",),
            is_python=True,
        ),
        "Scalene": Peer(
            lambda out: [f"{binary}/python", "-m", "scalene", "run", "--cpu-only", "-o", str(out)],
            _of_functions,
            ("scalene",),
            is_python=True,
            separator=("---",),
        ),
    }
    if path := shutil.which(PYTHON_315):
        how = ["run", "-r", str(RATE), "--mode", "cpu", "--collapsed"]
        found["Python 3.15"] = Peer(
            lambda out: [path, "-m", "profiling.sampling", *how, "-o", str(out)],
            partial(_of_folded, part=-2, separator=":"),
            is_python=True,
        )
    return found


def installed(environments: Environments) -> tuple[dict[str, Peer], list[str]]:
    """The peers that can be run here, and the names of those that cannot."""
    found = _peers(environments.with_interpose.parent)
    there = {name: peer for name, peer in found.items() if environments.has_peer(name, *peer.packages)}
    return there, [name for name in (*found, "Python 3.15") if name not in there]


def words_of(peer: Peer, python: str, out: Path, program: Iterable[str]) -> list[str]:
    """The whole command; `program` is the script and its words."""
    script, *words = program
    with_python = [] if peer.is_python else [python]
    return [*peer.command(out), *with_python, script, *peer.separator, *words]
