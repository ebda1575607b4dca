"""A finding: what one rule found, the calls that are its evidence, and an upper bound of the savings."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace
from functools import reduce
from typing import Any, NamedTuple

from interpose.analysis.consolidation.sums import Sums
from interpose.analysis.profile.profiled import NO_CALLERS, Callers
from interpose.analysis.transactions.estimate import Population, scaled
from interpose.experiments.model.recorded_files import MANY_DETAILS
from interpose.experiments.model.stacks import Site

# One call of a database takes far longer than the others if it waits for a lock or for the disk. Shorter ones do so by
# chance.
FAR_LONGER_NS = 50_000_000
FAR_LONGER = 10


def is_far_longer(longest_ns: int, rest_ns: int, others: int) -> bool:
    """Whether one call took far longer than the `others`, which took `rest_ns` together."""
    return longest_ns >= max(FAR_LONGER_NS, rest_ns, FAR_LONGER * rest_ns // others)


@dataclass(eq=False)
class Calls:
    """Calls of one intrinsic, from one line, with one detail, within transactions of one name.

    `transaction` is empty outside of named transactions. `work` is where the work of a pool began, if no line of the
    program is on the stack. The times are self times, with those of calls of the same kind inside (a driver's calls of
    the network), so times of different `Calls` never overlap. `threads` are pairs of process and thread. Native calls
    inside count as well: `native_cpu_ns` is their part of the CPU time, `native_wait_ns` their wait, by kind. So do the
    sleeps of a package inside its calls that failed: `slept_ns`; of sleeps, it is the part inside calls that ended
    well. If they are within sampled transactions, `sampled_in` is the experiment, and they are estimated for all
    transactions of it where `is_estimated`. `longest_ns` is what one of them took at least, of `wall_ns`. `failures`
    are how many ended with each error, if its name is known, and their part of `wall_ns`. A call of a database that
    took far longer than others like it is apart from them, and is one `among` so many.
    """

    kind: str
    intrinsic: str
    site: Site | None
    detail: str
    transaction: str
    sampled_in: str = ""
    work: Site | None = None
    is_end: bool = False  # of a transaction: a commit
    caller: Site | None = None  # of sleeps and waits for other threads: the library line that called, or this line
    calls: int = 0
    failed: int = 0  # with an exception
    failures: dict[str, tuple[int, int]] = field(default_factory=dict)
    unended: int = 0  # in progress when their process ended, or now
    # Of these by process and thread: since when, and their time.
    unended_at: dict[tuple[int, int], tuple[int, int]] = field(default_factory=dict)
    ended_ns: dict[int, int] = field(default_factory=dict)  # by process: when the last of the others ended
    wall_ns: int = 0
    cpu_ns: int = 0
    bytes: int = 0
    rows: int = 0  # fetched: one event may have many fetches
    threads: set[tuple[int, int]] = field(default_factory=set)
    slept_ns: int = 0
    native_cpu_ns: int = 0
    native_wait_ns: dict[str, int] = field(default_factory=dict)
    seen_ns: dict[int, tuple[int, int]] = field(default_factory=dict)  # by process, from the first until the last
    is_estimated: bool = False
    longest_ns: int = 0
    among: int = 0
    is_part: bool = False  # failed calls, where most calls of the line did not fail

    def see(self, process: int, first_ns: int, last_ns: int) -> None:
        """Note that `process` made some of them between these instants."""
        first, last = self.seen_ns.get(process, (first_ns, last_ns))
        self.seen_ns[process] = min(first, first_ns), max(last, last_ns)

    def end_at(self, process: int, last_ns: int) -> None:
        """Note that the last of some of them, made by `process`, ended at this instant."""
        self.ended_ns[process] = max(self.ended_ns.get(process, 0), last_ns)

    def add_inner(self, kind: str, sums: Sums, is_native: bool) -> None:
        """Add the time of calls inside these."""
        self.wall_ns += sums.self_wall_ns
        self.cpu_ns += sums.self_cpu_ns
        if is_native:
            self.native_cpu_ns += sums.self_cpu_ns
            self.add_native_wait(kind, max(sums.self_wall_ns - sums.self_cpu_ns, 0))

    def add_native_wait(self, kind: str, wait_ns: int) -> None:
        """Add a wait of native calls of that kind."""
        self.native_wait_ns[kind] = self.native_wait_ns.get(kind, 0) + wait_ns

    def add_failures(self, error: str, calls: int, wall_ns: int) -> None:
        """Add calls that ended with this error, or more of their time."""
        before, before_ns = self.failures.get(error, (0, 0))
        self.failures[error] = before + calls, before_ns + wall_ns

    def stand_for_all(self, population: Population) -> None:
        """Make the figures those of all transactions of `population`, as those within the kept ones let expect."""
        sums = Sums(self.calls, bytes=self.bytes, rows=self.rows, self_wall_ns=self.wall_ns, self_cpu_ns=self.cpu_ns)
        native = scaled(replace(sums, self_cpu_ns=self.native_cpu_ns), population)
        self.slept_ns = scaled(Sums(self_wall_ns=self.slept_ns), population).self_wall_ns
        made = scaled(sums, population)
        self.calls, self.bytes, self.wall_ns, self.cpu_ns = made.calls, made.bytes, made.self_wall_ns, made.self_cpu_ns
        self.rows = made.rows
        self.native_cpu_ns = native.self_cpu_ns
        for kind, wait_ns in self.native_wait_ns.items():
            self.native_wait_ns[kind] = scaled(Sums(self_wall_ns=wait_ns), population).self_wall_ns
        for error, (calls, wall_ns) in self.failures.items():
            made = scaled(Sums(calls, self_wall_ns=wall_ns), population)
            self.failures[error] = made.calls, made.self_wall_ns
        self.is_estimated = population.kept < population.seen

    def apart(self) -> tuple[Calls, Calls] | None:
        """These calls without the longest one, and that one, if it alone took most of the time; else None.

        It probably waited, so it is without CPU time as far as the others may have used that.
        """
        if self.kind != "db" or self.calls < 2 or self.unended or self.is_estimated or self.slept_ns:
            return None
        longest_ns, calls = min(self.longest_ns, self.wall_ns), self.calls - 1
        rest_ns = self.wall_ns - longest_ns
        if not is_far_longer(longest_ns, rest_ns, calls):
            return None
        cpu_ns, error = min(self.cpu_ns, rest_ns), self._error_of(longest_ns)
        failed = min(self.failed - (error is not None), calls)
        usual = replace(self, calls=calls, wall_ns=rest_ns, cpu_ns=cpu_ns, failed=failed, longest_ns=0)
        longest = replace(self, calls=1, wall_ns=longest_ns, cpu_ns=self.cpu_ns - cpu_ns, failed=self.failed - failed)
        longest = replace(longest, bytes=0, native_cpu_ns=0, native_wait_ns={}, among=self.calls, failures={})
        if error is not None:
            usual.failures = dict(self.failures)
            usual.add_failures(error, -1, -longest_ns)
            longest.add_failures(error, 1, longest_ns)
        return usual, longest

    def _error_of(self, longest_ns: int) -> str | None:
        """The error with which the call ended that took so long, more than all others; None if with none."""
        return next((error for error, (_, wall_ns) in self.failures.items() if wall_ns >= longest_ns > 0), None)

    @property
    def likeness(self) -> tuple[object, ...]:
        """What calls have in common that are one row of the evidence."""
        flags = self.is_end, bool(self.sampled_in), bool(self.among), self.is_part
        return self.kind, self.intrinsic, self.site, self.work, self.detail, self.transaction, *flags

    @property
    def is_of_many(self) -> bool:
        """Whether they have different details, which are unknown."""
        return self.detail == MANY_DETAILS

    @property
    def wait_ns(self) -> int:
        """Their time without a processor."""
        return max(self.wall_ns - self.cpu_ns, 0)

    @property
    def verb(self) -> str:
        """The last part of the intrinsic's name: what is done."""
        return self.intrinsic.rpartition(".")[2]


