"""What the sampled profile costs the program, beside one that is recorded only, and what its monitor takes."""

from __future__ import annotations

import json
import os
import subprocess
import tempfile
from collections.abc import Callable
from functools import partial
from pathlib import Path
from random import Random
from statistics import median
from typing import Any

from asking import ask
from environments import CHECKOUT, HERE, Environments
from measuring import Effort, Row, take_turns, times
from served import PACKAGES, server
from start import start_ms

TITLE = "The sampled profile: cost to the program and of the monitor, 100 samples a second"

SAMPLED = {"INTERPOSE": "calls,profile"}
RECORDED, WITH_PROFILE = "recorded", "sampled"
ROUNDS = 60
WEEKS = 20
REQUESTS, TURNS_OF_SERVERS = 150, 40
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
    """The CPU time and the wall time of a request: two servers are asked in turns, after a while two new ones."""
    if not environments.install(*PACKAGES):
        return [Row("Flask and gunicorn cannot be installed", "")]
    found: dict[str, list[dict[str, float]]] = {RECORDED: [], WITH_PROFILE: []}
    for _ in range(effort.turns):
        with server(environments, {}) as recorded, server(environments, SAMPLED) as sampled:
            asked = {RECORDED: partial(ask, recorded, REQUESTS), WITH_PROFILE: partial(ask, sampled, REQUESTS)}
            for name, turns in take_turns(asked, TURNS_OF_SERVERS).items():
                found[name] += turns
    pairs = list(zip(found[WITH_PROFILE], found[RECORDED], strict=True))
    cpu = [sampled["cpu_us"] / recorded["cpu_us"] for sampled, recorded in pairs]
    wall = [recorded["per_second"] / sampled["per_second"] for sampled, recorded in pairs]
    return [
        _row_of_ratios("Flask: CPU time of a request", cpu),
        _row_of_ratios("Flask: wall time of a request", wall),
    ]


def _row_of_ratios(what: str, ratios: list[float]) -> Row:
    """The median, with the interval that contains it 19 times of 20."""
    source = Random(1)
    medians = sorted(median(source.choices(ratios, k=len(ratios))) for _ in range(1000))
    figure = f"{median(ratios) - 1:+.1%} ({medians[25] - 1:+.1%} to {medians[974] - 1:+.1%})"
    return Row(what, figure, times(median(ratios)), RECORDED, LIMIT)


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
