"""The control page: what a program and those outside it tell each other while it runs, in the head of `threads`."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterator
from typing import NamedTuple

from interpose.errors import ExperimentError
from interpose.experiments.format.layout import LARGEST_BLOCK_BYTES, Unpacker
from interpose.experiments.metadata.endings import held
from interpose.experiments.model.experiment import Experiment
from interpose.experiments.model.files import open_plain
from interpose.experiments.model.process import Process


class ControlRecord(NamedTuple):
    """What the page says."""

    pool_bytes: int
    limit_bytes: int
    taken_bytes: int
    drained_bytes: int
    full_waits: int
    full_wait_ns: int
    full_drops: int
    emptied_after_full: int
    monitor_ns: int
    paused: int
    samples_wanted: int
    trigger_ns: int
    triggers: int
    trigger_process: int
    monitor: int
    most_bytes: int
    filter_changes: int
    filter_passed: int
    reserve_bytes: int
    other_bytes: int

    @property
    def in_use_bytes(self) -> int:
        """What the pool contains: taken and not given back. Negative if the page is inconsistent."""
        return self.taken_bytes - self.drained_bytes


def control_of(experiment: Experiment) -> ControlRecord | None:
    """What the page of `experiment` says now; None if there is none or it cannot be read."""
    try:
        return Control(experiment.founder).read()
    except ExperimentError:
        return None


class Control:
    """The control page of the experiment with the founder `process`. Raises ExperimentError if it has none."""

    def __init__(self, process: Process) -> None:
        layout = process.log.control
        self.place = f"{process.place}/threads"
        if layout is None:
            raise ExperimentError(f"{self.place}: has no control page; it was recorded by an earlier version")
        if process.log.control_offset + layout.record_bytes > LARGEST_BLOCK_BYTES:
            raise ExperimentError(f"{self.place}: invalid position of the control page: {process.log.control_offset}")
        self._path = os.path.join(process.directory, "threads")
        self._layout = layout
        self._offset = process.log.control_offset
        self._unpack = Unpacker(layout, ControlRecord)

    def read(self) -> ControlRecord:
        """What the page says now."""
        descriptor = self._open(os.O_RDONLY)
        try:
            data = os.pread(descriptor, self._layout.record_bytes, self._offset)
        finally:
            os.close(descriptor)
        if len(data) < self._layout.record_bytes:
            raise ExperimentError(f"{self.place}: cut short")
        return self._unpack.one(data)

    def write(self, **values: int) -> None:
        """Write `values` into the fields with these names, each as a whole; nobody else writes it.

        Raises ExperimentError, also if the page has no such fields.
        """
        if any(name not in self._layout.fields for name in values):
            raise ExperimentError(f"{self.place}: its control page has another format")
        descriptor = self._open(os.O_RDWR)
        try:
            for name, value in values.items():
                field = self._layout.fields[name]
                data = value.to_bytes(8, "little")[: field.size_bytes]
                os.pwrite(descriptor, data, self._offset + field.offset)
        finally:
            os.close(descriptor)

    def want_sample(self) -> None:
        """Have each process take a sample of its overview with its next call."""
        self.write(samples_wanted=(self.read().samples_wanted + 1) & 0xFFFF_FFFF)

    def ask_for_filter(self) -> None:
        """Have each process read the experiment's filter with its next call, which counts from there."""
        page = self.read()
        self.write(filter_passed=0, filter_changes=(page.filter_changes + 1) & 0xFFFF_FFFF)
        self.want_sample()  # by which the processes see that there is a request

    @contextlib.contextmanager
    def held(self) -> Iterator[None]:
        """Hold the page, so that nobody else writes a request in between."""
        descriptor = self._open(os.O_RDONLY)
        try:
            with held(descriptor):
                yield
        finally:
            os.close(descriptor)

    def _open(self, mode: int) -> int:
        try:
            return open_plain(self._path, mode)
        except OSError as error:
            raise ExperimentError(f"{self.place}: {error.strerror}") from error
