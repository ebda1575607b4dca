"""Copies an experiment as it is at one instant, while its program runs, into an experiment of its own.

The log, the samples and the threads are read first, and tell how far the copy goes. Events that ended later are left
out. What events refer to (strings, sites, stacks) is copied afterwards, so that no number is missing. Of child
processes it says what was known when the experiment was opened: those that began later are not in it.
"""

from __future__ import annotations

import os
import shutil
import time
from collections.abc import Callable, Iterable
from typing import BinaryIO

from interpose.errors import ExperimentError, UsageError
from interpose.experiments.format.blocks import BLOCK_MAGIC, Block, until
from interpose.experiments.format.dynamic import DYNTEXT
from interpose.experiments.format.layout import DataType, Field, Layout, Record
from interpose.experiments.format.records import ChildRecord, ThreadRecord
from interpose.experiments.format.ring import FULL, RingFile
from interpose.experiments.format.sequences import Sequences
from interpose.experiments.format.tables import RecordTable, table_or_none
from interpose.experiments.maintenance.parts import is_part
from interpose.experiments.metadata import names
from interpose.experiments.metadata.control import Control
from interpose.experiments.metadata.endings import CLOSING, LARGEST_LOG_BYTES
from interpose.experiments.model.experiment import Experiment
from interpose.experiments.model.files import DataFile, OpenFile, open_plain
from interpose.experiments.model.process import Process

FIRST = ("overview", "threads", "children", DYNTEXT)
EVENTS = ("events", "events.zst")  # both become one file of plain blocks
LAST = ("stacks", "sites", "strings", names.MAP)
FOLDERS = ("archives",)
_CHUNK_BYTES = 1 << 20

IsRunning = Callable[[Process], bool]


def save(experiment: Experiment, is_running: IsRunning, to: str | None = None) -> str:
    """Copy `experiment`; returns the path of the copy: `to`, or `NAME.save.N.er` beside it.

    Raises OSError if it cannot be made; then nothing of it is left.
    """
    if experiment.founder.lineage:
        raise UsageError(f"{experiment.name}: is a child process; save the experiment that contains it")
    directory, name = os.path.split(os.path.abspath(to or experiment.directory))
    path = names.create(directory, name if to else f"{name.removesuffix(names.SUFFIX)}.save")
    try:
        running = {process.lineage: is_running(process) for process in experiment.processes}
        opened_ns = experiment.opened_ns if any(running.values()) else None
        for process in reversed(experiment.processes):  # the founder last: its log makes the copy one
            _Saver(process, path, running[process.lineage], opened_ns).save()
        _forget_who_watched(path)
        names.age_as_copy(path, experiment.directory)
    except OSError:
        shutil.rmtree(path, ignore_errors=True)
        raise
    return path


def _forget_who_watched(path: str) -> None:
    try:
        Control(Experiment(path).founder).write(monitor=0, paused=0)
    except ExperimentError:
        pass  # of an earlier version, which has no such page


