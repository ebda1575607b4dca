"""Folded stacks: a line for each, functions from the outermost inward with semicolons between, then nanoseconds."""

from __future__ import annotations

from typing import TextIO

from interpose.analysis.calls.calltree import Calls
from interpose.analysis.profile.flame import folded
from interpose.reports.formats.table import clean


def write(calls: Calls, metric: str, out: TextIO) -> None:
    """Write the stacks of `calls`; a semicolon in a name becomes a colon."""
    for functions, ns in folded(calls, metric):
        out.write(f"{';'.join(clean(each.name).replace(';', ':') for each in functions)} {ns}\n")
