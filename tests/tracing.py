"""Running a program under the tracer, as a user would, and looking at what was recorded."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
import textwrap
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from functools import cache, cached_property
from pathlib import Path
from typing import Any

import pytest

from interpose.experiments.format.records import Event
from interpose.experiments.metadata import names
from interpose.experiments.model.experiment import Experiment
from interpose.experiments.model.process import Process


class Traced:
    """A program that ran: what it gave, and its experiment."""

    def __init__(self, directory: Path, done: subprocess.CompletedProcess[str]) -> None:
        self.directory = directory
        self.returncode = done.returncode
        self.stdout = done.stdout
        self.stderr = done.stderr
        self._path = names.newest(str(directory))

    @property
    def path(self) -> str:
        """The experiment that was the newest when the program had ended."""
        assert self._path is not None, f"nothing was recorded; the program said: {self.stderr}"
        return self._path

    def ended_well(self) -> Traced:
        """The same, which must have exited with 0 and written no errors."""
        assert (self.returncode, self.stderr) == (0, ""), f"exit code {self.returncode}: {self.stderr}"
        return self

    @cached_property
    def experiment(self) -> Experiment:
        return Experiment(self.path)

    def events(self, name: str = "", process: Process | None = None) -> list[Event]:
        """The events of the founder, or of `process`, in the order of their beginnings; all, or those of the intrinsic
        called `name`."""
        events = list(events_of(process or self.experiment.founder, name))
        return sorted(events, key=lambda event: event.start_ns)

    def details(self, name: str = "") -> list[str]:
        """What the founder's events are about, in the same order; all, or those of the intrinsic called `name`."""
        founder = self.experiment.founder
        return [founder.string(event.detail) for event in self.events(name)]


def events_of(process: Process, name: str = "") -> Iterator[Event]:
    """The events of a process as they lie in its file; all, or those of the intrinsic called `name`."""
    assert process.events is not None
    for block in process.events.blocks():
        for event in process.events.events(block):
            if name in ("", process.intrinsic(event.intrinsic).name):
                yield event


PATIENCE_S = 60


def until(condition: Callable[[], object]) -> object:
    """Wait until the condition holds; gives what it gave."""
    end_s = time.monotonic() + PATIENCE_S
    while not (found := condition()):
        assert time.monotonic() < end_s, "it did not come to pass"
        time.sleep(0.01)
    return found


def write_program(directory: Path, source: str) -> Path:
    program = directory / "program.py"
    program.write_text(textwrap.dedent(source))
    return program


def environment(**variables: str) -> dict[str, str]:
    """This process's environment without what we are told by it, and with `variables`."""
    plain = {name: value for name, value in os.environ.items() if not name.startswith("INTERPOSE")}
    return {**plain, **variables}


def run_in(
    directory: Path, words: Sequence[str | Path], *, input: str | None = None, timeout_s: float = 120, **variables: str
) -> subprocess.CompletedProcess[str]:
    """A program that ran in `directory` with the settings in `variables`, and what it wrote."""
    return subprocess.run(
        words,
        cwd=directory,
        env=environment(**variables),
        input=input,
        capture_output=True,
        text=True,
        timeout=timeout_s,
    )


def start_in(directory: Path, words: Sequence[str | Path], **variables: str) -> subprocess.Popen[str]:
    """A program that runs in `directory` with the settings in `variables`, to talk with."""
    return subprocess.Popen(
        words,
        cwd=directory,
        env=environment(**variables),
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )


Start = Callable[..., subprocess.Popen[str]]


@pytest.fixture
def started(tmp_path: Path) -> Iterator[Start]:
    """Start a program, which is given when it has written a line. It is killed with the test; with `session`, so is all
    that runs in its session, which is its own."""
    programs: list[tuple[subprocess.Popen[str], bool]] = []

    def start(words: Sequence[str | Path], *, session: bool = False, **options: Any) -> subprocess.Popen[str]:
        usual = {"cwd": tmp_path, "stdin": subprocess.PIPE, "text": True, "start_new_session": session}
        program = subprocess.Popen(words, **{**usual, **options}, stdout=subprocess.PIPE)
        programs.append((program, session))
        assert program.stdout.readline(), "it ended before it was ready"
        return program

    yield start
    for program, session in programs:
        if session:
            with suppress(ProcessLookupError):
                os.killpg(program.pid, signal.SIGKILL)
        program.kill()
        program.communicate()


@cache
def has_own_library() -> bool:
    """Did the interpreter come with a C library of its own, which is not that of the machine's programs?"""
    theirs = subprocess.run(["cat", "/proc/self/maps"], capture_output=True, text=True, check=True).stdout
    return _loader(theirs) != _loader(Path("/proc/self/maps").read_text())


def _loader(maps: str) -> str:
    found = re.search(r"\S+/ld-\S+", maps)
    return found[0] if found else ""


same_library = pytest.mark.skipif(has_own_library(), reason="programs have another C library than the interpreter")


def of_machine(reason: str) -> str:
    """Why a program of this machine is not followed: `reason`, where it can be loaded as the interpreter is."""
    return "another C library" if has_own_library() else reason


Run = Callable[..., Traced]


@pytest.fixture
def traced(tmp_path: Path) -> Run:
    """Run a program's source under the tracer in a directory of its own."""

    def run(source: str, *arguments: str, timeout_s: float = 120, **variables: str) -> Traced:
        program = write_program(tmp_path, source)
        words = [sys.executable, program, *arguments]
        return Traced(tmp_path, run_in(tmp_path, words, timeout_s=timeout_s, **{"INTERPOSE": "1", **variables}))

    return run


# What a program under test does to begin a recording of its own choice of intrinsics.
RECORDING = """
import os, sys
from interpose import library
from interpose.capture import session
from interpose.config import precedence
from interpose.timing import shims

def record(*intrinsics):
    os.mkdir("test.1.er", 0o700)
    wanted = precedence.resolve({}, {"INTERPOSE": "1"}, {})
    directory = os.path.abspath("test.1.er")
    session.record(wanted, directory, "", directory, library.resolve([("test", intrinsics)]))
"""


@pytest.fixture
def recorded(tmp_path: Path) -> Run:
    """Run a program that begins its recording itself, by `record(Intrinsic, ...)`."""

    def run(source: str, *arguments: str) -> Traced:
        program = write_program(tmp_path, RECORDING + textwrap.dedent(source))
        return Traced(tmp_path, run_in(tmp_path, [sys.executable, program, *arguments]))

    return run


@pytest.fixture
def recorded_beside(recorded: Run) -> Run:
    """Call `time.sleep`, declared as `bad` with these further arguments, beside what must be recorded all the same."""

    def run(declared: str) -> Traced:
        done = recorded(f"""
            import time
            from interpose.library import Intrinsic
            record(Intrinsic("bad", "time:sleep", {declared}), Intrinsic("good", "time:monotonic", "sleep"))
            time.sleep(0)
            time.monotonic()
            print(shims.end())
        """)
        assert (done.returncode, done.stdout, done.stderr) == (0, "0\n", "")
        assert done.events("good")
        return done

    return run
