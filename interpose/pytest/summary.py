"""The last lines of a session: the experiment, and the tests that waited longest."""

from __future__ import annotations

import os

from interpose.analysis.analysis import Analysis
from interpose.analysis.calls.rows import OVERHEAD
from interpose.analysis.transactions.response_times import Transaction, transactions
from interpose.errors import InterposeError
from interpose.experiments.model.experiment import Experiment
from interpose.reports.formats.table import clean
from interpose.reports.formats.units import count, duration

SHOWN = 5
LEAST_WAIT_NS = 1_000_000


def summary_of(directory: str, tests: set[str]) -> list[str]:
    """The lines; `tests` are the names of those that ran."""
    try:
        whole = Experiment(Experiment(directory).founder_directory)
        rows = [row for row in transactions(Analysis(whole)).rows if row.name in tests]
    except (OSError, InterposeError) as error:
        return [f"interpose: {error}"]
    place = os.path.relpath(whole.directory)
    slowest = sorted((row for row in rows if wait_ns(row) >= LEAST_WAIT_NS), key=wait_ns, reverse=True)[:SHOWN]
    said = "; waited longest (wait of total time):" if slowest else ""
    recorded = count(len(tests), "test")
    if len(rows) < len(tests):
        recorded = f"{len(rows):,} of {recorded} recorded"
    lines = [f"interpose: {place}: {recorded}{said}"]
    lines += [f"  {duration(wait_ns(row)):>8} of {duration(row.response_ns):>8}  {clean(row.name)}" for row in slowest]
    has_times = rows and not whole.founder.log.interval
    return [*lines, f"next: interpose {'transactions' if has_times else 'report'} {place}"]


def wait_ns(row: Transaction) -> int:
    """The time that a test waited: its parts without their CPU time, and without overhead. What waited at the same time
    counts once."""
    overhead_ns = row.share(OVERHEAD).wall_ns
    parts = (share for kind, share in row.split.items() if kind != OVERHEAD)
    return min(sum(max(part.wall_ns - part.cpu_ns, 0) for part in parts), max(row.response_ns - overhead_ns, 0))
