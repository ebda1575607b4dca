"""Rows of calls and of what is beside them: what each stands for, and in which order they come."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field

from interpose.analysis.consolidation.sums import Sums
from interpose.analysis.profile.balance import Code
from interpose.analysis.profile.margin import Count
from interpose.analysis.transactions.estimate import Margin
from interpose.experiments.model.stacks import Site
from interpose.kinds import IDLE
from interpose.legacy.codes import STATEMENT

CODE = "code"  # of the program, between the calls
COUNTERS = "counters"  # what was counted beside time, in calls and between them
OVERHEAD = "overhead"  # of recording
UNSAMPLED = "not sampled"  # what was counted beside time in no sample
BEFORE = "before the ring"
PAUSED = "paused"
IN_PROGRESS = "in progress"
NOT_KEPT = "not kept"
SYNC = "sync"
START_UP = "startup"  # of the interpreter, before the program's first line
UNCERTAIN_TIMES = 10


@dataclass
class Row:
    """What some calls took. `kind` and `intrinsic` are None if they differ; `labels` are further names.

    `is_of_calls` is false for the rows `code`, `overhead` and similar. `passed` are calls of the kind `sync` that did
    not wait, in the rows of that kind, of a thread or of a process; no other figure includes them. `counted` are
    untimed calls of the kind or the intrinsic; no other figure includes them, and their time is in `code` or the
    surrounding call. `margin` belongs to estimates, if transactions were sampled and enough were kept. `code` is in
    rows of sampled functions and lines: what they took between calls. `tasks` is its CPU time in asynchronous tasks and
    greenlets, by name. `counts` is what was counted beside time, by counter: in rows of code, of kinds and of
    intrinsics, and in those of the kinds `counters` and `not sampled`.
    """

    kind: str | None
    intrinsic: str | None
    labels: dict[str, str] = field(default_factory=dict)
    site: Site | None = None
    comment: str = ""
    sums: Sums = field(default_factory=Sums)
    is_of_calls: bool = True
    passed: int = 0
    counted: int = 0
    margin: Margin | None = None
    code: Code | None = None
    tasks: dict[str, int] = field(default_factory=dict)
    counts: dict[str, Count] = field(default_factory=dict)

    @property
    def likeness(self) -> tuple[object, ...]:
        """What no other row of the same grouping has."""
        return (self.kind, self.intrinsic, self.site, *self.labels.items())

    @property
    def is_of_code(self) -> bool:
        """Whether it is of a function or a line that was sampled."""
        return self.code is not None

    @property
    def is_timed(self) -> bool:
        """Whether its times tell anything."""
        return self.sums.calls > 0 or not (self.counted or self.kind in (COUNTERS, UNSAMPLED))

    @property
    def is_idle(self) -> bool:
        """Whether the row is of calls that waited for work."""
        return self.is_of_calls and self.kind == IDLE


def largest_first(row: Row) -> tuple[object, ...]:
    """The order of rows: by self wall time; where that is the same by name, for the order of records says nothing."""
    return (-row.sums.self_wall_ns, row.kind or "", row.intrinsic or "", *row.labels.values())


def ranked(rows: Iterable[Row]) -> list[Row]:
    """The rows of calls and of code, then those of the program and our own, then what waited for work."""
    return sorted(rows, key=lambda row: 2 if row.is_idle else 0 if row.is_of_calls or row.is_of_code else 1)


def wait_ns(row: Row) -> int:
    """Self time that was neither CPU time nor another recorded call."""
    return max(row.sums.self_wall_ns - row.sums.self_cpu_ns, 0)


def is_uncertain(total_ns: int, calls: int, inside_ns: int, resolution_ns: int) -> bool:
    """Whether `total_ns` over `calls` is, for each call, below ten times what the clock can tell or costs."""
    return 0 < total_ns < UNCERTAIN_TIMES * max(inside_ns, resolution_ns) * calls


def own_lines(rows: Iterable[Row]) -> list[Row]:
    """Rows of a grouping by site with a line of your own that did not wait for work, without line events, which take no
    time."""
    own = (row for row in rows if row.site and row.site.own)
    return [row for row in own if not row.is_idle and row.intrinsic != STATEMENT]


def closing_row(kind: str, wall_ns: int, cpu_ns: int, comment: str) -> Row:
    """A row of time that is in no call."""
    sums = Sums(wall_ns=wall_ns, cpu_ns=cpu_ns, self_wall_ns=wall_ns, self_cpu_ns=cpu_ns)
    return Row(kind, None, sums=sums, comment=comment, is_of_calls=False)
