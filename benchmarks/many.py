"""Many experiments in one report: cold, from partial results, up to a billion events, and on a Dask cluster.

The experiments are hard links of a few that were recorded, under a thousand names: each is read as if it were its own.
They were read before, with other names, so that their sources are archived: a first reading copies these.
Beside the time that passed is the CPU time of all processes, which other load on the machine changes less.
"""

from __future__ import annotations

import os
import resource
import shutil
import subprocess
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from environments import Environments
from measuring import Effort, Row, times

TITLE = "A report of a thousand experiments of 100,000 events, on all processors"

DISTINCT = 4
EVENTS = 100_000
EXPERIMENTS = 1_000
CURVE = (1, 10, 100, 1_000, 10_000)  # experiments: from 10^5 to 10^9 events
QUICK_SHARE = 10  # of the experiments, with --quick
SCREEN, KINDS = (), ("--by", "kind")
_CLUSTER = """
import json, subprocess, sys, time
from distributed import LocalCluster
if __name__ == "__main__":
    with LocalCluster(
        n_workers=int(sys.argv[1]), threads_per_worker=1, processes=True, dashboard_address=None, host="127.0.0.1"
    ) as cluster:
        words = [sys.executable, "-m", "interpose", "report", "--no-cache", "--dask", cluster.scheduler_address]
        begin = time.monotonic()
        subprocess.run([*words, *sys.argv[2:]], stdout=subprocess.DEVNULL, check=True)
        print(time.monotonic() - begin)
"""


@dataclass(order=True)
class Took:
    """What a report took: seconds that passed, and of CPU time."""

    wall_s: float
    cpu_s: float

    def __str__(self) -> str:
        return f"{self.wall_s:.2f} s ({self.cpu_s:.2f} s CPU)"


def measure(environments: Environments, effort: Effort) -> list[Row]:
    """Reports of a thousand experiments, the curve, and two workers against one."""
    share = QUICK_SHARE if effort.turns < 3 else 1
    experiments = _experiments(environments, EXPERIMENTS // share)
    rows = [Row("load of the machine", f"{os.getloadavg()[0]:.1f}"), Row("experiments", f"{EXPERIMENTS // share:,}")]
    for name, words in (("first screen", SCREEN), ("by kind", KINDS)):
        cold = min(_cold(environments, experiments, words) for _ in range(effort.turns))
        kept = min(_report(environments, experiments, words) for _ in range(effort.turns))
        rows.append(Row(f"{name}, cold", str(cold), reach="10 s"))
        rows.append(Row(f"{name}, from partial results", str(kept), times(kept.wall_s / cold.wall_s), "cold", "1 s"))
    return [*rows, *_curve(environments, share), *_workers(environments, experiments)]


def _curve(environments: Environments, share: int) -> list[Row]:
    """Events a second for each length, and of the first one how much slower or faster."""
    rows, first = [], 0.0
    for count in CURVE:
        if count > CURVE[-1] // share:
            break
        took = _cold(environments, _experiments(environments, count), KINDS)
        speed = count * EVENTS / took.cpu_s
        first = first or speed
        figure = f"{took}, {speed / 1e6:.1f} million a second of CPU"
        rows.append(Row(f"{count * EVENTS:,} events", figure, times(speed / first), "the first", "linear"))
    return rows


def _workers(environments: Environments, experiments: Path) -> list[Row]:
    if not environments.install("distributed"):
        return [Row("two Dask workers", "distributed cannot be installed")]
    one, two = (_on_cluster(environments, experiments, workers) for workers in (1, 2))
    return [
        Row("one Dask worker", f"{one:.2f} s"),
        Row("two Dask workers", f"{two:.2f} s", times(one / two), "as fast as one", "2 x"),
    ]


def _experiments(environments: Environments, count: int) -> Path:
    """A directory with so many experiments."""
    place = environments.directory / f"many-{count}"
    if not place.exists():
        recorded = [_recorded(environments, number) for number in range(DISTINCT)]
        for number in range(count):
            _link(recorded[number % DISTINCT], place / f"run.{number}.er")
    return place


def _recorded(environments: Environments, number: int) -> Path:
    name = f"distinct-{number}.er"
    if not (environments.directory / name).exists():
        environments.run("calls.py", "write", 1, EVENTS, traced={}, keep=name)
        _run(environments, [*_command(environments), str(environments.directory / name)], subprocess.DEVNULL)
    return environments.directory / name


def _link(experiment: Path, target: Path) -> None:
    for directory, _, files in os.walk(experiment):
        place = target / os.path.relpath(directory, experiment)
        place.mkdir(parents=True)
        for name in files:
            os.link(os.path.join(directory, name), place / name)


def _cold(environments: Environments, experiments: Path, words: Sequence[str]) -> Took:
    shutil.rmtree(environments.directory / "cache", ignore_errors=True)
    return _report(environments, experiments, words)


def _report(environments: Environments, experiments: Path, words: Sequence[str]) -> Took:
    before, begin = resource.getrusage(resource.RUSAGE_CHILDREN), time.monotonic()
    _run(environments, [*_command(environments), f"{experiments}/*.er", *words], subprocess.DEVNULL)
    after, wall_s = resource.getrusage(resource.RUSAGE_CHILDREN), time.monotonic() - begin
    return Took(wall_s, after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime)


def _on_cluster(environments: Environments, experiments: Path, workers: int) -> float:
    program = environments.directory / "cluster.py"
    program.write_text(_CLUSTER)
    command = [str(environments.with_interpose), str(program), str(workers), f"{experiments}/*.er", *KINDS]
    return float(_run(environments, command, subprocess.PIPE).stdout.split()[-1])


def _command(environments: Environments) -> list[str]:
    return [str(environments.with_interpose), "-m", "interpose", "report"]


def _run(environments: Environments, command: Sequence[str], out: int) -> subprocess.CompletedProcess[str]:
    """Run a command where no checkout is: Python would import that, and not what is installed."""
    variables, place = _variables(environments), environments.directory
    return subprocess.run(command, env=variables, cwd=place, stdout=out, text=True, check=True)


def _variables(environments: Environments) -> dict[str, str]:
    place = str(environments.directory)
    return {**environments.variables(place, None), "XDG_CACHE_HOME": str(environments.directory / "cache")}
