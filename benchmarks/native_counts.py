"""Whether native calls are as many as strace and ltrace count, over a million of them."""

from __future__ import annotations

import json
import shutil
import subprocess
from collections import Counter
from pathlib import Path

from environments import HERE, Environments
from measuring import FULL, Effort, Row

TITLE = "A million native calls, counted by interpose, and by `strace -c` or `ltrace -c`"

TURNS = {True: 170_000, False: 2_000}  # of six calls each; the lesser number for a quick run
NATIVE = {"INTERPOSE": "calls,native"}
PROGRAM = "native_counts.py"
BLOCKS = {True: 500_000, False: 5_000}  # that dd copies, with a read and a write each
COPYING = ("read", "write")
# The system call that each function makes.
SYSTEM_CALLS = {
    "libc.open": "openat",
    "libc.open64": "openat",
    "libc.pread": "pread64",
    "libc.lseek64": "lseek",
    **{f"libc.{name}": name for name in ("read", "write", "pread64", "lseek", "close")},
}


def measure(environments: Environments, effort: Effort) -> list[Row]:
    """The counts of both programs."""
    return [*_beside_strace(environments, effort), *_beside_ltrace(environments, BLOCKS[effort is FULL])]


def _beside_strace(environments: Environments, effort: Effort) -> list[Row]:
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


def _beside_ltrace(environments: Environments, blocks: int) -> list[Row]:
    """How often dd, which is not Python, calls what copies."""
    if shutil.which("ltrace") is None:
        return [Row("ltrace", "is not there")]
    words = ["dd", "if=/dev/zero", "of=/dev/null", "bs=1", f"count={blocks}"]
    place, counted = environments.directory, environments.directory / "ltrace.txt"
    by_ltrace = ["ltrace", "-c", "-e", "+".join(COPYING), "-o", counted]
    subprocess.run([*by_ltrace, *words], check=True, cwd=place, capture_output=True)
    lines = [line.split() for line in counted.read_text().splitlines()]
    found = {line[-1]: int(line[-2]) for line in lines if line and line[-1] in COPYING}
    recorder = [environments.with_interpose, "-m", "interpose", "run", "--dir", "dd"]
    subprocess.run([*recorder, *words], check=True, cwd=place, capture_output=True)
    recorded = _counts(environments, "dd/test.1.er")
    shutil.rmtree(place / "dd")
    return [
        Row(f"dd: {name}", f"{recorded[f'libc.{name}']:,}", base=f"{found[name]:,} by ltrace", reach="equal")
        for name in COPYING
    ]


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
    calls = _counts(environments, kept)
    environments.remove(kept)
    counts: Counter[str] = Counter()
    for name, count in calls.items():
        if name in SYSTEM_CALLS:
            counts[SYSTEM_CALLS[name]] += count
    return counts


def _counts(environments: Environments, experiment: str) -> Counter[str]:
    command = [environments.with_interpose, "-m", "interpose"]
    words = [*command, "report", "--by", "intrinsic", "--format", "json", experiment]
    done = subprocess.run(words, check=True, cwd=environments.directory, capture_output=True, text=True)
    counts: Counter[str] = Counter()
    for row in json.loads(done.stdout):
        counts[row["intrinsic"]] += row["calls"]
    return counts
