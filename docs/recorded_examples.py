"""A place where the examples of the pages are recorded, for their pictures and for what commands print there."""

from __future__ import annotations

import fcntl
import os
import re
import shutil
import struct
import subprocess
import sys
import termios
from functools import cached_property, partial
from pathlib import Path

from picture_programs import COMMITS, JOB, PAGES, PEAK, PIPE, SERVED

TOP = Path(__file__).parents[1]
COLUMNS, ROWS = 100, 24
RUNS = (20, 20, 20, 20, 20, 20, 60, 60, 60, 60, 60, 60)  # how often the job sleeps in each


class Workplace:
    """A directory where the examples are recorded, each once and when it is needed."""

    def __init__(self, directory: str) -> None:
        self.directory = Path(directory)

    @cached_property
    def orders(self) -> str:
        """The example of the README."""
        for name in ("orders.py", "orders.txt"):
            shutil.copy(TOP / "examples" / name, self.directory)
        self.run("interpose run --name orders orders.py orders.txt")
        return "orders.1.er"

    @cached_property
    def natives(self) -> str:
        """The same with native calls."""
        assert self.orders
        self.run("interpose run --name native --record calls,native orders.py orders.txt")
        return "native.1.er"

    @cached_property
    def covered(self) -> str:
        """The same with coverage."""
        assert self.orders
        self.run("interpose run --name covered --coverage own orders.py orders.txt")
        return "covered.1.er"

    @cached_property
    def nightly(self) -> str:
        """Twelve runs of a job, the last six of which wait longer."""
        (self.directory / "job.py").write_text(JOB)
        for sleeps in RUNS:
            self.run(f"interpose run --name nightly job.py {sleeps}")
        return "nightly.*.er"

    @cached_property
    def peak(self) -> str:
        """A program that takes memory."""
        (self.directory / "peak.py").write_text(PEAK)
        self.run("interpose run --name peak --record calls,heap peak.py")
        return "peak.1.er"

    @cached_property
    def counted(self) -> str:
        """A program that touches pages while a thread of it waits, with counters."""
        (self.directory / "pages.py").write_text(PAGES)
        self.run("interpose run --name counted --counters faults,switches,instructions pages.py")
        return "counted.1.er"

    @cached_property
    def services(self) -> str:
        """A program that asks a service of another process."""
        (self.directory / "shop.py").write_text(SERVED)
        self.run("env INTERPOSE_PROPAGATE=1 interpose run --name shop shop.py")
        return "shop.1.er"

    def of_page(self, page: str) -> Workplace:
        """A directory of its own, with the programs of a page."""
        directory = self.directory / Path(page).stem
        directory.mkdir()
        text = (TOP / "docs" / page).read_text()
        for source, name in re.findall(r"^```python\n(# (\w+\.py)\n.*?)^```", text, re.M | re.S):
            (directory / name).write_text(source)
        return Workplace(str(directory))

    @cached_property
    def commits(self) -> str:
        """A program that commits after each row, with native calls."""
        (self.directory / "commits.py").write_text(COMMITS)
        self.run("interpose run --name commits --record calls,native commits.py")
        return "commits.1.er"

    @cached_property
    def pipe(self) -> str:
        """A program that starts a shell with a pipe, with native calls."""
        (self.directory / "pipe.py").write_text(PIPE)
        self.run("interpose run --name pipe --record calls,native pipe.py")
        return "pipe.1.er"

    def run(self, command: str) -> None:
        """Run a command, which need not succeed."""
        words = self._words(command)
        subprocess.run(words, cwd=self.directory, env=self._variables(), capture_output=True)

    def shown(self, command: str, columns: int = COLUMNS) -> str:
        """What a command writes to a terminal that is so wide, with its colours. Raises ValueError if that is nothing.
        """
        ours, its = os.openpty()
        fcntl.ioctl(its, termios.TIOCSWINSZ, struct.pack("HHHH", ROWS, columns, 0, 0))
        words = self._words(command)
        with subprocess.Popen(words, cwd=self.directory, env=self._variables(), stdin=its, stdout=its, stderr=its):
            os.close(its)
            text = b"".join(iter(partial(_read, ours), b"")).decode()
        os.close(ours)
        if not text.strip():
            raise ValueError(f"{command}: shows nothing")
        return text.replace("\r\n", "\n").rstrip("\n")

    def _words(self, command: str) -> list[str]:
        return ["/bin/sh", "-c", re.sub(r"\binterpose (?=\w)", f"{sys.executable} -m interpose ", command)]

    def _variables(self) -> dict[str, str]:
        kept = {name: os.environ[name] for name in ("PATH", "LANG") if name in os.environ}
        return {**kept, "HOME": str(self.directory), "TERM": "xterm-256color", "LC_ALL": "C.UTF-8"}


def _read(descriptor: int) -> bytes:
    try:
        return os.read(descriptor, 1 << 16)
    except OSError:  # the other end of the terminal is closed
        return b""
