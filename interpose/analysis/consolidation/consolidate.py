"""From events to consolidated records: the plain consolidator, which is the reference, or the compiled one."""

from __future__ import annotations

import copy
from collections.abc import Mapping, Sequence
from typing import Protocol

from interpose.analysis.calls.selection import Selection
from interpose.analysis.consolidation.plain_consolidator import NOTHING, PlainConsolidator
from interpose.analysis.consolidation.records import Records
from interpose.analysis.consolidation.sums import (
    DETAILS_AT_MOST,
    FIGURES,
    RECORDS_AT_MOST,
    WAITING_AT_MOST,
)
from interpose.analysis.transactions.in_progress import unended_of
from interpose.analysis.transactions.tracking import OPEN, Tracker, roles_of
from interpose.errors import UsageError
from interpose.experiments.format.consolidated import Consolidated, Found
from interpose.experiments.format.layout import Bytes, Layout
from interpose.experiments.model.process import Process
from interpose.experiments.model.threads import READ_AGAIN_AT_MOST


class Consolidator(Protocol):
    """Combines like events, in memory bounded by the number of different records.

    A thread's events must come in the order of their ends, so a call comes after those inside it, which wait for it. If
    it never comes (it is in progress, or was lost), they count as outermost. So do all that still wait if more than
    `waiting_at_most` calls are waited for, which no program reaches. Beyond `records_at_most` records, everything new
    goes into one.

    At most `details_at_most` records have a detail or a name of a transaction that is one. If one more comes, a quarter
    of them is kept for their calls and a quarter for their wall time. The others get the same detail, OTHER, and are
    combined by their other fields: no count and no time is lost. A detail that comes again later gets a record again,
    which counts as if it had as much as was enough to be kept. So anything with more than the 2,500th part of all (for
    20,000 records) is kept, and lacks at most that much, which is in the record OTHER beside it.

    With a `tracker` and the `roles` of intrinsics, outermost calls are put under their transaction.
    """

    def __init__(
        self,
        layout: Layout,
        by: tuple[str, ...],
        histograms: bool = False,
        tracker: Tracker | None = None,
        roles: Mapping[int, int] | None = None,
        waiting_at_most: int = WAITING_AT_MOST,
        records_at_most: int = RECORDS_AT_MOST,
        slowest_at_most: int = 0,
        details_at_most: int = DETAILS_AT_MOST,
    ) -> None: ...

    @property
    def is_full(self) -> bool:
        """Whether there were more different records than are kept."""

    def add(self, events: Bytes) -> None:
        """Add each event in `events`, which must be whole records of possible events."""

    def know(self, roles: Mapping[int, int]) -> None:
        """What the calls of more intrinsics mean for transactions."""

    def copied(self) -> Consolidator:
        """A copy to which nothing is added: its records are what is known so far."""

    def records(self) -> list[Found]:
        """The records, each behind the one around it; nothing can be added any more."""

    def slowest(self) -> list[bytes]:
        """The records of the slowest events that did not wait for new work, as they came, the slowest first."""


def fastest_consolidator() -> type[Consolidator]:
    """The compiled consolidator, or the plain one where nothing is compiled."""
    try:
        from interpose.analysis.consolidation.consolidator import CompiledConsolidator
    except ImportError:
        return PlainConsolidator
    return CompiledConsolidator


def consolidated(
    process: Process,
    by: tuple[str, ...],
    consolidator: type[Consolidator] | None = None,
    selection: Selection | None = None,
    histograms: bool = False,
    tracker: Tracker | None = None,
) -> Records:
    """The records of the calls of `process` by the fields `by`, from its events and from its consolidated records.

    With a `selection`, only of the events that it selects. What cannot be read is noted. Raises UsageError if this
    needs events, or fields of them, that were not kept.
    """
    for _ in range(READ_AGAIN_AT_MOST):
        stamp = process.stamp_of_consolidated()
        records = _once(process, by, consolidator, selection, histograms, copy.deepcopy(tracker))
        if process.stamp_of_consolidated() == stamp:
            break
        process.forget_consolidated()  # what was among the events has moved there
    return records


def follow(process: Process, tracker: Tracker) -> None:
    """Let `tracker` follow the transactions of `process`, if its events were kept."""
    _from_events(process, ("thread", "intrinsic"), None, None, False, tracker, None)


