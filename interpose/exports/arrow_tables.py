"""An experiment as tables of Apache Arrow, for Parquet and for SQL; they need the package `pyarrow`.

`calls` has a row for each recorded call, with the names of what its numbers stand for, in batches. The others are the
tables of the reports, with the names that these have in JSON. Times are nanoseconds; instants are of the monotonic
clock.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Any

from interpose.analysis.analysis import Analysis
from interpose.analysis.calls.profile import Profile, profile
from interpose.analysis.consolidation.sums import MOST
from interpose.analysis.profile.count_rows import with_code_and_counts
from interpose.analysis.profile.counts import Seen, counted
from interpose.analysis.profile.profiled import NOT_SAMPLED, Frames, innermost
from interpose.analysis.recording.lineage import tree, walk
from interpose.analysis.time.usage import usages
from interpose.analysis.transactions.response_times import transactions
from interpose.experiments.format.records import Event
from interpose.experiments.model.experiment import Experiment
from interpose.experiments.model.process import Process
from interpose.experiments.model.stacks import UNKNOWN_SITE, Site
from interpose.exports.event_columns import EventColumns
from interpose.exports.optional import optional
from interpose.exports.single_events import LaneNames, blocks_of
from interpose.reports.formats.table import Table
from interpose.reports.tables.overview import overview_table
from interpose.reports.tables.processes import processes_table
from interpose.reports.tables.rows import arranged, profile_table
from interpose.reports.tables.transactions import transactions_table

pyarrow = optional("pyarrow")
CALLS = "calls"
HEADER = "traceparent"  # the tracer of a span that is known by this header alone
MAPS = ("tasks",)  # columns of numbers by name; as structs, they would differ between experiments
ROWS_IN_A_BATCH = 1 << 18
_FIELDS = ("thread", "intrinsic", "stack")  # which tell tables of sites and of transactions
NUMBERS = [name for name in Event._fields if name not in ("intrinsic", "detail", "error")]


def small_tables(analysis: Analysis) -> dict[str, Any]:
    """The tables of the reports, by name."""
    experiment = analysis.experiment
    log = experiment.founder.log
    for process in experiment.processes:  # the events are read once for all tables
        analysis.keep(process, analysis.records_by_transaction(process, _FIELDS, histograms=True))
    made = {
        "processes": processes_table(walk(tree(experiment)), experiment.founder),
        "report": profile_table(_lines(analysis), "site", log),
        "transactions": transactions_table(transactions(analysis)),
        "usage": overview_table(experiment, usages(experiment)),
    }
    tables = {name: _arrow(each) for name, each in made.items()}
    return {"spans": _spans(experiment), "counters": _counters(analysis)} | tables


def _lines(analysis: Analysis) -> Profile:
    """The rows of `report --by line`, those of sampled code among them."""
    made = with_code_and_counts(profile(analysis, "site"), "site")
    return replace(made, rows=arranged(made.rows, None, None))


def _spans(experiment: Experiment) -> Any:
    """The spans that other tracers had active in transactions, and those that requests came from."""
    columns = [*((name, pyarrow.string()) for name in ("process", "tracer", "trace", "span"))]
    columns += [("thread", pyarrow.uint64()), ("call", pyarrow.uint64())]
    rows = [
        dict(zip(("process", "thread", "call", "tracer", "trace", "span"), (process.place, *call, *each), strict=True))
        for process in experiment.processes
        for call, each in _spans_of(process)
    ]
    return pyarrow.Table.from_pylist(rows, pyarrow.schema(columns))


def _counters(analysis: Analysis) -> Any:
    """What was counted besides time, by thread and line; `margin` is 0 where the kernel itself counted it."""
    texts, numbers = ("process", "counter", "file", "function"), ("thread", "tid", "line", "count", "margin")
    columns = [*((name, pyarrow.string()) for name in texts), *((name, pyarrow.uint64()) for name in numbers)]
    rows = [
        (
            *(each.process.place, each.name, site.file, site.function),
            *(thread or None, tid or None, site.line or None, count.count, round(count.margin)),
        )
        for each in counted(analysis)
        for (thread, tid, site), count in each.divided(_by_thread_and_line, (0, 0, NOT_SAMPLED)).items()
    ]
    named = [dict(zip((*texts, *numbers), row, strict=True)) for row in rows]
    return pyarrow.Table.from_pylist(named, pyarrow.schema(columns))


def _by_thread_and_line(frames: Frames, seen: Seen) -> tuple[int, int, Site]:
    return seen.thread, seen.tid, innermost(frames)


def _spans_of(process: Process) -> Iterator[tuple[tuple[int, int], tuple[str, str, str]]]:
    for call, context in process.trace_contexts.items():
        yield call, (HEADER, context.trace, context.parent)
    for call, spans in process.active_spans.items():
        yield from ((call, each) for each in spans)


def _arrow(table: Table) -> Any:
    rows = [dict(table.values(row)) for row in table.rows]
    return pyarrow.table({name: _column(name, [row.get(name) for row in rows]) for name in table.names})


def _column(name: str, values: list[Any]) -> Any:
    """A column of values, with the type that they have."""
    if name not in MAPS:
        return pyarrow.array([_limited(each) for each in values])
    items = [None if each is None else [(key, _limited(value)) for key, value in each.items()] for each in values]
    return pyarrow.array(items, pyarrow.map_(pyarrow.string(), pyarrow.int64()))


def _limited(value: Any) -> Any:
    """The value, no larger than a column has room for: sums of a damaged experiment may be."""
    return max(min(value, MOST), -MOST) if type(value) is int else value


def calls(analysis: Analysis) -> Iterator[Any]:
    """The recorded calls as batches of one schema, of which the first is empty."""
    yield pyarrow.RecordBatch.from_pylist([], schema())
    for process in analysis.experiment.processes:
        if process.events:
            columns, names = EventColumns(process.events.layout, Event._fields), _Names(process)
            for block in blocks_of(process):
                columns.add(block.events)
                if columns.rows >= ROWS_IN_A_BATCH:
                    yield names.batch(columns)
            if columns.rows:
                yield names.batch(columns)


def schema() -> Any:
    """The columns of `calls`."""
    text, number = pyarrow.dictionary(pyarrow.int32(), pyarrow.string()), pyarrow.uint64()
    named = ("process", "intrinsic", "kind", "detail", "error", "file", "function", "thread_name", "task_name")
    columns = [*((name, text) for name in named), ("line", pyarrow.uint32())]
    columns += [("own", pyarrow.bool_()), ("startup", pyarrow.bool_())]
    return pyarrow.schema([*columns, *((name, number) for name in NUMBERS)])


class _Names:
    """Replaces numbers by the names of a process."""

    def __init__(self, process: Process) -> None:
        self._process = process
        self._lanes = LaneNames(process)

    def batch(self, columns: EventColumns) -> Any:
        """The rows of `columns`, which are empty then."""
        rows = columns.rows
        numbers = {name: _numbers(column, rows) for name, column in columns.take().items()}
        process = self._process
        stacks, intrinsics = (numbers[name].dictionary_encode() for name in ("stack", "intrinsic"))
        sites = [process.own_line(each) or UNKNOWN_SITE for each in stacks.dictionary.to_pylist()]
        starting = [process.is_start_up(each) for each in stacks.dictionary.to_pylist()]
        called = [process.intrinsic(each) for each in intrinsics.dictionary.to_pylist()]
        made = {
            "process": _named(pyarrow.nulls(rows, pyarrow.int32()).fill_null(0), [process.place]),
            "intrinsic": _named(intrinsics.indices, [each.name for each in called]),
            "kind": _named(intrinsics.indices, [each.kind for each in called]),
            "detail": _texts(numbers["detail"], process.string),
            "error": _texts(numbers["error"], process.string),
            "file": _named(stacks.indices, [each.file for each in sites]),
            "function": _named(stacks.indices, [each.function for each in sites]),
            "thread_name": _texts(numbers["thread"], self._lanes.thread),
            "task_name": _texts(numbers["task"], lambda number: process.task_names.get(number, "")),
            "line": pyarrow.array([each.line for each in sites], pyarrow.uint32()).take(stacks.indices),
            "own": pyarrow.array([each.own for each in sites]).take(stacks.indices),
            "startup": pyarrow.array(starting, pyarrow.bool_()).take(stacks.indices),
            **{name: numbers[name] for name in NUMBERS},
        }
        return pyarrow.RecordBatch.from_arrays(list(made.values()), schema=schema())


def _numbers(column: bytearray, rows: int) -> Any:
    return pyarrow.Array.from_buffers(pyarrow.uint64(), rows, [None, pyarrow.py_buffer(column)])


def _texts(numbers: Any, name_of: Callable[[int], str]) -> Any:
    found = numbers.dictionary_encode()
    return _named(found.indices, [name_of(each) for each in found.dictionary.to_pylist()])


def _named(indices: Any, names: list[str]) -> Any:
    """Names by position; invalid UTF-8, as in file names, is escaped."""
    clean = [each.encode("utf-8", "backslashreplace").decode() for each in names]
    return pyarrow.DictionaryArray.from_arrays(indices, pyarrow.array(clean, pyarrow.string()))
