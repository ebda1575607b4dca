"""Whether native calls are as many as strace counts, over a million of them."""

from __future__ import annotations

import json
import shutil
import subprocess
from collections import Counter
from pathlib import Path

from environments import HERE, Environments
from measuring import FULL, Effort, Row

TITLE = "A million native calls, counted by interpose and by `strace -c`"

TURNS = {True: 170_000, False: 2_000}  # of six calls each; the lesser number for a quick run
NATIVE = {"INTERPOSE": "calls,native"}
PROGRAM = "native_counts.py"
# The system call that each function makes.
SYSTEM_CALLS = {
    "libc.open": "openat",
    "libc.open64": "openat",
    "libc.pread": "pread64",
    "libc.lseek64": "lseek",
    **{f"libc.{name}": name for name in ("read", "write", "pread64", "lseek", "close")},
}


def measure(environments: Environments, effort: Effort) -> list[Row]:
    """For each system call how many more the program makes with its turns than without them."""
    if shutil.which("strace") is None:
        return [Row("strace", "is not there")]
    library = environments.directory / "native_counts.so"
    source = HERE / "programs" / "native_counts.c"
    subprocess.run(["cc", "-O2", "-shared", "-fPIC", "-o", library, source], check=True)
    turns = TURNS[effort is FULL]
    by_strace = _by_strace(environments, library, turns) - _by_strace(environments, library, 0)
    recorded = _recorded(environments, library, turns) - _recorded(environments, library, 0)
    rows = [
        Row(name, f"{recorded[name]:,}", base=f"{by_strace[name]:,} by strace", reach="equal")
        for name in sorted(set(SYSTEM_CALLS.values()))
    ]
    return [*rows, Row("all", f"{recorded.total():,}", reach=f"{6 * turns:,}")]


def _by_strace(environments: Environments, library: Path, turns: int) -> Counter[str]:
    counted = environments.directory / "strace.txt"
    program = [environments.with_interpose, HERE / "programs" / PROGRAM, library, str(turns)]
    wanted = ",".join(sorted(set(SYSTEM_CALLS.values())))
    words = ["strace", "-f", "-c", "-e", f"trace={wanted}", "-o", counted, *program]
    place = environments.directory
    subprocess.run(words, check=True, cwd=place, env=environments.variables(str(place), None), capture_output=True)
    lines = [line.split() for line in counted.read_text().splitlines()]
    return Counter({line[-1]: int(line[3]) for line in lines if line and line[-1] in SYSTEM_CALLS.values()})


def _recorded(environments: Environments, library: Path, turns: int) -> Counter[str]:
    kept = "counts.er"
    environments.run(PROGRAM, library, turns, traced=NATIVE, keep=kept)
    words = [environments.with_interpose, "-m", "interpose", "report", "--by", "intrinsic", "--format", "json", kept]
    done = subprocess.run(words, check=True, cwd=environments.directory, capture_output=True, text=True)
    environments.remove(kept)
    counts: Counter[str] = Counter()
    for row in json.loads(done.stdout):
        if row["intrinsic"] in SYSTEM_CALLS:
            counts[SYSTEM_CALLS[row["intrinsic"]]] += row["calls"]
    return counts
