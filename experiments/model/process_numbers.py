"""Numbers of recorded processes. Each means something only in the PID namespace in which the process read it.

In the PID namespace of somebody else the same number is another process, or none.
"""

from __future__ import annotations

import os

from interpose.experiments.metadata.log import Log

_found: dict[tuple[int, int], int] = {}  # the number here, by namespace and number there


def own_namespace() -> int:
    """The inode of this process's PID namespace; 0 if /proc shows the processes of another one, or does not say."""
    try:
        is_own = os.readlink("/proc/self") == str(os.getpid())
        return os.stat("/proc/self/ns/pid").st_ino if is_own else 0
    except OSError:
        return 0


def is_number_here(log: Log) -> bool:
    """Whether the number that a process recorded is also its number here. Earlier versions did not record the
    namespace; then it is taken for ours."""
    return log.pid_namespace in (0, own_namespace())


def number_here(log: Log) -> int:
    """The number that a recorded process has here; 0 if it has ended, or cannot be seen from here."""
    if is_number_here(log):
        return log.pid
    if not own_namespace():
        return 0
    there = log.pid_namespace, log.pid
    if there in _found and _is_number(_found[there], *there):
        return _found[there]
    numbers = (int(name) for name in os.listdir("/proc") if name.isdecimal())
    number = next((number for number in numbers if _is_number(number, *there)), 0)
    if number:
        _found[there] = number
    return number


def number_to_show(log: Log) -> int:
    """The same, to name the process by; the number that it recorded if it has none here."""
    return number_here(log) or log.pid


def _is_number(number: int, namespace: int, pid: int) -> bool:
    """Whether the process that is `number` here is `pid` in that namespace."""
    try:
        if os.stat(f"/proc/{number}/ns/pid").st_ino != namespace:
            return False
        with open(f"/proc/{number}/status", "rb") as file:
            return any(line.startswith(b"NSpid:") and line.split()[-1] == b"%d" % pid for line in file)
    except OSError:
        return False
