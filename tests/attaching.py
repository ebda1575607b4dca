"""Programs that run already, for the tests of attaching."""

import json
import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from tracing import PATIENCE_S, environment, events_of, until, write_program

from interpose.experiments.model.experiment import Experiment

by_ptrace_only = pytest.mark.skipif(sys.version_info >= (3, 14), reason="from 3.14 on Python itself is asked")
by_remote_exec = pytest.mark.skipif(sys.version_info < (3, 14), reason="Python has no sys.remote_exec before 3.14")

# A loop with a database, until somebody says that it is enough.
BUSY = """
import sqlite3, signal, sys
enough = []
signal.signal(signal.SIGTERM, lambda number, frame: enough.append(number))
connection = sqlite3.connect(":memory:")
connection.execute("create table t (n)")
print("ready", flush=True)
count = 0
while not enough:
    connection.execute("insert into t values (?)", (count,))
    count += 1
(found,) = connection.execute("select count(*) from t").fetchone()
print(found == count, flush=True)
sys.exit(7)
"""
# Its threads take turns ten times as often as else: who attaches waits for fewer of them at each step.
EIGHT_THREADS = """
import os, signal, sys, threading
sys.setswitchinterval(0.0005)
enough = []
signal.signal(signal.SIGTERM, lambda number, frame: enough.append(number))
sums = [0] * 8
def compute(number):
    while not enough:
        for each in range(1000):
            sums[number] += each
        os.stat("/")
threads = [threading.Thread(target=compute, args=(number,)) for number in range(8)]
for thread in threads:
    thread.start()
print("ready", flush=True)
while not enough:
    threads[0].join(0.1)
for thread in threads:
    thread.join()
print(all(each % 499500 == 0 for each in sums), flush=True)
sys.exit(7)
"""
# Nothing is called in the loop.
COMPUTING = """
import os, signal, sys
enough = False
def end(number, frame):
    global enough
    enough = True
signal.signal(signal.SIGTERM, end)
print("ready", flush=True)
count = 0
while not enough:
    count += 1
os.stat("/")
print(count > 0, flush=True)
sys.exit(7)
"""


class Running:
    """A program that runs, as nobody would know that it is to be looked at."""

    def __init__(
        self, directory: Path, interpose: Callable[..., subprocess.CompletedProcess], source: str, **variables: str
    ) -> None:
        self.directory = directory
        self._interpose = interpose
        self.process = subprocess.Popen(
            [sys.executable, str(write_program(directory, source))],
            cwd=directory,
            env=environment(**variables),
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        assert self.line() == "ready"

    @property
    def pid(self) -> int:
        return self.process.pid

    def line(self) -> str:
        assert self.process.stdout is not None
        return self.process.stdout.readline().strip()

    def asked(self, what: str) -> dict:
        """What it tells of itself."""
        assert self.process.stdin is not None
        self.process.stdin.write(f"{what}\n")
        self.process.stdin.flush()
        return json.loads(self.line())

    def interpose(self, *words: str, **variables: str) -> subprocess.CompletedProcess:
        """`interpose WORDS`, where the program was started."""
        return self._interpose(*words, variables=variables, cwd=self.directory)

    def attach(self, *words: str, **variables: str) -> str:
        """Attach; the experiment's path."""
        done = self.interpose("attach", str(self.pid), *words, **variables)
        assert (done.returncode, done.stderr) == (0, "")
        return done.stdout.split("   ")[0]

    def detach(self) -> str:
        done = self.interpose("detach", str(self.pid))
        assert (done.returncode, done.stderr) == (0, "")
        return done.stdout

    def end(self) -> tuple[int, str, str]:
        """Say that it is enough; how it ended, and what it said."""
        self.process.send_signal(signal.SIGTERM)
        out, errors = self.process.communicate(timeout=PATIENCE_S)
        return self.process.returncode, out, errors


def until_recorded(path: str, *names: str) -> None:
    """Wait until the experiment has an event of each."""
    until(lambda: all(any(events_of(Experiment(path).founder, name)) for name in names))
