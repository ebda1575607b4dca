"""Measures what interpose costs, with a wheel of this checkout, and prints the results as ratios.

Usage: python benchmarks/run.py [NAME ...] [--against PEER,...] [--quick] [--markdown] [--plot DIRECTORY]

Needs pip, a C compiler and a minute or two; docs/performance.md says what the rows mean.
"""

from __future__ import annotations

import argparse
import importlib
import os
import platform
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path

from environments import make_environments
from measuring import FULL, QUICK, Row
from plot import drawn

BENCHMARKS = (
    "calls",
    "control",
    "sampling",
    "profile",
    "profile_cost",
    "statements",
    "locks",
    "polls",
    "gil",
    "native",
    "native_counts",
    "kernel",
    "wrapped",
    "marks",
    "collectors",
    "drivers",
    "threads",
    "orders",
    "idle",
    "served",
    "peers",
    "lines",
    "coverage",
    "start",
    "attach",
    "reading",
    "reports",
    "many",
    "block_compression",
    "exports",
    "filtering",
    "heap",
)
PEERS = {
    *("viztracer", "cprofile", "ddtrace", "opentelemetry", "line_profiler", "coverage", "slipcover", "memray"),
    *("py-spy", "austin", "pyinstrument", "scalene", "perf", "gprofng", "python 3.15"),
}
OTHER_NAMES = {"otel": "opentelemetry"}
COLUMNS = ("what", "measured", "ratio", "of", "target")


def main() -> int:
    arguments = _parser().parse_args()
    for name in set(arguments.names) - set(BENCHMARKS):
        sys.exit(f"{name}: not one of {', '.join(BENCHMARKS)}")
    write = _write_markdown if arguments.markdown else _write_text
    kernel = f"{platform.system()} {platform.release()}"
    print(f"Python {platform.python_version()}, {kernel}, {os.cpu_count()} CPUs")
    with tempfile.TemporaryDirectory(prefix="interpose-benchmarks-") as directory:
        environments = make_environments(Path(directory), _against(arguments.against))
        for name in arguments.names or BENCHMARKS:
            benchmark = importlib.import_module(name)
            rows = benchmark.measure(environments, QUICK if arguments.quick else FULL)
            write(benchmark.TITLE, rows)
            if arguments.plot:
                Path(arguments.plot, f"{name}.svg").write_text(drawn(benchmark.TITLE, rows))
    return 0


def _against(names: str | None) -> frozenset[str] | None:
    """The peers to compare with; None for all. Ends the program if one is unknown."""
    if names is None:
        return None
    chosen = frozenset(OTHER_NAMES.get(name, name) for name in names.lower().split(","))
    for name in sorted(chosen - PEERS):
        sys.exit(f"{name}: not one of {', '.join(sorted(PEERS))}")
    return chosen


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(description="Measure what interpose costs.")
    parser.add_argument("names", nargs="*", metavar="NAME", help=f"some of {', '.join(BENCHMARKS)}; else all")
    parser.add_argument(
        "--against", metavar="PEER,...", help="compare with these only, as viztracer,cprofile,opentelemetry; else all"
    )
    parser.add_argument("--plot", metavar="DIRECTORY", help="draw the ratios of each benchmark into a file there")
    parser.add_argument("--quick", action="store_true", help="few turns, for a look")
    parser.add_argument("--markdown", action="store_true", help="tables as docs/performance.md has them")
    return parser


def _cells(row: Row) -> tuple[str, ...]:
    return row.what, row.figure, row.ratio, row.base, row.reach


def _write_markdown(title: str, rows: Sequence[Row]) -> None:
    print(f"\n### {title}\n\n| {' | '.join(COLUMNS)} |\n|{' --- |' * len(COLUMNS)}")
    for row in rows:
        print(f"| {' | '.join(_cells(row))} |", flush=True)


def _write_text(title: str, rows: Sequence[Row]) -> None:
    lines = [COLUMNS, *map(_cells, rows)]
    widths = [max(map(len, column)) for column in zip(*lines, strict=True)]
    print(f"\n{title}\n")
    for line in lines:
        padded = (cell.ljust(width) for cell, width in zip(line, widths, strict=True))
        print("  ".join(padded).rstrip(), flush=True)


if __name__ == "__main__":
    sys.exit(main())
