"""What was recorded of one process: its log, its intrinsics, and what the numbers in its events stand for."""

from __future__ import annotations

import os
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import TypeVar

from interpose.experiments.blocks import EventFile
from interpose.experiments.files import Damages, DataFile
from interpose.experiments.layout import DataType, Record, Unpacker
from interpose.experiments.log import Intrinsic, Log, read_log, read_map
from interpose.experiments.records import OpenCall, Overview, SiteRecord, StackRecord, ThreadRecord
from interpose.experiments.tables import RecordTable, StringTable, table_or_none

UNKNOWN = "?"
UNKNOWN_INTRINSIC = Intrinsic(UNKNOWN, UNKNOWN)
DEEPEST_STACK = 10_000

Instead = TypeVar("Instead")


@dataclass(frozen=True)
class Site:
    """A place in the program's code; `own` where it is neither standard library nor an installed package."""

    file: str
    line: int
    function: str
    own: bool


UNKNOWN_SITE = Site(UNKNOWN, 0, UNKNOWN, False)


@dataclass(frozen=True)
class Thread:
    """A thread: its number, what its record says, and its calls in progress from the outermost on."""

    number: int
    record: ThreadRecord
    open_calls: tuple[OpenCall, ...]


class Process:
    """One process of an experiment. `parent` is the one that forked it: they share numbers."""

    def __init__(self, directory: str, place: str, lineage: str, damages: Damages) -> None:
        self.directory = directory
        self.place = place
        self.lineage = lineage
        self.damages = damages
        self.parent: Process | None = None
        self.log: Log = read_log(os.path.join(directory, "log.xml"), f"{place}/log.xml", damages)

    def string(self, number: int) -> str:
        """The string `number`; empty for 0, `?` where it is not there."""
        if number == 0:
            return ""
        process: Process | None = self
        while process and process._strings and number < process._strings.first:
            process = process.parent
        table = process._strings if process else None
        text = table.get(number) if table else None
        return self._missing("strings", number, UNKNOWN) if text is None else text

    def intrinsic(self, number: int) -> Intrinsic:
        """The intrinsic `number`, as this process or those that forked it name it; `?` where none does."""
        process: Process | None = self
        while process:
            if number in process._intrinsics:
                return process._intrinsics[number]
            process = process.parent
        return self._missing("map.xml", number, UNKNOWN_INTRINSIC)

    def frames(self, stack: int) -> Iterator[Site]:
        """The sites of the stack `stack`, from the innermost outward; none where it is not there."""
        for _ in range(DEEPEST_STACK):
            if stack == 0:
                return
            record = self._stack(stack)
            if record is None:
                self._missing("stacks", stack, None)
                return
            yield self.site(record.site)
            if record.outer >= stack:
                self.damages.add(f"{self.place}/stacks", f"stack {stack} is called from {record.outer}")
                return
            stack = record.outer

    def own_line(self, stack: int) -> Site | None:
        """The first site of the program's own code, going outward; else the innermost, if any."""
        if stack not in self._own_lines:
            self._own_lines[stack] = self._find_own_line(stack)
        return self._own_lines[stack]

    def site(self, number: int) -> Site:
        """The site `number`; one with `?` where it is not there."""
        if number not in self._sites_seen:
            self._sites_seen[number] = self._find_site(number)
        return self._sites_seen[number]

    @cached_property
    def threads(self) -> list[Thread]:
        """The threads, in the order in which they were first seen."""
        table = self._threads
        if table is None:
            return []
        return [self._thread(number, record, data) for number, record, data in table.all() if record.start_ns]

    @property
    def lost_calls(self) -> int:
        """Calls of threads for which there was no record."""
        return self._threads.head.lost if self._threads and self._threads.head else 0

    @property
    def unrecorded_children(self) -> int:
        """Forked processes whose own experiment could not be made."""
        return self._threads.head.unrecorded if self._threads and self._threads.head else 0

    @cached_property
    def _threads(self) -> RecordTable[ThreadRecord] | None:
        return self._table("threads", ThreadRecord)

    @cached_property
    def overview(self) -> list[Overview]:
        """The samples of what the process has used, in the order in which they were taken."""
        table = self._table("overview", Overview)
        return [record for _, record, _ in table.all() if record.time_ns] if table else []

    @cached_property
    def events(self) -> EventFile | None:
        """The events, or None where log.xml does not describe them."""
        data = self.log.data.get("events")
        file = self._file("events")
        if data is None or data.layout is None or data.inner is None:
            file.damaged("not described in log.xml")
            return None
        return EventFile(file, data)

    @cached_property
    def _intrinsics(self) -> dict[int, Intrinsic]:
        return read_map(os.path.join(self.directory, "map.xml"), f"{self.place}/map.xml", self.damages)

    @cached_property
    def _strings(self) -> StringTable | None:
        data = self.log.data.get("strings")
        file = self._file("strings")
        if data is None:
            file.damaged("not described in log.xml")
            return None
        return StringTable(file, data, self.log.head)

    @cached_property
    def _sites(self) -> RecordTable[SiteRecord] | None:
        return self._table("sites", SiteRecord)

    @cached_property
    def _stacks(self) -> RecordTable[StackRecord] | None:
        return self._table("stacks", StackRecord)

    @cached_property
    def _sites_seen(self) -> dict[int, Site]:
        return {}

    @cached_property
    def _own_lines(self) -> dict[int, Site | None]:
        return {}

    def _find_own_line(self, stack: int) -> Site | None:
        innermost: Site | None = None
        for site in self.frames(stack):
            if site.own:
                return site
            innermost = innermost or site
        return innermost

    def _stack(self, number: int) -> StackRecord | None:
        process: Process | None = self
        while process and process._stacks and number < process._stacks.first:
            process = process.parent
        table = process._stacks if process else None
        return table.get(number) if table else None

    def _find_site(self, number: int) -> Site:
        process: Process | None = self
        while process and process._sites and number < process._sites.first:
            process = process.parent
        table = process._sites if process else None
        record = table.get(number) if table else None
        if record is None or record.file == 0:
            return self._missing("sites", number, UNKNOWN_SITE)
        return Site(self.string(record.file), record.line, self.string(record.function), bool(record.own))

    def _thread(self, number: int, record: ThreadRecord, data: bytes) -> Thread:
        described: DataType = self.log.data["threads"]
        if described.inner is None:
            return Thread(number, record, ())
        size = described.inner.record_bytes
        if record.depth > described.inner_records:
            self.damages.add(f"{self.place}/threads", f"thread {number} says it is in {record.depth} calls")
        count = min(record.depth, described.inner_records)
        table = data[described.inner_offset : described.inner_offset + count * size]
        calls = Unpacker(described.inner, OpenCall).many(table)
        return Thread(number, record, tuple(call for call in calls if call.call))

    def _file(self, name: str) -> DataFile:
        return DataFile(os.path.join(self.directory, name), f"{self.place}/{name}", self.damages)

    def _table(self, name: str, record: type[Record]) -> RecordTable[Record] | None:
        return table_or_none(self._file(name), self.log.data.get(name), self.log.head, record)

    def _missing(self, file: str, number: int, instead: Instead) -> Instead:
        self.damages.add(f"{self.place}/{file}", f"number {number} is not there")
        return instead
