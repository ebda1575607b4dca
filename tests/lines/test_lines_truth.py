"""Line counts are those of a trace function in Python, on modules of the standard library under CPython's own tests."""

from __future__ import annotations

import json
from collections import Counter

import pytest
from tracing import Traced

from interpose.experiments.format.traces import read_stretches

# Each with its tests, which neither trace nor take long.
MODULES = (
    *("textwrap", "shlex", "fnmatch", "colorsys", "string", "heapq"),
    *("bisect", "difflib", "csv", "configparser", "html", "contextlib"),
)
RUNS = """
import sys

counts = {}

def trace(frame, event, argument):
    if frame.f_globals.get("__name__") != sys.argv[1]:
        return None
    if event == "line":
        key = f"{frame.f_code.co_qualname} {frame.f_lineno}"
        counts[key] = counts.get(key, 0) + 1
    return trace

if sys.argv[2] == "traced":
    sys.settrace(trace)
import random, unittest
random.seed(0)
tests = unittest.defaultTestLoader.loadTestsFromName(f"test.test_{sys.argv[1]}")
result = unittest.TextTestRunner(verbosity=0).run(tests)
sys.settrace(None)
import json
print(json.dumps([result.testsRun, counts]))
"""


def counted(done: Traced, module: str) -> Counter[str]:
    """How often each line of a module's functions was executed."""
    found: Counter[str] = Counter()
    for process in done.experiment.processes:
        for stretch in read_stretches(process):
            for function in stretch.functions:
                for line in function.lines if function.module == module else ():
                    found[f"{function.name} {line.line}"] += line.executed
    return +found


@pytest.mark.slow
@pytest.mark.parametrize("module", MODULES)
def test_lines_are_counted_as_a_trace_function_counts_them(traced, module):
    pytest.importorskip(f"test.test_{module}")
    variables = {"PYTHONHASHSEED": "0", "INTERPOSE_FOLLOW": "off"}

    reference = traced(RUNS, module, "traced", timeout_s=600, INTERPOSE="0", **variables)
    done = traced(RUNS, module, "not", timeout_s=600, INTERPOSE="lines", INTERPOSE_LINES=module, **variables)

    tests, expected = json.loads(reference.stdout.splitlines()[-1])
    assert json.loads(done.stdout.splitlines()[-1])[0] == tests > 0
    assert counted(done, module) == expected
