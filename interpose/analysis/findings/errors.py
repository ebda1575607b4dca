"""The errors with which calls ended: which of them a program expects."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable

from interpose.analysis.findings.finding import Calls
from interpose.analysis.findings.lock_waits import path_tried
from interpose.analysis.findings.sockets import is_receive

# Other kinds wait for threads, processes, users or work. Programs poll with them, and expect an exception each time.
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
# A socket's own timeout, by which programs poll. One that the system reports has a number.
TIMEOUT = "TimeoutError"


def errors_of(rows: Iterable[Calls]) -> list[str]:
    """The names of the errors with which calls failed, those that took most first."""
    took_ns: Counter[str] = Counter()
    for row in rows:
        took_ns.update({error: wall_ns for error, (_, wall_ns) in failures_of(row).items()})
    return [error for error, _ in took_ns.most_common()]


def failures_of(row: Calls) -> dict[str, tuple[int, int]]:
    """How many of the calls ended with each error that is no expected end, and their time."""
    return {error: made for error, made in row.failures.items() if made[0] > 0 and is_failure(row, error)}


def is_failure(row: Calls, error: str) -> bool:
    """Whether it is no expected end of such a call."""
    if path_tried(row):
        return True  # another process has the lock
    if row.kind not in KINDS or name_of(error) in EXPECTED or (error == TIMEOUT and is_receive(row)):
        return False
    return row.kind != "file" or name_of(error) not in ANSWERS


def name_of(error: str) -> str:
    """The name of an error, without its number."""
    return error.partition(" ")[0]