class _Saver:
    """Copies the files of one process into the copy at `path`; an experiment that is still written has processes since
    it was opened."""

    def __init__(self, process: Process, path: str, running: bool, opened_ns: int | None) -> None:
        self._process = process
        self._running = running
        self._opened_ns = opened_ns
        self._to = names.lineage_path(path, process.lineage)

    def save(self) -> None:
        """Copy them all, the log last."""
        if self._process.lineage:
            names.make_private(self._to)
        log = self._read_log()
        for name in FIRST:
            self._copy(name)
        self._leave_out_later_children()
        until_ns = time.clock_gettime_ns(time.CLOCK_MONOTONIC) if self._running else None
        found = self._copy_events(until_ns)
        self._note_overwritten(found)
        for name in LAST:
            self._copy(name)
        self._copy_what_else_there_is()
        with self._create(names.LOG) as file:
            file.write(log if until_ns is None else _with_saved(log, until_ns))

    def _read_log(self) -> bytes:
        with open(open_plain(os.path.join(self._process.directory, names.LOG)), "rb") as file:
            return file.read(LARGEST_LOG_BYTES)

    def _create(self, name: str) -> BinaryIO:
        flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
        descriptor = os.open(os.path.join(self._to, name), flags, 0o600)
        os.fchmod(descriptor, 0o600)
        return open(descriptor, "wb")

    def _copy(self, name: str) -> None:
        process = self._process
        source = DataFile(os.path.join(process.directory, name), f"{process.place}/{name}", process.damages)
        with source.opened_if_there() as file:
            if file is None:
                return
            with self._create(name) as copy:
                _copy_data(file, copy)

    def _copy_events(self, until_ns: int | None) -> int:
        """Copy the blocks, up to the events that had ended at `until_ns`; returns how many events there are."""
        events, found = self._process.events, 0
        if events is None:
            return 0
        is_ring, written = isinstance(events, RingFile), Sequences()
        with self._create(EVENTS[0]) as copy:
            for block in events.newest_first() if isinstance(events, RingFile) else events.blocks_as_written():
                kept = until(block, until_ns, events.layout)
                # Events added to a block after it was read had not ended then, except the last call or so.
                if is_ring or (kept.head.used and written.add(kept.head.sequence)):
                    copy.write(_packed(kept, self._process.log.data["events"]))
                    found += kept.head.used
        return found

    def _leave_out_later_children(self) -> None:
        """Have the copy name no child that began after the experiment was opened, nor an end after that."""
        data = self._process.log.data.get("children")
        if self._opened_ns is None or not os.path.exists(os.path.join(self._to, "children")):
            return
        children = self._copied("children", ChildRecord)
        if children is None or data is None or data.layout is None:
            return
        for number, child, _ in children.all():
            place = data.offset_of(number - children.first)
            for name, time_ns in (("start_ns", child.start_ns), ("end_ns", child.end_ns)):
                if time_ns > self._opened_ns:
                    self._write("children", place, data.layout.fields[name], 0)

    def _note_overwritten(self, found: int) -> None:
        """Have the copy say how many events a ring no longer had when its blocks were read."""
        threads, head = self._copied("threads", ThreadRecord), self._process.log.head
        if not self._process.is_ring or threads is None or head is None:
            return
        gone = max(sum(record.recorded for _, record, _ in threads.all()) - found, 0)
        self._write("threads", 0, head.fields["overwritten"], gone)

    def _copied(self, name: str, record: type[Record]) -> RecordTable[Record] | None:
        """A table of the copy."""
        log = self._process.log
        file = DataFile(os.path.join(self._to, name), f"{self._process.place}/{name}", self._process.damages)
        return table_or_none(file, log.data.get(name), log.head, record)

    def _write(self, name: str, place: int, field: Field, value: int) -> None:
        """Change a number in a file of the copy."""
        with open(open_plain(os.path.join(self._to, name), os.O_RDWR), "r+b") as file:
            file.seek(place + field.offset)
            file.write(value.to_bytes(field.size_bytes, "little"))

    def _copy_what_else_there_is(self) -> None:
        """Notes, labels and similar files, and the files in `FOLDERS`."""
        ours = {names.LOG, ".gitignore", *FIRST, *EVENTS, *LAST}
        for name in _plain_files(self._process.directory):
            if name not in ours and is_part(name):
                self._copy(name)
        for folder in FOLDERS:
            inside = _plain_files(os.path.join(self._process.directory, folder))
            if inside:
                names.make_private(os.path.join(self._to, folder))
            for name in inside:
                if is_part(f"{folder}/{name}"):
                    self._copy(f"{folder}/{name}")


def _plain_files(directory: str) -> list[str]:
    try:
        if os.path.islink(directory):
            return []
        with os.scandir(directory) as entries:
            return [entry.name for entry in entries if entry.is_file(follow_symlinks=False)]
    except FileNotFoundError:
        return []


def _copy_data(file: OpenFile, copy: BinaryIO) -> None:
    """Copy the file's present content; holes stay holes."""
    end = file.size_bytes()
    offset = 0
    while offset < end:
        offset = end if (found := file.next_data(offset)) is None else found
        data = file.read(offset, min(_CHUNK_BYTES, max(end - offset, 0)))
        if not data:
            break
        copy.seek(offset)
        copy.write(data)
        offset += len(data)
    copy.truncate(end)


def _packed(block: Block, data: DataType) -> bytes:
    """The block as written in a file."""
    assert data.inner is not None
    head = block.head._replace(magic=BLOCK_MAGIC, state=block.head.state or FULL)  # compressed, it has neither
    packed = _packed_record(data.inner, head._asdict().items())
    return b"".join((packed, block.events)).ljust(data.block_bytes, b"\0")


def _packed_record(layout: Layout, values: Iterable[tuple[str, int]]) -> bytes:
    record = bytearray(layout.record_bytes)
    for name, value in values:
        if field := layout.fields.get(name):
            record[field.offset : field.end] = value.to_bytes(field.size_bytes, "little")
    return bytes(record)


def _with_saved(log: bytes, time_ns: int) -> bytes:
    """The log, which says that the process still ran at the instant of the copy."""
    before, tag, _ = log.rpartition(CLOSING)
    return before + f'  <event kind="saved" time_ns="{time_ns}"/>\n'.encode() + CLOSING + b"\n" if tag else log
