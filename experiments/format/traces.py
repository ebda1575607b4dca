"""What line trace counted in one process: stretches, functions as threads and tasks ran them, their lines and loops."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field

from interpose.experiments.format.records import FunctionRecord, LineRecord, LoopRecord, TraceRecord
from interpose.experiments.model.process import Process

LINE_TABLES = ("traces", "functions", "lines", "loops")
OUTSIDE = 2  # the kind of the record for everything outside of functions
# How much is kept in memory; the rest is ignored, and noted.
TRACES_AT_MOST = 10_000
FUNCTIONS_AT_MOST = 1_000_000
LINES_AT_MOST = 10_000_000


@dataclass
class Loop:
    """A loop on a line: how deep in others of its code on that line it stands, from 1; entries into its body."""

    line: int
    level: int
    passes: int


@dataclass
class Function:
    """A function as a thread, or a task of it, ran it; times are in ticks of its stretch."""

    number: int
    record: FunctionRecord
    file: str
    name: str
    module: str
    lines: list[LineRecord] = field(default_factory=list)
    loops: list[Loop] = field(default_factory=list)

    @property
    def is_outside(self) -> bool:
        """Whether it stands for everything outside of functions."""
        return self.record.kind == OUTSIDE


@dataclass
class Stretch:
    """A period of line trace, and its counts."""

    number: int
    record: TraceRecord
    target: str
    functions: list[Function] = field(default_factory=list)

    @property
    def ns_in_tick(self) -> float:
        """How long a tick is, in nanoseconds."""
        ticks = self.record.last_ticks - self.record.start_ticks
        passed_ns = self.record.last_ns - self.record.start_ns
        return passed_ns / ticks if ticks > 0 and passed_ns > 0 else 1.0

    def ns(self, ticks: int) -> int:
        """So many ticks in nanoseconds."""
        return round(ticks * self.ns_in_tick)


def read_stretches(process: Process) -> list[Stretch]:
    """The periods of line trace of a process; none if its lines were not traced."""
    table = process.raw_table("traces")
    found = {
        number: Stretch(number, record, process.string(record.target))
        for number, record, _ in (table.bounded(TRACES_AT_MOST) if table else ())
        if record.start_ns
    }
    functions = {function.number: function for function in _functions(process) if function.record.trace in found}
    _add_lines(process, functions)
    for function in functions.values():
        found[function.record.trace].functions.append(function)
    return list(found.values())


def _functions(process: Process) -> Iterator[Function]:
    table = process.raw_table("functions")
    for number, record, _ in table.bounded(FUNCTIONS_AT_MOST) if table else ():
        if record.kind:
            names = (process.file_name(record.file), process.string(record.function), process.string(record.module))
            yield Function(number, record, *names)


def _add_lines(process: Process, functions: dict[int, Function]) -> None:
    lines, loops = process.raw_table("lines"), process.raw_table("loops")
    for _, line, _ in lines.bounded(LINES_AT_MOST) if lines else ():
        if function := functions.get(line.function):
            function.lines.append(line)
    for _, loop, _ in loops.bounded(LINES_AT_MOST) if loops else ():
        if function := functions.get(loop.function):
            function.loops.append(Loop(loop.line, loop.level, loop.passes + _counted(function, loop)))


def _counted(function: Function, loop: LoopRecord) -> int:
    """The entries into a loop's body that one of its function's lines counts."""
    place = loop.spot - function.record.first_spot
    if not loop.spot or not 0 <= place < len(function.lines):
        return 0
    line = function.lines[place]
    return line.back if loop.by_back else line.executed - line.back
