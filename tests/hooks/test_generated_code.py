"""Code compiled from a string, without a file: who owns it, and so at which line its calls are reported."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest
from tracing import Run, Traced, environment

from interpose.analysis.lines.line_rows import line_trace

# A package that wraps its methods in code with globals of its own, as SQLAlchemy does, and has a dataclass.
PACKAGE = '''
import sqlite3
from dataclasses import dataclass, field

TEXT = """
def {name}(self):
    return target(fn, self)
"""

def wrapped(fn):
    names = {"target": lambda fn, self: fn(self), "fn": fn, "__name__": fn.__module__}
    exec(compile(TEXT.format(name=fn.__name__), FILE, "exec"), names)
    return names[fn.__name__]

FILE = "<wrapper made of a text>"

class Session:
    def __init__(self):
        self.connection = sqlite3.connect(":memory:", isolation_level=None)
        self.connection.execute("begin")

    @wrapped
    def commit(self):
        self.connection.commit()

def opened():
    return sqlite3.connect(":memory:")

@dataclass
class Settings:
    connection: object = field(default_factory=opened)
'''
PROGRAM = """
import timeit
from package import Session, Settings, opened

def save():
    session = Session()
    session.commit()  # the program's: 7

def configure():
    return Settings()  # the program's: 10

save()
configure()
names = {"opened": opened}
exec("\\ndef rule():\\n    return opened()", names)
names["rule"]()
exec(compile("\\n\\nopened()", "<rules>", "exec"), {"opened": opened, "__name__": "no_such_module"})
exec(compile("\\n\\n\\nopened()", "<ipython-input-1>", "exec"), {"opened": opened, "__name__": "__main__"})
timeit.timeit("import sqlite3\\nsqlite3.connect(':memory:')", number=1)
"""


@pytest.fixture
def of_package(traced: Run, tmp_path: Path) -> Run:
    """Run a program that has the package installed."""
    installed = tmp_path / "site-packages"
    installed.mkdir()
    (installed / "package.py").write_text(PACKAGE)
    return lambda source, **variables: traced(source, PYTHONPATH=str(installed), **variables)


def lines(done: Traced, intrinsic: str) -> list[tuple[str, int, str]]:
    """The program's own lines that call an intrinsic: file, line and function."""
    founder = done.experiment.founder
    found = [founder.own_line(event.stack) for event in done.events(intrinsic)]
    return [(Path(each.file).name, each.line, each.function) for each in found if each]


def test_calls_by_code_that_a_package_made_are_at_the_line_that_called_the_package(of_package):
    done = of_package(PROGRAM)

    assert (done.returncode, done.stderr) == (0, "")
    assert lines(done, "sqlite3.Connection.commit") == [("program.py", 7, "save")]
    assert ("program.py", 10, "configure") in lines(done, "sqlite3.connect")


def test_calls_by_texts_that_the_program_executes_are_its_own(of_package):
    found = lines(of_package(PROGRAM), "sqlite3.connect")

    assert [each for each in found if each[0].startswith("<") and each[0] != "<timeit-src>"] == [
        ("<string>", 3, "rule"),
        ("<rules>", 3, "<module>"),
        ("<ipython-input-1>", 4, "<module>"),
    ]
    assert [each[0] for each in found if each[2] == "inner"] == ["<timeit-src>"]


@pytest.mark.interpreter_lock
def test_lines_of_wrappers_that_a_package_made_are_not_the_programs(of_package):
    trace = line_trace(of_package(PROGRAM, INTERPOSE="lines").experiment)

    files = {Path(row.place.file).name for row in trace.lines if row.figures.executed}
    assert {"program.py", "<rules>"} <= files
    assert "<wrapper made of a text>" not in files


def test_calls_of_a_command_given_as_a_text_are_its_own(tmp_path):
    command = "\nimport sqlite3\nsqlite3.connect(':memory:')"
    done = subprocess.run([sys.executable, "-c", command], cwd=tmp_path, env=environment(INTERPOSE="1"), timeout=60)

    assert lines(Traced(tmp_path, done), "sqlite3.connect") == [("<string>", 3, "<module>")]


@pytest.mark.packages
@pytest.mark.parametrize("waits", ["commit", "pool"])
def test_sqlalchemys_wrappers_are_not_the_programs(traced, waits):
    pytest.importorskip("sqlalchemy")
    done = traced(ALCHEMY).ended_well()

    expected = {
        "commit": ("sqlite3.Connection.commit", ("program.py", 11, "save")),
        "pool": ("threading.Lock.acquire", ("program.py", 15, "ask")),
    }
    intrinsic, line = expected[waits]
    assert line in lines(done, intrinsic)
    assert not [each for each in lines(done, intrinsic) if each[0].startswith("<")]


ALCHEMY = """
import threading, time
from sqlalchemy import create_engine, text
from sqlalchemy.orm import Session
engine = create_engine("sqlite:///a.db", pool_size=1, max_overflow=0, connect_args={"check_same_thread": False})

def save():
    with Session(engine) as session:
        session.execute(text("create table if not exists orders (number int)"))
        session.execute(text("insert into orders values (1)"))
        session.commit()

def ask():
    with Session(engine) as session:
        session.execute(text("select number from orders"))
        time.sleep(0.2)

save()
threads = [threading.Thread(target=ask) for _ in range(3)]
for each in threads:
    each.start()
for each in threads:
    each.join()
"""