class Inner(NamedTuple):
    """The library function that has `share` of the CPU time of the function that called it; without a site, what has
    it: own code, imports or library code."""

    site: Site | None
    share: float
    what: str = ""


class Floor(NamedTuple):
    """What a finding must reach to be reported. It applies to all calls, also those of several experiments together.

    It needs `calls`, for each of the `changes` if there were any, and `a_unit` for each of its units; of its calls,
    `counted` count, or all. Its savings, or with `is_of_evidence` the time of its evidence, are at least `time_ns` and
    this `share` of the time that matters. `apart` are the transactions whose calls must reach it by themselves.
    """

    calls: int = 0
    a_unit: int = 0
    time_ns: int = 0
    share: float = 0.0
    is_of_evidence: bool = False
    counted: int = 0
    changes: int = 0
    apart: str = ""

    def least_ns(self, matters_ns: int) -> float:
        """The least savings, where `matters_ns` is the time that matters."""
        return max(self.time_ns, self.share * matters_ns)

    def with_those_of(self, other: Floor) -> Floor:
        """The floor of the calls of both."""
        return self._replace(counted=self.counted + other.counted, changes=self.changes + other.changes)


NO_FLOOR = Floor()
# What a line's calls of one kind take, below this share of the time that matters, is not worth a look by itself.
SLOW_SHARE = 0.1
# Pages that are touched first, and processors that others have, make single calls and waits so long by chance.
BY_CHANCE_NS = 50_000_000
LARGE = Floor(share=SLOW_SHARE, time_ns=BY_CHANCE_NS)


