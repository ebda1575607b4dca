"""The rule about calls that failed: time for which the program got nothing but an exception."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import replace

from interpose.analysis.findings.finding import Calls, Finding, found
from interpose.analysis.findings.survey import Survey, grouped, total_of
from interpose.analysis.findings.waits import LARGE, slow_lines

# What waits for threads, processes, users or work may end with an exception each time: that is how a program polls.
KINDS = frozenset(("db", "net", "file"))
# With these, calls say that there is nothing more, nothing yet, or that they were told to end.
EXPECTED = frozenset(
    (
        *("StopIteration", "StopAsyncIteration", "EndOfStream", "EOFError", "ConnectionClosedOK"),
        *("ClosedResourceError", "BlockingIOError", "WouldBlock", "Again", "Empty", "Full"),
        *("SSLWantReadError", "SSLWantWriteError"),
        *("CancelledError", "Cancelled", "GeneratorExit", "GreenletExit", "KeyboardInterrupt", "SystemExit"),
        *("InterruptedError", "EAGAIN", "EINPROGRESS", "EINTR"),
    )
)
# With these, a file system answers a question.
ANSWERS = frozenset(
    (
        *("FileNotFoundError", "FileExistsError", "NotADirectoryError", "IsADirectoryError"),
        *("ENOENT", "EEXIST", "ENOTDIR", "EISDIR"),
    )
)


def failed_calls(survey: Survey) -> Iterator[Finding]:
    """Calls from one line that ended with exceptions, which no program expects to have."""
    lines = grouped((row for rows in slow_lines(survey) for row in rows), lambda row: (row.site, row.intrinsic))
    for _, rows in lines:
        if failed := [_failed(row) for row in rows if failures_of(row)]:
            yield found("failed calls", failed, units=total_of(rows)[0], unit="call", floor=LARGE)


def mostly_failed(rows: Iterable[Calls]) -> bool:
    """Whether most of the time of these calls went to those that failed."""
    listed = list(rows)
    failed_ns = sum(wall_ns for row in listed for _, wall_ns in failures_of(row).values())
    return 2 * failed_ns > total_of(listed)[1]


def errors_of(rows: Iterable[Calls]) -> list[str]:
    """The names of the errors with which calls failed, those that took most first."""
    took_ns: Counter[str] = Counter()
    for row in rows:
        took_ns.update({error: wall_ns for error, (_, wall_ns) in failures_of(row).items()})
    return [error for error, _ in took_ns.most_common()]


def failures_of(row: Calls) -> dict[str, tuple[int, int]]:
    """How many of the calls ended with each error that is no expected end, and their time."""
    if row.kind not in KINDS:
        return {}
    expected = EXPECTED | ANSWERS if row.kind == "file" else EXPECTED
    return {error: made for error, made in row.failures.items() if made[0] > 0 and name_of(error) not in expected}


def name_of(error: str) -> str:
    """The name of an error, without its number."""
    return error.partition(" ")[0]


def _failed(row: Calls) -> Calls:
    """The part of these calls that failed, with no more CPU time than they may have used."""
    failures = failures_of(row)
    calls, wall_ns = (sum(figures) for figures in zip(*failures.values(), strict=True))
    cpu_ns = row.cpu_ns * wall_ns // max(row.wall_ns, 1)
    figures = {"calls": calls, "failed": calls, "failures": failures, "wall_ns": wall_ns, "cpu_ns": cpu_ns}
    return replace(row, **figures, bytes=0, rows=0, unended=0, is_part=not mostly_failed([row]))
