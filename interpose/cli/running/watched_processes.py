"""The processes that `interpose kernel` may watch: what the kernel and the administrator permit."""

from __future__ import annotations

import errno
import os

from interpose.capture.session import POLICY
from interpose.config import policy

GONE = "it ended before its command line could be read, and some programs are forbidden"
Owner = tuple[set[int], set[int]]


def why_not_watched(error: int) -> str:
    """Why system calls cannot be watched here, by the error's number, and what helps."""
    if error in (errno.EACCES, errno.EPERM):
        return "the kernel lets only root watch system calls (sudo interpose kernel …)"
    if error == errno.ENOENT:
        return (
            "the kernel has no tracepoints of system calls, or they cannot be read:"
            " mount -t tracefs nodev /sys/kernel/tracing"
        )
    if error == errno.EMFILE:
        return "too many files are needed, two for each thread and processor: ulimit -n raises the limit"
    return f"the kernel does not let us watch system calls: {os.strerror(error)}"


class Permitted:
    """Which processes and kinds may be recorded. Raises policy.Forbidden if the policy cannot be understood."""

    def __init__(self, path: str = POLICY) -> None:
        self._policy = policy.read(path)  # type: ignore[no-untyped-call]  # the program imports it
        self._owner: Owner | None = None  # of the last process that was asked about
        self.forbidden_kinds = frozenset(self._policy.kinds) if self._policy else frozenset()

    def why_not(self, pid: int) -> str:
        """Why the process `pid` must not be recorded; empty if it may be. One that has ended belongs to whom the last
        one did, and what it was nobody can tell."""
        if self._policy is None:
            return ""
        try:
            command, self._owner = _command_of(pid), _owner_of(pid)
        except OSError:
            command = []
        if not command and self._policy.programs:
            return GONE
        try:
            policy.check(self._policy, command or [""], self._owner)  # type: ignore[no-untyped-call]
        except policy.Forbidden as why:
            return str(why)
        return ""


def _command_of(pid: int) -> list[str]:
    """The command line; empty if it has ended, and its parent has not asked yet."""
    with open(f"/proc/{pid}/cmdline", "rb") as file:
        words = file.read(1 << 20).split(b"\0")[:-1]
    return [os.fsdecode(word) for word in words]


def _owner_of(pid: int) -> Owner:
    with open(f"/proc/{pid}/status", encoding="utf-8", errors="replace") as file:
        found = dict(line.partition(":")[::2] for line in file)
    users, groups = found["Uid"].split()[:2], [*found["Gid"].split()[:2], *found["Groups"].split()]
    return set(map(int, users)), set(map(int, groups))
