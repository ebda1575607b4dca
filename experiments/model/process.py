"""What was recorded of one process: its log, its intrinsics, and what the numbers in its events refer to."""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import Any, NamedTuple, TypeVar

from interpose.experiments.format import compressed
from interpose.experiments.format.blocks import EventFile
from interpose.experiments.format.children import EXEC, Child, assign
from interpose.experiments.format.compressed import CompressedFile
from interpose.experiments.format.consolidated import NAME as CONSOLIDATED
from interpose.experiments.format.consolidated import OTHER, Consolidated, Found
from interpose.experiments.format.consolidated import read as read_consolidated
from interpose.experiments.format.dialogue import DIALOGUE, DialogueFile
from interpose.experiments.format.dynamic import DYNTEXT, read_dynamic
from interpose.experiments.format.layout import DataType, Layout, LayoutError, Record, Unpacker
from interpose.experiments.format.objects import OBJECTS, MappedObject, read_objects
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
    OpenCall,
    Overview,
    PlaceRecord,
    SiteRecord,
    StackRecord,
    TaskRecord,
    ThreadRecord,
    TraceRecord,
)
from interpose.experiments.format.ring import RingFile
from interpose.experiments.format.tables import RecordTable, StringTable, table_or_none
from interpose.experiments.format.trace_contexts import NAME as CONTEXTS
from interpose.experiments.format.trace_contexts import ActiveSpan, TraceContext, read_active_spans, read_contexts
from interpose.experiments.metadata.excluded import read_excluded
from interpose.experiments.metadata.log import Log, read_log
from interpose.experiments.metadata.map import (
    Collector,
    Failure,
    Intrinsic,
    Library,
    read_collectors,
    read_libraries,
    read_map,
)
from interpose.experiments.model.files import Damages, DataFile

UNKNOWN = "?"
# Why an intrinsic is not interposed, as the shims say it, where that is as it should be.
EXPECTED = ("this Python has no such name", "not asked for")
UNKNOWN_INTRINSIC = Intrinsic(UNKNOWN, UNKNOWN)
DEEPEST_STACK = 10_000
READ_AGAIN_AT_MOST = 20
# So much of a process is kept in memory; programs make more of some, and then the rest is left out, and noted.
THREADS_AT_MOST = 200_000
OPEN_CALLS_AT_MOST = 200_000
SAMPLES_AT_MOST = 1_000_000
CHILDREN_AT_MOST = 500_000
_KEPT_STACKS = 64 * 1024

Instead = TypeVar("Instead")


@dataclass(frozen=True)
class Site:
    """A line of the program's code. `own` if it belongs neither to the standard library nor to an installed package.

    For code in an interpreter other than the main one, `function` names the interpreter.

    If a data collector named it, `collector` is that collector; the file is then the module, the function the section,
    and the line the statement.
    """

    file: str
    line: int
    function: str
    own: bool
    collector: str = ""

    @property
    def is_native(self) -> bool:
        """Whether it is native code: then `file` is a shared object or program, and `function` a symbol or its name."""
        is_object = _SHARED_OBJECT.search(self.file) or self.file.rpartition("/")[2] == self.function
        return not self.line and bool(is_object)


_SHARED_OBJECT = re.compile(r"\.so(?:\.[\w.]+)?$")
_SITE_MODULE = "<frozen site>"
_FROZEN = "<frozen "  # what the name of a module begins with that has no file
UNKNOWN_SITE = Site(UNKNOWN, 0, UNKNOWN, False)


@dataclass(frozen=True)
class Thread:
    """A thread: its number, what its record says, and its calls in progress from the outermost on."""

    number: int
    record: ThreadRecord
    open_calls: tuple[OpenCall, ...]

    @property
    def adds_up(self) -> bool:
        """Whether every call that was made is recorded, dropped or in progress."""
        counted = self.record.recorded + self.record.dropped + len(self.open_calls)
        return self.record.made == counted


class _Traits(NamedTuple):
    """What is asked of all frames of a stack: its innermost site, the innermost of the program's own code, and whether
    all of it is built in, or some is of the interpreter's module `site`."""

    innermost: Site | None = None
    own: Site | None = None
    is_built_in: bool = True
    has_site_module: bool = False

    def around(self, site: Site) -> _Traits:
        """The traits of the stack in which this one called `site`."""
        return _Traits(
            site,
            site if site.own else self.own,
            self.is_built_in and site.file.startswith(_FROZEN),
            self.has_site_module or site.file == _SITE_MODULE,
        )


