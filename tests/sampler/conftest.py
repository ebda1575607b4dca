"""What tests of the sampler need: programs that are sampled, and say themselves what they used."""

import json
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from interpose.experiments.model.experiment import Experiment

Recorded = tuple[Any, Experiment]


@pytest.fixture(scope="session")
def compiler() -> str:
    found = shutil.which("cc")
    if found is None:
        pytest.skip("there is no C compiler")
    return found


@pytest.fixture
def work(tmp_path: Path) -> Path:
    (tmp_path / "work").mkdir(exist_ok=True)
    return tmp_path / "work"


@pytest.fixture
def record(interpose: Callable[..., Any], work: Path) -> Callable[..., Recorded]:
    """A function that runs a program under `interpose run`: what it printed, as JSON, and its experiment."""

    def recorded(program: str, *options: str, variables: dict[str, str] | None = None) -> Recorded:
        (work / "app.py").write_text(program)
        done = interpose("run", *options, "app.py", variables=variables)
        assert done.returncode == 0, done.stderr
        return json.loads(done.stdout), Experiment(str(work / "test.1.er"))

    return recorded
