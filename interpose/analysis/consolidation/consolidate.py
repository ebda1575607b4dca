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
from interpose.analysis.transactions.tracking import Tracker, roles_of
from interpose.errors import UsageError
from interpose.experiments.format.consolidated import Consolidated, Found
from interpose.experiments.format.layout import Bytes, Layout
from interpose.experiments.model.process import READ_AGAIN_AT_MOST, Process


class Consolidator(Protocol):
    """Puts like events together, in memory bounded by the number of different records.

    A thread's events must come in the order of their ends: a call comes behind those made inside of it. These wait for
    it; where it never comes (it is in progress, or was lost), they are inside of nothing, and so are all that
    still wait when more than `waiting_at_most` calls are waited for, as they are in no program. When there are
    more than `records_at_most` records, whatever differs from all of them is put into one.

    Records that have a detail, or a transaction's name that is one, are `details_at_most`. Where one more comes, a
    quarter of them is kept for its calls and a quarter for its wall time; the others have all the same detail, OTHER,
    with what they are else by: nothing of counts and times is lost. What comes again after that is a record again,
    which counts as if it had as much as was enough to be kept then: so whatever has more than the 2,500th part of
    all (of 20,000 records) is kept, and lacks no more than that, which is in the record OTHER beside it.

    With a `tracker` and the `roles` of intrinsics, what is inside of no other call is put under its transaction.
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
    def impossible(self) -> int:
        """Events left out because they cannot be: more CPU than wall time, years long, in the far future."""

    @property
    def is_full(self) -> bool:
        """Whether there were more different records than are kept."""

    def add(self, events: Bytes) -> None:
        """Add each event in `events`, which must be whole records."""

    def know(self, roles: Mapping[int, int]) -> None:
        """What the calls of more intrinsics mean for transactions."""

    def copied(self) -> Consolidator:
        """Another one that holds the same, to which nothing is added: its records are what is known so far."""

    def records(self) -> list[Found]:
        """The records, each behind the one around it; nothing can be added any more."""

    def slowest(self) -> list[bytes]:
        """The records of the slowest events, as they came, the slowest first."""


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
    """The records of the calls of `process` by the fields `by`, from its events and from what is consolidated of it.

    Of a `selection`, they are of those events that it gives of a block. What cannot be is left out and noted. Raises
    UsageError where that needs events, or fields of them, that are not kept.
    """
    for _ in range(READ_AGAIN_AT_MOST):
        stamp = process.stamp_of_consolidated()
        records = _once(process, by, consolidator, selection, histograms, copy.deepcopy(tracker))
        if process.stamp_of_consolidated() == stamp:
            break
        process.forget_consolidated()  # what was among the events is now there
    return records


def follow(process: Process, tracker: Tracker) -> None:
    """Have `tracker` follow the transactions of `process`, as far as its events are kept."""
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
    records = _from_kept(process, by, selection, plain=tracker is None) if kept else Records(by)
    if process.events is not None:
        said = kept[0] if kept else None
        if said and tracker:
            tracker.go_on_from(said.until)
        fresh = Records(by, _from_events(process, by, consolidator, selection, histograms, tracker, said))
        _tell_rows(process, fresh)
        if not kept:
            return fresh
        records.take_in(fresh)
    return records


def _has_events_of(process: Process, said: Consolidated) -> bool:
    """Whether the events are still there that the kept records are of."""
    heads = process.events.heads() if process.events else ()
    there = {head.sequence for _, head in heads if head.sequence in said.blocks}
    return len(there) == sum(last - first + 1 for first, last in said.blocks.found)


def _from_kept(process: Process, by: tuple[str, ...], selection: Selection | None, plain: bool) -> Records:
    """What is consolidated of the process, by fewer fields."""
    assert process.consolidated is not None
    said, found = process.consolidated
    missing = [name for name in by if name not in said.by]
    if selection or missing:
        what = f"the fields {', '.join(missing)} of events" if missing else "single events"
        raise UsageError(f"{process.place}: {what} were not recorded (record without INTERPOSE_CONSOLIDATE)")
    whole = as_kept(said, found)
    _tell_rows(process, whole)
    records = Records(by)
    records.take_in(whole, plain)
    return records


def as_kept(said: Consolidated, found: Sequence[Found]) -> Records:
    """The records of a file, by all that it is by; what moved rows has them as bytes, as in events."""
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
    """The records of those events that are not in what is consolidated."""
    assert process.events is not None
    layout = process.events.layout
    roles = roles_of(process) if tracker else None
    made = (consolidator or fastest_consolidator())(layout, by, histograms, tracker, roles)
    for block in process.events.blocks():
        if not (said and block.head.sequence in said.blocks):
            made.add(block.events if selection is None else selection(block, layout))
    found = made.records()
    if made.impossible:
        process.damages.add(f"{process.place}/events", f"{made.impossible} events that cannot be")
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
