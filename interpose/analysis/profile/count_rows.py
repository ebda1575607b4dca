"""What was counted beside time: in the rows of functions and lines, of kinds and intrinsics, and in rows of threads,
processes and the like."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator
from dataclasses import replace

from interpose.analysis.analysis import Analysis
from interpose.analysis.calls.groupings import GROUPINGS, WHOLES, row_of_kind, whole_labels
from interpose.analysis.calls.parts import Part
from interpose.analysis.calls.profile import Profile, finished
from interpose.analysis.calls.rows import CODE, COUNTERS, START_UP, UNSAMPLED, Row
from interpose.analysis.profile.counts import Counted, Seen, counted
from interpose.analysis.profile.margin import Count, sums_of
from interpose.analysis.profile.profiled import NOT_SAMPLED, Frames, function_of, innermost
from interpose.analysis.profile.rows import (
    WITH_CODE,
    finished_with_code,
    reduced_with_code,
    row_of_function,
    row_of_line,
)
from interpose.experiments.model.stacks import is_start_up

WITH_CALLS = ("kind", "intrinsic")
DIVIDED = (*WITH_CODE, *WITH_CALLS)  # groupings among whose rows samples divide them
WITH_COUNTS = (*DIVIDED, *WHOLES)  # groupings that have them


def with_code_and_counts(made: Profile, by: str) -> Profile:
    """The profile with the rows of sampled code, and with what was counted, as far as its grouping has them."""
    assert made.analysis is not None
    part = reduced_with_code(made.part, made.analysis, by) if by in WITH_CODE else made.part
    finish = finished_with_code if by in WITH_CODE else finished
    return finish(with_counts(part, made.analysis, by), by, made.analysis)


def with_counts(part: Part, analysis: Analysis, by: str) -> Part:
    """The part with what was counted; the one given does not change."""
    found = counted(analysis) if by in WITH_COUNTS else []
    if not found:
        return part
    part = replace(part, counters=tuple(dict.fromkeys(each.name for each in found if each.is_read)))
    if by in WITH_CODE:
        return replace(part, code=replace(part.code, rows=_with_code(part.code.rows, found, by)))
    return replace(part, counts=[*part.counts, *(_of_calls(found, by) if by in WITH_CALLS else _wholes(found, by))])


def _with_code(rows: list[Row], found: list[Counted], by: str) -> list[Row]:
    """The rows of code with what was counted there, in recorded calls too; and rows of code seen in calls only."""
    made = {row.likeness: row for row in rows}
    for each in found:
        for row in _rows_of_code(each, by):
            known = made.get(row.likeness, row)
            counts = {each.name: row.counts[each.name]}
            made[row.likeness] = replace(known, counts=sums_of((known.counts if known is not row else {}, counts)))
    return list(made.values())


def _rows_of_code(each: Counted, by: str) -> Iterator[Row]:
    if by == "function":
        functions = each.divided(lambda frames, seen: function_of(frames), function_of((NOT_SAMPLED,)))
        for function, count in functions.items():
            yield replace(row_of_function(function), counts={each.name: count})
    else:
        for site, count in each.divided(lambda frames, seen: innermost(frames), NOT_SAMPLED).items():
            yield replace(row_of_line(site), counts={each.name: count})


def _of_calls(found: list[Counted], by: str) -> list[Row]:
    """What was counted in each kind or intrinsic, without the recorded calls inside, and between calls."""
    made: dict[tuple[object, ...], Row] = {}
    for each in found:
        for row in _rows_of_calls(each, by):
            known = made.setdefault(row.likeness, row)
            known.counts = sums_of((known.counts, row.counts)) if known is not row else row.counts
    return list(made.values())


def _rows_of_calls(each: Counted, by: str) -> Iterator[Row]:
    rows = {row.likeness: row for row in (Row(CODE, None, is_of_calls=False), Row(UNSAMPLED, None, is_of_calls=False))}

    def likeness_of(frames: Frames, seen: Seen) -> tuple[object, ...]:
        if frames == (NOT_SAMPLED,):
            return Row(UNSAMPLED, None).likeness
        row = _row_of_call(each, frames, seen, by) if seen.intrinsic else Row(CODE, None)
        return rows.setdefault(row.likeness, row).likeness

    for likeness, count in each.divided(likeness_of, Row(UNSAMPLED, None).likeness).items():
        yield replace(rows[likeness], counts={each.name: count})


def _row_of_call(each: Counted, frames: Frames, seen: Seen, by: str) -> Row:
    if by == "kind" and is_start_up([site for site in frames if not site.is_native]):
        return row_of_kind(START_UP)
    return GROUPINGS[by].row_of(each.process, {"intrinsic": seen.intrinsic, "stack": 0})


def _wholes(found: list[Counted], by: str) -> list[Row]:
    made: dict[tuple[tuple[str, str], ...], dict[str, Count]] = defaultdict(dict)
    for each in found:
        for labels, count in _counts_by(each, by):
            made[tuple(labels.items())].setdefault(each.name, Count()).count += count
    return [Row(COUNTERS, None, dict(labels), is_of_calls=False, counts=counts) for labels, counts in made.items()]


def _counts_by(each: Counted, by: str) -> Iterator[tuple[dict[str, str], int]]:
    if not each.is_read:
        return
    if by != "thread":
        yield whole_labels(each.process, 0, by), each.total
        return
    for (thread, tid), count in each.by_thread().items():
        labels = whole_labels(each.process, thread, by)
        yield labels if thread else labels | {"thread": str(tid)}, count
    if each.not_sampled:
        yield whole_labels(each.process, 0, by) | {"thread": NOT_SAMPLED.function}, each.not_sampled
