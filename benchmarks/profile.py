"""What the sampled profile costs the program and the processor beside it, and how far its shares are from the truth.

The program measures the CPU time of its own functions; shares are of these. Peers sample it likewise, a hundred times a
second (profile_peers.py), where they can be installed.
"""

from __future__ import annotations

import json
import os
import subprocess
import tempfile
from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from functools import partial
from pathlib import Path
from statistics import median
from typing import NamedTuple

from environments import CHECKOUT, Environments
from measuring import Effort, Row, take_turns, times
from profile_peers import PYTHON_315, RATE, Peer, in_percent, installed, words_of

TITLE = "The sampled profile: cost, and shares of CPU time by function"

PROGRAM = CHECKOUT / "tests" / "sampler" / "turns.py"
NOT_SAMPLED, NOT_SAMPLED_315 = "not sampled", "not sampled, Python 3.15"
WAYS = {"phases of 200 ms": (200, 6), "turns of 1 ms": (1, 6)}


class Sampled(NamedTuple):
    """What came of a run: the program's CPU seconds by function as it measured them, the CPU seconds of all processes
    together, and the sampled shares of functions, in percent."""

    spent: dict[str, float]
    all_s: float
    shares: dict[str, float]

    @property
    def program_s(self) -> float:
        """CPU seconds of the program's functions, as it measured them."""
        return sum(self.spent.values())

    @property
    def furthest(self) -> float:
        """By how many points the worst share is wrong."""
        return max(abs(100 * self.spent[name] / self.program_s - self.shares.get(name, 0)) for name in self.spent)


def measure(environments: Environments, effort: Effort) -> list[Row]:
    """For each way in which functions take turns: the cost beside a run that is not sampled, and the worst share."""
    peers, missing = installed(environments)
    rows = [Row(f"{name}: not measured", "it cannot be installed here") for name in missing]
    for name, words in WAYS.items():
        subjects: dict[str, Callable[[], Sampled]] = {NOT_SAMPLED: partial(_run, environments, words, "off")}
        subjects["interpose"] = partial(_run, environments, words, str(RATE))
        subjects |= {each: partial(_run_peer, environments, words, peer) for each, peer in peers.items()}
        if "Python 3.15" in peers:
            subjects[NOT_SAMPLED_315] = partial(_run_plain, environments, words, PYTHON_315)
        given = take_turns(subjects, effort.turns)
        for subject in [each for each in subjects if each not in (NOT_SAMPLED, NOT_SAMPLED_315)]:
            beside = given[NOT_SAMPLED_315 if subject == "Python 3.15" else NOT_SAMPLED]
            rows += list(_rows(f"{subject}, {name}", given[subject], beside, subject == "interpose"))
    return rows


def _rows(name: str, sampled: list[Sampled], plain: list[Sampled], is_ours: bool) -> Iterable[Row]:
    reach = {"all": "3 % of a processor", "share": "2 points"} if is_ours else {"all": "", "share": ""}
    beside = [one.all_s - other.all_s for one, other in zip(sampled, plain, strict=True)]
    part = median(beside) / median(each.all_s for each in plain)
    yield Row(f"{name}: CPU in all", f"{part:+.1%}", times(1 + part), "not sampled", reach["all"])
    furthest = median(each.furthest for each in sampled)
    yield Row(f"{name}: worst share", f"{furthest:.1f} points off", reach=reach["share"])


def _run(environments: Environments, words: tuple[float, float], rate: str) -> Sampled:
    with tempfile.TemporaryDirectory(dir=environments.directory) as place:
        interpose = [str(environments.with_interpose), "-m", "interpose"]
        run = [*interpose, "run", "--profile", rate, str(PROGRAM), *map(str, words), "main"]
        spent, all_s = _timed(run, environments.variables(place, None), place)
        if rate == "off":
            return Sampled(spent, all_s, {})
        report = [*interpose, "report", "--by", "function", "--format", "json", "--limit", "1000"]
        text = subprocess.run(report, cwd=place, check=True, capture_output=True, text=True).stdout
    return Sampled(spent, all_s, _shares_of_rows(json.loads(text), spent))


def _timed(words: list[str], variables: Mapping[str, str], place: str) -> tuple[dict[str, float], float]:
    """What the program measured, and the CPU seconds of the command with all its children."""
    with open(Path(place, "out"), "w+") as out:
        process = subprocess.Popen(words, cwd=place, env=variables, stdout=out, stderr=subprocess.DEVNULL)
        _, status, used = os.wait4(process.pid, 0)
        process.returncode = os.waitstatus_to_exitcode(status)
        if process.returncode:
            raise RuntimeError(f"{words[0]} ended with {process.returncode}")
        out.seek(0)
        line = next(line for line in out if line.startswith("{"))
    return json.loads(line), used.ru_utime + used.ru_stime


def _shares_of_rows(rows: list[dict[str, object]], names: Mapping[str, float]) -> dict[str, float]:
    """Shares of the functions with what they call, which is named after them or stands once in the program."""
    called = {"small": "many_calls", "Point.__init__": "objects", "JSONEncoder": "encoding", "dumps": "encoding"}
    found: Counter[str] = Counter()
    for row in rows:
        function = str(row.get("function") or "")
        owner = next((called[each] for each in called if function.startswith(each)), function.partition(".")[0])
        if owner in names:
            found[owner] += int(str(row.get("self_cpu_ns") or 0))
    return in_percent(found)


def _run_peer(environments: Environments, words: tuple[float, float], peer: Peer) -> Sampled:
    with tempfile.TemporaryDirectory(dir=environments.directory) as place:
        out, program = Path(place, "peer.json"), [str(PROGRAM), *map(str, words), "main"]
        command = words_of(peer, str(environments.with_interpose), out, program)
        spent, all_s = _timed(command, environments.variables(place, None), place)
        return Sampled(spent, all_s, peer.shares(out, spent))


def _run_plain(environments: Environments, words: tuple[float, float], python: str) -> Sampled:
    with tempfile.TemporaryDirectory(dir=environments.directory) as place:
        command = [python, str(PROGRAM), *map(str, words), "main"]
        return Sampled(*_timed(command, environments.variables(place, None), place), {})
