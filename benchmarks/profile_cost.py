"""What the sampled profile costs the program, beside one that is recorded only, and what its monitor takes."""

from __future__ import annotations

import json
import os
import subprocess
import tempfile
from collections.abc import Callable
from functools import partial
from pathlib import Path
from statistics import median
from typing import Any

from environments import CHECKOUT, HERE, Environments
from measuring import Effort, Row, take_turns, times
from served import PACKAGES, serve
from start import start_ms

TITLE = "The sampled profile: cost to the program and of the monitor, 100 samples a second"

SAMPLED = {"INTERPOSE": "calls,profile"}
RECORDED, WITH_PROFILE = "recorded", "sampled"
ROUNDS = 60
WEEKS = 20
REQUESTS = 300  # for each turn of FULL
THREADS, SECONDS = 10, 4
RANDOM_BYTES = 40_000_000
LIMIT = "1.01 x"


def measure(environments: Environments, effort: Effort) -> list[Row]:
    """Ratios of sampled to recorded programs, the start of the monitor, and its CPU time beside ten threads."""
    pure = _beside(partial(environments.run, "idle.py", ROUNDS), effort.turns)
    orders = _beside(partial(environments.run, "orders.py", CHECKOUT / "examples", "no-wait", WEEKS), effort.turns)
    return [
        _row("pure Python: wall time", min, pure),
        _row("orders, no wait: wall time", min, orders),
        _row("gzip, not Python: CPU time", min, _compressing(environments, effort)),
        *_service(environments, effort),
        _start(environments, effort),
        _monitor(environments, effort),
    ]


def _beside(run: Callable[..., Any], turns: int) -> dict[str, list[Any]]:
    return take_turns({RECORDED: partial(run, traced={}), WITH_PROFILE: partial(run, traced=SAMPLED)}, turns)


def _row(what: str, of: Callable[[list[float]], float], given: dict[str, list[float]]) -> Row:
    ratio = of(given[WITH_PROFILE]) / of(given[RECORDED])
    return Row(what, f"{ratio - 1:+.1%}", times(ratio), RECORDED, LIMIT)


def _compressing(environments: Environments, effort: Effort) -> dict[str, list[float]]:
    """CPU seconds of a program that is not Python."""
    file = Path(environments.directory, "random")
    file.write_bytes(os.urandom(RANDOM_BYTES))
    run = [str(environments.with_interpose), "-m", "interpose", "run", "--native", "--profile"]
    program = [str(HERE / "programs" / "cpu_of.py"), "gzip", "-c", str(file)]

    def cpu_s(rate: str) -> float:
        with tempfile.TemporaryDirectory(dir=environments.directory) as place:
            how = {"cwd": place, "env": environments.variables(place, None), "check": True}
            return float(subprocess.run([*run, rate, *program], stdout=subprocess.PIPE, **how).stdout)

    return take_turns({RECORDED: partial(cpu_s, "off"), WITH_PROFILE: partial(cpu_s, "100")}, effort.turns)


def _service(environments: Environments, effort: Effort) -> list[Row]:
    """Medians of the CPU time and of the wall time of a request."""
    if not environments.install(*PACKAGES):
        return [Row("Flask and gunicorn cannot be installed", "")]
    given = _beside(partial(serve, environments, effort.turns * REQUESTS), effort.turns)
    cpu = {name: [turn["cpu_us"] for turn in turns] for name, turns in given.items()}
    wall = {name: [1 / turn["per_second"] for turn in turns] for name, turns in given.items()}
    return [_row("Flask: CPU time of a request", median, cpu), _row("Flask: wall time of a request", median, wall)]


def _start(environments: Environments, effort: Effort) -> Row:
    """By how much later `python -c pass` ends: a monitor is started, too."""
    start = partial(start_ms, environments, environments.with_interpose)
    given = take_turns({RECORDED: partial(start, {}), WITH_PROFILE: partial(start, SAMPLED)}, effort.starts)
    late_ms = median(given[WITH_PROFILE]) - median(given[RECORDED])
    return Row("python -c pass, from start to end", f"{late_ms:+.2f} ms", "", RECORDED, "1 ms")


def _monitor(environments: Environments, effort: Effort) -> Row:
    """CPU time of `interpose run` itself while ten threads compute, less that of a run that is not sampled."""
    run = partial(_outside, environments)
    given = take_turns({RECORDED: partial(run, "off"), WITH_PROFILE: partial(run, "100")}, effort.turns)
    share = median(given[WITH_PROFILE]) - median(given[RECORDED])
    return Row(f"monitor of {THREADS} threads", f"{share:.1%} of a processor", reach="3 %")


def _outside(environments: Environments, rate: str) -> float:
    """CPU time of all processes but the program, as a part of the program's wall time."""
    with tempfile.TemporaryDirectory(dir=environments.directory) as place:
        program = [str(HERE / "programs" / "computing_threads.py"), str(THREADS), str(SECONDS)]
        words = [str(environments.with_interpose), "-m", "interpose", "run", "--profile", rate, *program]
        with open(Path(place, "out"), "w+") as out:
            process = subprocess.Popen(words, cwd=place, env=environments.variables(place, None), stdout=out)
            _, status, used = os.wait4(process.pid, 0)
            process.returncode = os.waitstatus_to_exitcode(status)
            out.seek(0)
            program_took = json.loads(out.read())
    return (used.ru_utime + used.ru_stime - program_took["cpu_s"]) / program_took["wall_s"]
