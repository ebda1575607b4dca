"""A finding: what one rule found, the calls that are its evidence, and how much time could be won at most."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from interpose.analysis.consolidation.sums import Sums
from interpose.analysis.profile.profiled import NO_CALLERS, Callers
from interpose.experiments.model.process import Site


@dataclass(eq=False)
class Calls:
    """Calls that are alike: of one intrinsic, from one line, about one detail, within transactions of one name.

    `transaction` is empty outside of any with a name. The times are self times, with those of what the calls made
    inside of themselves of the same kind, as a driver does to the network; so no time is in two of them. `threads`
    are their numbers, with that of the process. Native calls inside count as well: `native_cpu_ns` is what of the CPU
    time is theirs, `native_wait_ns` what they waited, by kind.
    """

    kind: str
    intrinsic: str
    site: Site | None
    detail: str
    transaction: str
    is_end: bool = False  # of a transaction: a commit
    calls: int = 0
    wall_ns: int = 0
    cpu_ns: int = 0
    bytes: int = 0
    threads: set[tuple[int, int]] = field(default_factory=set)
    native_cpu_ns: int = 0
    native_wait_ns: Counter[str] = field(default_factory=Counter)

    def add_inner(self, kind: str, sums: Sums, is_native: bool) -> None:
        """Add what calls took that these made inside of themselves."""
        self.wall_ns += sums.self_wall_ns
        self.cpu_ns += sums.self_cpu_ns
        if is_native:
            self.native_cpu_ns += sums.self_cpu_ns
            self.native_wait_ns[kind] += max(sums.self_wall_ns - sums.self_cpu_ns, 0)

    @property
    def verb(self) -> str:
        """The last part of the intrinsic's name: what is done."""
        return self.intrinsic.rpartition(".")[2]


@dataclass(frozen=True)
class Finding:
    """What a rule found. `rows` are its evidence, those that took most first.

    `bound_ns` is the wall time that could be won at most: never more than `wall_ns`, what the evidence adds up to. For
    what would be done often enough `units` times, these are so many of what `unit` names. `about` is what else the rule
    names: the line that holds a lock, a program. `time_ns` is the time of what is no call. Where the evidence is not
    what is to be named, `intrinsic` and `site` are; of code there is no intrinsic, and `callers` are the lines that a
    function which computes is mostly called from. `each_ns` is the mean of the calls where they overlap,
    `longest_ns` the longest of what blocked an event loop, and `waiting` how many tasks waited for it at most.
    """

    rule: str
    rows: tuple[Calls, ...]
    bound_ns: int
    units: int = 0
    unit: str = ""
    about: str = ""
    time_ns: int = 0
    callers: Callers = NO_CALLERS
    intrinsic: str = ""
    site: Site | None = None
    each_ns: int = 0
    longest_ns: int = 0
    waiting: int = 0

    @property
    def transactions(self) -> list[str]:
        """The names of the transactions that its evidence lies in, those that took most first."""
        return list(dict.fromkeys(row.transaction for row in self.rows if row.transaction))

    @property
    def wall_ns(self) -> int:
        """Wall time of the evidence."""
        return self.time_ns + sum(row.wall_ns for row in self.rows)

    @property
    def calls(self) -> int:
        """How many calls are the evidence."""
        return sum(row.calls for row in self.rows)

    @property
    def bytes(self) -> int:
        """What they moved."""
        return sum(row.bytes for row in self.rows)

    @property
    def first(self) -> Calls | None:
        """The calls that took most."""
        return self.rows[0] if self.rows else None


def found(rule: str, rows: Iterable[Calls], bound_ns: int | None = None, *, time_ns: int = 0, **more: Any) -> Finding:
    """A finding with its evidence in order; without a bound all of its time could be won, never more."""
    ordered = tuple(
        sorted(rows, key=lambda row: (-row.wall_ns, row.intrinsic, row.site.line if row.site else 0, row.transaction))
    )
    whole_ns = time_ns + sum(row.wall_ns for row in ordered)
    bound_ns = whole_ns if bound_ns is None else max(min(bound_ns, whole_ns), 0)
    return Finding(rule, ordered, bound_ns, time_ns=time_ns, **more)


def merged(findings: Iterable[Finding]) -> list[Finding]:
    """The findings, those of one rule about the same calls in different transactions as one."""
    alike: dict[tuple[object, ...], list[Finding]] = defaultdict(list)
    for each in findings:
        first = each.first
        named = (each.intrinsic, each.site) if each.site or not first else (first.intrinsic, first.site)
        alike[each.rule, each.about, each.unit, named].append(each)
    return [_together(group) if len(group) > 1 else group[0] for group in alike.values()]


def _together(alike: Sequence[Finding]) -> Finding:
    one = alike[0]
    together = found(
        one.rule,
        [row for each in alike for row in each.rows],
        sum(each.bound_ns for each in alike),
        time_ns=sum(each.time_ns for each in alike),
    )
    longest_ns, waiting = (max(getattr(each, name) for each in alike) for name in ("longest_ns", "waiting"))
    units = sum(each.units for each in alike)
    return replace(
        one,
        rows=together.rows,
        bound_ns=together.bound_ns,
        time_ns=together.time_ns,
        units=units,
        longest_ns=longest_ns,
        waiting=waiting,
    )


def spared_ns(wall_ns: int, calls: int, units: int) -> int:
    """What of `wall_ns` would be spared where `units` calls did what `calls` do, each as long as they are now."""
    return wall_ns * max(calls - units, 0) // calls if calls else 0
