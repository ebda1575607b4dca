"""What was recorded of one process: its log, its intrinsics, and what the numbers in its events refer to."""

from __future__ import annotations

import os
from collections import defaultdict
from collections.abc import Iterator, Sequence
from functools import cached_property

from interpose.experiments.format import compressed
from interpose.experiments.format.blocks import EventFile
from interpose.experiments.format.children import EXEC, Child, assign
from interpose.experiments.format.compressed import CompressedFile
from interpose.experiments.format.consolidated import NAME as CONSOLIDATED
from interpose.experiments.format.consolidated import Consolidated, Found
from interpose.experiments.format.consolidated import read as read_consolidated
from interpose.experiments.format.dialogue import DIALOGUE, DialogueFile
from interpose.experiments.format.layout import Layout, LayoutError
from interpose.experiments.format.objects import OBJECTS, MappedObject, read_objects
from interpose.experiments.format.records import CountRecord, Overview, TaskRecord
from interpose.experiments.format.ring import RingFile
from interpose.experiments.format.tables import RecordTable
from interpose.experiments.format.trace_contexts import NAME as CONTEXTS
from interpose.experiments.format.trace_contexts import ActiveSpan, TraceContext, read_active_spans, read_contexts
from interpose.experiments.metadata.excluded import read_excluded
from interpose.experiments.model.files import Damages
from interpose.experiments.model.intrinsics import RecordedIntrinsics
from interpose.experiments.model.stacks import RecordedStacks
from interpose.experiments.model.threads import RecordedThreads

# So much of a process is kept in memory; programs make more of some, and then the rest is left out, and noted.
SAMPLES_AT_MOST = 1_000_000
CHILDREN_AT_MOST = 500_000


class Process(RecordedStacks, RecordedThreads, RecordedIntrinsics):
    """One process of an experiment.

    `starter` is the process that started it in any way, and `descendants` are those that it started.
    """

    def __init__(self, directory: str, place: str, lineage: str, damages: Damages) -> None:
        super().__init__(directory, place, damages)
        self.lineage = lineage
        self.starter: Process | None = None
        self.descendants: list[Process] = []
        self.experiment = ""  # its name, where several are read as one
        if not self.log.start_ns:
            self._supply_start()

    def _supply_start(self) -> None:
        """Take the start of the first thread for that of the process, which the log has lost."""
        self.log.start_ns = self.first_thread_ns()
        self.log.is_start_estimated = self.log.start_ns > 0
        instead = "the start of its first thread is used" if self.log.start_ns else "times since its start are unknown"
        self.damages.add(f"{self.place}/log.xml", f"the start of the process is missing; {instead}")

    def files(self) -> Iterator[str]:
        """The files that this process's sites, traced functions and covered code name, each once."""
        seen = {0}
        for name in ("sites", "functions", "covered"):
            table = self.raw_table(name)
            for _, record, _ in table.all() if table else ():
                if record.file not in seen:
                    seen.add(record.file)
                    yield self.string(record.file)

    def mapped_objects(self) -> list[MappedObject]:
        """The load objects that were mapped; none if they were not asked for."""
        return list(read_objects(self._file(OBJECTS))) if self._has(OBJECTS) else []

    @cached_property
    def dialogue(self) -> DialogueFile | None:
        """What its terminals showed and what was typed, if recorded."""
        data = self.log.data.get(DIALOGUE)
        return DialogueFile(self._file(DIALOGUE), data, self.log.head) if data and self._has(DIALOGUE) else None

    @property
    def is_ring(self) -> bool:
        """Whether only the newest events are kept."""
        return self.log.settings.get("INTERPOSE_RING", "off") != "off"

    @cached_property
    def overview(self) -> list[Overview]:
        """The samples of what the process has used, in the order in which they were taken."""
        table = self.raw_table("overview")
        return [record for _, record, _ in table.bounded(SAMPLES_AT_MOST) if record.time_ns] if table else []

    @property
    def counts(self) -> dict[int, int]:
        """How many calls were counted and not timed, by the number of their intrinsic."""
        table = self._counts
        return {number: record.counted for number, record, _ in table.all() if record.counted} if table else {}

    @cached_property
    def _counts(self) -> RecordTable[CountRecord] | None:
        return self.raw_table("counts")

    @cached_property
    def task_names(self) -> dict[int, str]:
        """What tasks are called, by their number; of many, of the newest."""
        records = self._tasks.all() if self._tasks else ()
        return {record.number: self.string(record.name) for _, record, _ in records if record.number}

    @cached_property
    def trace_contexts(self) -> dict[tuple[int, int], TraceContext]:
        """The trace contexts that requests came with, by thread and call."""
        table = self.raw_table(CONTEXTS)
        return read_contexts(table) if table else {}

    @cached_property
    def active_spans(self) -> dict[tuple[int, int], list[ActiveSpan]]:
        """The spans that other tracers had active in transactions, by thread and call."""
        table = self.raw_table(CONTEXTS)
        return read_active_spans(table) if table else {}

    @cached_property
    def _tasks(self) -> RecordTable[TaskRecord] | None:
        return self.raw_table("tasks")

    @cached_property
    def children(self) -> list[Child]:
        """The attempts to start a process, in the order in which they were noted."""
        if not os.path.lexists(os.path.join(self.directory, "children")):
            return []
        table = self.raw_table("children")
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

    def descendants_with(self, pid: int) -> Sequence[Process]:
        """The processes with this number among those that it started."""
        return self._descendants_by_pid.get(pid, ())

    @cached_property
    def _descendants_by_pid(self) -> dict[int, list[Process]]:
        found: dict[int, list[Process]] = defaultdict(list)
        for each in self.descendants:
            found[each.log.pid].append(each)
        return dict(found)

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

    def read_as_of_now(self) -> None:
        """Read the threads now, and from now on only events that ended before, so that a process that still runs is
        seen as it was at one instant."""
        if self.threads and self.events:
            self.events.until_ns = self.threads_read_ns

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
