"""Stacks as https://www.speedscope.app reads them: a profile each of wall, CPU and waiting time, calls and bytes.

Its schema is `file-format-schema.json` of the npm package `speedscope`.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from typing import BinaryIO

from interpose import __version__
from interpose.analysis.analysis import Analysis
from interpose.analysis.calls.calltree import Function, calls_of
from interpose.analysis.profile.flame import drawn
from interpose.exports.stacks import MEASURED, Stack, stacks

SCHEMA = "https://www.speedscope.app/file-format-schema.json"
_UNITS = {"nanoseconds": "nanoseconds", "bytes": "bytes", "count": "none"}


def write(analysis: Analysis, out: BinaryIO) -> None:
    """Write the stacks of an analysis, by function."""
    found = list(stacks(drawn(calls_of(analysis))))
    numbers: dict[Function, int] = {}
    for stack in found:
        for frame in stack.frames:
            numbers.setdefault(frame.function, len(numbers))
    for piece in _pieces(analysis, found, numbers):
        out.write(piece.encode())


def _pieces(analysis: Analysis, found: Sequence[Stack], numbers: dict[Function, int]) -> Iterator[str]:
    frames = [{"name": each.name, **({"file": each.object} if each.object else {})} for each in numbers]
    head = {
        "$schema": SCHEMA,
        "name": analysis.experiment.name,
        "exporter": f"interpose {__version__}",
        "activeProfileIndex": 0,
        "shared": {"frames": frames},
    }
    yield f'{json.dumps(head)[:-1]},\n"profiles": ['
    for place, (name, unit) in enumerate(MEASURED.values()):
        yield ",\n" if place else "\n"
        yield from _profile([each for each in found if each.values[place]], numbers, place, name, _UNITS[unit])
    yield "\n]}\n"


def _profile(
    found: Sequence[Stack], numbers: dict[Function, int], place: int, name: str, unit: str
) -> Iterator[str]:
    weights = [each.values[place] for each in found]
    head = {"type": "sampled", "name": name, "unit": unit, "startValue": 0, "endValue": sum(weights)}
    yield f'{json.dumps(head)[:-1]}, "weights": {json.dumps(weights)}, "samples": ['
    for index, stack in enumerate(found):
        yield f"{',' if index else ''}{json.dumps([numbers[frame.function] for frame in stack.frames])}"
    yield "]}"
