"""Line visits and loops are those that a counter built on the syntax tree sees.

The programs are CPython's own tests of modules of its standard library."""

from __future__ import annotations

import json
from collections import Counter
from pathlib import Path

import pytest
from tracing import Traced

from interpose.analysis.lines.line_rows import Line, line_trace

# Each with its tests, which use the module as it is imported first: some hundred functions.
MODULES = ("textwrap", "shlex", "fnmatch", "string", "difflib", "csv", "configparser", "argparse", "calendar")
COUNTED = Path(__file__).with_name("counted_by_ast.py").read_text()


def rows_of(done: Traced, module: str) -> list[Line]:
    rows = line_trace(done.experiment).lines
    files = (f"/{module}.py", f"/{module}/__init__.py")
    return [row for row in rows if row.place.module == module and row.place.file.endswith(files)]


def entered(rows: list[Line]) -> Counter[int]:
    found: Counter[int] = Counter()
    for row in rows:
        found[row.line] += row.figures.entered
    return found


def passes(rows: list[Line], unclear: list[int]) -> Counter[str]:
    found: Counter[str] = Counter()
    for row in rows:
        for level, number in row.loops.items() if row.line not in unclear else ():
            found[f"{row.line} {level}"] += number
    return +found


def cut_short(expected: dict[str, int], found: Counter[str], in_one_line: list[int]) -> dict[str, int]:
    """Loops in one line are counted by their ways back: a pass that an exception, or who reads, cuts short has none."""
    return {
        key: min(found[key], number) if int(key.split()[0]) in in_one_line else number
        for key, number in expected.items()
    }


@pytest.mark.slow
@pytest.mark.parametrize("module", MODULES)
def test_visits_and_loops_are_those_that_the_syntax_tree_tells(traced, module):
    pytest.importorskip(f"test.test_{module}")
    variables = {"PYTHONHASHSEED": "0", "INTERPOSE_FOLLOW": "off", "timeout_s": 600}

    reference = json.loads(traced(COUNTED, module, "counted", INTERPOSE="0", **variables).stdout.splitlines()[-1])
    done = traced(COUNTED, module, "plain", INTERPOSE="lines", INTERPOSE_LINES=module, **variables)

    rows = rows_of(done, module)
    visits, loops = entered(rows), passes(rows, reference["unclear"])
    assert json.loads(done.stdout.splitlines()[-1])["tests"] == reference["tests"] > 0
    assert {line: visits[int(line)] for line in reference["entered"]} == reference["entered"]
    assert +loops == +Counter(cut_short(reference["loops"], loops, reference["in_one_line"]))
