"""The two examples of data collectors: programs of a loader of its own, statements of an interpreted language."""

import os
import re
import shutil
import sys
from collections import Counter
from pathlib import Path

import pytest

from interpose.analysis.analysis import Analysis
from interpose.analysis.transactions.response_times import transactions
from interpose.experiments.model.experiment import Experiment
from interpose.reports.screen.sections import SECTIONS, profiled
from tests.tracing import run_in

pytestmark = pytest.mark.any_python

EXAMPLES = Path(__file__).parents[2] / "examples"


PAGE = EXAMPLES.parent / "docs" / "collectors.md"
ORDERS = """
import os, time, types
running = types.SimpleNamespace(program="ENTRY", paragraph="CHECK", line=7, transaction="order")
for _ in range(3):
    time.sleep(0.01)
running = None
time.sleep(0.01)
"""


def ran(directory, program, *words, **variables):
    """What the program in a directory of its own printed, and its experiment."""
    for path in (directory, *directory.rglob("*")):
        os.chmod(path, 0o700 if path.is_dir() else 0o600)
    done = run_in(directory, [sys.executable, program, *words], **variables)
    assert (done.returncode, done.stderr) == (0, "")
    return done.stdout, directory / "test.1.er"


@pytest.fixture
def example(tmp_path):
    """Run an example in a copy of its own, which nobody else may write to: what it printed, and its experiment."""

    def run(name, *words, **variables):
        shutil.copytree(EXAMPLES / name, tmp_path / name, dirs_exist_ok=True)
        return ran(tmp_path / name, f"{name}.py", *words, **variables)

    return run


def calls(path, intrinsic):
    """How many calls of it there were, by module, section and statement as they were identified."""
    process = Experiment(str(path)).founder
    found = Counter()
    for block in process.events.blocks():
        for event in process.events.events(block):
            site = next(iter(process.frames(event.stack)), None)
            if process.intrinsic(event.intrinsic).name == intrinsic and site:
                found[site.file, site.function, site.line] += 1
    return found


def rows(path, name):
    table = SECTIONS[name](profiled(Analysis(Experiment(str(path))))).table
    return [table.values(row) for row in table.rows]


def test_the_example_of_the_page_names_what_the_program_says_is_running(tmp_path):
    source = re.search(r'^```python\n("""interpose\.d/(\w+\.py)""".*?)^```', PAGE.read_text(), re.M | re.S)
    collectors = tmp_path / "shop" / "interpose.d"
    collectors.mkdir(parents=True)
    (collectors / source[2]).write_text(source[1])
    (tmp_path / "shop" / "orders.py").write_text(ORDERS)

    _, path = ran(tmp_path / "shop", "orders.py", INTERPOSE="1")

    slept = calls(path, "time.sleep")
    assert slept["ENTRY", "CHECK", 7] == 3
    assert sum(slept.values()) == 4
    assert not Experiment(str(path)).founder.failures


def test_programs_of_a_loader_of_its_own_are_told_with_their_own_lines(example):
    _, path = example("loader", "batch.lib", "SETUP", "CREDIT", "INVOICE", INTERPOSE="1")

    assert calls(path, "sqlite3.Cursor.fetchone") == {("CREDIT", "owed", 2): 20}
    assert calls(path, "time.sleep") == {("INVOICE", "put_in_envelope", 2): 10}
    assert calls(path, "sqlite3.connect") == {("SETUP", "<module>", 5): 1}
    names = {row.name: row.sums.calls for row in transactions(Analysis(Experiment(str(path)))).rows}
    assert {name: names[name] for name in ("SETUP", "CREDIT", "INVOICE")} == {"SETUP": 1, "CREDIT": 1, "INVOICE": 1}
    assert not Experiment(str(path)).founder.failures
    found = rows(path, "identified")
    assert sum(row["wall_ns"] for row in found) == session(path)["run time (of all threads)"]
    assert {row["section"] for row in found if row["collector"]} >= {".LOADER"}


def session(path):
    return {row["figure"]: row["value"] for row in rows(path, "session")}


def test_program_paragraph_and_statement_of_a_small_language_are_told(example):
    printed, path = example("fourgl", "ORDERS.4gl", INTERPOSE="1")
    plain, _ = example("fourgl", "ORDERS.4gl", INTERPOSE="0")

    assert printed == plain == "780\n"
    assert calls(path, "time.sleep") == {("INVOICE", "PRINT", 4): 4}
    assert calls(path, "sqlite3.Cursor.fetchone") == {("ORDERS", "CHECK", 9): 12, ("INVOICE", "PRINT", 3): 4}
    assert calls(path, "sqlite3.Connection.execute")["ORDERS", "ENTER", 7] == 12
    names = {row.name: row.sums.calls for row in transactions(Analysis(Experiment(str(path)))).rows}
    assert (names["INVOICE"], names["ORDERS"]) == (4, 5)
    assert ("subsystem", "4GL 1.0") in {(row["figure"], row["shown"]) for row in rows(path, "session")}
    assert not Experiment(str(path)).founder.failures


def test_the_report_shows_the_statement_as_the_program_s_own_line(example):
    _, path = example("fourgl", "ORDERS.4gl", INTERPOSE="1")

    shown = run_in(path.parent, [sys.executable, "-m", "interpose", "report", path], COLUMNS="120")

    assert "4 x time.sleep  INVOICE:4 PRINT" in shown.stdout
