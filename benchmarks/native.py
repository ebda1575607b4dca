"""What a native call costs more than untraced, with both clocks, its line and its record; and what a thread costs."""

from __future__ import annotations

import shutil
import subprocess
import tempfile
from functools import partial
from pathlib import Path

from environments import HERE, Environments
from measuring import Effort, Row, take_turns

TITLE = "A native call: `pread` of 16 bytes by C code, in the page cache, and a free mutex; and a thread"

ROUNDS = 60
CALLS = 10_000  # fill twelve blocks, so the growth of the pool is in every round
NATIVE = {"INTERPOSE": "calls,native"}
# What is done, with or without the interpreter lock, and what it may cost more.
WAYS = {
    "a read with the interpreter lock": ("kept", "reads", "at most 120 ns"),
    "a read without the interpreter lock": ("given", "reads", "at most 120 ns"),
    "a free mutex": ("kept", "locks", "at most 15 ns"),
}
THREADS = 250  # of a program that is not Python: so many are recorded at once
THREAD_TURNS = 3  # for each turn of the others: a turn is short, and its figure varies more


def measure(environments: Environments, effort: Effort) -> list[Row]:
    """Time of each, untraced, with calls recorded but not native ones, and with native ones."""
    library = _built(environments.directory)
    rows = []
    for name, (lock, what, reach) in WAYS.items():
        run = partial(environments.run, "native.py", library, ROUNDS, CALLS, lock, what)
        subjects = {"untraced": run, "calls": partial(run, traced={}), "native": partial(run, traced=NATIVE)}
        least_ns = {way: min(turns) for way, turns in take_turns(subjects, effort.turns).items()}
        untraced_ns = least_ns["untraced"]
        rows += [
            Row(f"{name}, untraced", f"{untraced_ns:.0f} ns"),
            Row("only calls recorded", f"{least_ns['calls'] - untraced_ns:+.1f} ns", reach="nothing"),
            Row("native calls as well", f"{least_ns['native'] - untraced_ns:+.0f} ns", reach=reach),
        ]
    return [*rows, *_functions(environments, effort), *_threads(environments, effort)]


def _built(directory: Path) -> Path:
    library = directory / "native.so"
    source = HERE / "programs" / "native.c"
    subprocess.run(["cc", "-O2", "-shared", "-fPIC", "-o", library, source], check=True)
    return library


def _functions(environments: Environments, effort: Effort) -> list[Row]:
    """A read in C, ten functions deep, recorded with and without these functions, and by gprofng, which keeps them."""
    program = environments.directory / "native_functions"
    subprocess.run(["cc", "-O2", "-o", program, HERE / "programs" / "native_functions.c"], check=True)
    recorded = [environments.with_interpose, "-m", "interpose", "run", "--profile", "off"]
    subjects = {
        "untraced": [program],
        "recorded": [*recorded, program],
        "with the functions that led to it": [*recorded, "--native-stack", "functions", program],
    }
    if environments.has_peer("gprofng") and shutil.which("gprofng"):
        subjects["under `gprofng collect app -i on`"] = ["gprofng", "collect", "app", "-p", "off", "-i", "on", program]
    turns = {name: partial(_last_number, environments, words) for name, words in subjects.items()}
    least_ns = {name: min(given) for name, given in take_turns(turns, effort.turns).items()}
    untraced_ns = least_ns.pop("untraced")
    rows = [Row(name, f"{ns - untraced_ns:+.0f} ns") for name, ns in least_ns.items()]
    return [Row("a read in C, ten functions deep, untraced", f"{untraced_ns:.0f} ns"), *rows]


def _threads(environments: Environments, effort: Effort) -> list[Row]:
    """CPU time of a thread of a program in C that starts it and joins it, beside perf, which follows it as well."""
    program = environments.directory / "native_threads"
    subprocess.run(["cc", "-O2", "-pthread", "-o", program, HERE / "programs" / "native_threads.c"], check=True)
    command = [program, str(THREADS)]
    recorded = [environments.with_interpose, "-m", "interpose", "run", "--profile", "off"]
    subjects = {"untraced": command, "recorded": [*recorded, *command]}
    if environments.has_peer("perf") and shutil.which("perf"):
        subjects["under `perf record`"] = ["perf", "record", "-q", "-e", "task-clock", "-o", "perf.data", *command]
    turns = {name: partial(_last_number, environments, words) for name, words in subjects.items()}
    least_us = {name: min(given) / 1000 for name, given in take_turns(turns, THREAD_TURNS * effort.turns).items()}
    untraced_us = least_us.pop("untraced")
    rows = [Row(name, f"{cpu_us - untraced_us:+.0f} us of CPU time") for name, cpu_us in least_us.items()]
    return [Row("a thread, started and joined, untraced", f"{untraced_us:.0f} us of CPU time"), *rows]


def _last_number(environments: Environments, words: list[str | Path]) -> float:
    """The number that a C program prints as its last word."""
    with tempfile.TemporaryDirectory(dir=environments.directory) as place:
        how = {"cwd": place, "env": environments.variables(place, None), "check": True}
        return float(subprocess.run(words, stdout=subprocess.PIPE, **how).stdout.split()[-1])
