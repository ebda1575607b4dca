"""A disk that is made slow by a known time, and a lock that is held for one: native calls tell that from the driver."""

import json
import shutil
import subprocess
import sys

import pytest
from tracing import Traced, environment, write_program

DELAY_US = 5000
MS = 1_000_000

PROGRAM = """
import sqlite3
connection = sqlite3.connect("orders.db")
connection.execute("create table orders (number, what)")
for number in range(30):
    connection.execute("insert into orders values (?, ?)", (number, "tea"))
    connection.commit()  # cause
"""


@pytest.fixture
def slow(tmp_path):
    """The program, traced, with each fdatasync a known time longer."""
    if shutil.which("strace") is None:
        pytest.skip("no strace")
    program = write_program(tmp_path, PROGRAM)
    delay = f"inject=fdatasync,fsync:delay_enter={DELAY_US}"
    words = ["strace", "-f", "-o", "/dev/null", "-e", "trace=fdatasync,fsync", "-e", delay, sys.executable, program]
    traced = environment(INTERPOSE="calls,native")
    done = subprocess.run(words, cwd=tmp_path, env=traced, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return Traced(tmp_path, done)


def test_what_the_disk_takes_is_not_the_drivers(slow):
    forced = [*slow.events("libc.fdatasync"), *slow.events("libc.fsync")]
    commits = slow.events("sqlite3.Connection.commit")
    numbers = {event.call for event in commits}

    inside = [event for event in forced if event.parent in numbers]
    assert len(inside) >= len(commits) == 30
    assert all(event.wall_ns >= DELAY_US * 1000 for event in forced)
    own_ns = sum(event.wall_ns - event.inner_wall_ns for event in commits)
    assert sum(event.wall_ns for event in commits) - own_ns >= len(inside) * DELAY_US * 1000


def test_the_finding_names_the_disk_and_the_line(slow):
    words = [sys.executable, "-m", "interpose", "report", "--by", "finding", "--format", "json", slow.path]
    told = json.loads(subprocess.run(words, capture_output=True, text=True, check=True, env=environment()).stdout)

    first = told[0]
    line = next(number for number, text in enumerate(PROGRAM.splitlines(), 1) if "# cause" in text)
    assert first["finding"] == "database waits for the disk"
    assert f"program.py:{line}" in json.dumps(first)


LOCKED = """
import sqlite3, threading, time
one, other = (sqlite3.connect("orders.db", timeout=30, isolation_level=None, check_same_thread=False) for _ in range(2))
one.execute("create table orders (number)")
for number in range(5):
    one.execute("begin exclusive")
    letting_go = threading.Timer(0.1, one.execute, ["commit"])
    letting_go.start()
    other.execute("insert into orders values (?)", (number,))  # cause
    letting_go.join()
"""


def test_who_waits_for_another_connection_is_told_so(traced, interpose_here):
    done = traced(LOCKED, INTERPOSE="calls,native")

    rows = json.loads(interpose_here("report", "--by", "finding", "--format", "json", done.path).stdout)

    line = next(number for number, text in enumerate(LOCKED.splitlines(), 1) if "# cause" in text)
    told = [row["finding"] for row in rows if f"program.py:{line}" in json.dumps(row)]
    assert told[:1] == ["database waits for a lock"]
