"""Experiments as tables of a database in memory, for questions in SQL; needs the packages `pyarrow` and `duckdb`."""

from __future__ import annotations

import os
from collections.abc import Iterable, Sequence
from decimal import Decimal
from typing import Any

from interpose.analysis.analysis import Analysis
from interpose.analysis.calls.statements import with_statements_in_any
from interpose.errors import UsageError
from interpose.experiments.model.experiment import Experiment
from interpose.exports import parquet
from interpose.exports.optional import optional
from interpose.reports.formats.table import Column, Table, clean

duckdb = optional("duckdb")
# Over `calls`; self times add up, the others overlap.
VIEWS = {
    "sites": "select experiment, kind, intrinsic, file, line, function, count(*) as calls, sum(wall_ns) as wall_ns,"
    " sum(wall_ns - inner_wall_ns) as self_wall_ns, sum(cpu_ns) as cpu_ns, max(wall_ns) as longest_ns"
    " from calls group by all",
    "statements": "select experiment, intrinsic, detail, count(*) as calls, sum(wall_ns) as wall_ns, max(wall_ns) as"
    " longest_ns from calls where kind = 'db' and detail <> '' and intrinsic in ({with_statements}) group by all",
    "errors": "select experiment, intrinsic, error, file, line, function, count(*) as calls, sum(wall_ns) as wall_ns"
    " from calls where error <> '' group by all",
    "slowest": "select experiment, process, thread_name, intrinsic, detail, file, line, wall_ns, cpu_ns from calls"
    " order by wall_ns desc limit 100",
}


class Database:
    """The tables of experiments, as Parquet files in `directory`."""

    def __init__(self, experiments: Sequence[Experiment], directory: str) -> None:
        """Raises UsageError if a package is missing, or single calls were not kept."""
        self._connection = duckdb.connect(":memory:")
        written = [os.path.join(directory, str(number)) for number, _ in enumerate(experiments)]
        for experiment, each in zip(experiments, written, strict=True):
            parquet.write_directory(Analysis(experiment), each)
        names = sorted({name for each in written for name in os.listdir(each)})
        for name in names:
            parts = [_part(each, os.path.join(path, name)) for each, path in zip(experiments, written, strict=True)]
            self._view(name.removesuffix(".parquet"), " union all by name ".join(parts))
        found = with_statements_in_any(process for each in experiments for process in each.processes)
        names_in_sql = ", ".join(map(_quoted, sorted(found))) or "null"
        for name, query in VIEWS.items():
            self._view(name, query.replace("{with_statements}", names_in_sql))

    def _view(self, name: str, query: str) -> None:
        self._connection.execute(f"create view {name} as {query}")

    def ask(self, query: str) -> Table:
        """The answer to `query` as a table. Raises UsageError for an invalid one."""
        try:
            answer = self._connection.execute(query)
            names = [each[0] for each in answer.description or ()]
            rows = answer.fetchall()
        except duckdb.Error as error:
            raise UsageError(clean(f"SQL: {self._in_words(error)}")) from error
        return _table(names, [tuple(map(_plain, row)) for row in rows])

    def _in_words(self, error: Exception) -> str:
        """What is wrong, without the query; for an unknown table, with the known ones."""
        told = " ".join(str(error).partition("LINE 1:")[0].split())
        if not (told.startswith("Catalog Error: Table") and "does not exist" in told):
            return told
        found = self._connection.execute("select view_name from duckdb_views() where not internal order by 1")
        return f"{told.partition('!')[0]}; there are {', '.join(name for (name,) in found.fetchall())}"


def _part(experiment: Experiment, path: str) -> str:
    return f"select {_quoted(experiment.name)} as experiment, * from read_parquet({_quoted(path)})"


def _quoted(text: str) -> str:
    return "'" + text.replace("'", "''") + "'"


def _plain(value: Any) -> Any:
    """What every format can show."""
    if isinstance(value, Decimal):
        return int(value) if value == value.to_integral_value() else float(value)
    if isinstance(value, dict):
        return {str(name): _plain(each) for name, each in value.items()}
    return value if value is None or isinstance(value, bool | int | float | str) else str(value)


def _table(names: Sequence[str], rows: Sequence[tuple[Any, ...]]) -> Table:
    columns = [_column(place, name, rows) for place, name in enumerate(names)]
    return Table(names, lambda row: dict(zip(names, row, strict=True)), columns, rows)


def _column(place: int, name: str, rows: Iterable[tuple[Any, ...]]) -> Column:
    is_number = all(isinstance(row[place], int | float | None) for row in rows)
    return Column(clean(name), lambda row: _shown(row[place]), right=is_number, flexible=not is_number)


def _shown(value: Any) -> str:
    if value is None:
        return ""
    return f"{value:,}" if isinstance(value, int | float) and not isinstance(value, bool) else clean(str(value))