def _once(
    process: Process,
    by: tuple[str, ...],
    consolidator: type[Consolidator] | None,
    selection: Selection | None,
    histograms: bool,
    tracker: Tracker | None,
) -> Records:
    kept = process.consolidated
    if kept and (selection or set(by) - set(kept[0].by)) and _has_events_of(process, kept[0]):
        kept = None  # they tell more
    whole = _from_kept(process, by, selection) if kept else None
    said = kept[0] if kept else None
    if said and whole and tracker:
        tracker.go_on_from(said.until)
        tracker.go_on_with(said.open)
        go_on_serving(tracker, whole)
    fresh = Records(by)
    if process.events is not None:
        fresh = Records(by, _from_events(process, by, consolidator, selection, histograms, tracker, said))
        _tell_rows(process, fresh)
    if not whole:
        return fresh
    if tracker:
        name_what_was_open(whole, tracker)
    records = Records(by)
    records.take_in(whole, plain=tracker is None)
    records.take_in(fresh)
    return records


def go_on_serving(tracker: Tracker, kept: Records) -> None:
    """Let `tracker` know of which threads a call in kept records was a transaction."""
    place = kept.by.index("thread")
    for thread in {each.key[place] for each in kept.calls() if each.name}:
        tracker.serve(thread, 0)


def name_what_was_open(records: Records, tracker: Tracker) -> None:
    """Give kept records of what was open the names that it has since `tracker` saw it end."""
    place = records.by.index("thread")
    for each in records.roots:
        if each.name == OPEN and not each.is_call:
            each.name = tracker.name_of_open(each.key[place])


def _has_events_of(process: Process, said: Consolidated) -> bool:
    """Whether the events are still there that the kept records are of."""
    heads = process.events.heads() if process.events else ()
    there = {head.sequence for _, head in heads if head.sequence in said.blocks}
    return len(there) == sum(last - first + 1 for first, last in said.blocks.found)


def _from_kept(process: Process, by: tuple[str, ...], selection: Selection | None) -> Records:
    """The consolidated records of the process. Raises UsageError if they do not have all of these fields."""
    assert process.consolidated is not None
    said, found = process.consolidated
    missing = [name for name in by if name not in said.by]
    if selection or missing:
        what = f"the fields {', '.join(missing)} of events" if missing else "single events"
        raise UsageError(f"{process.place}: {what} were not recorded (record without INTERPOSE_CONSOLIDATE)")
    whole = as_kept(said, found)
    _tell_rows(process, whole)
    return whole


def as_kept(said: Consolidated, found: Sequence[Found]) -> Records:
    """The records of a file, by all of its fields; rows are in `bytes`, as in events."""
    return Records(said.by, [each._replace(figures=_in_order(each, said.figures)) for each in found])


def _in_order(found: Found, names: Sequence[str]) -> Sequence[int]:
    """The figures in our order; those that are not there as if there were none."""
    if names == FIGURES:
        return found.figures
    given = dict(zip(names, found.figures, strict=True))
    return [given.get(name, nothing) for name, nothing in zip(FIGURES, NOTHING, strict=True)]


def _from_events(
    process: Process,
    by: tuple[str, ...],
    consolidator: type[Consolidator] | None,
    selection: Selection | None,
    histograms: bool,
    tracker: Tracker | None,
    said: Consolidated | None,
) -> list[Found]:
    """The records of the events that are not yet consolidated."""
    assert process.events is not None
    layout = process.events.layout
    roles = roles_of(process) if tracker else None
    made = (consolidator or fastest_consolidator())(layout, by, histograms, tracker, roles)
    for block in process.events.blocks():
        if not (said and block.head.sequence in said.blocks):
            made.add(block.events if selection is None else selection(block, layout))
    if tracker:
        tracker.unended = unended_of(process)
    found = made.records()
    if made.is_full:
        process.damages.add(f"{process.place}/events", f"more than {RECORDS_AT_MOST:,} records: the rest is in one")
    return found


def _tell_rows(process: Process, records: Records) -> None:
    """What intrinsics moved that move rows are rows."""
    if "intrinsic" not in records.by:
        return
    place = records.by.index("intrinsic")
    for record in records.calls():
        if record.sums.bytes and process.intrinsic(record.key[place]).moves == "rows":
            record.sums.move_rows()
