"""Shares of CPU time by function are those that the program measures itself, wherever its functions take turns.

Some minutes on a quiet machine: `tox -e truth`.
"""

import json
import subprocess
import sys
from pathlib import Path

import pytest

from interpose.analysis.analysis import Analysis
from interpose.analysis.profile.profiled import profiled
from interpose.experiments.metadata import names
from interpose.experiments.model.experiment import Experiment
from tests.sampler.test_sampler import chosen, shares_of

pytestmark = [pytest.mark.truth, pytest.mark.slow, pytest.mark.alone]

TURNS = Path(__file__).with_name("turns.py")
ALTERNATING = Path(__file__).with_name("alternating.py")
SECONDS = 20
PHASES_MS, PHASES_POINTS = 200, 1.0
TURNS_MS, TURNS_POINTS = 1, 2.0


def errors(tmp_path, environment, program: Path, *words: object) -> dict[str, float]:
    """By how many points the sampled share of each function is off."""
    run = [sys.executable, "-m", "interpose", "run", "--profile", "100", str(program), *map(str, words)]
    done = subprocess.run(run, cwd=tmp_path, env=environment, capture_output=True, text=True, check=True)
    spent = json.loads(done.stdout)
    found = profiled(Analysis(Experiment(names.newest(str(tmp_path))))).code(lambda frames: chosen(frames, spent))
    sampled, truth = shares_of({name: found[name].cpu_ns for name in spent}), shares_of(spent)
    return {name: round(sampled[name] - truth[name], 2) for name in spent}


@pytest.mark.parametrize("where", ["main", "thread", "child", "task"])
@pytest.mark.parametrize(("turn_ms", "points"), [(PHASES_MS, PHASES_POINTS), (TURNS_MS, TURNS_POINTS)])
def test_shares_are_those_that_the_program_measured(tmp_path, own_environment, where, turn_ms, points):
    off = errors(tmp_path, own_environment, TURNS, turn_ms, SECONDS, where)

    print(where, turn_ms, off)
    assert max(map(abs, off.values())) <= points, off


@pytest.mark.parametrize(("call_us", "points"), [(2, 4.0), (5, 4.0), (20, 4.0), (100, 4.0)])
def test_functions_that_take_microseconds_have_their_shares(tmp_path, own_environment, call_us, points):
    off = errors(tmp_path, own_environment, ALTERNATING, call_us, SECONDS)

    print(call_us, off)
    assert max(map(abs, off.values())) <= points, off
