"""What was sampled of one process from outside: its threads at many instants, each with its Python stack."""

from __future__ import annotations

import os
from collections.abc import Iterator
from functools import cached_property
from itertools import islice

from interpose.experiments.format.records import (
    MemoryRecord,
    SampledCountRecord,
    SampleRecord,
    SiteRecord,
    StackRecord,
)
from interpose.experiments.format.tables import RecordTable, StringTable
from interpose.experiments.model.demangling import demangled
from interpose.experiments.model.process import Process
from interpose.experiments.model.recorded_files import UNKNOWN
from interpose.experiments.model.stacks import DEEPEST_STACK, UNKNOWN_SITE, Site, is_cut, is_of_object

SAMPLES, SITES, STACKS, STRINGS = "samples", "sampled_sites", "sampled_stacks", "sampled_strings"
MEMORY, COUNTS = "sampled_memory", "sampled_counts"
RUNS, WAITS, READY, RECORDS = 1, 2, 3, 4  # states of a sample: READY had no processor, RECORDS began a recorded call
COUNTED, COUNTED_IN_USER_MODE, NOT_COUNTED = 1, 2, 3  # kinds of what was counted
NOT_READ = 2**32 - 1  # the stack of a sample with an unreadable stack
ERRORS = 4096  # numbers of errors are below, those of reasons of our own are not
IN_OTHER_NAMESPACE = 4096
NEVER_NS = 2**64
COLLECTOR = "Python's garbage collector"  # the file and the function of its frame: cext/sampler/collector.c
_KEPT_STACKS = 500_000
MEMORY_AT_MOST = 10_000_000
RECORDS_AT_MOST = 20_000_000  # some 1.2 GiB: the sampler leaves off long before


