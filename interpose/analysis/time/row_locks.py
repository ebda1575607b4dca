"""Which transactions of a database had the locks that statements waited for. No server is asked. A statement probably
waited for a transaction of another thread if that transaction took locks in the same table, the statement returns as
the transaction ends, and such calls do so more often than by chance."""

from __future__ import annotations

import re
from bisect import bisect_left, bisect_right
from collections import Counter, defaultdict
from collections.abc import Iterator, Sequence
from functools import cache, lru_cache
from itertools import accumulate
from math import log, sqrt
from typing import NamedTuple

from interpose.analysis.calls.account import ProcessAccount
from interpose.analysis.time.turns import Call, calls_of
from interpose.analysis.transactions.tracking import DROPS, ENDS, RELEASES, Details, roles_of
from interpose.experiments.model.process import Process
from interpose.experiments.model.stacks import Site

# What takes locks of rows or tables, which another transaction may hold. An ORM puts FOR UPDATE last.
LOCKS = re.compile(
    r"\W*(insert|update|delete|replace|merge|lock|alter|drop|truncate|create\s+(unique\s+)?index"
    r"|begin\s+(immediate|exclusive))\b"
    r"|.*\bfor\s+(update|no\s+key\s+update|share|key\s+share)\b|.*\block\s+in\s+share\s+mode\b"
    r"|.*\b(pg_advisory_(xact_)?lock(_shared)?|get_lock)\s*\(",
    re.IGNORECASE | re.DOTALL,
)
_TABLES = re.compile(r'\b(?:from|join|update|into|table|on)\s+(?:only\s+)?(["`\[\w.]+)', re.IGNORECASE)
_NO_TABLES = frozenset(("", "of", "set", "nowait", "skip", "conflict", "duplicate"))
# A shorter statement may have waited for anything.
_LONG_NS = 10_000_000
# How long after the end of a transaction a statement may return: this time, or this part of its wait, because
# processors may be busy. SQLite looks at the lock again after 100 ms at the latest.
_LATE_NS, _LATE, _LATE_SQLITE_NS = 2_000_000, 20, 110_000_000
# By how many standard deviations all waits of a line must differ from chance.
_DEVIATIONS = 4
# An INSERT seldom waits for locks of rows. SQLite has one lock for the database.
_INSERTS = re.compile(r"\W*insert\b", re.IGNORECASE)
_SQLITE, _WHOLE = "sqlite3.", frozenset(("the database",))
Owner = tuple[int, int, int]  # numbers of process, thread and task


class Hold(NamedTuple):
    """The locks of one transaction: since when, which line took the first, and when the call that ended it began and
    returned."""

    taken_ns: int
    owner: Owner
    site: Site | None
    tables: frozenset[str]
    released_ns: int = 0
    end_ns: int = 0


class Waited(NamedTuple):
    """A statement that may have waited for locks, and how late it may return after the end of the transaction that had
    them."""

    start_ns: int
    end_ns: int
    owner: Owner
    tables: frozenset[str]
    late_ns: int


