"""The views of input and output: all in one, by file, and by file and call."""

from __future__ import annotations

from collections.abc import Mapping

from interpose.analysis.calls.input_output import READ, SIZES, WRITE, Activity, InputOutput
from interpose.reports.formats.table import Table, table_of_cells
from interpose.reports.formats.units import size
from interpose.reports.screen.metrics import number

_MOVING = (READ, WRITE)
_NO_SIZES = "sizes: not recorded (record without INTERPOSE_CONSOLIDATE)"


def iostat_table(found: InputOutput) -> Table:
    """For each operation its counts and times, and of reads and writes how many moved how much."""
    rows: list[list[str]] = []
    for operation, activity in found.by_operation().items():
        if rows:
            rows.append(["", "", "", ""])
        rows.append([f"{operation} calls", str(activity.sums.calls), _time(activity.sums.self_wall_ns), ""])
        if activity.sums.errors:
            rows.append(["  of them failed", str(activity.sums.errors), "", ""])
        rows.append(["  longest", "", _time(activity.sums.wall_most_ns), ""])
        if operation in _MOVING:
            rows += _of_sizes(activity) if found.has_sizes else [["  moved", "", "", str(activity.sums.bytes)]]
    heads = [("Operation",), ("Count",), ("sec.",), ("Bytes",)]
    notes = [] if found.has_sizes else [_NO_SIZES]
    return table_of_cells("Input and output", heads, rows, (False, True, True, True), notes)


def ioactivity_table(found: InputOutput, limit: int = 0) -> Table:
    """The reads, writes and other operations of each file."""
    files = found.by_file()
    order = sorted(files, key=lambda file: (-sum(each.sums.self_wall_ns for each in files[file].values()), file))
    whole = found.by_operation()
    rows = [_of_file("<Total>", whole), *(_of_file(file, files[file]) for file in (order[:limit] if limit else order))]
    heads = [
        *((operation.title(), *head) for operation in _MOVING for head in (("Bytes",), ("Count",), ("sec.",))),
        ("Other", "Count"),
        ("Other", "sec."),
        ("", "Errors"),
        ("", "File"),
    ]
    return table_of_cells("Input and output by file", heads, rows, [True] * (len(heads) - 1))


def iodetail_table(found: InputOutput, limit: int = 0) -> Table:
    """For each file and call how often, how long, how much, and the longest and largest."""
    order = sorted(found.found, key=lambda key: (-found.found[key].sums.self_wall_ns, key))
    rows = []
    for file, operation, name in order[:limit] if limit else order:
        activity = found.found[file, operation, name]
        sums = activity.sums
        least_and_most = (str(activity.least_bytes), str(activity.most_bytes)) if found.has_sizes else ("", "")
        moved = [str(sums.bytes), *least_and_most] if sums.bytes else [""] * 3
        times = [_time(sums.self_wall_ns), _time(sums.wall_most_ns)]
        rows.append([str(sums.calls), *times, *moved, str(sums.errors), name, file])
    names = ("Count", "sec.", "longest", "Bytes", "smallest", "largest", "Errors", "Call", "File")
    return table_of_cells("Input and output by file and call", [(name,) for name in names], rows, [True] * 7)


def _of_sizes(activity: Activity) -> list[list[str]]:
    """How many calls moved how much, the largest and smallest."""
    rows = [["  moved", "", "", str(activity.sums.bytes)]]
    rows.append(["  smallest", "", "", str(activity.least_bytes)])
    rows.append(["  largest", "", "", str(activity.most_bytes)])
    for place, count in enumerate(activity.sizes):
        if count:
            rows.append([f"  {_range(place)}", str(count), _time(activity.size_times_ns[place]), ""])
    return rows


def _range(place: int) -> str:
    """Which sizes are counted at that place."""
    if place == 0:
        return "nothing"
    least = "0" if place == 1 else size(SIZES[place - 1])
    return f"{least} - {size(SIZES[place])}" if place < len(SIZES) else f"from {least} on"


def _of_file(file: str, operations: Mapping[str, Activity]) -> list[str]:
    cells: list[str] = []
    for operation in _MOVING:
        sums = operations.get(operation, Activity()).sums
        cells += [str(sums.bytes), str(sums.calls), _time(sums.self_wall_ns)]
    others = [activity.sums for operation, activity in operations.items() if operation not in _MOVING]
    cells += [str(sum(each.calls for each in others)), _time(sum(each.self_wall_ns for each in others))]
    return [*cells, str(sum(each.sums.errors for each in operations.values())), file]


def _time(ns: int) -> str:
    return number(ns, 0, ".")
