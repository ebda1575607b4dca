"""Watch programs with `interpose kernel`, and look at what it recorded."""

import shutil
import subprocess
import sys
from collections import Counter
from pathlib import Path

import pytest

from interpose.experiments.model.experiment import Experiment
from interpose.experiments.model.process import Process
from interpose.timing import kernel
from tests.tracing import environment, events_of


def why_not() -> str:
    try:
        kernel.measured_costs(has_stacks=True)
    except OSError as error:
        return f"the kernel does not let us watch system calls: {error.strerror}"
    return ""


MARKS = [pytest.mark.any_python, pytest.mark.skipif(bool(why_not()), reason=why_not())]
KERNEL = (sys.executable, "-m", "interpose", "kernel")


def watched(directory: Path, *words: str | Path, **options) -> Experiment:
    """The experiment of a command."""
    done = subprocess.run(
        [*KERNEL, *words], cwd=directory, env=environment(), capture_output=True, text=True, **options
    )
    assert "interpose:" not in done.stderr, done.stderr
    return Experiment(str(directory / "ktest.1.er"))


def calls_of(process: Process) -> list[tuple[str, object]]:
    """The names of its calls, each with the event, in the order of their start."""
    found = [(process.numbered_intrinsics[event.intrinsic].name, event) for event in events_of(process)]
    return sorted(found, key=lambda each: each[1].start_ns)


def counts_of(experiment: Experiment) -> Counter[str]:
    return Counter(name.removeprefix("syscall.") for each in experiment.processes for name, _ in calls_of(each))


def compiled(directory: Path, source: str, *options: str) -> Path:
    if shutil.which("gcc") is None:
        pytest.skip("no gcc")
    (directory / "program.c").write_text(source)
    words = ["gcc", "-O1", "-pthread", *options, "-o", directory / "program", directory / "program.c"]
    if subprocess.run(words, capture_output=True).returncode:
        pytest.skip(f"gcc {' '.join(options)} does not work here")
    return directory / "program"
