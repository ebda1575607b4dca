"""Sources with a mark before each line: `>` covered, `~` partly, `!` missed, `-` left out; nothing if no code is."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TextIO

from interpose.analysis.coverage.coverage import Coverage
from interpose.analysis.coverage.module import COVERED, MISSED, PARTLY, Module
from interpose.reports.coverage.tables import shown_percent
from interpose.reports.formats.table import clean
from interpose.reports.formats.units import count

MARKS = {COVERED: ">", PARTLY: "~", MISSED: "!"}
EXCLUDED = "-"


def write(coverage: Coverage, place: str, out: TextIO) -> None:
    """Write the sources of all modules to `out`, paths as from the directory `place`."""
    shown = [module for module in coverage.modules if module.table or module.lines_seen]
    for number, module in enumerate(shown):
        out.write("\n" * bool(number))
        out.writelines(f"{line}\n" for line in annotated(module, place))


def annotated(module: Module, place: str) -> Iterator[str]:
    """The lines of a module: its name and share, then its source; without a source, the lines that ran."""
    yield clean(f"{module.path_from(place)}: {_told(module)}")
    if module.table is None:
        yield from (f"> {line:>5}" for line in sorted(module.lines_seen))
        return
    for number, line in enumerate(module.table.text, 1):
        shown = f"{mark_of(module, number):1} {number:>5}  {clean(line.expandtabs())}"
        yield shown.rstrip()


def mark_of(module: Module, number: int) -> str:
    """The mark of a line; empty if it has no code."""
    if line := module.lines.get(number):
        return MARKS[line.status]
    return EXCLUDED if module.table and number in module.table.excluded else ""


def _told(module: Module) -> str:
    if module.table is None:
        return module.why
    share = f"{shown_percent(module.percent)} of {count(module.own.whole, 'statement')}"
    return f"{share}; {module.note}" if module.note else share
