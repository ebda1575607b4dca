"""CPython's own tests, with the tracer on and off: the outcome of every single test must be the same.

    python tests/suites.py [--python PYTHON] [NAME ...]

PYTHON is an interpreter that has interpose installed; NAME one of its tests (`test_io`), by default all of SUITES.
"""

from __future__ import annotations

import argparse
import contextlib
import fcntl
import os
import re
import shutil
import signal
import struct
import subprocess
import sys
import tempfile
import termios
import threading
import time
from collections import defaultdict
from collections.abc import Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path
from typing import NamedTuple
from xml.etree import ElementTree

from interpose.experiments.metadata import names
from interpose.experiments.model.experiment import Experiment

# The first twelve are those that a change of the tracer breaks first.
SUITES = (
    *("test_sqlite3", "test_io", "test_fileio", "test_socket", "test_ssl", "test_subprocess"),
    *("test_threading", "test_thread", "test_queue", "test_time", "test_os", "test_posix"),
    *("test_select", "test_selectors", "test_signal", "test_fork1", "test_httplib", "test_asyncio"),
    *("test_inspect", "test_gc", "test_weakref", "test_import", "test_pty", "test_curses"),
)
FIRST = SUITES[:12]
ON_A_TERMINAL = ("test_pty", "test_curses")
AT_ONCE = 2
ROUNDS = 3
TIMEOUT_S = 600
# These hang without the tracer: VSOCK connections to oneself, where a virtual machine's host does not answer; and in
# one run of six, on CPython 3.13.0, a recursion that an interrupt is to end.
WITHOUT = ("-i", "*VSOCK*", "-i", "test_print_exception_gh_102056")
# From 3.14 on these count the system calls of a read by strace, those of recording among them (docs/limits.md).
COUNTING = ("-i", "*.test_syscalls_read")
OPTIONS = (*WITHOUT, *COUNTING, "-u", "curses", "--fail-env-changed", "--timeout", "300")
# What is told of a test, by the element that tells it.
KINDS = {
    "failure": "failed",
    "error": "error",
    "skipped": "skipped",
    "output": "failed as expected",
    "outcome": "passed unexpectedly",
}


class Outcome(NamedTuple):
    """How a test ended, and what it said about it."""

    kind: str
    message: str = ""


@dataclass
class Side:
    """One run of a suite: the outcome of each test, and how much the tracer recorded of it."""

    outcomes: dict[str, Outcome]
    seconds: float
    events: int = 0
    lost: int = 0
    processes: int = 0

    def kind(self, test: str) -> str:
        return self.outcomes[test].kind if test in self.outcomes else "did not run"


class Difference(NamedTuple):
    """A test whose outcome depends on the tracer."""

    test: str
    off: str
    on: str
    message: str

    def __str__(self) -> str:
        return f"{self.test}: off: {self.off}, on: {self.on}\n{self.message}".rstrip()


@dataclass
class Comparison:
    """A suite, run with the tracer off and on in turn."""

    suite: str
    off: list[Side] = field(default_factory=list)
    on: list[Side] = field(default_factory=list)

    def why_not(self) -> str:
        """Why nothing can be said: no test was run untraced, or nothing recorded; empty where something can."""
        for side in self.off:
            if len(side.outcomes) < 2:
                return f"no test was run: {side.outcomes[self.suite].kind}\n{side.outcomes[self.suite].message}"
        return "" if all(side.events for side in self.on) else "nothing was recorded"

    def skipped(self) -> str:
        """What the suite says where it cannot run here: something is missing that it needs."""
        said = self.off[0].outcomes[self.suite].message
        found = re.search(rf"^.*\b{self.suite} skipped.*$", said, re.MULTILINE)
        return found[0] if found and len(self.off[0].outcomes) == 1 else ""

    def candidates(self) -> list[str]:
        """The tests whose outcome in some traced run was not the one that they always have untraced."""
        tests = dict.fromkeys(test for side in (*self.off, *self.on) for test in side.outcomes)
        return [test for test in tests if len(kinds(self.off, test)) == 1 < len(kinds((*self.off, *self.on), test))]

    def unsteady(self) -> list[str]:
        """The tests that end differently by themselves, or did so in fewer than half of the traced runs."""
        tests = {test for side in (*self.off, *self.on) for test in side.outcomes}
        certain = {difference.test for difference in self.differences()}
        return sorted(test for test in tests - certain if len(kinds((*self.off, *self.on), test)) > 1)

    def differences(self) -> list[Difference]:
        """The tests whose outcome is another one under the tracer."""
        return [difference for test in self.candidates() for difference in self._difference(test)]

    def _difference(self, test: str) -> Iterator[Difference]:
        usual = self.off[0].kind(test)
        others = [side for side in self.on if side.kind(test) != usual]
        if 2 * len(others) > len(self.on):
            message = others[0].outcomes.get(test, self.off[0].outcomes.get(test, Outcome(""))).message
            yield Difference(test, usual, others[0].kind(test), message)

    def __str__(self) -> str:
        on, off = self.on[0], self.off[0]
        lines = [
            f"{self.suite}: {len(off.outcomes) - 1} tests, off {off.seconds:.1f} s, on {on.seconds:.1f} s, "
            f"{on.events:,} events in {on.processes} processes, {on.lost:,} lost, "
            f"{len(self.differences())} differences in {len(self.on)} rounds"
        ]
        lines += [f"  {reason}" for reason in [self.why_not()] if reason]
        lines += [f"  differs: {difference}" for difference in self.differences()]
        lines += [f"  unsteady: {test}" for test in self.unsteady()]
        return "\n".join(lines)


