"""The files of one process's part of an experiment: its log, its tables, and its texts by number."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from functools import cached_property
from typing import Any, Self, TypeVar

from interpose.experiments.format.consolidated import OTHER
from interpose.experiments.format.dynamic import DYNTEXT, read_dynamic
from interpose.experiments.format.layout import Record
from interpose.experiments.format.records import (
    BranchRecord,
    ChildRecord,
    ContextRecord,
    CountRecord,
    CoveredRecord,
    FunctionRecord,
    HeapRecord,
    HeapSiteRecord,
    LineRecord,
    LoopRecord,
    MemoryRecord,
    Overview,
    PlaceRecord,
    SampledCountRecord,
    SampleRecord,
    SiteRecord,
    StackRecord,
    TaskRecord,
    ThreadRecord,
    TraceRecord,
)
from interpose.experiments.format.tables import RecordTable, StringTable, table_or_none
from interpose.experiments.format.trace_contexts import NAME as CONTEXTS
from interpose.experiments.metadata.log import Log, read_log
from interpose.experiments.model.files import Damages, DataFile

UNKNOWN = "?"
MANY_DETAILS = "(other)"  # stands for details for which there is no room

ALWAYS_THERE: dict[str, type[Any]] = {
    "overview": Overview,
    "sites": SiteRecord,
    "stacks": StackRecord,
    "threads": ThreadRecord,
}
MADE_AT_NEED: dict[str, type[Any]] = {
    "branches": BranchRecord,
    "children": ChildRecord,
    "counts": CountRecord,
    "covered": CoveredRecord,
    "functions": FunctionRecord,
    "heap": HeapRecord,
    "heap_sites": HeapSiteRecord,
    "lines": LineRecord,
    "loops": LoopRecord,
    "places": PlaceRecord,
    "sampled_counts": SampledCountRecord,
    "sampled_memory": MemoryRecord,
    "sampled_sites": SiteRecord,
    "sampled_stacks": StackRecord,
    "samples": SampleRecord,
    "tasks": TaskRecord,
    "traces": TraceRecord,
    CONTEXTS: ContextRecord,
}

Instead = TypeVar("Instead")
Table = TypeVar("Table", bound=RecordTable[Any] | StringTable)


class RecordedFiles:
    """What a process left in `directory`. Damage is noted in `damages`, with `place` before the file's name.

    `parent` is the process that forked it; they share numbers.
    """

    def __init__(self, directory: str, place: str, damages: Damages) -> None:
        self.directory = directory
        self.place = place
        self.damages = damages
        self.parent: Self | None = None
        self.log: Log = read_log(os.path.join(directory, "log.xml"), f"{place}/log.xml", damages)

    def forked_from(self) -> Iterator[Self]:
        """This process, the one that forked it, and so on outward."""
        process: Self | None = self
        while process:
            yield process
            process = process.parent

    def string(self, number: int) -> str:
        """The string `number`; empty for 0, `(other)` for many details in one, `?` if it is not there."""
        if number in (0, OTHER):
            return MANY_DETAILS if number else ""
        table = self._with_number(number, lambda process: process._strings)
        text = table.get(number) if table else None
        return self._missing("strings", number, UNKNOWN) if text is None else text

    def file_name(self, number: int) -> str:
        """The string `number` as a file's name; `?` for code that was compiled without one."""
        return self.string(number) or UNKNOWN

    def _sound_string(self, number: int) -> str | None:
        """The same if it is there, in a process without a parent."""
        if number in (0, OTHER):
            return self.string(number)
        return self._strings.get(number) if self._strings else None

    def strings(self) -> Iterator[tuple[int, str]]:
        """Number and text of each string of this process's own."""
        return self._strings.all() if self._strings else iter(())

    @property
    def details_left_out(self) -> int:
        """The number of details that became `(other)` because there was no room for more texts."""
        return self._strings.left_out if self._strings else 0

    def roots(self) -> list[str]:
        """The directories that the process imported from, those of the processes that forked it included."""
        return [root for process in self.forked_from() for root in process.log.roots]

    def dynamic_text(self, file: str) -> str | None:
        """The text of code without a file, as this process or those that forked it saw it; None if unknown."""
        return next((each._dynamic[file] for each in self.forked_from() if file in each._dynamic), None)

    def dynamic_texts(self) -> dict[str, str]:
        """All texts of code without a file, by name, that this process itself saw."""
        return self._dynamic

    def raw_table(self, name: str) -> RecordTable[Any] | None:
        """The records of the file `name`; None if the process has none."""
        if name in ALWAYS_THERE:
            return self._table(name, ALWAYS_THERE[name])
        return self.table_if_there(name, MADE_AT_NEED[name])

    def table_if_there(self, name: str, record: type[Record]) -> RecordTable[Record] | None:
        """The table in the file `name`; None if the process has none."""
        return self._table(name, record) if self._has(name) else None

    def strings_if_there(self, name: str) -> StringTable | None:
        """The strings in the file `name`; None if the process has none, or log.xml does not describe it."""
        data = self.log.data.get(name)
        return StringTable(self._file(name), data, self.log.head) if data and self._has(name) else None

    @cached_property
    def _strings(self) -> StringTable | None:
        data = self.log.data.get("strings")
        file = self._file("strings")
        if data is None:
            file.damaged("not described in log.xml")
            return None
        return StringTable(file, data, self.log.head)

    @cached_property
    def _dynamic(self) -> dict[str, str]:
        return read_dynamic(self._file(DYNTEXT), self.string) if self._has(DYNTEXT) else {}

    def _table(self, name: str, record: type[Record]) -> RecordTable[Record] | None:
        return table_or_none(self._file(name), self.log.data.get(name), self.log.head, record)

    def _with_number(self, number: int, table_of: Callable[[Self], Table | None]) -> Table | None:
        """The table of this process or of one that forked it that has `number`: a child's numbers go on."""
        if self.parent is None:
            return table_of(self)
        for process in self.forked_from():
            table = table_of(process)
            if table is None or number >= table.first:
                return table
        return None

    def _has(self, name: str) -> bool:
        return os.path.lexists(os.path.join(self.directory, name))

    def _file(self, name: str) -> DataFile:
        return DataFile(os.path.join(self.directory, name), f"{self.place}/{name}", self.damages)

    def _missing(self, file: str, number: int, instead: Instead) -> Instead:
        self.damages.add(f"{self.place}/{file}", f"number {number} is not there")
        return instead
