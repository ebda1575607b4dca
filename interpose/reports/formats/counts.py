"""What counters counted, as tables show it."""

from __future__ import annotations

from collections.abc import Iterable

from interpose.analysis.calls.rows import Row


def counters_of(rows: Iterable[Row]) -> tuple[str, ...]:
    """The counters of the rows, each once."""
    return tuple(dict.fromkeys(name for row in rows for name in row.counts))


def counter_title(counter: str) -> str:
    """The title of a counter's column."""
    return counter.replace("_", " ")


def count_shown(row: Row, counter: str) -> str:
    """What a counter counted; `~` before what samples divide."""
    found = row.counts.get(counter)
    return f"{'~' if found.margin else ''}{found.count:,}" if found else ""
