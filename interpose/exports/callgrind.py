"""Functions, lines and who called whom as `callgrind_annotate`, KCachegrind and QCachegrind read them.

Costs are those of `MEASURED`. How often a function was called is known of recorded calls alone: a function of the
program counts as called as often as recorded calls were made from it, and once at least.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator
from operator import add
from typing import Any, BinaryIO

from interpose import __version__
from interpose.analysis.analysis import Analysis
from interpose.analysis.calls.calltree import Frame, Function, Tree, calls_of
from interpose.analysis.calls.functions import object_of
from interpose.exports.stacks import MEASURED, places_in
from interpose.reports.formats.table import clean
from interpose.reports.screen.state import command_line, completeness, is_well

_CALLS = list(MEASURED).index("calls")


class _Functions:
    """The own figures of each line, and the inclusive ones of each line that called a function."""

    def __init__(self, tree: Tree) -> None:
        self.own: dict[Function, dict[int, list[int]]] = defaultdict(dict)
        self.called: dict[Function, dict[tuple[int, Frame], list[int]]] = defaultdict(dict)
        places = places_in(tree)
        totals = tree.totals()
        for node in tree.nodes:
            function, line = node.frame
            if node.own:
                _put(self.own[function], line, [node.own[place] for place in places])
            if node.outer and node.outer.outer:
                caller = node.outer.frame
                _put(self.called[caller.function], (caller.line, node.frame), [totals[node][place] for place in places])


def _put(into: dict[Any, list[int]], key: object, values: list[int]) -> None:
    before = into.get(key)
    into[key] = list(map(add, before, values)) if before else values


def write(analysis: Analysis, out: BinaryIO) -> None:
    """Write the functions of an analysis."""
    tree = calls_of(analysis).tree
    for line in _head(analysis, tree):
        out.write(_encoded(line))
    numbers = _Numbers()
    found = _Functions(tree)
    for function in dict.fromkeys((*found.own, *found.called)):
        for line in _function(function, found, numbers):
            out.write(_encoded(line))


def _encoded(line: str) -> bytes:
    return f"{clean(line)}\n".encode("utf-8", "replace")


def _head(analysis: Analysis, tree: Tree) -> Iterator[str]:
    total = tree.totals()[tree.root]
    yield "# callgrind format"
    yield "version: 1"
    yield f"creator: interpose {__version__}"
    yield f"cmd: {command_line(analysis.experiment.founder)}"
    if not is_well(told := completeness(analysis)):
        yield f"desc: Note: {told}"
    yield "positions: line"
    yield f"events: {' '.join(name for name, _ in MEASURED.values())}"
    yield f"summary: {' '.join(str(total[place]) for place in places_in(tree))}"


class _Numbers:
    """Names as callgrind has them: the first time with a number, then the number alone."""

    def __init__(self) -> None:
        self._given: dict[tuple[str, str], int] = {}

    def name(self, what: str, name: str) -> str:
        """The number of a `what` (file or function), with its name where it stands for the first time."""
        if (what, name) in self._given:
            return f"({self._given[what, name]})"
        number = self._given[what, name] = len(self._given) + 1
        return f"({number}) {name}"


def _function(function: Function, found: _Functions, numbers: _Numbers) -> Iterator[str]:
    yield ""
    yield f"fl={numbers.name('file', object_of(function))}"
    yield f"fn={numbers.name('function', function.name)}"
    for line, values in sorted(found.own[function].items()):
        yield f"{line} {' '.join(map(str, values))}"
    for (line, callee), values in sorted(found.called[function].items()):
        yield f"cfi={numbers.name('file', object_of(callee.function))}"
        yield f"cfn={numbers.name('function', callee.function.name)}"
        yield f"calls={max(values[_CALLS], 1)} {callee.line}"
        yield f"{line} {' '.join(map(str, values))}"