class Sampled:
    """The samples of `process`, and the stacks that they name; nothing if it was not sampled."""

    def __init__(self, process: Process) -> None:
        self._process = process
        self._sites_seen: dict[int, Site] = {}
        self._stacks_seen: dict[int, StackRecord | None] = {}

    @property
    def is_there(self) -> bool:
        """Whether the process was sampled at all."""
        return self._samples is not None

    @property
    def is_python(self) -> bool:
        """Whether the program is Python: of another one, only native functions are known."""
        return self._process.log.is_python

    @property
    def why_not(self) -> str:
        """Why the process could not be sampled; empty if it was sampled or sampling was not requested."""
        error = self._samples.head.unrecorded if self._samples and self._samples.head else 0
        return os.strerror(error) if 0 < error < ERRORS else ""

    @property
    def is_elsewhere(self) -> bool:
        """Whether it was not sampled because its number is not valid where the monitor is."""
        return bool(self._samples and self._samples.head and self._samples.head.unrecorded == IN_OTHER_NAMESPACE)

    def samples(self, since_ns: int = 0) -> Iterator[SampleRecord]:
        """The samples from `since_ns` on, in the order in which they were taken; a thread's have rising times."""
        records = self._samples.plain() if self._samples else iter(())
        for record in islice(records, RECORDS_AT_MOST):
            if record.last_ns >= since_ns and self._is_of_program(record):
                yield record
        if next(records, None):
            place = f"{self._process.place}/{SAMPLES}"
            self._process.damages.add(place, f"more than {RECORDS_AT_MOST:,} records, the rest was not read")

    def numbered(self) -> Iterator[tuple[int, SampleRecord]]:
        """The samples, each with the number by which others refer to it."""
        for number, record, _ in self._samples.bounded(RECORDS_AT_MOST) if self._samples else ():
            if self._is_of_program(record):
                yield number, record

    def _is_of_program(self, record: SampleRecord) -> bool:
        """Whether the sample is complete, and was taken before the process became another program: the sampler notices
        that only later, and the threads' numbers stay the same."""
        if record.time_ns > record.last_ns:
            self._damaged(SAMPLES, "a sample ends before it begins, left out")
            return False
        return bool(record.time_ns) and record.last_ns <= self._until_ns

    @cached_property
    def _until_ns(self) -> int:
        became = self._process.became
        return became.record.start_ns if became else NEVER_NS

    def memory(self) -> Iterator[MemoryRecord]:
        """How much memory the process had, each time that had changed, in the order of time."""
        table = self._process.table_if_there(MEMORY, MemoryRecord)
        latest_ns = 0
        for record in islice(table.plain(), MEMORY_AT_MOST) if table else ():
            if latest_ns < record.time_ns <= self._until_ns and record.resident_bytes:
                latest_ns = record.time_ns
                yield record

    def counts(self) -> Iterator[tuple[SampledCountRecord, SampleRecord | None]]:
        """What was counted, each with the sample up to which it was; None if there is no such sample."""
        table = self._process.table_if_there(COUNTS, SampledCountRecord)
        for record in islice(table.plain(), RECORDS_AT_MOST) if table else ():
            sample = self._samples.get(record.sample) if record.sample and self._samples else None
            if not sample or sample.last_ns <= self._until_ns:
                yield record, sample if sample and sample.time_ns else None

    def frames(self, stack: int) -> Iterator[Site]:
        """The sites of the stack `stack`, from the innermost outward; none if it is not there. The collector is not
        among them where a `__del__` is: it may have called that."""
        found = self._frames(stack)
        first = next(found, None)
        if first and first.file == COLLECTOR:
            outer = list(found)
            found = iter(outer)
            first = None if any(each.function.endswith("__del__") for each in outer) else first
        if first:
            yield first
        yield from found

    def _frames(self, stack: int) -> Iterator[Site]:
        for _ in range(DEEPEST_STACK):
            record = self._stack(stack)
            if record is None or not record.site:
                self._missing(STACKS, stack if stack != NOT_READ else 0)
                return
            yield self._site(record.site)
            if record.outer >= stack:
                self._damaged(STACKS, f"stack {stack} is called from {record.outer}")
                return
            stack = record.outer

    def is_cut(self, stack: int) -> bool:
        """Whether the stack `stack` was deeper than could be read."""
        return is_cut(stack, self._stack)

    def task_name(self, task: int) -> str:
        """The name of the task or greenlet that a sample names; empty if it names none."""
        return self._string(task) if task else ""

    def _stack(self, number: int) -> StackRecord | None:
        if number in self._stacks_seen:
            return self._stacks_seen[number]
        if len(self._stacks_seen) >= _KEPT_STACKS:
            self._stacks_seen.clear()
        found = self._stacks.get(number) if number and self._stacks else None
        self._stacks_seen[number] = found
        return found

    def _site(self, number: int) -> Site:
        if number not in self._sites_seen:
            record = self._sites.get(number) if self._sites else None
            if not (record and (record.file or record.function)):
                self._missing(SITES, number)
            self._sites_seen[number] = self._named(record) if record else UNKNOWN_SITE
        return self._sites_seen[number]

    def _named(self, record: SiteRecord) -> Site:
        file, function = (self._string(number) for number in (record.file, record.function))
        is_native = not self.is_python or is_of_object(record, file, function)
        name = function if record.line else demangled(function)
        return Site(file, record.line, name, bool(record.own), is_native=is_native)

    def _string(self, number: int) -> str:
        text = self._strings.get(number) if number and self._strings else None
        if text is None:
            self._missing(STRINGS, number)
        return UNKNOWN if text is None else text

    def _missing(self, file: str, number: int) -> None:
        if number:
            self._damaged(file, f"number {number} is not there")

    def _damaged(self, file: str, what: str) -> None:
        self._process.damages.add(f"{self._process.place}/{file}", what)

    @cached_property
    def _samples(self) -> RecordTable[SampleRecord] | None:
        return self._process.table_if_there(SAMPLES, SampleRecord)

    @cached_property
    def _sites(self) -> RecordTable[SiteRecord] | None:
        return self._process.table_if_there(SITES, SiteRecord)

    @cached_property
    def _stacks(self) -> RecordTable[StackRecord] | None:
        return self._process.table_if_there(STACKS, StackRecord)

    @cached_property
    def _strings(self) -> StringTable | None:
        return self._process.strings_if_there(STRINGS)
