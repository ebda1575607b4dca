"""Which processes `interpose kernel` may watch: what the kernel and the administrator permit."""

from __future__ import annotations

import errno
import os
from collections.abc import Iterable

from interpose.capture.session import POLICY
from interpose.config import policy

NO_PROCESS = "there is no such process"
GONE = "it ended before its command line could be read, and some programs are forbidden"
Owner = tuple[set[int], set[int]]


def why_not_watched(error: int) -> str:
    """Why system calls cannot be watched, given the errno, and what to do about it."""
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
    """What the administrator's policy permits to record. Raises policy.Forbidden if the policy is invalid."""

    def __init__(self, path: str = POLICY) -> None:
        self._policy = policy.read(path)  # type: ignore[no-untyped-call]  # the program imports it
        self._owner: Owner | None = None  # of the last process checked
        self.forbidden_kinds = frozenset(self._policy.kinds) if self._policy else frozenset()

    def why_not(self, pid: int, programs: Iterable[str] = ()) -> str:
        """Why the process `pid` must not be recorded; empty if it may be. If it has ended, the owner of the process
        checked before counts as its owner, and its command line is unknown. `programs` are names from perf records of
        programs that it executed; by now it may have executed another one."""
        if self._policy is None:
            return ""
        try:
            command, self._owner = _command_of(pid), _owner_of(pid)
        except OSError:
            command = []
        if not command and self._policy.programs:
            return GONE
        try:
            for each in [command or [""], *([name] for name in programs)]:
                policy.check(self._policy, each, self._owner)  # type: ignore[no-untyped-call]
        except policy.Forbidden as why:
            return str(why)
        return ""

    def why_not_command(self, words: list[str]) -> str:
        """Why a command that we start must not be recorded; empty if it may be."""
        try:
            if self._policy is not None:
                policy.check(self._policy, words)  # type: ignore[no-untyped-call]
        except policy.Forbidden as why:
            return str(why)
        return ""


def why_not(pid: int) -> str:
    """Why the process `pid` cannot be watched; empty if it can be."""
    try:
        found = _status_of(pid)
    except OSError:
        return NO_PROCESS
    if int(found["Tgid"]) != pid:
        return f"is a thread of the process {found['Tgid'].strip()}: -p {found['Tgid'].strip()} records that"
    if found["State"].split()[0] in ("Z", "X"):
        return "has ended; only the process that started it has not asked for its exit code"
    if "VmSize" not in found:
        return "is a thread of the kernel, which makes no system calls"
    return ""


def _command_of(pid: int) -> list[str]:
    """The command line; empty for a zombie."""
    with open(f"/proc/{pid}/cmdline", "rb") as file:
        words = file.read(1 << 20).split(b"\0")[:-1]
    return [os.fsdecode(word) for word in words]


def _owner_of(pid: int) -> Owner:
    found = _status_of(pid)
    users, groups = found["Uid"].split()[:2], [*found["Gid"].split()[:2], *found["Groups"].split()]
    return set(map(int, users)), set(map(int, groups))


def _status_of(pid: int) -> dict[str, str]:
    with open(f"/proc/{pid}/status", encoding="utf-8", errors="replace") as file:
        return dict(line.partition(":")[::2] for line in file)
