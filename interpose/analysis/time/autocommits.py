"""Writes that SQLite commits one by one, because its connection is in autocommit mode (isolation_level=None).

The mode is not recorded, but the order of calls shows it. In the other mode, sqlite3 begins a transaction before a
write. Then the thread commits later, and before that a BEGIN fails. So a write was committed by itself if it lies
outside of explicit transactions, and the next BEGIN of its thread, or the end, comes before the next commit. Databases
in memory need no commit, so a process that opens one is left out.
"""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from dataclasses import dataclass, field

from interpose.analysis.consolidation.records import Records
from interpose.analysis.time.turns import Call, calls_of
from interpose.experiments.model.process import Process
from interpose.experiments.model.stacks import Site

Write = tuple[str, Site | None, str]  # intrinsic, line and statement
_SQLITE, _CONNECT = "sqlite3.", "sqlite3.connect"
_STATEMENTS = frozenset(("execute", "executemany", "executescript"))
_IN_MEMORY = re.compile(r"|.*:memory:.*")
_WRITES = re.compile(r"\W*(insert|update|delete|replace)\b", re.IGNORECASE)
_BEGINS = re.compile(r"\s*(begin|savepoint)\b", re.IGNORECASE)
_ENDS = re.compile(r"\s*(commit|end|rollback(?!\s+to)|rollback\s+transaction)\b", re.IGNORECASE)
_INTRINSIC = Call._fields.index("intrinsic")


@dataclass
class _Thread:
    """Where a thread is: in an explicit transaction, or after `writes` outside of any."""

    is_inside: bool = False
    writes: list[Write] = field(default_factory=list)


def autocommits(process: Process, records: Records) -> Counter[Write]:
    """How often each write was committed by itself; none if the events were not kept."""
    place = records.by.index("intrinsic")
    numbers = {each.key[place] for each in records.calls()}
    names = {number: process.intrinsic(number).name for number in numbers}
    wanted = {number for number, name in names.items() if name.startswith(_SQLITE)}
    found: Counter[Write] = Counter()
    threads: dict[int, _Thread] = defaultdict(_Thread)
    for call in calls_of(process, lambda values: values[_INTRINSIC] in wanted) if wanted else ():
        name, text = names[call.intrinsic], process.string(call.detail)
        if name == _CONNECT and _IN_MEMORY.fullmatch(text):
            return Counter()
        _go_on(process, call, text, threads[call.thread], found)
    for thread in threads.values():
        found.update(thread.writes)
    return found


def _go_on(process: Process, call: Call, text: str, thread: _Thread, found: Counter[Write]) -> None:
    """Go on with the next call of a thread."""
    intrinsic = process.intrinsic(call.intrinsic)
    verb = intrinsic.name.rpartition(".")[2]
    is_statement = verb in _STATEMENTS
    if verb in ("rollback", "executescript") or intrinsic.transaction == "ends" or (is_statement and _ENDS.match(text)):
        thread.is_inside = False
        thread.writes.clear()
    elif is_statement and _BEGINS.match(text):
        found.update(thread.writes)
        thread.writes.clear()
        thread.is_inside = True
    elif is_statement and _WRITES.match(text) and not thread.is_inside:
        thread.writes.append((intrinsic.name, process.own_line(call.stack), text))
