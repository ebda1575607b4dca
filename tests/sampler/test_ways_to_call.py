"""Functions that C code calls, generators and coroutines have their share of CPU time, even if calls take nanoseconds.

Some minutes on a quiet machine: `tox -e truth`.
"""

import json
import subprocess
import sys
from collections import Counter
from pathlib import Path

import pytest

from interpose.experiments.metadata import names
from interpose.experiments.model.experiment import Experiment
from interpose.experiments.model.sampled import RUNS, Sampled

pytestmark = [pytest.mark.truth, pytest.mark.slow, pytest.mark.alone]

PROGRAM = Path(__file__).with_name("alternating.py")
WAYS = ("direct", "by_c", "by_sorting", "by_pattern", "by_map", "by_loop", "sum", "by_another", "resume", "await")
SECONDS = 8
TINY_CALLS = Path(__file__).with_name("tiny_calls.py")
BY_EACH_NUMBER = ("sorted", "map", "reduce", "sum", "loop")


def samples_by_function(process, below: str) -> Counter[str]:
    """Samples below the function `below` on a processor, by innermost function without its class; "" are unreadable."""
    sampled, found = Sampled(process), Counter[str]()
    for each in sampled.samples():
        if each.state != RUNS:
            continue
        functions = [site.function for site in sampled.frames(each.stack) if site.own]
        if not functions or below in functions:
            found[functions[0].rpartition(".")[2] if functions else ""] += each.samples
    return found


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize(("call_us", "points", "unreadable"), [(5, 8.0, 0.05), (20, 4.0, 0.03)])
def test_whatever_is_called_has_its_share(tmp_path, own_environment, way, call_us, points, unreadable):
    run = [sys.executable, "-m", "interpose", "run", "--profile", "250", str(PROGRAM), str(call_us), str(SECONDS), way]
    done = subprocess.run(run, cwd=tmp_path, env=own_environment, capture_output=True, text=True, check=True)

    truth = json.loads(done.stdout)
    found = samples_by_function(Experiment(names.newest(str(tmp_path))).founder, "take_turns")
    readable = found.total() - found[""]
    off = {name: round(100 * (found[name] / readable - share), 1) for name, share in truth.items()}
    print(way, call_us, off, f"not readable {found[''] / found.total():.1%}")
    assert max(map(abs, off.values())) <= points, off
    assert found[""] <= unreadable * found.total()


@pytest.mark.parametrize("way", BY_EACH_NUMBER)
def test_tiny_calls_have_their_share(tmp_path, own_environment, way):
    run = [sys.executable, "-m", "interpose", "run", "--profile", "400", str(TINY_CALLS), str(SECONDS / 2), way]
    done = subprocess.run(run, cwd=tmp_path, env=own_environment, capture_output=True, text=True, check=True)

    truth = json.loads(done.stdout)
    found = samples_by_function(Experiment(names.newest(str(tmp_path))).founder, "repeat")
    works = sum(samples for name, samples in found.items() if name.endswith("work"))
    share, unreadable = works / (found.total() - found[""]), found[""] / found.total()
    print(way, f"{truth['least']:.1%} <= {share:.1%} <= {truth['most']:.1%}, not readable {unreadable:.1%}")
    assert truth["least"] - 0.10 <= share <= truth["most"] + 0.10
    assert unreadable <= 0.06


def test_a_generator_has_its_share_in_a_thread_that_sleeps_between(tmp_path, own_environment):
    """The thread is elsewhere when it is sampled before: what its generator needs is not read in time at first."""
    run = [sys.executable, "-m", "interpose", "run", "--profile", "400", str(TINY_CALLS), "1", "sum", "0.0005"]
    done = subprocess.run(run, cwd=tmp_path, env=own_environment, capture_output=True, text=True, check=True)

    truth = json.loads(done.stdout)
    found = samples_by_function(Experiment(names.newest(str(tmp_path))).founder, "repeat")
    share, unreadable = found["each_work"] / (found["each_work"] + found["total_of"]), found[""] / found.total()
    print(f"{truth['least']:.1%} <= {share:.1%} <= {truth['most']:.1%}, not readable {unreadable:.1%}", found)
    assert truth["least"] - 0.15 <= share <= truth["most"] + 0.1
    assert unreadable <= 0.1
