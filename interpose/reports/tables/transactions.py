"""The table of transactions: a row for each name; think time, response time, and what the response time was."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from interpose.analysis.profile.by_transaction import InTransaction
from interpose.analysis.transactions.response_times import Transaction, Transactions
from interpose.experiments.metadata.log import Log
from interpose.reports.formats.short_paths import Places
from interpose.reports.formats.table import Column, Table, clean
from interpose.reports.formats.units import margin_of_samples, percent, scale_for

PERCENTS = (50, 90, 95, 99)
SORTS = ("name", "count", "think", "response", "mean", "p95", "longest", "cpu")
FIGURES = ("count", "think_ns", "response_ns", "thread_ns", "mean_ns", "least_ns", "most_ns", "cpu_ns")


def transactions_table(made: Transactions) -> Table:
    """The table of the transactions of an experiment."""
    percentiles = tuple(f"p{percent}_ns" for percent in PERCENTS)
    split = tuple(f"{kind}_{clock}_ns" for kind in made.kinds for clock in ("wall", "cpu"))
    return Table(
        names=("transaction", *FIGURES, *percentiles, *split, "overlap_ns", *(("kept",) if made.estimate else ())),
        values=lambda row: _values(row, made),
        columns=[_name_column(lambda row: row.name), *_columns(made)],
        rows=made.rows,
    )


def _name_column(name_of: Callable[[Any], str]) -> Column:
    """Names often begin alike (those of tests of one file), or end alike."""
    return Column("transaction", lambda row: clean(name_of(row)), right=False, flexible=True, keep="ends")


def code_table(rows: Sequence[InTransaction], log: Log) -> Table:
    """The table of the functions that transactions ran: a row for each function of each transaction."""
    scale = scale_for(max((each.function.code.cpu_ns for each in rows), default=0))
    places = Places([each.function.site.file for each in rows if each.function.is_known], log.cwd)
    return Table(
        names=("transaction", "function", "file", "line", "samples", "self_cpu_ns", "margin_ns"),
        values=_values_of_code,
        columns=[
            _name_column(lambda each: each.transaction),
            Column("function", lambda each: clean(each.function.site.function), right=False, flexible=True),
            Column("line", lambda each: clean(places.line(each.function.site)) if each.function.is_known else "",
                   right=False, flexible=True, keep="end"),
            Column("samples", lambda each: f"{each.function.code.samples:,}"),
            Column("self CPU", lambda each: scale.show(each.function.code.cpu_ns)),
            Column("\u00b1 95 %",
                   lambda each: margin_of_samples(each.function.code.margin_ns, each.function.code.cpu_ns)),
        ],
        rows=rows,
        shown=places.shown,
    )  # fmt: skip


def _values_of_code(each: InTransaction) -> dict[str, Any]:
    site, code = each.function.site, each.function.code
    named = {"transaction": each.transaction, "function": site.function, "file": site.file, "line": site.line or None}
    return named | {"samples": code.samples, "self_cpu_ns": code.cpu_ns, "margin_ns": round(code.margin_ns)}


def arranged(rows: Sequence[Transaction], sort: str | None, limit: int | None) -> list[Transaction]:
    """The rows with a name, sorted by one of `SORTS` if any, at most `limit`; then those without."""
    named = [row for row in rows if row.is_named]
    if sort:
        named.sort(key=lambda row: _sort_key(row, sort))
    return [*named[:limit], *(row for row in rows if not row.is_named)]


def _sort_key(row: Transaction, sort: str) -> Any:
    if sort == "name":
        return row.name
    numbers = {
        "count": row.sums.calls,
        "think": row.think_ns,
        "response": row.response_ns,
        "mean": _mean_ns(row) or 0,
        "p95": _percentile_ns(row, 95) or 0,
        "longest": row.sums.wall_most_ns,
        "cpu": row.cpu_ns,
    }
    return -numbers[sort]


def _mean_ns(row: Transaction) -> int | None:
    return row.response_ns // row.sums.calls if row.is_named and row.sums.calls else None


def _percentile_ns(row: Transaction, percent: int) -> int | None:
    return row.sums.percentile_ns(percent) if row.is_named and row.sums.calls else None


def _values(row: Transaction, made: Transactions) -> dict[str, Any]:
    figures = (row.sums.calls, row.think_ns, row.response_ns, row.thread_ns, _mean_ns(row), *_least_and_most(row))
    named = dict(zip(FIGURES, (*figures, row.cpu_ns if made.has_cpu else None), strict=True))
    percentiles = {f"p{percent}_ns": _percentile_ns(row, percent) for percent in PERCENTS}
    split: dict[str, int | None] = {f"{kind}_wall_ns": row.split[kind].wall_ns for kind in row.split}
    split |= {f"{kind}_cpu_ns": row.split[kind].cpu_ns for kind in row.split}
    if not made.has_cpu:
        split["logic_cpu_ns"] = None
    kept = {"kept": row.kept} if made.estimate else {}
    return {"transaction": row.name, **named, **percentiles, **split, "overlap_ns": row.overlap_ns, **kept}


def _least_and_most(row: Transaction) -> tuple[int | None, int | None]:
    return (row.sums.wall_least_ns, row.sums.wall_most_ns) if row.is_named and row.sums.calls else (None, None)


def _columns(made: Transactions) -> list[Column]:
    scale = scale_for(max(made.thread_ns, *(row.think_ns for row in made.rows), 0))
    spread = scale_for(max((row.sums.wall_most_ns for row in made.rows if row.is_named), default=0))

    def split(kind: str) -> Column:
        mark = "~" if kind == "overhead" else ""
        return Column(
            kind, lambda row: mark + scale.show(row.split[kind].wall_ns) if kind in row.split else "", optional=True
        )

    def named(title: str, ns_of: Any) -> Column:
        return Column(title, lambda row: spread.show(ns_of(row)) if row.is_named and row.sums.calls else "")

    columns = [Column("count", lambda row: f"{row.sums.calls:,}")]
    if made.estimate:
        columns.append(Column("kept", lambda row: "" if row.kept is None else f"{row.kept:,}"))
    if any(row.think_ns for row in made.rows):
        columns.append(Column("think", lambda row: scale.show(row.think_ns) if row.think_ns else ""))
    columns += [
        Column("response", lambda row: scale.show(row.response_ns) if row.sums.calls or row.response_ns else ""),
        Column("share", lambda row: percent(row.thread_ns, made.thread_ns), optional=True),
        named("mean", _mean_ns),
        named("p95", lambda row: _percentile_ns(row, 95) or 0),
        named("longest", lambda row: row.sums.wall_most_ns),
    ]
    if made.has_cpu:
        columns.append(Column("CPU", lambda row: scale.show(row.cpu_ns)))
    columns += [split(kind) for kind in made.kinds]
    if any(row.overlap_ns for row in made.rows):
        columns.append(Column("overlap", lambda row: scale.show(-row.overlap_ns) if row.overlap_ns else ""))
    return columns
