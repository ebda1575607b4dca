"""What each program of a process used, as the kernel counted it: by exec one process may run several."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from interpose.analysis.calls.account import latest_instant_ns
from interpose.analysis.recording.life import first_link, links, was_another_unrecorded
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


def waited_for(process: Process) -> Iterator[Child]:
    """The children that the process waited for, whatever program it was then, whose use of resources is known."""
    waiting = [first_link(process)]
    while waiting:
        each = waiting.pop()
        yield from (child for child in each.children if child.is_measured)
        waiting += [other for other in each.descendants if _is_exec(other)]


def whole_of(node: Node) -> Child | None:
    """The starter's record of a process, with all programs that it became by exec and the children that they waited
    for; None if it does not say what the process used."""
    child = node.child
    if child is None or child.record.how == EXEC:
        child = first_link(node.process).started_as
    return child if child and child.is_measured else None


def used_by(node: Node) -> Child | None:
    """The starter's record of a process, with what the process used itself; None if it does not say that.

    What its children used that it waited for is subtracted as far as it is known. If the process became other programs
    by exec, the figures are this program's part. All but the last program counted their part themselves.
    """
    child, process = whole_of(node), node.process
    if child is None:
        return None
    if node.child and node.child.record.how != EXEC:
        return _part(child, child.record, list(_of_followed(node)))
    until = process.overview[-1:]
    if node.child is None and process.became and until:
        return _part(child, until[0], _before(process))
    before = until if node.child else _before(process)
    others = [each.record for each in waited_for(process)]
    return _part(child, child.record, [*before, *others, *_of_earlier(process, child), *_of_followed(node)])


def _before(process: Process) -> list[Overview]:
    """What the process had used before it became this program by exec; none if it never was another.

    What programs used that were not recorded, right before this one, is included."""
    if was_another_unrecorded(process) and process.overview:
        return process.overview[:1]
    before = next((each for each in links(process) if each is not process), None)
    return before.overview[-1:] if before else []


def _of_followed(node: Node) -> Iterator[ChildRecord | Overview]:
    """What the followed processes used that a program that was not followed started, and that ended before it did."""
    for each in node.below if node.child else ():
        if each.is_followed and not each.process.started_as and each.last_ns <= node.last_ns:
            yield from _with_waited_for(each.process)


def _of_earlier(process: Process, whole: Child) -> Iterator[ChildRecord | Overview]:
    """What followed processes used if they ended before this program began, and if the process started them while it
    was another program that was not recorded, such as a shell."""
    first = first_link(process)
    above = [first.starter] if first.starter else []
    for each in (below for link in (*above, *links(process)) for below in link.descendants):
        is_its_child = each.log.ppid == process.log.pid and each.log.has_numbers_of(process.log)
        is_within = whole.record.start_ns <= each.log.start_ns <= latest_instant_ns(each, ()) <= process.log.start_ns
        if is_its_child and is_within and not each.started_as:
            yield from _with_waited_for(each)


def _with_waited_for(process: Process) -> Iterator[ChildRecord | Overview]:
    """What a process without a starter's record used, and what its children did that it waited for."""
    yield from (child.record for child in waited_for(process))
    yield from _last_link(process).overview[-1:]


def _last_link(process: Process) -> Process:
    """The last recorded program that the process became by exec, or itself."""
    while became := next(filter(_is_exec, process.descendants), None):
        process = became
    return process


def _is_exec(process: Process) -> bool:
    return process.started_as is not None and process.started_as.record.how == EXEC


def _part(child: Child, until: ChildRecord | Overview, others: Sequence[ChildRecord | Overview]) -> Child:
    """What `child` had used when `until` was counted, without what `others` used."""
    if until is child.record and not others:
        return child
    parts = {name: _difference([getattr(each, name) for each in (until, *others)]) for name in _COUNTED}
    if isinstance(until, Overview):
        parts["memory_kib"] = until.max_rss_bytes // KIB
    return Child(child.record._replace(**parts), child.command, child.why)


def _difference(figures: Sequence[int]) -> int:
    return max(figures[0] - sum(figures[1:]), 0)