class RowLocks:
    """Who had locks of rows, and which statements may have waited for them, by the events of some processes."""

    def __init__(self, accounts: dict[int, ProcessAccount]) -> None:
        self._holds: list[Hold] = []
        self._waits: defaultdict[tuple[str, Site | None, bool], list[Waited]] = defaultdict(list)
        for number, account in accounts.items():
            self._read(account.process, number)
        self._holds.sort(key=lambda each: each.released_ns)
        self._released = [each.released_ns for each in self._holds]
        self._long = [each for each in self._holds if each.released_ns - each.taken_ns >= _LONG_NS]
        self._long_released = [each.released_ns for each in self._long]
        self._taken_from = list(accumulate((each.taken_ns for each in reversed(self._long)), min))[::-1]

    def _read(self, process: Process, number: int) -> None:
        begun: dict[Owner, Hold] = {}
        for call, is_end in sorted(_calls(process), key=lambda each: each[0].end_ns):
            owner, site = (number, call.thread, call.task), process.own_line(call.stack)
            if is_end:
                if hold := begun.pop(owner, None):
                    self._holds.append(hold._replace(released_ns=call.start_ns, end_ns=call.end_ns))
                continue
            name, statement = process.intrinsic(call.intrinsic).name, process.string(call.detail)
            is_sqlite = name.startswith(_SQLITE)
            tables = _WHOLE if is_sqlite else _tables_of(statement)
            if call.wall_ns >= _LONG_NS and (is_sqlite or not _INSERTS.match(statement)):
                late_ns = _LATE_SQLITE_NS if is_sqlite else max(_LATE_NS, call.wall_ns // _LATE)
                waited = Waited(call.start_ns, call.end_ns, owner, tables, late_ns)
                self._waits[name, site, bool(call.error)].append(waited)
            if not call.error:
                hold = begun.get(owner) or Hold(call.end_ns, owner, site, frozenset())
                begun[owner] = hold._replace(tables=hold.tables | tables)

    def holders(self, intrinsic: str, site: Site | None, has_failed: bool = False) -> Counter[Site]:
        """For how long transactions of others were in progress while calls from this line waited, by the line that took
        the locks. A transaction counts if it lasted until the call returned. For calls that failed, as with a timeout,
        it counts if it lasted through the whole call."""
        found: Counter[Site] = Counter()
        waits = self._waits[intrinsic, site, has_failed]
        if not has_failed and not self._are_no_chance(waits):
            return found
        holders = self._all_the_time if has_failed else self._one_after_another
        for waited in waits:
            for hold, held_ns in holders(waited):
                if hold.site:
                    found[hold.site] += held_ns
        return found

    def _are_no_chance(self, waits: Sequence[Waited]) -> bool:
        """Whether these calls return closer to the ends of such transactions than calls that wait for something else do
        by chance. For the latter, the sum of -log(chance) has the mean `len(waits)`, and the square root of the mean
        as standard deviation (Fisher). SQLite needs no such test: a writer waits for any other writer."""
        if all(each.tables is _WHOLE for each in waits):
            return True
        surprise = sum(-log(self._chance(each)) for each in waits)
        return surprise >= len(waits) + _DEVIATIONS * sqrt(len(waits))

    def _chance(self, waited: Waited) -> float:
        """How often a call of this length would by chance return so close to the end of such a transaction."""
        last = self._released_at(waited.end_ns, waited)
        if last is None:
            return 1.0
        began, ended = bisect_left(self._released, waited.start_ns), bisect_right(self._released, waited.end_ns)
        ends = sum(_may_block(each, waited) for each in self._holds[began:ended])
        apart_ns = max(abs(waited.end_ns - last.end_ns), 1)
        return min(2 * ends * apart_ns / (waited.end_ns - waited.start_ns), 1.0)

    def _all_the_time(self, waited: Waited) -> Iterator[tuple[Hold, int]]:
        """A transaction that had locks before this call, and still after it."""
        for place in range(bisect_left(self._long_released, waited.end_ns), len(self._long)):
            hold = self._long[place]
            if self._taken_from[place] > waited.start_ns:  # all that end from here on
                break
            if _may_block(hold, waited) and hold.taken_ns <= waited.start_ns:
                yield hold, waited.end_ns - waited.start_ns
                break

    def _one_after_another(self, waited: Waited) -> Iterator[tuple[Hold, int]]:
        """The transaction that had the lock last, and others before it: each may have waited for the one before."""
        end_ns = waited.end_ns
        while end_ns > waited.start_ns and (hold := self._released_at(end_ns, waited)):
            yield hold, end_ns - max(hold.taken_ns, waited.start_ns)
            end_ns = hold.taken_ns

    def _released_at(self, end_ns: int, waited: Waited) -> Hold | None:
        for place in range(bisect_right(self._released, end_ns) - 1, -1, -1):
            hold = self._holds[place]
            if hold.released_ns < waited.start_ns:
                break
            if _may_block(hold, waited) and hold.taken_ns < end_ns:
                return hold if end_ns <= hold.end_ns + waited.late_ns else None
        return None


def _may_block(hold: Hold, waited: Waited) -> bool:
    return hold.owner != waited.owner and not hold.tables.isdisjoint(waited.tables)


def _calls(process: Process) -> Iterator[tuple[Call, bool]]:
    """The calls that take locks of rows, and those that end transactions; whether a call ends one. Short calls that
    take locks again with the same statement are left out, because they add nothing."""
    roles, details = roles_of(process), Details(process)

    @cache
    def is_end(intrinsic: int, detail: int) -> bool:
        role = details.role_of(detail)
        return bool((role | roles.get(intrinsic, 0)) & (ENDS | DROPS)) and not role & RELEASES

    @cache
    def takes_locks(intrinsic: int, detail: int) -> bool:
        return process.intrinsic(intrinsic).kind == "db" and bool(LOCKS.match(process.string(detail)))

    taken: defaultdict[tuple[int, int], set[int]] = defaultdict(set)  # by thread and task: the statements

    def is_wanted(values: tuple[int, ...]) -> bool:
        call = Call._make(values)
        if is_end(call.intrinsic, call.detail):
            return bool(taken.pop((call.thread, call.task), None))
        if not takes_locks(call.intrinsic, call.detail):
            return False
        known = taken[call.thread, call.task]
        is_new = call.detail not in known
        if not call.error:
            known.add(call.detail)
        return is_new or call.wall_ns >= _LONG_NS

    for call in calls_of(process, is_wanted):
        yield call, is_end(call.intrinsic, call.detail)


@lru_cache(maxsize=1024)
def _tables_of(statement: str) -> frozenset[str]:
    """The tables that a statement names, without their schemas."""
    named = (each.strip('"`[]').replace('"."', ".").rpartition(".")[2].lower() for each in _TABLES.findall(statement))
    return frozenset(named) - _NO_TABLES