@dataclass(frozen=True)
class Finding:
    """What a rule found. `rows` are its evidence, largest first.

    `bound_ns` is the upper bound of the savings, and never more than `wall_ns`, the sum of the evidence. `units` is how
    often doing it would have been enough, counted in what `unit` names (transactions, files). `about` is what else the
    rule names: the line that holds a lock, a program. `time_ns` is time outside of calls. If something other than the
    evidence is to be named, `intrinsic` and `site` name it; code has no intrinsic. `callers` are the lines that mostly
    call a function which computes, `inner` is where it does so, as far as samples support that; `is_sampled` says that
    the program's code was sampled, `is_python` that it is Python, `is_merged` that processes of several experiments
    were merged, without their samples. `each_ns` is the mean of calls that overlap, `longest_ns` the longest time for
    which an event loop was blocked or, of repeated statements, that of a call which took far longer than the others and
    is not in the evidence, and `waiting` how many tasks waited for it at most. `made` is the number of calls that
    count, if the evidence also has others, such as the fetches of statements; else 0. If most of the evidence may be at
    other lines than the named one, `named_ns` is the wall time of the named line's calls; else 0. `starter` is the line
    that started the child processes, if it is one, and another than that of the evidence; `recording_ns` is what
    recording took in them, estimated; `is_forkserver` if multiprocessing's forkserver is one of them. `failing` are
    calls in the function that sleeps, which mostly failed. `reopened` is a file that the function which computes
    opened so often without a recorded change. `held_at` are the lines that had the lock of a file, most time first,
    for `held_ns` of the waits. A busy poll used `polled_cpu_ns` of CPU time, and these child processes lived
    `meanwhile`. A finding below its `floor` is not reported. Nor is one that has most of its evidence in
    another one of less `precedence`.
    """

    rule: str
    rows: tuple[Calls, ...]
    bound_ns: int
    units: int = 0
    unit: str = ""
    about: str = ""
    time_ns: int = 0
    callers: Callers = NO_CALLERS
    inner: tuple[Inner, ...] = ()
    is_sampled: bool = False
    is_python: bool = True
    is_merged: bool = False
    intrinsic: str = ""
    site: Site | None = None
    each_ns: int = 0
    longest_ns: int = 0
    waiting: int = 0
    made: int = 0
    named_ns: int = 0
    starter: Site | None = None
    recording_ns: int = 0
    is_forkserver: bool = False
    failing: tuple[Calls, ...] = ()
    reopened: tuple[str, int] = ("", 0)
    held_at: tuple[Site, ...] = ()
    held_ns: int = 0
    meanwhile: str = ""
    polled_cpu_ns: int = 0
    floor: Floor = NO_FLOOR
    precedence: int = 0

    def is_large(self, matters_ns: int) -> bool:
        """Whether it reaches its floor, where `matters_ns` is the time that matters."""
        floor, calls = self.floor, self.floor.counted or self.calls
        time_ns = self.wall_ns if floor.is_of_evidence else self.bound_ns
        is_often = calls >= max(floor.calls * max(floor.changes, 1), floor.a_unit * self.units)
        return is_often and time_ns >= floor.least_ns(matters_ns)

    def one_of(self, number: int) -> int:
        """What one of its `number` calls, or children, took, if that is far longer than each of the others; else 0."""
        longest_ns = min(max((row.longest_ns for row in self.rows), default=0), self.wall_ns)
        is_known = number > 1 and not self.is_estimated and not any(row.unended for row in self.rows)
        return longest_ns if is_known and is_far_longer(longest_ns, self.wall_ns - longest_ns, number - 1) else 0

    @property
    def transactions(self) -> list[str]:
        """The names of the transactions with the evidence, largest first."""
        return list(dict.fromkeys(row.transaction for row in self.rows if row.transaction))

    @property
    def wall_ns(self) -> int:
        """Wall time of the evidence."""
        return self.time_ns + sum(row.wall_ns for row in self.rows)

    @property
    def calls(self) -> int:
        """The number of calls in the evidence, without those that belong to others, as fetches to statements."""
        return self.made or sum(row.calls for row in self.rows)

    @property
    def is_estimated(self) -> bool:
        """Whether any of it is estimated from sampled transactions."""
        return any(row.is_estimated for row in self.rows)

    @property
    def bytes(self) -> int:
        """The bytes that they moved."""
        return sum(row.bytes for row in self.rows)

    @property
    def fetched(self) -> int:
        """The rows that they fetched."""
        return sum(row.rows for row in self.rows)

    @property
    def cpu_ns(self) -> int:
        """CPU time of the calls in the evidence."""
        return sum(row.cpu_ns for row in self.rows)

    @property
    def first(self) -> Calls | None:
        """The largest row."""
        return self.rows[0] if self.rows else None


