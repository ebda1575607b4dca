"""What watching the system calls of a program costs it, beside `perf trace` and `strace`; and whether all are there."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
from functools import partial
from pathlib import Path

from environments import Environments
from measuring import FULL, Effort, Row, take_turns, times

TITLE = "A program that makes system calls only, watched from outside (dd, two calls for each byte)"

BYTES = {True: 500_000, False: 50_000}


def measure(environments: Environments, effort: Effort) -> list[Row]:
    """The time of dd by its own clock, in turns with and without interpose, and once under the others."""
    many = BYTES[effort is FULL]
    place, experiment = environments.directory, environments.directory / "ktest.1.er"
    ours = [environments.with_interpose, "-m", "interpose", "kernel", "-d", place]
    if why := _why_not(ours, place):
        return [Row("interpose kernel", f"not possible: {why}")]

    def watched(*options: object) -> float:
        shutil.rmtree(experiment, ignore_errors=True)
        return _copy([*ours, *options], place, many)

    subjects = {"alone": partial(_copy, [], place, many), "interpose kernel --stacks": partial(watched, "--stacks")}
    subjects["interpose kernel"] = watched  # the last one is counted
    least = {name: min(found) for name, found in take_turns(subjects, effort.turns).items()}
    alone_s = least.pop("alone")
    rows = [Row("alone", f"{alone_s:.3f} s"), *(_row(name, seconds, alone_s, many) for name, seconds in least.items())]
    for name, words in _others(place / "others.txt").items():
        if shutil.which(words[0]):
            rows.append(_row(name, _copy(words, place, many), alone_s, many))
    counted = _counted(environments, experiment)
    return [*rows, *(Row(f"calls of {name}", f"{counted[name]:,}", reach=f"{many:,}") for name in ("read", "write"))]


def _others(written: Path) -> dict[str, list[str]]:
    return {
        "perf trace": ["perf", "trace", "-o", str(written)],
        "perf trace -s, sums alone": ["perf", "trace", "-s", "-o", str(written)],
        "strace -f": ["strace", "-f", "-o", str(written)],
        "strace -c, counts alone": ["strace", "-c", "-f", "-o", str(written)],
    }


def _row(name: str, seconds: float, alone_s: float, many: int) -> Row:
    return Row(
        f"{name}, +{(seconds - alone_s) / many / 2 * 1e6:.2f} us a call",
        f"{seconds:.3f} s",
        times(seconds / alone_s),
        "alone",
    )


def _copy(under: list[object], place: Path, many: int) -> float:
    """The seconds that dd says it took to copy so many bytes one by one."""
    words = [*map(str, under), "dd", "if=/dev/zero", "of=/dev/null", "bs=1", f"count={many}"]
    done = subprocess.run(words, cwd=place, capture_output=True, text=True, check=True)
    (seconds,) = re.findall(r"copied, ([0-9.e-]+) s", done.stderr)
    return float(seconds)


def _why_not(ours: list[object], place: Path) -> str:
    done = subprocess.run([*map(str, ours), "true"], cwd=place, capture_output=True, text=True)
    shutil.rmtree(place / "ktest.1.er", ignore_errors=True)
    return done.stderr.strip().removeprefix("interpose: ") if done.returncode else ""


def _counted(environments: Environments, experiment: Path) -> dict[str, int]:
    words = [environments.with_interpose, "-m", "interpose", "report", "--by", "detail", "--format", "json", experiment]
    rows = json.loads(subprocess.run(words, capture_output=True, text=True, check=True).stdout)
    found = dict.fromkeys(("read", "write"), 0)
    for row in rows:
        name = (row["intrinsic"] or "").removeprefix("syscall.")
        if name in found and row["detail"] in ("<stdin>", "<stdout>"):
            found[name] += row["calls"]
    return found
