"""Who holds the locks that findings are about, as the recorder names them."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator

from interpose.analysis.findings.finding import Calls, Finding
from interpose.analysis.findings.lock_waits import HELD
from interpose.analysis.findings.waits import GIL
from interpose.experiments.model.stacks import Site

_OF_LOCKS = frozenset(("lock convoy", "deadlock", "lock not released"))
# If 3 to 20 processes changed rows of their own, and none waited for a lock of a row, the transactions of others
# covered 24 to 80 % of the slow statements. If one process waited for another, they covered 86 % or more.
_BY_CHANCE = 0.8
_LINE = re.compile(r"(?P<file>/.+):(?P<line>[0-9]{1,9}) (?P<function>.+)")  # as the recorder names a line


def is_of_interpreter(finding: Finding) -> bool:
    """Whether the lock is the interpreter lock."""
    return finding.rule == "lock convoy" and finding.first is not None and finding.first.kind == GIL


def is_row_lock(finding: Finding) -> bool:
    """Whether transactions that took locks were in progress for nearly all of the time that statements waited."""
    return finding.rule != "file lock" and finding.held_ns > _BY_CHANCE * finding.wall_ns


def holders(finding: Finding) -> Iterator[Site]:
    """The lines that held the locks that it is about."""
    yield from finding.held_at
    if finding.rule in _OF_LOCKS:
        places = [finding.about, *(held["place"] for row in finding.rows if (held := HELD.fullmatch(row.detail)))]
        yield from filter(None, map(line_of, places))


def waits_for_itself(rows: Iterable[Calls]) -> bool:
    """Whether threads wait for locks that they took themselves."""
    held = [(row, HELD.fullmatch(row.detail)) for row in rows]
    return any(match and int(match["thread"]) == waiting_thread(row) for row, match in held)


def waiting_thread(row: Calls) -> int:
    """The thread that has waited longest of those whose call is in progress; 0 for none."""
    _, thread = max(row.unended_at, key=lambda each: row.unended_at[each][1], default=(0, 0))
    return thread


def line_of(place: str | None) -> Site | None:
    """The line that held a lock; None if the recorder's text names another sort of place."""
    line = _LINE.fullmatch(place or "")
    return Site(line["file"], int(line["line"]), line["function"], True) if line else None
