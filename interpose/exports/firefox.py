"""Stacks as https://profiler.firefox.com reads them: its "processed profile format", version 57, which it upgrades.

A thread each of wall, CPU and waiting time, calls and bytes: the profiler shows one of them at a time, as a call tree,
a flame graph and a stack chart. A sample is a stack with its weight. Samples stand one behind the other, as if each
stack had had its time at one go; the order of calls is not there.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from itertools import accumulate
from typing import Any, BinaryIO, NamedTuple

from interpose import __version__
from interpose.analysis.analysis import Analysis
from interpose.analysis.calls.calltree import Frame, calls_of
from interpose.exports.stacks import MEASURED, Stack, stacks
from interpose.kinds import EVERY
from interpose.reports.formats.table import clean
from interpose.reports.screen.state import command_line

GECKO_VERSION, PROCESSED_VERSION = 31, 57
NS_IN_MS = 1_000_000
# What weights are, by the unit of `MEASURED`; times are milliseconds.
WEIGHTS = {"nanoseconds": "tracing-ms", "count": "samples", "bytes": "bytes"}
MARKERS = ("data", "name", "startTime", "endTime", "phase", "category")
_COLOURS = ("blue", "brown", "green", "purple", "magenta", "red", "orange", "darkgrey", "transparent", "lightblue")
CATEGORIES = [
    {"name": name, "color": colour, "subcategories": ["Other"]}
    for name, colour in zip(("Other", *EVERY), ("grey", *_COLOURS, "lightred", "yellow"), strict=True)
]
_OF_KIND = {kind: place for place, kind in enumerate(EVERY, 1)}


class _Shown(NamedTuple):
    """A frame, and the category that its own time has."""

    frame: Frame
    category: int


def write(analysis: Analysis, out: BinaryIO) -> None:
    """Write the stacks of an analysis."""
    tables = _Tables()
    found = [(each, tables.stack(each)) for each in stacks(calls_of(analysis).tree)]
    for piece in _pieces(analysis, found, tables):
        out.write(piece.encode())


def _pieces(analysis: Analysis, found: Sequence[tuple[Stack, int]], tables: _Tables) -> Iterator[str]:
    yield f'{{"meta": {json.dumps(_meta(analysis))},\n"libs": [], "pages": [], "counters": [],\n"threads": ['
    of_thread = json.dumps(tables.of_thread())[1:-1]
    for place, (name, unit) in enumerate(MEASURED.values()):
        weighed = [(each.values[place], stack) for each, stack in found if each.values[place]]
        head = json.dumps(_head(analysis, place, name))[:-1]
        yield f'{"," if place else ""}\n{head}, "samples": {json.dumps(_samples(weighed, unit))},\n{of_thread}}}'
    yield f'\n],\n"shared": {{"stringArray": {json.dumps(list(tables.strings))}}}}}\n'


def _meta(analysis: Analysis) -> dict[str, Any]:
    log = analysis.experiment.founder.log
    return {
        "version": GECKO_VERSION,
        "preprocessedProfileVersion": PROCESSED_VERSION,
        "interval": 1,
        "startTime": log.time_ns / NS_IN_MS,
        "processType": 0,
        "product": clean(analysis.experiment.name),
        "importedFrom": f"interpose {__version__}",
        "stackwalk": 0,
        "debug": False,
        "symbolicated": True,
        "usesOnlyOneStackType": True,
        "sourceCodeIsNotOnSearchfox": True,
        "categories": CATEGORIES,
        "markerSchema": [],
    }


def _head(analysis: Analysis, place: int, name: str) -> dict[str, Any]:
    """What a thread is called, without its tables."""
    founder = analysis.experiment.founder
    return {
        "processType": "default",
        "processName": command_line(founder),
        "processStartupTime": 0,
        "processShutdownTime": None,
        "registerTime": 0,
        "unregisterTime": None,
        "pausedRanges": [],
        "name": name,
        "isMainThread": place == 0,
        "pid": str(founder.log.pid),
        "tid": place,
    }


def _samples(found: Sequence[tuple[int, int]], unit: str) -> dict[str, Any]:
    weights = [value / NS_IN_MS if unit == "nanoseconds" else value for value, _ in found]
    ends = list(accumulate(weights if unit == "nanoseconds" else [1] * len(weights)))
    return {
        "length": len(found),
        "stack": [stack for _, stack in found],
        "time": [0, *ends][: len(ends)],
        "weight": weights,
        "weightType": WEIGHTS[unit],
    }


class _Tables:
    """Strings, functions, frames and stacks, each by number, in the order in which they came."""

    def __init__(self) -> None:
        self.strings: dict[str, int] = {}
        self._functions: dict[tuple[int, int | None], int] = {}
        self._frames: dict[_Shown, int] = {}
        self._function_of: list[int] = []
        self._stacks: dict[tuple[int | None, int], int] = {}

    def stack(self, stack: Stack) -> int:
        """The number of a stack; its innermost frame has the category of its kind."""
        number: int | None = None
        last = len(stack.frames) - 1
        for place, frame in enumerate(stack.frames):
            shown = _Shown(frame, _OF_KIND.get(stack.kind, 0) if place == last else 0)
            number = self._stacks.setdefault((number, self._frame(shown)), len(self._stacks))
        assert number is not None
        return number

    def of_thread(self) -> dict[str, Any]:
        """The tables as each thread has them."""
        frames, functions, stacks_ = list(self._frames), list(self._functions), list(self._stacks)
        empty = [None] * len(frames)
        no_markers: dict[str, list[Any]] = {name: [] for name in MARKERS}
        return {
            "stackTable": {
                "length": len(stacks_),
                "frame": [frame for _, frame in stacks_],
                "prefix": [prefix for prefix, _ in stacks_],
            },
            "frameTable": {
                "length": len(frames),
                "address": [-1] * len(frames),
                "inlineDepth": [0] * len(frames),
                "category": [each.category for each in frames],
                "subcategory": [0] * len(frames),
                "func": self._function_of,
                "line": [each.frame.line or None for each in frames],
                **dict.fromkeys(("nativeSymbol", "innerWindowID", "column"), empty),
            },
            "funcTable": {
                "length": len(functions),
                "name": [name for name, _ in functions],
                "fileName": [file for _, file in functions],
                "isJS": [False] * len(functions),
                "relevantForJS": [False] * len(functions),
                "resource": [-1] * len(functions),
                "lineNumber": [None] * len(functions),
                "columnNumber": [None] * len(functions),
            },
            "markers": {"length": 0, **no_markers},
            "resourceTable": {"length": 0, "lib": [], "name": [], "host": [], "type": []},
            "nativeSymbols": {"length": 0, "libIndex": [], "address": [], "name": [], "functionSize": []},
        }

    def _frame(self, shown: _Shown) -> int:
        if shown not in self._frames:
            function = shown.frame.function
            file = self._string(function.object) if function.object else None
            names = self._string(function.name), file
            self._function_of.append(self._functions.setdefault(names, len(self._functions)))
        return self._frames.setdefault(shown, len(self._frames))

    def _string(self, text: str) -> int:
        return self.strings.setdefault(clean(text), len(self.strings))
