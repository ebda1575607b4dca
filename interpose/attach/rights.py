"""Why the kernel does not let us trace a process, as far as can be told (ptrace(2), access mode checking)."""

from __future__ import annotations

import os

_SCOPE = "/proc/sys/kernel/yama/ptrace_scope"
_TRACE = 1 << 19  # CAP_SYS_PTRACE of <linux/capability.h>
_UNMAPPED = "/proc/sys/kernel/overflowuid"


def why_no_right(pid: int) -> str:
    """The reason, and what helps, in a few words."""
    own, its = _status("self"), _status(str(pid))
    may_trace = bool(_capabilities(own, "CapEff") & _TRACE)
    users, user = set(its.get("Uid", "").split()), os.geteuid()
    if int(its.get("TracerPid", "0")):
        return f"process {its['TracerPid']} traces it already"
    if (scope := _read(_SCOPE)) == "3" or (scope in ("1", "2") and not may_trace):
        return f"{_SCOPE} is {scope}{'' if scope == '3' else '; CAP_SYS_PTRACE helps'}"
    if users == {_read(_UNMAPPED)}:
        return "it belongs to a user of another user namespace; trace it from there"
    if may_trace:
        return "although you have CAP_SYS_PTRACE: it is in another user namespace, or a security module forbids it"
    if users != {str(user)}:
        return f"it belongs to another user{'; you lack CAP_SYS_PTRACE' if user == 0 else '; use its user, or root'}"
    if _capabilities(its, "CapPrm") & ~_capabilities(own, "CapPrm"):
        return "it has capabilities that you lack, and you lack CAP_SYS_PTRACE (docker run --cap-add SYS_PTRACE)"
    return "it forbids it (prctl(2), PR_SET_DUMPABLE), or the container does; CAP_SYS_PTRACE helps"


def _capabilities(status: dict[str, str], name: str) -> int:
    return int(status.get(name, "0"), 16)


def _status(process: str) -> dict[str, str]:
    lines = _read(f"/proc/{process}/status").splitlines()
    return {name: value.strip() for name, _, value in (line.partition(":") for line in lines)}


def _read(path: str) -> str:
    try:
        with open(path, encoding="utf-8", errors="replace") as file:
            return file.read().strip()
    except OSError:
        return ""
