"""What is summed over events, and the limits that both consolidators keep."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, fields
from itertools import takewhile

from interpose.analysis.consolidation.histogram import Histogram
from interpose.experiments.format.records import Event

KEYS_AT_MOST = 5
MEASURED = Event._fields

MOST = 2**63 - 1  # no sum grows beyond it
WAITING_AT_MOST = 100_000  # calls that have not come and had others inside
RECORDS_AT_MOST = 2_000_000  # different ones; all others are combined into one
DETAILS_AT_MOST = 20_000  # of them with a detail; beyond that, the smallest that differ only in the detail are combined


@dataclass(slots=True)
class Sums:
    """Figures over events, or over whole transactions.

    `wall_ns` and `cpu_ns` are inclusive. If a row has many records, they exclude calls made inside another one of the
    row. Self times exclude the recorded calls inside. For transactions, `think_wall_ns` is the user's part of
    `wall_ns`; minimum, maximum and histograms are of response times, without it. `top_cpu_ns` is of outermost calls.
    `rows` count what was moved, if an intrinsic moves rows and not bytes. `statements` are the line events among the
    `calls` of a thread; `inner_calls` and `inner_statements` are those inside other calls.
    """

    calls: int = 0
    errors: int = 0
    wall_ns: int = 0
    cpu_ns: int = 0
    self_wall_ns: int = 0
    self_cpu_ns: int = 0
    bytes: int = 0
    first_ns: int = MOST
    last_ns: int = 0
    wall_least_ns: int = MOST
    wall_most_ns: int = 0
    cpu_least_ns: int = MOST
    cpu_most_ns: int = 0
    think_wall_ns: int = 0
    think_cpu_ns: int = 0
    # Up to here a consolidated record has them.
    top_cpu_ns: int = 0
    rows: int = 0
    statements: int = 0
    inner_calls: int = 0
    inner_statements: int = 0
    walls: Histogram | None = None
    cpus: Histogram | None = None

    def add(self, other: Sums, inclusive: bool = True) -> None:
        """Take what `other` is of in as well; its inclusive times only if so said."""
        self.calls += other.calls
        self.errors += other.errors
        if inclusive:
            self.wall_ns += other.wall_ns
            self.cpu_ns += other.cpu_ns
        self.self_wall_ns += other.self_wall_ns
        self.self_cpu_ns += other.self_cpu_ns
        self.bytes += other.bytes
        if other.first_ns < self.first_ns:
            self.first_ns = other.first_ns
        if other.last_ns > self.last_ns:
            self.last_ns = other.last_ns
        if other.wall_least_ns < self.wall_least_ns:
            self.wall_least_ns = other.wall_least_ns
        if other.wall_most_ns > self.wall_most_ns:
            self.wall_most_ns = other.wall_most_ns
        if other.cpu_least_ns < self.cpu_least_ns:
            self.cpu_least_ns = other.cpu_least_ns
        if other.cpu_most_ns > self.cpu_most_ns:
            self.cpu_most_ns = other.cpu_most_ns
        self.think_wall_ns += other.think_wall_ns
        self.think_cpu_ns += other.think_cpu_ns
        self.top_cpu_ns += other.top_cpu_ns
        self.rows += other.rows
        self.statements += other.statements
        self.inner_calls += other.inner_calls
        self.inner_statements += other.inner_statements
        if other.walls is not None:
            self.walls = _together(self.walls, other.walls)
        if other.cpus is not None:
            self.cpus = _together(self.cpus, other.cpus)

    def move_rows(self) -> None:
        """Count what was moved as rows."""
        self.rows, self.bytes = self.rows + self.bytes, 0

    def percentile_ns(self, percent: float) -> int | None:
        """The wall time that this percentage did not exceed, within 1 %, or exactly if it is the longest.

        None without a histogram."""
        if self.walls is None or not self.walls.counts:
            return None
        if self.walls.is_longest(percent):
            return self.wall_most_ns
        return min(max(self.walls.percentile(percent), self.wall_least_ns), self.wall_most_ns)


_SUMS = fields(Sums)
# The figures of a consolidated record, in the order in which both consolidators give them.
FIGURES = tuple([each.name for each in takewhile(lambda each: each.name != "top_cpu_ns", _SUMS)])
LEAST = frozenset(each.name for each in _SUMS if each.default == MOST)
LARGEST = frozenset(("last_ns", "wall_most_ns", "cpu_most_ns"))


def total(sums: Iterable[Sums]) -> Sums:
    """All of `sums` in one."""
    whole = Sums()
    for each in sums:
        whole.add(each)
    return whole


def _together(mine: Histogram | None, other: Histogram) -> Histogram:
    made = mine or Histogram()
    made.add(other)
    return made