def kinds(sides: Iterable[Side], test: str) -> set[str]:
    return {side.kind(test) for side in sides}


def module_of(python: str, suite: str) -> str:
    """The module that a suite is in `python`; empty where it has none. Since 3.15 some are in packages of suites."""
    modules = [".".join(["test", *package, suite]) for package in ([], ["test_io"], ["test_os"])]
    question = (
        "import sys; from importlib.util import find_spec\n"
        "def is_there(name):\n"
        "    try: return find_spec(name) is not None\n"
        "    except ImportError: return False\n"
        "print(*(name for name in sys.argv[1:] if is_there('test.libregrtest') and is_there(name)))"
    )
    done = subprocess.run([python, "-I", "-c", question, *modules], capture_output=True, text=True, check=False)
    return next(iter(done.stdout.split()), "")


def why_not(python: str, suite: str) -> str:
    """Why `python` cannot run a suite; empty where it can."""
    return "" if module_of(python, suite) else f"{python} has no test.{suite}"


class Suite(NamedTuple):
    """A command that writes the outcomes where it is told last; it is run in a copy of the folder `sources`, if any."""

    name: str
    words: tuple[str, ...]
    on_a_terminal: bool = False
    sources: Path | None = None


def cpythons(python: str, name: str) -> Suite:
    """One of CPython's own."""
    module = module_of(python, name).removeprefix("test.")
    return Suite(name, (python, "-m", "test", *OPTIONS, module, "--junit-xml"), name in ON_A_TERMINAL)


def compare(suite: Suite) -> Comparison:
    """Run a suite off and on; where tests differ, again, until it is known whether they do so by themselves."""
    comparison = Comparison(suite.name)
    for _ in range(ROUNDS):
        comparison.off.append(run(suite, traced=False))
        comparison.on.append(run(suite, traced=True))
        if not comparison.candidates():
            break
    return comparison


def run(suite: Suite, traced: bool) -> Side:
    """Run a suite in a directory of its own."""
    # Short, for the addresses of Unix sockets are.
    place = Path(tempfile.mkdtemp(prefix="suite-"))
    try:
        for name in ("tmp", "state", "experiments"):
            (place / name).mkdir()
        if suite.sources:
            shutil.copytree(suite.sources, place / "cwd", symlinks=True)
        else:
            (place / "cwd").mkdir()
        return _run(suite, traced, place)
    finally:
        shutil.rmtree(place, ignore_errors=True)


def _run(suite: Suite, traced: bool, place: Path) -> Side:
    results, log = place / "results.xml", place / "log"
    begun = time.monotonic()
    with open(log, "wb") as output:
        words = [*suite.words, str(results)]
        code = wait_for(words, place, environment(place, traced), output, suite.on_a_terminal)
    side = Side(read_outcomes(results), time.monotonic() - begun)
    side.outcomes[suite.name] = Outcome(f"ended with {code}", tail(log))
    if traced:
        count_events(side, str(place / "experiments"))
    return side


def environment(place: Path, traced: bool) -> dict[str, str]:
    """Nothing that would tell CPython's tests of us, but the tracer's own settings."""
    ours = ("INTERPOSE", "PYTHON", "PYTEST")
    plain = {name: value for name, value in os.environ.items() if not name.startswith(ours)}
    plain.update(TMPDIR=str(place / "tmp"), XDG_STATE_HOME=str(place / "state"), TERM="linux")
    if traced:
        plain.update(INTERPOSE="1", INTERPOSE_DIR=str(place / "experiments"))
    return plain


