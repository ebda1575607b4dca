"""The processes that `interpose kernel` may watch: what the administrator forbids is not recorded."""

from __future__ import annotations

import os
from collections.abc import Iterable

from interpose.capture.session import POLICY
from interpose.config import policy


class Permitted:
    """Which processes and kinds may be recorded. Raises policy.Forbidden if the policy cannot be understood."""

    def __init__(self, path: str = POLICY) -> None:
        self._policy = policy.read(path)  # type: ignore[no-untyped-call]  # the program imports it
        self.forbidden_kinds = frozenset(self._policy.kinds) if self._policy else frozenset()

    def why_not(self, pid: int, programs: Iterable[str] = ()) -> str:
        """Why the process `pid` must not be recorded; empty if it may be. Of one that has ended nobody can tell.
        `programs` are names of what it became, as the kernel noted it: it may be another one by now."""
        if self._policy is None:
            return ""
        try:
            for command in [_command_of(pid), *([each] for each in programs)]:
                policy.check(self._policy, command, _owner_of(pid))  # type: ignore[no-untyped-call]
        except policy.Forbidden as why:
            return str(why)
        except OSError as error:
            return error.strerror or str(error)
        return ""

    def why_not_command(self, words: list[str]) -> str:
        """Why a program must not be recorded that we start; empty if it may be."""
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
        return "there is no such process"
    if int(found["Tgid"]) != pid:
        return f"is a thread of the process {found['Tgid'].strip()}: -p {found['Tgid'].strip()} records that"
    if found["State"].split()[0] in ("Z", "X"):
        return "has ended; only the process that started it has not asked for its exit code"
    if "VmSize" not in found:
        return "is a thread of the kernel, which makes no system calls"
    return ""


def _command_of(pid: int) -> list[str]:
    with open(f"/proc/{pid}/cmdline", "rb") as file:
        words = file.read(1 << 20).split(b"\0")[:-1]
    return [os.fsdecode(word) for word in words] or [os.readlink(f"/proc/{pid}/exe")]


def _owner_of(pid: int) -> tuple[set[int], set[int]]:
    found = _status_of(pid)
    users, groups = found["Uid"].split()[:2], [*found["Gid"].split()[:2], *found["Groups"].split()]
    return set(map(int, users)), set(map(int, groups))


def _status_of(pid: int) -> dict[str, str]:
    with open(f"/proc/{pid}/status", encoding="utf-8", errors="replace") as file:
        return dict(line.partition(":")[::2] for line in file)
