"""The figures of a recording itself, not of the program: what was made, kept and lost, and the use of the pool.

The groups and most names are those of the Natural Profiler's statistics.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from typing import NamedTuple

from interpose.analysis.recording.ending import is_running
from interpose.experiments.metadata.control import ControlRecord, control_of
from interpose.experiments.metadata.pauses import pauses_of
from interpose.experiments.model.experiment import Experiment
from interpose.experiments.model.process import Process

SESSION, POOL, STORAGE, TRIGGERS = "session", "data pool", "storage", "triggers"
DISK_BLOCK_BYTES = 512  # in which stat(2) counts
COMPRESSED = "events.zst"


class Statistic(NamedTuple):
    """A figure: its group, its name, and its value in `unit` (`bytes`, `ns`, or empty for a count).

    The value is None if the experiment does not have it.
    """

    group: str
    name: str
    value: int | None
    unit: str = ""


def statistics(experiment: Experiment) -> Iterator[Statistic]:
    """The figures of `experiment`, group by group."""
    page = control_of(experiment)
    yield from _of_session(experiment)
    if page is not None:
        yield from _of_pool(page, any(is_running(process) for process in experiment.processes))
    yield from _of_storage(experiment)
    if page is not None:
        yield Statistic(TRIGGERS, "triggers fired", page.triggers)


def _of_session(experiment: Experiment) -> Iterator[Statistic]:
    records = [thread.record for process in experiment.processes for thread in process.threads]
    own_ns = sum(record.own_wall_ns for record in records)
    lost = sum(process.lost_calls for process in experiment.processes)
    unrecorded = sum(process.unrecorded_children for process in experiment.processes)
    yield Statistic(SESSION, "processes", len(experiment.processes))
    yield Statistic(SESSION, "processes not recorded", unrecorded)
    yield Statistic(SESSION, "threads", len(records))
    yield Statistic(SESSION, "events made", sum(record.made for record in records) + lost)
    yield Statistic(SESSION, "events recorded", sum(record.recorded for record in records))
    yield Statistic(SESSION, "events dropped", sum(record.dropped for record in records) + lost)
    yield Statistic(SESSION, "uncontended calls", sum(record.passed for record in records))
    yield Statistic(SESSION, "fetches combined", sum(record.gathered for record in records))
    yield Statistic(SESSION, "overhead measured", own_ns, "ns")
    yield Statistic(SESSION, "pauses", len(pauses_of(experiment)))


def _of_pool(page: ControlRecord, running: bool) -> Iterator[Statistic]:
    yield Statistic(POOL, "pool size", page.pool_bytes or None, "bytes")
    yield Statistic(POOL, "limit", page.limit_bytes or None, "bytes")
    yield Statistic(POOL, "taken in all", page.taken_bytes, "bytes")
    yield Statistic(POOL, "in use", page.in_use_bytes, "bytes")
    yield Statistic(POOL, "largest in use", page.most_bytes, "bytes")
    yield Statistic(POOL, "waits because full", page.full_waits)
    yield Statistic(POOL, "time waited because full", page.full_wait_ns, "ns")
    yield Statistic(POOL, "events dropped because full", page.full_drops)
    yield Statistic(POOL, "data pool empty after full", page.emptied_after_full)
    yield Statistic(POOL, "monitor's process", (page.monitor or None) if running else None)
    yield Statistic(POOL, "paused now", int(bool(page.paused)) if running else None)


def _of_storage(experiment: Experiment) -> Iterator[Statistic]:
    blocks = sum(_blocks(process) for process in experiment.processes)
    made_bytes = sum(_raw_bytes(process) for process in experiment.processes)
    plain_bytes = sum(_disk_bytes(process, "events") for process in experiment.processes)
    compressed_bytes = sum(_disk_bytes(process, COMPRESSED) for process in experiment.processes)
    yield Statistic(STORAGE, "blocks", blocks)
    yield Statistic(STORAGE, "records", made_bytes, "bytes")
    yield Statistic(STORAGE, "on disk, as recorded", plain_bytes, "bytes")
    yield Statistic(STORAGE, "on disk, compressed", compressed_bytes or None, "bytes")
    if compressed_bytes and made_bytes:
        yield Statistic(STORAGE, "on disk of the records", 100 * (plain_bytes + compressed_bytes) // made_bytes, "%")


def _blocks(process: Process) -> int:
    return sum(1 for _ in process.events.heads()) if process.events else 0


def _raw_bytes(process: Process) -> int:
    """What the recorded events take before anything is compressed."""
    if process.events is None:
        return 0
    return process.events.layout.record_bytes * sum(thread.record.recorded for thread in process.threads)


def _disk_bytes(process: Process, name: str) -> int:
    """What a file takes of the disk, its holes left out; 0 if it is not there."""
    try:
        found = os.stat(os.path.join(process.directory, name), follow_symlinks=False)
    except OSError:
        return 0
    return found.st_blocks * DISK_BLOCK_BYTES
