"""The sheet of CPU time by program for dashboards: milliseconds and per cent, as comma-separated values."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, TextIO

from interpose.legacy.programs import Program
from interpose.reports.formats import csv
from interpose.reports.formats.table import Table

NAMES = ("program", "part", "cpu_ms", "cpu_percent", "elapsed_ms", "elapsed_percent", "hits")
UNKNOWN_OF_SAMPLES = ("elapsed_ms", "elapsed_percent", "hits")


def write(programs: Sequence[Program], out: TextIO, is_sampled: bool = False) -> None:
    """Write the sheet of `programs` to `out`: a row for each, with columns that add up to the whole. Sampled calls have
    only CPU times: the other columns are blank. So are hits of which only some were recorded."""
    cpu_ns, wall_ns = sum(row.cpu_ns for row in programs), sum(row.wall_ns for row in programs)

    def values(row: Program) -> dict[str, Any]:
        return {
            "program": row.name,
            "part": row.part,
            "cpu_ms": f"{milliseconds(row.cpu_ns):.6f}",
            "cpu_percent": f"{share(row.cpu_ns, cpu_ns):.4f}",
            "elapsed_ms": f"{milliseconds(row.wall_ns):.6f}",
            "elapsed_percent": f"{share(row.wall_ns, wall_ns):.4f}",
            "hits": row.calls if row.is_counted else None,
        }

    blank = dict.fromkeys(UNKNOWN_OF_SAMPLES if is_sampled else ())
    csv.write(Table(NAMES, lambda row: values(row) | blank, (), programs), out, 0)


def milliseconds(ns: int) -> float:
    """`ns` in milliseconds."""
    return ns / 1_000_000


def share(part: int, whole: int) -> float:
    """`part` of `whole` in per cent."""
    return 100 * part / whole if whole else 0.0
