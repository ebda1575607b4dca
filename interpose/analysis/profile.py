"""From sums to rows: what each kind, intrinsic, site, function, detail, thread or process took.

The self times of all rows, of the row `program` and of the row `interpose` add up to the thread time, to the
nanosecond (`interpose.analysis.account`).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field

from interpose.analysis.account import NOTHING, ProcessAccount, Share, account
from interpose.analysis.reduce import Key, Reducer, reduce_events
from interpose.analysis.sums import Sums
from interpose.experiments.experiment import Experiment
from interpose.experiments.process import UNKNOWN, UNKNOWN_SITE, Process, Site

PROGRAM = "program"
INTERPOSE = "interpose"
KINDS = ("db", "screen", "file", "net", "process", "sync", "sleep")
UNCERTAIN_TIMES = 10


@dataclass
class Row:
    """What some calls took: `kind` and `intrinsic` are None where they differ, `labels` what else it is."""

    kind: str | None
    intrinsic: str | None
    labels: dict[str, str] = field(default_factory=dict)
    site: Site | None = None
    comment: str = ""
    sums: Sums = field(default_factory=Sums)

    @property
    def is_of_calls(self) -> bool:
        """Whether the row is of recorded calls: not the program's or our own."""
        return self.kind not in (PROGRAM, INTERPOSE)


@dataclass
class Profile:
    """The rows of a grouping, the largest self wall time first; then what is the program's and our own."""

    rows: list[Row]
    accounts: list[ProcessAccount]

    @property
    def total(self) -> Share:
        """All threads of all processes."""
        return sum((share for each in self.accounts for share in each.threads.values()), NOTHING)


@dataclass(frozen=True)
class Grouping:
    """One way to group: the fields of the event that it needs, and the row that a key belongs to."""

    needs: tuple[str, ...]
    row_of: Callable[[Process, Mapping[str, int]], Row]


def profile(experiment: Experiment, by: str, reducer: type[Reducer] | None = None) -> Profile:
    """The profile of `experiment`, grouped by one of `GROUPINGS`."""
    grouping = GROUPINGS[by]
    fields = ("thread", *grouping.needs)
    measured = [(process, reduce_events(process, fields, reducer)) for process in experiment.processes]
    accounts = [account(process, by_thread(sums)) for process, sums in measured]
    rows = grouped(
        (grouping.row_of(process, dict(zip(fields, key, strict=True))), sums)
        for process, of_key in measured
        for key, sums in of_key.items()
    )
    made = Profile(sorted(rows, key=lambda row: -row.sums.self_wall_ns), accounts)
    made.rows += closing_rows(made.total)
    return made


def by_thread(sums: Mapping[Key, Sums]) -> dict[int, Sums]:
    """The same sums by the first key alone, which is the thread."""
    threads: dict[int, Sums] = {}
    for (thread, *_), each in sums.items():
        threads.setdefault(thread, Sums()).add(each)
    return threads


def grouped(rows: Iterable[tuple[Row, Sums]]) -> list[Row]:
    """One row for each that differs in kind, intrinsic or labels, with the sums of all its likes."""
    alike: dict[tuple[object, ...], Row] = {}
    for row, sums in rows:
        key = (row.kind, row.intrinsic, row.site, *row.labels.items())
        alike.setdefault(key, row).sums.add(sums)
    return list(alike.values())


def by_kind(rows: Iterable[Row]) -> list[Row]:
    """The rows of calls by kind, in the order of `KINDS`."""
    kinds = grouped((Row(row.kind, None), row.sums) for row in rows if row.is_of_calls)
    order = {kind: place for place, kind in enumerate(KINDS)}
    return sorted(kinds, key=lambda row: (order.get(row.kind or "", len(order)), row.kind))


def closing_rows(whole: Share) -> list[Row]:
    """The rows of the program and of our own cost."""
    return [
        _closing_row(PROGRAM, whole.program_wall_ns, whole.program_cpu_ns, "between the calls"),
        _closing_row(
            INTERPOSE, whole.own_wall_ns, whole.own_cpu_ns, "own cost: start measured, calls calibrated"
        ),
    ]


def wait_ns(row: Row) -> int:
    """Self time that was neither CPU time nor another recorded call."""
    return max(row.sums.self_wall_ns - row.sums.self_cpu_ns, 0)


def is_uncertain(total_ns: int, calls: int, inside_ns: int, resolution_ns: int) -> bool:
    """Whether `total_ns` over `calls` is, for each call, below ten times what the clock can tell or costs."""
    return 0 < total_ns < UNCERTAIN_TIMES * max(inside_ns, resolution_ns) * calls


def own_lines(rows: Iterable[Row]) -> list[Row]:
    """Those rows of a grouping by site whose line is the program's own."""
    return [row for row in rows if row.site and row.site.own]


def _closing_row(kind: str, wall_ns: int, cpu_ns: int, comment: str) -> Row:
    sums = Sums(wall_ns=wall_ns, cpu_ns=cpu_ns, self_wall_ns=wall_ns, self_cpu_ns=cpu_ns)
    return Row(kind, None, sums=sums, comment=comment)


def _of_kind(process: Process, key: Mapping[str, int]) -> Row:
    return Row(process.intrinsic(key["intrinsic"]).kind, None)


def _of_intrinsic(process: Process, key: Mapping[str, int]) -> Row:
    intrinsic = process.intrinsic(key["intrinsic"])
    return Row(intrinsic.kind, intrinsic.name)


def _of_site(process: Process, key: Mapping[str, int]) -> Row:
    row = _of_intrinsic(process, key)
    row.site = process.own_line(key["stack"]) or UNKNOWN_SITE
    row.labels = {"site": f"{row.site.file}:{row.site.line or UNKNOWN}", "function": row.site.function}
    return row


def _of_function(process: Process, key: Mapping[str, int]) -> Row:
    row = _of_intrinsic(process, key)
    site = process.own_line(key["stack"]) or UNKNOWN_SITE
    row.labels = {"function": site.function, "file": site.file}
    return row


def _of_detail(process: Process, key: Mapping[str, int]) -> Row:
    row = _of_intrinsic(process, key)
    row.labels = {"detail": process.string(key["detail"])}
    return row


def _of_thread(process: Process, key: Mapping[str, int]) -> Row:
    return Row(
        None, None, {"thread": thread_label(process, key["thread"]), "process": process_label(process)}
    )


def _of_process(process: Process, key: Mapping[str, int]) -> Row:
    return Row(None, None, {"process": process_label(process)})


def thread_label(process: Process, number: int) -> str:
    """The kernel's number of the thread `number`, and whether it is the main one."""
    for thread in process.threads:
        if thread.number == number:
            return f"{thread.record.tid}{' main' if thread.record.main else ''}"
    return UNKNOWN


def process_label(process: Process) -> str:
    """The number of `process` and, of a descendant, its lineage."""
    return f"{process.log.pid} {process.lineage}".rstrip()


GROUPINGS = {
    "kind": Grouping(("intrinsic",), _of_kind),
    "intrinsic": Grouping(("intrinsic",), _of_intrinsic),
    "site": Grouping(("intrinsic", "stack"), _of_site),
    "function": Grouping(("intrinsic", "stack"), _of_function),
    "detail": Grouping(("intrinsic", "detail"), _of_detail),
    "thread": Grouping((), _of_thread),
    "process": Grouping((), _of_process),
}
