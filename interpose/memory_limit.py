"""How much memory a process may have: by its control groups (cgroup version 2 and 1), or else the machine's."""

from __future__ import annotations

import os

_GROUPS = "/sys/fs/cgroup"
_LONGEST = 4096
_NO_LIMIT_BYTES = 1 << 60  # what version 1 says is more than any machine has


def memory_limit_bytes(pid: int, proc: str = "/proc", groups: str = _GROUPS) -> int:
    """The lowest of the limits of the process `pid`'s control groups and the machine's memory; 0 if unknown."""
    known = [_of_machine(proc), *_of_groups(_text(f"{proc}/{pid}/cgroup"), groups)]
    return min((each for each in known if 0 < each < _NO_LIMIT_BYTES), default=0)


def _of_machine(proc: str) -> int:
    for line in _text(f"{proc}/meminfo").splitlines():
        name, _, value = line.partition(":")
        if name == "MemTotal":
            return 1024 * _number(value.removesuffix("kB").strip())
    return 0


def _of_groups(text: str, groups: str) -> list[int]:
    """The limits of the groups in `/proc/PID/cgroup`, and of their parents."""
    found = []
    for line in text.splitlines():
        _, _, rest = line.partition(":")
        controllers, _, path = rest.partition(":")
        if not controllers:
            found += _upward(groups, path, "memory.max")
        elif "memory" in controllers.split(","):
            found += _upward(f"{groups}/memory", path, "memory.limit_in_bytes")
    return found


def _upward(root: str, path: str, name: str) -> list[int]:
    """The limits of the group at `path` and of its parents. In a container its path is not below our root; the root
    then replaces it."""
    found = []
    while path and path != "/" and ".." not in path.split("/"):
        found.append(_number(_text(f"{root}{path}/{name}")))
        path = os.path.dirname(path)
    return [*found, _number(_text(f"{root}/{name}"))]


def _number(text: str) -> int:
    return int(text) if text.strip().isascii() and text.strip().isdigit() else 0


def _text(path: str) -> str:
    try:
        with open(path, encoding="utf-8", errors="replace") as file:
            return file.read(_LONGEST)
    except OSError:
        return ""