def found(rule: str, rows: Iterable[Calls], bound_ns: int | None = None, *, time_ns: int = 0, **more: Any) -> Finding:
    """A finding with its evidence in order. The bound defaults to all of its time, and never exceeds it."""
    ordered = tuple(
        sorted(rows, key=lambda row: (-row.wall_ns, row.intrinsic, row.site.line if row.site else 0, row.transaction))
    )
    whole_ns = time_ns + sum(row.wall_ns for row in ordered)
    bound_ns = whole_ns if bound_ns is None else max(min(bound_ns, whole_ns), 0)
    return Finding(rule, ordered, bound_ns, time_ns=time_ns, **more)


def merged(findings: Iterable[Finding], is_apart: bool = False) -> list[Finding]:
    """The findings; those of one rule about the same calls in different transactions become one, unless `is_apart` and
    each must reach a floor."""
    alike: dict[tuple[object, ...], list[Finding]] = defaultdict(list)
    for each in findings:
        first = each.first
        named = (each.intrinsic, each.site) if each.site or not first else (first.intrinsic, first.site)
        line = first.kind if first and each.named_ns else named
        alike[each.rule, each.about, each.unit, line, each.floor.apart if is_apart else ""].append(each)
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
    names = ("units", "made", "recording_ns", "held_ns", "polled_cpu_ns")
    units, made, recording_ns, held_ns, polled_cpu_ns = (sum(getattr(each, name) for each in alike) for name in names)
    whole = replace(
        one,
        failing=tuple(dict.fromkeys(row for each in alike for row in each.failing)),
        rows=together.rows,
        bound_ns=together.bound_ns,
        time_ns=together.time_ns,
        units=units,
        longest_ns=longest_ns,
        waiting=waiting,
        made=made,
        recording_ns=recording_ns,
        held_ns=held_ns,
        polled_cpu_ns=polled_cpu_ns,
        held_at=tuple(dict.fromkeys(site for each in alike for site in each.held_at)),
        floor=reduce(Floor.with_those_of, (each.floor for each in alike)),
    )
    return replace(whole, **largest_line(whole.rows)) if one.named_ns else whole


def largest_line(rows: Iterable[Calls]) -> dict[str, Any]:
    """What a finding says of the line, and the intrinsic called there, that took the most time of the evidence."""
    of_lines: dict[tuple[str, Site | None], list[Calls]] = defaultdict(list)
    for row in rows:
        of_lines[row.intrinsic, row.site].append(row)
    (intrinsic, site), most = max(of_lines.items(), key=lambda each: sum(row.wall_ns for row in each[1]))
    made, named_ns = sum(row.calls for row in most), sum(row.wall_ns for row in most)
    return {"intrinsic": intrinsic, "site": site, "made": made, "named_ns": named_ns}


def spared_ns(wall_ns: int, calls: int, units: int) -> int:
    """The part of `wall_ns` that is saved if `units` calls, each as long as now, do the work of `calls`."""
    return wall_ns * max(calls - units, 0) // calls if calls else 0
