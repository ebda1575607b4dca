"""The span of several recordings on the calendar."""

from __future__ import annotations

from collections.abc import Iterable

_LEAST_NS = 86_400 * 365 * 1_000_000_000  # less is no date, but a time since a start whose date was lost


def span_of(spans: Iterable[tuple[int, int]]) -> tuple[int, int]:
    """The first beginning and the last end, in nanoseconds. Those without a date count only if all are without one."""
    given = list(spans)
    dated = [each for each in given if each[0] >= _LEAST_NS] or given
    return min((begin for begin, _ in dated), default=0), max((end for _, end in dated), default=0)