_NO_FRAMES = _Traits()


class Process:
    """One process of an experiment.

    `parent` is the process that forked it; they share numbers. `starter` is the process that started it in any way, and
    `descendants` are those that it started.
    """

    def __init__(self, directory: str, place: str, lineage: str, damages: Damages) -> None:
        self.directory = directory
        self.place = place
        self.lineage = lineage
        self.damages = damages
        self.parent: Process | None = None
        self.starter: Process | None = None
        self.descendants: list[Process] = []
        self.experiment = ""  # its name, where several are read as one
        self.log: Log = read_log(os.path.join(directory, "log.xml"), f"{place}/log.xml", damages)

    def string(self, number: int) -> str:
        """The string `number`; empty for 0, `(other)` for many details in one, `?` if it is not there."""
        if number in (0, OTHER):
            return "(other)" if number else ""
        process: Process | None = self
        while process and process._strings and number < process._strings.first:
            process = process.parent
        table = process._strings if process else None
        text = table.get(number) if table else None
        return self._missing("strings", number, UNKNOWN) if text is None else text

    def intrinsic(self, number: int) -> Intrinsic:
        """The intrinsic `number`, as this process or those that forked it name it; `?` if none does."""
        process: Process | None = self
        while process:
            if number in process._intrinsics:
                return process._intrinsics[number]
            process = process.parent
        return self._missing("map.xml", number, UNKNOWN_INTRINSIC)

    def numbered_intrinsics(self) -> dict[int, Intrinsic]:
        """All intrinsics by number, as this process or those that forked it name them."""
        found: dict[int, Intrinsic] = {}
        process: Process | None = self
        while process:
            found = {**process._intrinsics, **found}
            process = process.parent
        return found

    @property
    def not_interposed(self) -> dict[str, str]:
        """Why an intrinsic was not interposed although it is there, by its name."""
        found = self._intrinsics.values()
        return {each.name: each.why_not for each in found if each.why_not not in ("", *EXPECTED)}

    @property
    def intrinsics(self) -> Iterable[Intrinsic]:
        """What this process itself names."""
        return self._intrinsics.values()

    @cached_property
    def _libraries_and_failures(self) -> tuple[list[Library], list[Failure]]:
        return read_libraries(os.path.join(self.directory, "map.xml"))

    @property
    def libraries(self) -> list[Library]:
        """The libraries other than the system library that were found."""
        return self._libraries_and_failures[0]

    @cached_property
    def collectors(self) -> list[Collector]:
        """The data collectors that were used."""
        return read_collectors(os.path.join(self.directory, "map.xml"))

    @property
    def failures(self) -> list[Failure]:
        """What failed in their wrappers."""
        return self._libraries_and_failures[1]

    def frames(self, stack: int) -> Iterator[Site]:
        """The sites of the stack `stack`, from the innermost outward; none if it is not there."""
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

    def is_cut(self, stack: int) -> bool:
        """Whether the stack `stack` was deeper than could be recorded."""
        for _ in range(DEEPEST_STACK):
            record = self._stack(stack) if stack else None
            if record is None or record.cut or record.outer >= stack:
                return record is not None and bool(record.cut)
            stack = record.outer
        return True

    def own_line(self, stack: int) -> Site | None:
        """The first site of the program's own code, going outward; else the innermost, if any."""
        found = self._traits_of(stack)
        return found.own or found.innermost

    def is_start_up(self, stack: int) -> bool:
        """Whether calls from that site belong to the interpreter's own start, before the program's first line: from its
        module `site` and what that runs, or from built-in code that looks for the program."""
        found = self._traits_of(stack)
        return found.innermost is not None and (found.is_built_in or (found.has_site_module and not found.own))

    def site(self, number: int) -> Site:
        """The site `number`; one with `?` if it is not there."""
        if number not in self._sites_seen:
            self._sites_seen[number] = self._find_site(number)
        return self._sites_seen[number]

    def files(self) -> Iterator[str]:
        """The files that this process's sites, traced functions and covered code name, each once."""
        seen = {0}
        for name in ("sites", "functions", "covered"):
            table = self.raw_table(name)
            for _, record, _ in table.all() if table else ():
                if record.file not in seen:
                    seen.add(record.file)
                    yield self.string(record.file)

    def roots(self) -> list[str]:
        """The directories that the process imported from, those of the processes that forked it included."""
        return [*self.log.roots, *(self.parent.roots() if self.parent else ())]

    def dynamic_text(self, file: str) -> str | None:
        """The text of code without a file, as this process or those that forked it saw it; None if unknown."""
        process: Process | None = self
        while process:
            if file in process._dynamic:
                return process._dynamic[file]
            process = process.parent
        return None

    def dynamic_texts(self) -> dict[str, str]:
        """All texts of code without a file, by name, that this process itself saw."""
        return self._dynamic

    def strings(self) -> Iterator[tuple[int, str]]:
        """Number and text of each string of this process's own."""
        return self._strings.all() if self._strings else iter(())

    def raw_table(self, name: str) -> RecordTable[Any] | None:
        """The records of the file `name`."""
        tables: dict[str, RecordTable[Any] | None] = {
            "sites": self._sites,
            "stacks": self._stacks,
            "threads": self._threads,
            "children": self._table("children", ChildRecord) if self._has("children") else None,
            "counts": self._counts,
            "tasks": self._tasks,
            CONTEXTS: self.table_if_there(CONTEXTS, ContextRecord),
        }
        traced: dict[str, type[Any]] = {
            "traces": TraceRecord,
            "functions": FunctionRecord,
            "lines": LineRecord,
            "loops": LoopRecord,
            "covered": CoveredRecord,
            "places": PlaceRecord,
            "branches": BranchRecord,
            "heap": HeapRecord,
            "heap_sites": HeapSiteRecord,
        }
        if name in traced:
            return self._table(name, traced[name]) if self._has(name) else None
        return tables[name] if name in tables else self._table(name, Overview)

    def mapped_objects(self) -> list[MappedObject]:
        """The load objects that were mapped; none if they were not asked for."""
        return list(read_objects(self._file(OBJECTS))) if self._has(OBJECTS) else []

    @cached_property
    def dialogue(self) -> DialogueFile | None:
        """What its terminals showed and what was typed, if recorded."""
        data = self.log.data.get(DIALOGUE)
        return DialogueFile(self._file(DIALOGUE), data, self.log.head) if data and self._has(DIALOGUE) else None

    @cached_property
    def threads(self) -> list[Thread]:
        """The threads, in the order in which they were first seen, each as it was at one instant.

        While a thread runs, its record may be read in the middle of a change: then it is read again.
        """
        found = self._read_threads()
        for _ in range(READ_AGAIN_AT_MOST):
            if all(thread.adds_up for thread in found):
                break
            again = self._read_threads()
            if again == found:
                break  # it was killed in the middle
            found = [old if old.adds_up else new for old, new in zip(found, again, strict=False)]
        return found

    def _read_threads(self) -> list[Thread]:
        table = self._threads
        if table is None:
            return []
        found, open_calls = [], 0
        for number, record, data in table.bounded(THREADS_AT_MOST):
            if record.start_ns:
                found.append(self._thread(number, record, data, OPEN_CALLS_AT_MOST - open_calls))
                open_calls += len(found[-1].open_calls)
        return found

    @property
    def lost_calls(self) -> int:
        """Calls of threads for which there was no record."""
        return self._threads.head.lost if self._threads and self._threads.head else 0

    @property
    def unrecorded_children(self) -> int:
        """The number of forked processes without an experiment because none could be made."""
        return self._threads.head.unrecorded if self._threads and self._threads.head else 0

    @property
    def details_left_out(self) -> int:
        """The number of details that became `(other)` because there was no room for more texts."""
        return self._strings.left_out if self._strings else 0

    @property
    def is_ring(self) -> bool:
        """Whether only the newest events are kept."""
        return self.log.settings.get("INTERPOSE_RING", "off") != "off"

    @property
    def overwritten(self) -> int:
        """Events that gave way to newer ones."""
        return self._threads.head.overwritten if self._threads and self._threads.head else 0

    @property
    def taken_bytes(self) -> int:
        """What the process has taken of the pool, given back or not."""
        return self._threads.head.taken_bytes if self._threads and self._threads.head else 0

    @cached_property
    def _threads(self) -> RecordTable[ThreadRecord] | None:
        return self._table("threads", ThreadRecord)

    @cached_property
    def overview(self) -> list[Overview]:
        """The samples of what the process has used, in the order in which they were taken."""
        table = self._table("overview", Overview)
        return [record for _, record, _ in table.bounded(SAMPLES_AT_MOST) if record.time_ns] if table else []

    @property
    def counts(self) -> dict[int, int]:
        """How many calls were counted and not timed, by the number of their intrinsic."""
        table = self._counts
        return {number: record.counted for number, record, _ in table.all() if record.counted} if table else {}

    @cached_property
    def _counts(self) -> RecordTable[CountRecord] | None:
        return self._table("counts", CountRecord) if self._has("counts") else None

    @cached_property
    def task_names(self) -> dict[int, str]:
        """What tasks are called, by their number; of many, of the newest."""
        records = self._tasks.all() if self._tasks else ()
        return {record.number: self.string(record.name) for _, record, _ in records if record.number}

    @cached_property
    def trace_contexts(self) -> dict[tuple[int, int], TraceContext]:
        """The trace contexts that requests came with, by thread and call."""
        table = self.table_if_there(CONTEXTS, ContextRecord)
        return read_contexts(table) if table else {}

    @cached_property
    def active_spans(self) -> dict[tuple[int, int], list[ActiveSpan]]:
        """The spans that other tracers had active in transactions, by thread and call."""
        table = self.table_if_there(CONTEXTS, ContextRecord)
        return read_active_spans(table) if table else {}

    @cached_property
    def _tasks(self) -> RecordTable[TaskRecord] | None:
        return self._table("tasks", TaskRecord) if self._has("tasks") else None

    @cached_property
    def children(self) -> list[Child]:
        """The attempts to start a process, in the order in which they were noted."""
        if not os.path.lexists(os.path.join(self.directory, "children")):
            return []
        table = self._table("children", ChildRecord)
        kept = table.bounded(CHILDREN_AT_MOST) if table else ()
        records = [record for _, record, _ in kept if record.start_ns]
        return [Child(each, self.string(each.command), self.string(each.why)) for each in records]

    @cached_property
    def started_as(self) -> Child | None:
        """The attempt that this process came from, as its starter noted it."""
        return self.starter._assigned.get(self.lineage) if self.starter else None

    @cached_property
    def became(self) -> Child | None:
        """The exec by which the process became another program, if it did."""
        execs = [child for child in self.children if child.record.how == EXEC and not child.record.error]
        return execs[-1] if execs else None

    @cached_property
    def not_followed(self) -> list[Child]:
        """The processes that were started and have no experiment of their own."""
        followed = {child.record for child in self._assigned.values()}
        return [child for child in self.children if not child.record.error and child.record not in followed]

    @cached_property
    def excluded(self) -> frozenset[int]:
        """The numbers of the processes, of the whole experiment, that were excluded from recording."""
        return read_excluded(os.path.dirname(self.directory) if self.lineage else self.directory)

    @cached_property
    def _assigned(self) -> dict[str, Child]:
        return assign(self.children, self.descendants)

    @cached_property
    def consolidated(self) -> tuple[Consolidated, list[Found]] | None:
        """The consolidated records that are kept of it, if any."""
        return read_consolidated(self._file(CONSOLIDATED)) if self._has(CONSOLIDATED) else None

    def stamp_of_consolidated(self) -> tuple[int, int] | None:
        """What differs when other records are kept; None if none are."""
        try:
            found = os.lstat(os.path.join(self.directory, CONSOLIDATED))
        except OSError:
            return None
        return found.st_ino, found.st_mtime_ns

    def forget_consolidated(self) -> None:
        """Have the records be read again."""
        self.__dict__.pop("consolidated", None)

    @cached_property
    def events(self) -> EventFile | None:
        """The events, or None if log.xml does not describe them."""
        data = self.log.data.get("events")
        file = self._file("events")
        if data is None or data.layout is None or data.inner is None:
            file.damaged("not described in log.xml")
            return None
        if self.is_ring:
            return RingFile(file, data)
        return EventFile(file, data, self._compressed(data.layout))

    def _compressed(self, events: Layout) -> CompressedFile | None:
        """The compressed events, which no experiment before version 3 has."""
        data, file = self.log.data.get(compressed.NAME), self._file(compressed.NAME)
        if data is None:
            return None
        try:
            return CompressedFile(file, data, events)
        except LayoutError as error:
            self.damages.add(f"{self.place}/log.xml", str(error))
            return None

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
    def _dynamic(self) -> dict[str, str]:
        return read_dynamic(self._file(DYNTEXT), self.string) if self._has(DYNTEXT) else {}

    @cached_property
    def _sites_seen(self) -> dict[int, Site]:
        return {}

    @cached_property
    def _stacks_seen(self) -> dict[int, StackRecord]:
        return {}

    @cached_property
    def _traits(self) -> dict[int, _Traits]:
        return {}

    def _traits_of(self, stack: int) -> _Traits:
        """What all frames of a stack say together; stacks share their outer parts, which are looked at once."""
        if (known := self._traits.get(stack)) is not None:
            return known
        inner: list[tuple[int, int]] = []
        while stack and stack not in self._traits and len(inner) < DEEPEST_STACK:
            record = self._stack(stack)
            if record is None:
                self._missing("stacks", stack, None)
                stack = 0
                break
            inner.append((stack, record.site))
            if record.outer >= stack:
                self.damages.add(f"{self.place}/stacks", f"stack {stack} is called from {record.outer}")
            stack = record.outer if record.outer < stack else 0
        found = self._traits.get(stack, _NO_FRAMES)
        for number, site in reversed(inner):
            found = self._traits[number] = found.around(self.site(site))
        return found

    def _stack(self, number: int) -> StackRecord | None:
        if number not in self._stacks_seen:
            found = self._find_stack(number)
            if found is None or not found.site:  # it may still be written
                return found
            if len(self._stacks_seen) >= _KEPT_STACKS:
                self._stacks_seen.clear()
            self._stacks_seen[number] = found
        return self._stacks_seen[number]

    def _find_stack(self, number: int) -> StackRecord | None:
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
        file, function, named_by = map(self.string, (record.file, record.function, record.collector))
        if record.interpreter:
            function += f" (interpreter {record.interpreter})"
        return Site(file, record.line, function, bool(record.own), named_by)

    def _thread(self, number: int, record: ThreadRecord, data: bytes, room: int) -> Thread:
        described: DataType = self.log.data["threads"]
        if described.inner is None:
            return Thread(number, record, ())
        size = described.inner.record_bytes
        if record.depth > described.inner_records:
            self.damages.add(f"{self.place}/threads", f"thread {number} says it is in {record.depth} calls")
        count = min(record.depth, described.inner_records)
        if count > room:
            self.damages.add(f"{self.place}/threads", f"more than {OPEN_CALLS_AT_MOST:,} calls in progress")
            count = 0
        table = data[described.inner_offset : described.inner_offset + count * size]
        calls = Unpacker(described.inner, OpenCall).many(table)
        return Thread(number, record, tuple(call for call in calls if call.call))

    def _has(self, name: str) -> bool:
        return os.path.lexists(os.path.join(self.directory, name))

    def _file(self, name: str) -> DataFile:
        return DataFile(os.path.join(self.directory, name), f"{self.place}/{name}", self.damages)

    def table_if_there(self, name: str, record: type[Record]) -> RecordTable[Record] | None:
        """The table in the file `name`; None if the process has none."""
        return self._table(name, record) if self._has(name) else None

    def strings_if_there(self, name: str) -> StringTable | None:
        """The strings in the file `name`; None if the process has none, or log.xml does not describe it."""
        data = self.log.data.get(name)
        return StringTable(self._file(name), data, self.log.head) if data and self._has(name) else None

    def _table(self, name: str, record: type[Record]) -> RecordTable[Record] | None:
        return table_or_none(self._file(name), self.log.data.get(name), self.log.head, record)

    def _missing(self, file: str, number: int, instead: Instead) -> Instead:
        self.damages.add(f"{self.place}/{file}", f"number {number} is not there")
        return instead
