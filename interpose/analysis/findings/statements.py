"""Rules about databases: statements repeated, one that dominates, commits one by one, connections made again."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

from interpose.analysis.findings.failures import mostly_failed
from interpose.analysis.findings.finding import Calls, Finding, Floor, found, spared_ns
from interpose.analysis.findings.row_locks import held_meanwhile
from interpose.analysis.findings.survey import Survey, grouped, is_connect, threads_of, total_of
from interpose.analysis.time.row_locks import LOCKS
from interpose.experiments.model.stacks import Site

# Fewer of one statement in a transaction may be steps that differ.
TIMES_IN_ONE = 5
# Outside of transactions, only many repetitions from one line are reported.
TIMES_ALONE = 100
# A statement that takes less than a round trip and some disk reads is not slow, but made often.
SLOW_NS = 10_000_000
DOMINATES = 0.5
# Fewer commits in a batch are not worth its being changed; a hundred together cost hardly more than one.
COMMITS_AT_LEAST = 50
COMMITS_TOGETHER = 100
# Each thread may have its own connection, and pools open ten or so at the beginning.
RECONNECTS_AT_LEAST = 20
RECONNECTS_A_THREAD = 2
_ENDS = re.compile(r"\s*(commit|end)\b", re.IGNORECASE)
_CONTROLS = re.compile(
    r"\s*((begin|start transaction|rollback|savepoint|release|pragma)\b|set\s+\S)",  # SET alone is a command of Redis
    re.IGNORECASE,
)
_ASKS = re.compile(r"\W*(select|with|update|delete|copy\s*\()\b", re.IGNORECASE)  # what an index may help
_SQL = re.compile(
    r"\W*(select|with|insert|update|delete|replace|merge|values|call|exec|execute|create|drop|alter|truncate|copy|explain"
    r"|analyze|vacuum|show|describe|grant|declare|fetch)\b",
    re.IGNORECASE,
)
_WRITES = re.compile(r"\W*(insert|update|delete|replace|merge)\b", re.IGNORECASE)
_INSERTS = re.compile(r"\W*(insert|replace)\b", re.IGNORECASE)
# Calls that have the statement of a cursor or a copy which another call, or the first of them, has executed.
_GOING_ON = ("asyncpg.Cursor.", "asyncpg.CursorIterator.", "psycopg.Copy.", "psycopg.AsyncCopy.")
_WITHOUT_SQL = ("redis", "confluent_kafka", "dbm")  # packages; the first word of an intrinsic's name
_OF_ITS_OWN = re.compile(r"|:memory:|<.*>")  # a connection that shares nothing with another of the same name


def repeated_statements(survey: Survey) -> Iterator[Finding]:
    """The same statement from one line many times within a transaction; without these, many times at all."""
    database = survey.of_kind("db")
    told = [each for each in database if each.detail and not each.is_of_many and each.site]
    asking = [each for each in told if not (_connects(each) or _controls(each) or goes_on(each.intrinsic))]
    statements = [each for each in asking if not _has_many(each)]
    fetches = _Fetches(database)
    for ((_, transaction), detail), rows in grouped(statements, lambda each: (_line(each), each.detail)):
        made, _ = total_of(rows)
        units = survey.transactions_of(rows) if transaction else threads_of(rows)
        floor = Floor(0 if transaction else TIMES_ALONE, TIMES_IN_ONE, apart=transaction)
        usual, longest_ns = _usual(rows)
        calls, _ = total_of(usual)
        usual = fetches.with_those_of(usual)
        bound_ns = spared_ns(total_of(usual)[1], calls, units)
        unit = "transaction" if transaction else "thread"
        said: dict[str, Any] = {"about": detail, "made": made, "longest_ns": longest_ns, "floor": floor}
        yield found("N+1 statements", usual, bound_ns, units=units, unit=unit, **said)


def commits_one_by_one(survey: Survey) -> Iterator[Finding]:
    """Many commits in a batch, or several within one transaction of a user or a request."""
    commits = [each for each in survey.of_kind("db") if _commits(each)]
    for (_, transaction), rows in grouped(commits, _line):
        made, _ = total_of(rows)
        usual, longest_ns = _usual(rows)
        calls, wall_ns = total_of(usual)
        if not transaction or transaction in survey.batches:
            units, unit, floor = -(-calls // COMMITS_TOGETHER), "batch", Floor(COMMITS_AT_LEAST, apart=transaction)
        else:
            units, unit, floor = survey.transactions_of(rows), "transaction", Floor(a_unit=2, apart=transaction)
        bound_ns = spared_ns(wall_ns, calls, units)
        said: dict[str, Any] = {"made": made, "longest_ns": longest_ns, "floor": floor}
        yield found("commits one by one", usual, bound_ns, units=units, unit=unit, **said)


def reconnects(survey: Survey) -> Iterator[Finding]:
    """The same address or database connected to again and again."""
    connects = [each for each in survey.connects if _connects(each) and not (each.is_of_many or mostly_failed([each]))]
    for (_, detail), rows in grouped(connects, lambda each: (each.kind, each.detail)):
        calls, wall_ns = total_of(rows)
        units = threads_of(rows)
        floor = Floor(RECONNECTS_AT_LEAST, RECONNECTS_A_THREAD)
        bound_ns = spared_ns(wall_ns, calls, units)
        yield found("reconnects", rows, bound_ns, units=units, unit="thread", about=detail, floor=floor)


def slow_statement(survey: Survey) -> Iterator[Finding]:
    """One statement that is slow each time, and takes most of the time of the database, apart from single calls that
    took far longer."""
    database, _ = _usual(survey.of_kind("db"))
    _, whole_ns = total_of(database)
    asking = [each for each in database if _ASKS.match(each.detail) and each.verb != "executemany"]
    statements = [each for each in asking if not goes_on(each.intrinsic)]
    fetches = _Fetches(database)
    for detail, rows in grouped(statements, lambda each: each.detail):
        calls, _ = total_of(rows)
        rows = fetches.with_those_of(rows)
        _, wall_ns = total_of(rows)
        if wall_ns >= DOMINATES * whole_ns and wall_ns >= calls * SLOW_NS:
            holders = held_meanwhile(survey, rows, has_failed=mostly_failed(rows))
            yield found("slow statement", rows, about=detail, made=calls, **holders)


def _usual(rows: list[Calls]) -> tuple[list[Calls], int]:
    """The calls without those that took far longer than others like them, and the longest of these."""
    apart = [each for each in rows if each.among]
    return [each for each in rows if not each.among], max((each.wall_ns for each in apart), default=0)


class _Fetches:
    """What fetches rows names no statement. At a line where one statement alone is made, it is of that one."""

    def __init__(self, database: list[Calls]) -> None:
        told = [each for each in database if each.detail and each.site and not _connects(each) and not _controls(each)]
        self._statements = {line: {each.detail for each in rows} for line, rows in grouped(told, _line)}
        asked = [each for each in database if not each.detail and each.site and not _commits(each)]
        fetches, _ = _usual(asked)
        self._fetches = dict(grouped(fetches, _line))

    def with_those_of(self, rows: list[Calls]) -> list[Calls]:
        """The calls `rows` of one statement, with the fetches of its rows."""
        lines = [line for line in dict.fromkeys(map(_line, rows)) if len(self._statements.get(line, ())) == 1]
        return rows + [each for line in lines for each in self._fetches.get(line, ())]


def _line(each: Calls) -> tuple[Site | None, str]:
    return each.site, each.transaction


def _commits(each: Calls) -> bool:
    return each.is_end or each.verb == "commit" or bool(_ENDS.match(each.detail))


def _controls(each: Calls) -> bool:
    """Whether it begins or ends a transaction of the database, or a part of one: it asks for nothing."""
    return _commits(each) or is_control(each.detail)


def is_control(statement: str) -> bool:
    """Whether a statement begins or ends a transaction of the database, or sets something."""
    return bool(_ENDS.match(statement) or _CONTROLS.match(statement))


def goes_on(intrinsic: str) -> bool:
    """Whether its calls go on with a statement: they fetch rows of a cursor, or copy data."""
    return intrinsic.startswith(_GOING_ON)


def is_sql(each: Calls) -> bool:
    """Whether the detail of calls of a database is a statement in SQL, and not a command, a topic or a key."""
    return has_sql(each) and bool(_SQL.match(each.detail))


def has_sql(each: Calls) -> bool:
    """Whether calls are those of a database with statements in SQL and rows."""
    return each.intrinsic.partition(".")[0] not in _WITHOUT_SQL


def writes(each: Calls) -> bool:
    """Whether a statement in SQL changes rows."""
    return bool(_WRITES.match(each.detail))


def _has_many(each: Calls) -> bool:
    """Whether a statement inserts several rows, like executemany in drivers of MySQL, or is a script that writes, like
    those of psycopg2's execute_batch: such statements are together already."""
    is_script = writes(each) and ";" in each.detail.rstrip("; ")
    return is_script or ("), …" in each.detail and bool(_INSERTS.match(each.detail)))


def takes_locks(each: Calls) -> bool:
    """Whether a statement in SQL takes locks of rows or tables, for which it may have to wait."""
    return has_sql(each) and bool(LOCKS.match(each.detail))


def is_redis(each: Calls) -> bool:
    """Whether calls are commands of Redis."""
    return each.intrinsic.startswith("redis.")


def _connects(each: Calls) -> bool:
    return is_connect(each) and not _OF_ITS_OWN.fullmatch(each.detail)
