"""Missed lines as annotations of GitHub workflows: a warning for each run of missed lines, a notice for a partly
covered line."""

from __future__ import annotations

from typing import TextIO

from interpose.analysis.coverage.conditions import EXIT
from interpose.analysis.coverage.coverage import Coverage
from interpose.analysis.coverage.module import PARTLY, Line
from interpose.reports.formats.table import clean


def write(coverage: Coverage, place: str, out: TextIO) -> None:
    """Write an annotation a line to `out`, paths as from the directory `place`."""
    for module in coverage.modules:
        path = module.path_from(place)
        for first, last in module.missing:
            told = f"line {first} was" if first == last else f"lines {first} to {last} were"
            out.write(_annotation("warning", path, first, last, f"{told} not executed"))
        for line in module.lines.values():
            if line.status == PARTLY:
                out.write(_annotation("notice", path, line.number, line.number, _partly(line)))


def _partly(line: Line) -> str:
    left = line.statements - line.executed
    ways = ["the exit" if to == EXIT else f"line {to}" for to, was_gone in line.branches.items() if not was_gone]
    told = [f"{left} of {line.statements} statements not executed"] if left else []
    return ", ".join([*told, *([f"never went to {' or '.join(ways)}"] if ways else [])])


def _annotation(level: str, path: str, first: int, last: int, message: str) -> str:
    place = f"file={_property(path)},line={first},endLine={last},title=Coverage"
    return f"::{level} {place}::{_text(message)}\n"


def _text(text: str) -> str:
    return clean(text).replace("%", "%25")


def _property(text: str) -> str:
    return _text(text).replace(":", "%3A").replace(",", "%2C")
