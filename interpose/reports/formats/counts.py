"""What counters counted, as tables show it."""

from __future__ import annotations

from interpose.analysis.calls.rows import Row


def counter_title(counter: str) -> str:
    """The title of a counter's column."""
    return counter.replace("_", " ")


def count_shown(row: Row, counter: str) -> str:
    """What a counter counted; `~` before what samples divide."""
    found = row.counts.get(counter)
    return f"{'~' if found.margin else ''}{found.count:,}" if found else ""
