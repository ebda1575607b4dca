"""What tests of the sampler need: programs that are sampled, and say themselves what they used."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from interpose.experiments.model.experiment import Experiment

Recorded = tuple[Any, Experiment]


@pytest.fixture
def work(tmp_path: Path) -> Path:
    (tmp_path / "work").mkdir(exist_ok=True)
    return tmp_path / "work"


@pytest.fixture
def record(interpose: Callable[..., Any], work: Path) -> Callable[..., Recorded]:
    """A function that runs a program under `interpose run`: what it printed, as JSON, and its experiment."""

    def recorded(program: str, *options: str) -> Recorded:
        (work / "app.py").write_text(program)
        done = interpose("run", *options, "app.py")
        assert done.returncode == 0, done.stderr
        return json.loads(done.stdout), Experiment(str(work / "test.1.er"))

    return recorded
