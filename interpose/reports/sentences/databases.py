"""Sentences about statements, commits and connections."""

from __future__ import annotations

from interpose.analysis.findings.finding import Calls, Finding
from interpose.analysis.findings.statements import is_redis, is_sql
from interpose.reports.formats.units import count, duration
from interpose.reports.sentences.wording import (
    Wording,
    calls_made,
    each_took,
    if_failed,
    in_row_lock,
    per_unit,
    quoted,
    without,
)


def repeated(words: Wording, finding: Finding) -> str:
    statement = asked(finding)
    each = per_unit(finding, finding.calls) if finding.unit == "transaction" else ""
    what = f"{_of_language(finding.calls, statement)} from {words.where(statement)}{each}{if_failed(finding)}"
    return f"{what} ({words.took(finding)}{without(finding)}): {quoted(finding.about)}."


def asked(finding: Finding) -> Calls:
    """The largest row of its statement, not of what was fetched by it."""
    return next(row for row in finding.rows if row.detail)


def _of_language(calls: int, row: Calls) -> str:
    """How many statements, commands or calls: `300 Redis commands`."""
    if is_redis(row):
        return count(calls, "Redis command")
    return count(calls, "SQL query", "SQL queries") if is_sql(row) else f"{count(calls, 'call')} of {row.intrinsic}"


def commits(words: Wording, finding: Finding) -> str:
    each = per_unit(finding, finding.calls) if finding.unit == "transaction" else ""
    made = f"{count(finding.calls, 'commit')} from {words.where(finding.first)}"
    return f"{made}{each}{if_failed(finding)}{each_took(finding)} ({words.took(finding)}{without(finding)})."


def reconnects(words: Wording, finding: Finding) -> str:
    to = f" to {words.path(finding.about)}" if finding.about else ""
    made = count(finding.calls, "connection")
    return f"{made}{to} from {words.lines(finding)}{each_took(finding)} ({words.took(finding)})."


def slow_statement(words: Wording, finding: Finding) -> str:
    made = f"{count(finding.calls, 'call')} of one SQL statement from {words.lines(finding)}"
    took = f"{each_took(finding)} ({words.took(finding)})"
    return f"{made}{if_failed(finding)}{took}: {quoted(finding.about)}.{in_row_lock(words, finding)}"


def _made(words: Wording, finding: Finding) -> str:
    failing = if_failed(finding)
    return f"{calls_made(words, finding)}{failing}{',' if failing else ''}"


def disk(words: Wording, finding: Finding) -> str:
    return f"{_made(words, finding)} waited {duration(finding.bound_ns)} for the disk ({words.took(finding)})."


def locked(words: Wording, finding: Finding) -> str:
    waited = f"waited {duration(finding.bound_ns)} for a database lock that another connection held"
    return f"{_made(words, finding)} {waited} ({words.took(finding)})."


def driver(words: Wording, finding: Finding) -> str:
    computed = f"the driver itself computed for {duration(finding.bound_ns)}"
    return f"In {_made(words, finding)} {computed} ({words.took(finding)})."


def sleeps(words: Wording, finding: Finding) -> str:
    slept, where = count(finding.calls, "sleep"), words.where(finding.first)
    named = finding.transactions
    if finding.first and finding.first.site and named == [finding.first.site.function]:
        within = f"within the transaction {where}"
    else:
        within = f"from {where} within {named[0] if len(named) == 1 else 'transactions'}"
    return f"{slept} {within}{each_took(finding)} ({words.took(finding)})."
