"""The page's table of transactions: how many, think and response time with percentiles, and what the response was."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from interpose.analysis.transactions.response_times import Transaction, Transactions
from interpose.reports.formats.units import duration
from interpose.reports.page.drawings import kind_class
from interpose.reports.page.grid import Field, grid, note, section
from interpose.reports.page.markup import Markup, element
from interpose.reports.page.material import Material

PERCENTS = (50, 90, 95, 99)


def transactions(material: Material) -> Markup:
    """The section of the transactions."""
    made = material.transactions
    remarks = []
    if not made.has_cpu:
        remarks.append(note("CPU time between calls is not recorded by transaction: record again with this version."))
    if made.overlapped:
        how = "while one was suspended, its thread ran others, or other threads worked for it"
        remarks.append(note(f"Transactions overlap: {how}."))
    if not any(row.is_named for row in made.rows):
        remarks.append(
            note("No transaction has a name. Mark them with interpose.transaction(…), or see docs/libraries.md.")
        )
    table = grid("table-transactions", "Transactions", _fields(made), _named(made), _others(made))
    return section("transactions", "Transactions", table, *remarks)


def _named(made: Transactions) -> list[Transaction]:
    return [row for row in made.rows if row.is_named]


def _others(made: Transactions) -> list[Transaction]:
    return [row for row in made.rows if not row.is_named]


def _fields(made: Transactions) -> list[Field]:
    def time(title: str, ns_of: Callable[[Transaction], int | None], hint: str = "") -> Field:
        return Field(title, lambda row: _shown(ns_of(row)), ns_of, hint)

    def split(kind: str) -> Field:
        return time(kind, lambda row: row.split[kind].wall_ns if kind in row.split else None)

    def percentile(percent: int) -> Field:
        return time(f"p{percent}", lambda row: row.sums.percentile_ns(percent) if row.is_named else None)

    longest_ns, kinds = max((row.response_ns for row in made.rows), default=0), made.kinds
    return [
        Field("transaction", lambda row: row.name),
        Field("count", lambda row: f"{row.sums.calls:,}", lambda row: row.sums.calls),
        time("think", lambda row: row.think_ns, "time that the user took"),
        time("response", lambda row: row.response_ns, "time that the program took"),
        time("mean", lambda row: row.response_ns // row.sums.calls if row.sums.calls and row.is_named else None),
        *map(percentile, PERCENTS),
        time("longest", lambda row: row.sums.wall_most_ns if row.is_named else None),
        *([time("CPU", lambda row: row.cpu_ns)] if made.has_cpu else []),
        Field("response by kind", drawn=lambda row: _split_bar(row, kinds, longest_ns)),
        *map(split, kinds),
        *([time("overlap", lambda row: row.overlap_ns, "beyond its threads' time")] if made.overlapped else []),
    ]


def _split_bar(row: Transaction, kinds: Sequence[str], longest_ns: int) -> Markup:
    """The response time by kind, as long as it is of the longest row's."""
    parts, begin = [], 0.0
    whole_ns = max(longest_ns, 1)
    for kind in kinds:
        ns = row.split[kind].wall_ns if kind in row.split else 0
        width = 100 * ns / whole_ns
        if ns and begin + width <= 100.5:
            shape = {"x": f"{begin:.2f}%", "width": f"{width:.2f}%", "height": "10"}
            parts.append(element("rect", class_=kind_class(kind), **shape))
            begin += width
    return element("svg", parts, class_="wallbar", height="10", aria_hidden="true")


def _shown(ns: int | None) -> str:
    return duration(ns) if ns else ""
