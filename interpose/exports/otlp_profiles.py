"""Stacks as profiles of OpenTelemetry (OTLP, `profiles/v1development`), which is experimental there and so is this.

One message `ProfilesData` in protobuf: a profile each of wall, CPU and waiting time, calls and bytes; what they name is
in one dictionary. Index 0 of each of its tables is empty, as the format wants it.
"""

from __future__ import annotations

import hashlib
from collections.abc import Hashable, Iterable
from typing import BinaryIO

from interpose import __version__
from interpose.analysis.analysis import Analysis
from interpose.analysis.calls.calltree import Frame, Function, calls_of
from interpose.analysis.recording.elapsed import elapsed_ns
from interpose.exports.otlp import trace_id
from interpose.exports.protobuf import fixed64, message, number, numbers, text
from interpose.exports.stacks import MEASURED, Stack, stacks
from interpose.reports.screen.state import command_line

_MAPPINGS, _LOCATIONS, _FUNCTIONS, _LINKS, _STRINGS, _ATTRIBUTES, _STACKS = range(1, 8)
KIND = "interpose.kind"


def write(analysis: Analysis, out: BinaryIO) -> None:
    """Write the profiles of an analysis."""
    dictionary = _Dictionary()
    found = [(each, dictionary.sample(each)) for each in stacks(calls_of(analysis).tree)]
    profiles = [_profile(analysis, place, found, dictionary) for place in range(len(MEASURED))]
    scope = message(1, text(1, "interpose"), text(2, __version__))
    of_scope = message(2, scope, *(message(2, each) for each in profiles))
    out.write(message(1, message(1, *_resource(analysis)), of_scope))
    out.write(message(2, *dictionary.fields()))


def _resource(analysis: Analysis) -> Iterable[bytes]:
    founder = analysis.experiment.founder
    told = {"service.name": command_line(founder), "host.name": founder.log.system.get("host", "")}
    yield from (message(1, text(1, key), message(2, text(1, value))) for key, value in told.items())
    yield message(1, text(1, "process.pid"), message(2, number(3, founder.log.pid)))


def _profile(analysis: Analysis, place: int, found: Iterable[tuple[Stack, bytes]], dictionary: _Dictionary) -> bytes:
    name, unit = list(MEASURED.values())[place]
    samples = [message(2, sample, numbers(4, [each.values[place]])) for each, sample in found if each.values[place]]
    identity = hashlib.blake2b(f"{trace_id(analysis.experiment)} {name}".encode(), digest_size=16).digest()
    of_type = message(1, number(1, dictionary.string(name)), number(2, dictionary.string(unit)))
    times = fixed64(3, analysis.experiment.founder.log.time_ns), number(4, elapsed_ns(analysis))
    return b"".join([of_type, *samples, *times, message(7, identity)])


class _Table:
    """A table with numbers from 1 on, in the order of appearance: 0 is the empty entry."""

    def __init__(self, field: int) -> None:
        self._field = field
        self._numbers: dict[Hashable, int] = {}
        self._made: list[bytes] = [message(field)]

    def number(self, key: Hashable, *fields: bytes) -> int:
        """The number of the entry `key`, which has these fields."""
        if key not in self._numbers:
            self._numbers[key] = len(self._made)
            self._made.append(message(self._field, *fields))
        return self._numbers[key]

    @property
    def made(self) -> list[bytes]:
        """The entries, the empty one first."""
        return self._made


class _Dictionary:
    """What all profiles name."""

    def __init__(self) -> None:
        self._tables = {field: _Table(field) for field in range(_MAPPINGS, _STACKS + 1)}

    def sample(self, stack: Stack) -> bytes:
        """The fields of the sample of a stack that are the same in all profiles; the innermost frame is the first."""
        frames = tuple(self._location(frame) for frame in reversed(stack.frames))
        found = number(1, self._tables[_STACKS].number(frames, numbers(1, frames)))
        return found + (numbers(2, [self._kind(stack.kind)]) if stack.kind else b"")

    def string(self, string: str) -> int:
        """The number of a text."""
        return self._tables[_STRINGS].number(string, string.encode("utf-8", "replace")) if string else 0

    def fields(self) -> Iterable[bytes]:
        """The tables."""
        for table in self._tables.values():
            yield from table.made

    def _kind(self, kind: str) -> int:
        value = message(2, text(1, kind))
        return self._tables[_ATTRIBUTES].number(kind, number(1, self.string(KIND)), value)

    def _location(self, frame: Frame) -> int:
        line = message(3, number(1, self._function(frame.function)), number(2, frame.line))
        return self._tables[_LOCATIONS].number(frame, line)

    def _function(self, function: Function) -> int:
        name = self.string(function.name)
        names = number(1, name), number(2, name), number(3, self.string(function.object))
        return self._tables[_FUNCTIONS].number(function, *names)
