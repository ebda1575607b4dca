"""A profile for `go tool pprof`, Pyroscope, Parca and speedscope (google/pprof, `proto/profile.proto`).

Sample types are calls, wall, CPU and waiting time, and bytes; a label has the kind of the call. Compressed by gzip.
"""

from __future__ import annotations

import gzip
from typing import BinaryIO

from interpose.analysis.analysis import Analysis
from interpose.analysis.calls.calltree import Frame, Function, calls_of
from interpose.analysis.recording.elapsed import elapsed_ns
from interpose.exports.protobuf import message, number, numbers, text
from interpose.exports.stacks import MEASURED, Stack, stacks
from interpose.reports.screen.state import completeness, is_well

_SAMPLE_TYPE, _SAMPLE, _LOCATION, _FUNCTION, _STRING = 1, 2, 4, 5, 6
_TIME, _DURATION, _COMMENT, _DEFAULT = 9, 10, 13, 14


def write(analysis: Analysis, out: BinaryIO) -> None:
    """Write the profile of an analysis."""
    with gzip.GzipFile(filename="", mode="wb", fileobj=out, mtime=0) as file:
        writing = _Writing(file)
        for each in stacks(calls_of(analysis).tree):
            writing.add(each)
        writing.finish(analysis)


class _Writing:
    """Writes samples as they come; what they name is written once, before the first of them."""

    def __init__(self, out: gzip.GzipFile) -> None:
        self._out = out
        self._strings = {"": 0}
        self._functions: dict[Function, int] = {}
        self._locations: dict[Frame, int] = {}

    def add(self, stack: Stack) -> None:
        """Write the sample of a stack; pprof has the innermost frame first."""
        locations = [self._location(frame) for frame in reversed(stack.frames)]
        label = message(3, number(1, self._string("kind")), number(2, self._string(stack.kind))) if stack.kind else b""
        self._out.write(message(_SAMPLE, numbers(1, locations), numbers(2, stack.values), label))

    def finish(self, analysis: Analysis) -> None:
        """Write the fields of the whole profile, and the texts."""
        for name, unit in MEASURED.values():
            self._out.write(message(_SAMPLE_TYPE, number(1, self._string(name)), number(2, self._string(unit))))
        self._out.write(number(_TIME, analysis.experiment.founder.log.time_ns))
        self._out.write(number(_DURATION, elapsed_ns(analysis)))
        if not is_well(told := completeness(analysis)):
            self._out.write(number(_COMMENT, self._string(told)))
        self._out.write(number(_DEFAULT, self._string("wall")))
        for string in self._strings:
            self._out.write(text(_STRING, string))

    def _location(self, frame: Frame) -> int:
        found = self._locations.get(frame)
        if found is None:
            line = message(4, number(1, self._function(frame.function)), number(2, frame.line))
            found = self._locations[frame] = len(self._locations) + 1
            self._out.write(message(_LOCATION, number(1, found), line))
        return found

    def _function(self, function: Function) -> int:
        found = self._functions.get(function)
        if found is None:
            name = self._string(function.name)
            found = self._functions[function] = len(self._functions) + 1
            names = number(2, name), number(3, name), number(4, self._string(function.object))
            self._out.write(message(_FUNCTION, number(1, found), *names))
        return found

    def _string(self, string: str) -> int:
        return self._strings.setdefault(string, len(self._strings))
