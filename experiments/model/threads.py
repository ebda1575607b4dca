"""The threads of a process, each with its calls in progress, and what their table says of the whole process."""

from __future__ import annotations

import time
from dataclasses import dataclass
from functools import cached_property

from interpose.experiments.format.layout import DataType, Unpacker
from interpose.experiments.format.records import OpenCall, ThreadRecord
from interpose.experiments.format.tables import RecordTable
from interpose.experiments.model.recorded_files import RecordedFiles

READ_AGAIN_AT_MOST = 20
# So much of a process is kept in memory; programs make more of some, and then the rest is left out, and noted.
THREADS_AT_MOST = 200_000
OPEN_CALLS_AT_MOST = 200_000
COUNTED_AT_MOST = 1 << 50  # no thread makes as many calls in years


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


class RecordedThreads(RecordedFiles):
    """The threads of one process. `threads_read_ns` is when they were read, by the monotonic clock; 0 before that."""

    threads_read_ns = 0

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
        self.threads_read_ns = time.monotonic_ns()
        return found

    def first_thread_ns(self) -> int:
        """The monotonic instant at which the first thread was first seen; 0 if none is known."""
        return min((thread.record.start_ns for thread in self._read_threads()), default=0)

    def _read_threads(self) -> list[Thread]:
        table = self._threads
        if table is None:
            return []
        found, open_calls = [], 0
        for number, record, data in table.bounded(THREADS_AT_MOST):
            if record.start_ns:
                counted = self._plausible(number, record)
                found.append(self._thread(number, counted, data, OPEN_CALLS_AT_MOST - open_calls))
                open_calls += len(found[-1].open_calls)
        return found

    def _plausible(self, number: int, record: ThreadRecord) -> ThreadRecord:
        """The record, without counts that cannot be right; that is noted."""
        if max(record.made, record.recorded, record.dropped, record.passed) <= COUNTED_AT_MOST:
            return record
        self.damages.add(f"{self.place}/threads", f"thread {number}: its counts of calls cannot be right")
        return record._replace(made=0, recorded=0, dropped=0, passed=0)

    @property
    def lost_calls(self) -> int:
        """Calls of threads for which there was no record; 0 if the count cannot be right."""
        lost = self._threads.head.lost if self._threads and self._threads.head else 0
        return lost if lost <= COUNTED_AT_MOST else 0

    @property
    def unrecorded_children(self) -> int:
        """The number of forked processes without an experiment because none could be made."""
        return self._threads.head.unrecorded if self._threads and self._threads.head else 0

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
