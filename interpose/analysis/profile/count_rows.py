"""What was counted beside time: in the rows of functions and lines, and in rows of threads, processes and the like."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator
from dataclasses import replace

from interpose.analysis.analysis import Analysis
from interpose.analysis.calls.groupings import WHOLES, whole_labels
from interpose.analysis.calls.parts import Part
from interpose.analysis.calls.profile import Profile, finished
from interpose.analysis.calls.rows import COUNTERS, Row
from interpose.analysis.profile.counts import Counted, counted
from interpose.analysis.profile.margin import Count, sums_of
from interpose.analysis.profile.profiled import NOT_SAMPLED, function_of, innermost
from interpose.analysis.profile.rows import (
    WITH_CODE,
    finished_with_code,
    reduced_with_code,
    row_of_function,
    row_of_line,
)

WITH_COUNTS = (*WITH_CODE, *WHOLES)  # groupings that have them


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
    if by in WITH_CODE:
        return replace(part, code=replace(part.code, rows=_with_code(part.code.rows, found, by)))
    return replace(part, counts=[*part.counts, *_wholes(found, by)])


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
