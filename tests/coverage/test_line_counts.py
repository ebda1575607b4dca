"""How often lines were executed, in LCOV's and Cobertura's files: read by other people's code, compared with the counts
of the standard library's `trace`."""

import json
import subprocess
import sys
import xml.etree.ElementTree as ElementTree
from pathlib import Path

import pytest
from tracing import environment

from interpose.cli.main import main
from tests.coverage.test_coverage_truth import PROGRAM

LOOPS = '''
"""Loops, functions that call each other, what raises, what never runs."""
import sys

def f(n):
    total = 0
    for i in range(n):
        if i % 2:
            total += i
        else:
            total -= 1
    return total

def never():
    return 1

def fall(n):
    try:
        return 1 / n
    except ZeroDivisionError:
        return fall(n + 1)

def squares(n):
    for i in range(n):
        yield i * i

class Shelf:
    size = 3
    def __init__(self,
                 books=()):
        self.books = list(books)
    @property
    def full(self):
        return len(self.books) >= self.size

while len(sys.argv) < 5:
    sys.argv.append("x")
print(f(10), f(1000), fall(0), sum(squares(20)), [Shelf("ab").full for _ in range(4)])
'''
COUNTS = """
import json, sys, trace
tracer = trace.Trace(count=1, trace=0)
names = {"__name__": "__main__", "__file__": "program.py"}
tracer.runctx(compile(open("program.py").read(), "program.py", "exec"), names, names)
counted = {line: number for (file, line), number in tracer.results().counts.items() if file == "program.py"}
print(json.dumps(counted))
"""


def counts_of_trace(directory: Path) -> dict[int, int]:
    done = subprocess.run(
        [sys.executable, "-c", COUNTS], cwd=directory, env=environment(), capture_output=True, text=True, check=True
    )
    return {int(line): number for line, number in json.loads(done.stdout.splitlines()[-1]).items()}


def written(form, *words):
    path = f"coverage.{form}"
    assert main(["coverage", form, *map(str, words), "-o", path]) == 0
    return Path(path).read_text()


def hits_of_cobertura(text: str) -> dict[int, int]:
    root = ElementTree.fromstring(text)
    lines = root.findall(".//class[@filename='program.py']/lines/line")
    return {int(line.get("number")): int(line.get("hits")) for line in lines}


def hits_of_lcov(text: str) -> dict[int, int]:
    """The counts as a reader of LCOV's files has them, which makes Cobertura's of them."""
    lcov_cobertura = pytest.importorskip("lcov_cobertura")
    return hits_of_cobertura(lcov_cobertura.LcovCobertura(text).convert())


def at_statements(counts: dict[int, int], text: str) -> dict[int, int]:
    """Of the counts those of lines that the text has, 0 for the others."""
    return {line: counts.get(line, 0) for line in hits_of_cobertura(text)}


@pytest.mark.packages
@pytest.mark.parametrize("recorded", ["lines", "coverage,lines", "calls,lines", "calls,coverage,lines"])
def test_counts_are_those_of_trace(traced, monkeypatch, tmp_path, recorded):
    monkeypatch.chdir(tmp_path)
    path = traced(LOOPS, INTERPOSE=recorded).path
    counts = counts_of_trace(tmp_path)

    lcov, cobertura = written("lcov", path), written("xml", path)

    found = hits_of_lcov(lcov)
    assert found == hits_of_cobertura(cobertura) == at_statements(counts, cobertura)
    assert found[7] == 1012 and found[15] == 0


@pytest.mark.parametrize("program", [LOOPS, PROGRAM])
def test_line_trace_and_coverage_find_the_same_lines(traced, monkeypatch, tmp_path, program):
    monkeypatch.chdir(tmp_path)
    by_lines = traced(program, INTERPOSE="lines").path
    by_coverage = traced(program, INTERPOSE="coverage").path

    counted, seen = (hits_of_cobertura(written("xml", path)) for path in (by_lines, by_coverage))

    assert {line: min(hits, 1) for line, hits in counted.items()} == seen
    assert max(counted.values()) > max(seen.values()) == 1


def test_counts_of_several_runs_and_processes_add_up(traced, monkeypatch, tmp_path):
    monkeypatch.chdir(tmp_path)
    program = LOOPS + "import os\nif not os.fork():\n    f(100)\n    os._exit(0)\nos.wait()\n"
    paths = [traced(program, INTERPOSE="lines").path for _ in range(2)]
    alone = traced(program, INTERPOSE="coverage").path

    one, both = (hits_of_cobertura(written("xml", *given)) for given in (paths[:1], paths))
    mixed = hits_of_cobertura(written("xml", paths[0], alone))

    assert one[8] == 1010 + 100
    assert both == {line: 2 * hits for line, hits in one.items()}
    assert mixed == one


@pytest.mark.packages
def test_the_file_is_read_by_a_reader_of_cobertura(traced, monkeypatch, tmp_path):
    pycobertura = pytest.importorskip("pycobertura.cobertura")
    filesystem = pytest.importorskip("pycobertura.filesystem")
    monkeypatch.chdir(tmp_path)
    path = traced(LOOPS, INTERPOSE="lines").path
    text = written("xml", path)

    found = pycobertura.Cobertura("coverage.xml", filesystem=filesystem.DirectoryFileSystem("."))

    missed = [line for line, hits in hits_of_cobertura(text).items() if not hits]
    assert found.files() == ["program.py"]
    assert found.missed_statements("program.py") == missed == [15]


PAID = """
from interpose import transaction
def pay():
    return 1
with transaction("checkout"):
    pay()
"""


@pytest.mark.skipif(sys.version_info < (3, 12), reason="contexts and line trace both need Python's only trace function")
def test_what_was_counted_in_no_context_is_left_out_where_contexts_are_chosen(traced, monkeypatch, tmp_path):
    monkeypatch.chdir(tmp_path)
    path = traced(LOOPS + PAID, INTERPOSE="calls,coverage,lines", INTERPOSE_CONTEXTS="1").path

    every, chosen = (hits_of_lcov(written("lcov", path, *words)) for words in ((), ("--context", "checkout")))

    source = Path("program.py").read_text().splitlines()
    assert len([line for line, hits in every.items() if hits]) > 10
    ran = [source[line - 1].strip() for line, hits in chosen.items() if hits]
    assert ran == PAID.replace("    ", "").splitlines()[3:]


def test_it_is_said_where_statements_on_one_line_are_not_told_apart(traced, monkeypatch, tmp_path, capsys):
    monkeypatch.chdir(tmp_path)
    lines, both = (traced(LOOPS, INTERPOSE=recorded).path for recorded in ("lines", "coverage,lines"))

    assert main(["coverage", "report", lines]) == 0
    assert capsys.readouterr().err == "interpose: from line trace: statements on one line are not told apart\n"
    assert main(["coverage", "report", both]) == 0
    assert capsys.readouterr().err == ""
