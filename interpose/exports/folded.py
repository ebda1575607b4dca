"""Folded stacks: a line for each, functions from the outermost inward with semicolons between, then nanoseconds.

As `flamegraph.pl`, inferno and speedscope read them.
"""

from __future__ import annotations

from typing import BinaryIO

from interpose.analysis.analysis import Analysis
from interpose.analysis.calls.calltree import calls_of
from interpose.analysis.profile.flame import CPU, WALL, folded
from interpose.reports.formats.table import clean


def write(analysis: Analysis, out: BinaryIO) -> None:
    """Write the stacks with their wall time; a semicolon in a name becomes a colon."""
    _write(analysis, WALL, out)


def write_cpu(analysis: Analysis, out: BinaryIO) -> None:
    """Write the stacks with their CPU time."""
    _write(analysis, CPU, out)


def _write(analysis: Analysis, metric: str, out: BinaryIO) -> None:
    for functions, ns in folded(calls_of(analysis), metric):
        line = f"{';'.join(clean(each.name).replace(';', ':') for each in functions)} {ns}\n"
        out.write(line.encode("utf-8", "replace"))
