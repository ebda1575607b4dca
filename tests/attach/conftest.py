"""What the tests of attaching start."""

import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from attaching import Running


@pytest.fixture
def running(
    tmp_path: Path, interpose_here: Callable[..., subprocess.CompletedProcess]
) -> Iterator[Callable[..., Running]]:
    """Start a program; what is left of it at the end is killed."""
    started: list[Running] = []

    def start(source: str, **variables: str) -> Running:
        started.append(Running(tmp_path, interpose_here, source, **variables))
        return started[-1]

    yield start
    for each in started:
        each.process.kill()
        each.process.communicate()
