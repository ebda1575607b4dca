"""What each program of a process used, as the kernel counted it: by exec one process may run several."""

from __future__ import annotations

from collections.abc import Iterator

from interpose.analysis.recording.lineage import Node
from interpose.experiments.format.children import EXEC, KIB, Child
from interpose.experiments.format.records import ChildRecord, Overview
from interpose.experiments.model.process import Process

# What a starter's record of a process and the process's own samples both have; both count from the process's beginning.
_COUNTED = (
    "cpu_ns",
    "system_ns",
    "minor_faults",
    "major_faults",
    "voluntary_switches",
    "involuntary_switches",
    "in_blocks",
    "out_blocks",
)


def links(process: Process) -> Iterator[Process]:
    """The process, and those that it was before it became this one by exec."""
    yield process
    while process.started_as and process.started_as.record.how == EXEC and process.starter:
        process = process.starter
        yield process


def record_of_number(process: Process) -> ChildRecord | None:
    """The recorded end of that process number, from the process that waited for it."""
    child = _of_number(process)
    return child.record if child else None


def used_by(node: Node) -> Child | None:
    """The starter's record of a process; None if it does not say what the process used.

    If the process became other programs by exec, the figures are this program's part. All but the last program counted
    their part themselves.
    """
    is_later = node.child is not None and node.child.record.how == EXEC
    if node.child and not is_later:
        return node.child if node.child.is_measured else None
    child = _of_number(node.process)
    if child is None:
        return None
    until = _counts(node.process)
    before = until if is_later else _before(node.process)
    if not is_later and node.process.became and until:
        return _part(child, until, before)
    return _part(child, child.record, before) if before else child


def _of_number(process: Process) -> Child | None:
    *_, first = links(process)
    return first.started_as if first.started_as and first.started_as.is_measured else None


def _before(process: Process) -> Overview | None:
    """What the process had used before it became this program by exec; None if this is its first recorded program.

    Programs that were not recorded may have run since the previous recorded one. What they used is included."""
    before = next((each for each in links(process) if each is not process), None)
    if before and process.started_as and process.started_as.why and process.overview:
        return process.overview[0]
    return _counts(before) if before else None


def _counts(process: Process) -> Overview | None:
    return process.overview[-1] if process.overview else None


def _part(child: Child, until: ChildRecord | Overview, before: Overview | None) -> Child:
    """Of what `child` used in all, what it did from `before` `until` this was counted."""
    parts = {name: max(getattr(until, name) - getattr(before, name, 0), 0) for name in _COUNTED}
    if isinstance(until, Overview):
        parts["memory_kib"] = until.max_rss_bytes // KIB
    return Child(child.record._replace(**parts), child.command, child.why)
