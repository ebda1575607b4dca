"""`interpose coverage` of programs that ran: processes, transactions, modules never imported, coverage.py's file."""

from __future__ import annotations

import csv
import io
import json
import re
import sqlite3
import sys
import sysconfig

import pytest

from interpose.cli.commands.coverage import SUBCOMMANDS
from interpose.cli.main import main

PROGRAM = """
import os
from interpose import transaction

def parent():
    return 1

def child():
    return 2

@transaction("night batch")
def batch():
    parent()

if pid := os.fork():
    parent()
    os.waitpid(pid, 0)
    batch()
else:
    child()
    os._exit(0)
"""


def rows(capsys, *words: str) -> list[dict[str, str]]:
    capsys.readouterr()
    assert main(["coverage", "report", *words, "--format", "csv"]) == 0
    return list(csv.DictReader(io.StringIO(capsys.readouterr().out)))


def statuses(capsys, path: str, *words: str) -> dict[int, str]:
    return {int(row["line"]): row["status"] for row in rows(capsys, path, "--by", "line", *words)}


@pytest.fixture
def ran(traced):
    return traced(PROGRAM, INTERPOSE="calls,coverage", INTERPOSE_CONTEXTS="1")


def test_what_ran_in_a_child_ran(ran, place, capsys):
    found = statuses(capsys, ran.path)

    assert set(found.values()) == {"covered"}


def test_transactions_are_contexts(ran, place, capsys):
    contexts = [row["context"] for row in rows(capsys, ran.path, "--by", "context")]
    found = statuses(capsys, ran.path, "--context", "^night")

    assert contexts == ["", "night batch"]
    assert {number for number, status in found.items() if status == "covered"} == {6, 13}


def test_a_context_that_matches_nothing_is_an_error_as_a_file_is(ran, place, capsys):
    for options in (["--context", "no such"], ["--context", "no such", "--source", str(place)], ["--include", "none*"]):
        assert main(["coverage", "report", ran.path, *options]) == 1

    told = capsys.readouterr()
    assert told.out == ""
    assert told.err.count("nothing ran in a context that matches --context no such\n") == 2
    assert main(["coverage", "report", ran.path, "--context", "^night"]) == 0


def test_a_module_that_is_never_imported_is_listed_where_asked(ran, place, capsys):
    (place / "never.py").write_text("a = 1\n")

    found = {row["file"]: row for row in rows(capsys, ran.path, "--source", str(place))}

    assert (found["never.py"]["percent"], found["never.py"]["note"]) == ("0.0", "nothing of it ran")
    assert found["program.py"]["percent"] == "100.0"


@pytest.mark.parametrize("text", ["", "# a comment\n", '"""A docstring."""\n'])
def test_all_of_a_module_without_statements_is_covered(ran, place, capsys, text):
    (place / "empty.py").write_text(text)

    found = {row["file"]: row for row in rows(capsys, ran.path, "--source", str(place))}

    assert (found["empty.py"]["percent"], found["empty.py"]["note"]) == ("100.0", "")
    assert main(["coverage", "report", ran.path, "--source", str(place)]) == 0
    assert re.search(r"empty\.py +0 +0 +100\.0 %", capsys.readouterr().out)


def test_coverage_py_reads_what_is_combined(ran, place, capsys):
    coverage = pytest.importorskip("coverage")

    assert main(["coverage", "combine", ran.path, "-o", "data"]) == 0
    assert main(["coverage", "combine", ran.path, "-o", "data"]) == 2
    assert main(["coverage", "combine", ran.path, "-o", "data", "--append"]) == 0

    data = coverage.CoverageData("data")
    data.read()
    assert data.measured_contexts() == {"", "night batch"}
    measured = coverage.Coverage(data_file="data", config_file=False)
    measured.load()
    assert measured.analysis2(str(place / "program.py"))[3] == []


def test_what_is_combined_is_added_to_what_is_there(ran, place, capsys):
    coverage = pytest.importorskip("coverage")
    before = coverage.CoverageData("data")
    before.add_lines({"/elsewhere.py": [1, 2]})
    before.write()
    before.close()

    assert main(["coverage", "combine", ran.path, "-o", "data", "--append"]) == 0

    data = coverage.CoverageData("data")
    data.read()
    assert data.measured_files() == {"/elsewhere.py", str(place / "program.py")}
    assert data.lines("/elsewhere.py") == [1, 2]


@pytest.mark.parametrize("there", ["source", "empty", "database", "directory"])
def test_to_what_is_no_data_file_nothing_is_added(ran, place, capsys, there):
    pytest.importorskip("coverage")
    path = place / "data"
    if there == "directory":
        path.mkdir()
    elif there == "database":
        database = sqlite3.connect(path)
        database.execute("create table orders (number)")
        database.close()
    else:
        path.write_text("import os\n" if there == "source" else "")
    before = [] if there == "directory" else [path.read_bytes()]
    capsys.readouterr()

    assert main(["coverage", "combine", ran.path, "-o", "data", "--append"]) == 2

    told = capsys.readouterr().err
    assert told.startswith("interpose: data: no data file of coverage.py's") and told.count("\n") == 1
    assert before == ([] if there == "directory" else [path.read_bytes()])


def test_without_coverage_py_it_is_said_what_is_missing(ran, place, capsys, monkeypatch):
    monkeypatch.setitem(sys.modules, "coverage.sqldata", None)

    assert main(["coverage", "combine", ran.path]) == 1

    assert capsys.readouterr().err == "interpose: .coverage: coverage.py writes it, which is not installed: " + (
        "pip install coverage\n"
    )


def test_formats_agree(ran, place, capsys):
    capsys.readouterr()
    assert main(["coverage", "json", ran.path]) == 0
    told = json.loads(capsys.readouterr().out)["files"]["program.py"]["executed_lines"]
    assert main(["coverage", "lcov", ran.path]) == 0

    hits = [line for line in capsys.readouterr().out.splitlines() if line.startswith("DA:")]
    assert hits == [f"DA:{number},1" for number in told]


def test_results_are_not_written_into_experiments(ran, place, capsys):
    for words in (["html"], ["combine"], ["lcov"]):
        assert main(["coverage", *words, ran.path, "-o", f"{ran.path}/x"]) == 2


def test_pages_are_out_of_sight_of_git_but_in_a_directory_of_others(ran, place, capsys):
    (place / ".gitignore").write_text("*.o\n")

    assert main(["coverage", "html", ran.path, "-o", "new"]) == 0
    assert main(["coverage", "html", ran.path, "-o", "."]) == 0

    assert (place / "new" / ".gitignore").read_text() == "*\n"
    assert (place / ".gitignore").read_text() == "*.o\n"


@pytest.mark.parametrize("subcommand", [each.name for each in SUBCOMMANDS])
def test_every_subcommand_has_help(capsys, subcommand):
    with pytest.raises(SystemExit) as ended:
        main(["coverage", subcommand, "--help"])

    assert ended.value.code == 0
    assert "--source DIR" in capsys.readouterr().out


def test_an_extension_module_cannot_be_covered(ran, place, capsys):
    suffix = sysconfig.get_config_var("EXT_SUFFIX")
    (place / f"fast{suffix}").write_bytes(b"\x7fELF")

    found = {row["file"]: row for row in rows(capsys, ran.path, "--source", ".")}

    assert "extension module" in found[f"fast{suffix}"]["note"]
    assert found[f"fast{suffix}"]["percent"] == ""
