"""What many tests need: the command line, run as a user does, in a directory and with a state of its own."""

import fcntl
import io
import os
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import hypothesis
import pytest
from tracing import recorded, recorded_beside, started, traced

from interpose.cli.main import main

__all__ = ["recorded", "recorded_beside", "started", "traced"]

TESTS = Path(__file__).parent
# Folders whose tests have the mark any_python, unless they are marked every_python.
ANY_PYTHON = "analysis", "cli", "config", "core", "experiments", "exports", "legacy", "native", "project", "reports"

# How long an example takes depends on what else the machine does.
hypothesis.settings.register_profile("here", deadline=None)
hypothesis.settings.load_profile("here")


def pytest_configure() -> None:
    """A shell starts what is in the background with SIGINT ignored, and the programs of tests would inherit that."""
    if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
        signal.signal(signal.SIGINT, signal.default_int_handler)


@pytest.hookimpl(tryfirst=True)  # before -m chooses
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Who measures comes last: nobody has to wait for it, nor it for somebody's long test."""
    folders = {TESTS / folder for folder in ANY_PYTHON}
    for item in items:
        if not folders.isdisjoint(item.path.parents) and not item.get_closest_marker("every_python"):
            item.add_marker("any_python")
    items.sort(key=lambda item: item.get_closest_marker("alone") is not None)
    if "t" in sys.abiflags:
        not_there = pytest.mark.skip(reason="not recorded, or not the same, in a free-threaded interpreter")
        for item in items:
            if item.get_closest_marker("interpreter_lock"):
                item.add_marker(not_there)


@pytest.fixture(autouse=True)
def turn(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """Of several workers that run the tests, none runs another one beside a test that is marked `alone`."""
    if "PYTEST_XDIST_WORKER" not in os.environ:
        yield
        return
    place = tmp_path_factory.getbasetemp().parent
    with open(place / "turn", "w") as turn:
        with open(place / "queue", "w") as queue:  # who waits to be alone is overtaken by nobody
            fcntl.flock(queue, fcntl.LOCK_EX)
            fcntl.flock(turn, fcntl.LOCK_EX if request.node.get_closest_marker("alone") else fcntl.LOCK_SH)
        yield


class Tally:
    """How often something was tried, and what of it failed; at the end all is told in one table."""

    def __init__(self, record_property: Callable[[str, object], None]) -> None:
        self._record = record_property
        self.tried = 0
        self.failed: list[str] = []

    def check(self, held: bool, what: str) -> None:
        """One try more: whether it was as it must be, and what to say if not."""
        self.tried += 1
        if not held:
            self.failed.append(what)

    @staticmethod
    def times(many: int) -> int:
        """How often to try what is tried `many` times in a whole campaign: REACH_SHARE=0.1 has a tenth of it."""
        return max(int(many * float(os.environ.get("REACH_SHARE", "1"))), 1)

    def end(self) -> None:
        """Nothing may have failed."""
        self._record("tally", (self.tried, len(self.failed)))
        assert not self.failed, f"{len(self.failed)} of {self.tried} failed, as {self.failed[:5]}"
        assert self.tried, "nothing was tried"


@pytest.fixture
def tally(record_property: Callable[[str, object], None]) -> Tally:
    """Counts what a campaign tries."""
    return Tally(record_property)


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """What campaigns tried, how often, and how often it failed."""
    reports = [*terminalreporter.getreports("passed"), *terminalreporter.getreports("failed")]
    found = {each.nodeid: dict(each.user_properties) for each in reports if each.when == "call"}
    rows = [(*said["tally"], name.rpartition("/")[2]) for name, said in found.items() if "tally" in said]
    if rows:
        terminalreporter.section("tried, failed")
        for tried, failed, name in rows:
            terminalreporter.line(f"{tried:8,} {failed:6,}  {name}")


@pytest.fixture
def own_environment(tmp_path: Path) -> dict[str, str]:
    """An environment without settings of whoever runs the tests."""
    theirs = ("INTERPOSE", "PYTHONUNBUFFERED")
    plain = {name: value for name, value in os.environ.items() if not name.startswith(theirs)}
    own = {f"XDG_{what.upper()}_HOME": str(tmp_path / what) for what in ("state", "cache")}
    return {**plain, **own, "COLUMNS": "80"}


@pytest.fixture
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A directory to work in and a state of the test's own, and no settings; for main() called here."""
    for name in [name for name in os.environ if name.startswith("INTERPOSE")]:
        monkeypatch.delenv(name)
    for name in ("COLUMNS", "NO_COLOR"):
        monkeypatch.delenv(name, raising=False)
    for what in ("state", "cache"):
        monkeypatch.setenv(f"XDG_{what.upper()}_HOME", str(tmp_path / what))
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.fixture
def interpose(tmp_path: Path, own_environment: dict[str, str]) -> Callable[..., subprocess.CompletedProcess]:
    """A function that runs `interpose WORDS` in an empty directory; variables are given by name."""
    directory = tmp_path / "work"
    directory.mkdir()

    def run(*words: str, variables: dict[str, str] | None = None, **options) -> subprocess.CompletedProcess:
        return subprocess.run(
            [sys.executable, "-m", "interpose", *words],
            **{"cwd": directory, "env": {**own_environment, **(variables or {})}, "timeout": 60, **options},
            capture_output=True,
            text=True,
        )

    return run


@pytest.fixture
def interpose_here(
    tmp_path: Path,
    own_environment: dict[str, str],
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> Callable[..., subprocess.CompletedProcess]:
    """The same as `interpose`, without a process for it: for commands that read."""
    directory = tmp_path / "work"
    directory.mkdir()

    def run(
        *words: str, variables: dict[str, str] | None = None, input: str = "", cwd: Path = directory
    ) -> subprocess.CompletedProcess:
        capsys.readouterr()
        with monkeypatch.context() as here:
            for name in os.environ.keys() - own_environment.keys():
                here.delenv(name)
            for name, value in {**own_environment, **(variables or {})}.items():
                here.setenv(name, value)
            here.chdir(cwd)
            here.setattr(sys, "stdin", io.StringIO(input))
            code = exit_code(list(words))
        return subprocess.CompletedProcess(words, code, *capsys.readouterr())

    return run


@pytest.fixture
def run_main(capsys: pytest.CaptureFixture[str]) -> Callable[..., tuple[int, str, str]]:
    """A function that runs a command line where the test is; gives exit code, standard output and standard error."""

    def run(*words: str) -> tuple[int, str, str]:
        return exit_code(list(words)), *capsys.readouterr()

    return run


def exit_code(words: list[str]) -> int:
    try:
        return main(words)
    except SystemExit as ended:  # of argparse, which has said why
        assert isinstance(ended.code, int)
        return ended.code
