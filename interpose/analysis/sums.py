"""What is summed over events, and the bounds that both reducers keep to."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

KEYS_AT_MOST = 4
MEASURED = (
    "start_ns",
    "wall_ns",
    "cpu_ns",
    "inner_wall_ns",
    "inner_cpu_ns",
    "bytes",
    "parent",
    "error",
    "call",
    "thread",
)

MOST = 2**63 - 1  # no sum grows beyond it
LONGEST_NS = 2**56  # two years: no call is longer
LATEST_NS = 2**62
UNSETTLED_AT_MOST = 100_000  # keys of calls whose outer calls are still to come


@dataclass(slots=True)
class Sums:
    """Sums over events.

    `wall_ns` and `cpu_ns` are inclusive: with what the calls had inside, but without the calls that were made
    inside another one of their group, whose time is in that one. Self times leave out the calls recorded
    inside. `top_cpu_ns` is of outermost calls. What a reducer counts as bytes are rows of some intrinsics; whoever
    knows the intrinsic says so by `move_rows`.
    """

    calls: int = 0
    errors: int = 0
    wall_ns: int = 0
    cpu_ns: int = 0
    self_wall_ns: int = 0
    self_cpu_ns: int = 0
    bytes: int = 0
    top_cpu_ns: int = 0
    first_ns: int = MOST
    last_ns: int = 0
    rows: int = 0

    def add(self, other: Sums) -> None:
        """Take the events of `other` in as well."""
        self.calls += other.calls
        self.errors += other.errors
        self.wall_ns += other.wall_ns
        self.cpu_ns += other.cpu_ns
        self.self_wall_ns += other.self_wall_ns
        self.self_cpu_ns += other.self_cpu_ns
        self.bytes += other.bytes
        self.top_cpu_ns += other.top_cpu_ns
        self.first_ns = min(self.first_ns, other.first_ns)
        self.last_ns = max(self.last_ns, other.last_ns)
        self.rows += other.rows

    def move_rows(self) -> None:
        """What was moved were rows."""
        self.rows, self.bytes = self.rows + self.bytes, 0


def total(sums: Iterable[Sums]) -> Sums:
    """All of `sums` in one."""
    whole = Sums()
    for each in sums:
        whole.add(each)
    return whole
