"""Coverage as LCOV's tracefile has it (geninfo(1)): lines with statements, and where recorded branches."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TextIO

from interpose.analysis.coverage.coverage import Coverage
from interpose.analysis.coverage.module import Module
from interpose.reports.formats.table import clean


def write(coverage: Coverage, place: str, out: TextIO) -> None:
    """Write the records of all modules with known statements to `out`, with paths relative to `place`."""
    for module in coverage.modules:
        if module.lines:
            out.writelines(f"{line}\n" for line in _records(module, place))


def _records(module: Module, place: str) -> Iterator[str]:
    yield "TN:"
    yield f"SF:{clean(module.path_from(place))}"
    for line in module.lines.values():
        yield f"DA:{line.number},{line.hits}"
    yield f"LF:{len(module.lines)}"
    yield f"LH:{sum(line.executed > 0 for line in module.lines.values())}"
    ways = [(line, way) for line in module.lines.values() for way in enumerate(line.branches.values())]
    for line, (number, was_gone) in ways:
        yield f"BRDA:{line.number},0,{number},{int(was_gone) if line.executed else '-'}"
    if ways:
        yield f"BRF:{len(ways)}"
        yield f"BRH:{sum(was_gone for _, (_, was_gone) in ways)}"
    yield "end_of_record"