def wait_for(words: list[str], place: Path, variables: dict[str, str], output, on_a_terminal: bool) -> int | str:
    """Run a command in a session of its own, so that no signal of it reaches us; gives its exit code."""
    with contextlib.ExitStack() as stack:
        stdin, stdout = (stack.enter_context(terminal(output)),) * 2 if on_a_terminal else (subprocess.DEVNULL, output)
        process = subprocess.Popen(
            words, cwd=place / "cwd", env=variables, stdin=stdin, stdout=stdout, stderr=stdout, start_new_session=True
        )
        try:
            return process.wait(TIMEOUT_S)
        except subprocess.TimeoutExpired:
            return f"no end after {TIMEOUT_S} s"
        finally:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)
            process.wait()


@contextlib.contextmanager
def terminal(output) -> Iterator[int]:
    """The program's side of a terminal; what is shown on it goes to `output`."""
    ours, theirs = os.openpty()
    fcntl.ioctl(theirs, termios.TIOCSWINSZ, struct.pack("HHHH", 24, 80, 0, 0))
    reader = threading.Thread(target=copy, args=(ours, output))
    reader.start()
    try:
        yield theirs
    finally:
        os.close(theirs)
        reader.join()
        os.close(ours)


def copy(terminal: int, output) -> None:
    """Copy what is shown until nobody has the terminal any more."""
    with contextlib.suppress(OSError):
        while shown := os.read(terminal, 65536):
            output.write(shown)


def read_outcomes(results: Path) -> dict[str, Outcome]:
    """The outcome of each test. The same one may be there several times; one that failed in parts has no name."""
    found = defaultdict(list)
    try:
        tree = ElementTree.parse(results)
    except (OSError, ElementTree.ParseError):
        return {}
    for case in tree.iter("testcase"):
        found[name_of(case)].append(outcome(case))
    return {test: join(outcomes) for test, outcomes in found.items()}


def name_of(case: ElementTree.Element) -> str:
    """pytest tells the module, and the class, apart from the name."""
    name = case.get("name", "(a test with parts)")
    return f"{case.get('classname')}.{name}" if case.get("classname") else name


def outcome(case: ElementTree.Element) -> Outcome:
    if case.get("name") is None:
        return Outcome("failed in part")
    for element in case:
        if element.tag in KINDS:
            return Outcome(KINDS[element.tag], element.text or "")
    return Outcome("passed")


def join(outcomes: list[Outcome]) -> Outcome:
    kinds = sorted(outcome.kind for outcome in outcomes)
    return Outcome(", ".join(kinds), "\n".join(outcome.message for outcome in outcomes).strip())


def tail(log: Path, size: int = 4000) -> str:
    return log.read_bytes()[-size:].decode("utf-8", "replace")


def count_events(side: Side, directory: str) -> None:
    """How much was recorded of the process that ran the tests, and of how many processes."""
    path = names.newest(directory)
    if path is None:
        return
    experiment = Experiment(path)
    threads = [thread.record for thread in experiment.founder.threads]
    side.events = sum(record.recorded for record in threads)
    side.lost = sum(record.dropped for record in threads) + experiment.founder.lost_calls
    side.processes = len(experiment.processes)


def main() -> int:
    parser = argparse.ArgumentParser(description="CPython's own tests, with the tracer on and off")
    parser.add_argument("--python", default=sys.executable, help="an interpreter that has interpose installed")
    parser.add_argument("suites", nargs="*", metavar="NAME", default=SUITES, help="test_io …; all by default")
    arguments = parser.parse_args()
    failed = False
    with ThreadPoolExecutor(AT_ONCE) as pool:
        missing = {suite: why_not(arguments.python, suite) for suite in arguments.suites}
        for suite, reason in missing.items():
            if reason:
                print(f"{suite}: skipped: {reason}", flush=True)
        wanted = [suite for suite, reason in missing.items() if not reason]
        for comparison in pool.map(lambda name: compare(cpythons(arguments.python, name)), wanted):
            print(comparison, flush=True)
            failed = failed or bool(comparison.differences() or (comparison.why_not() and not comparison.skipped()))
    return int(failed)


if __name__ == "__main__":
    sys.exit(main())
