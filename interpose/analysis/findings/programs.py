"""Calls of programs that are not Python, for the rules about waits: where they are made, and which may be a cause."""

from __future__ import annotations

import re

from interpose.analysis.calls.groupings import program_label
from interpose.analysis.findings.finding import Calls
from interpose.analysis.findings.sockets import ACCEPTING, RECEIVING
from interpose.analysis.findings.survey import Survey, processes_of
from interpose.analysis.time.turns import NATIVE_SELECTORS
from interpose.kinds import NATIVE

# Only these wait for what another thread has. Threads wait for conditions and semaphores to be told something, such as
# that there is work, and for the end of other threads.
_LOCKS = frozenset(
    (
        *("pthread_mutex_lock", "pthread_mutex_timedlock", "pthread_mutex_clocklock", "mtx_lock", "mtx_timedlock"),
        *("pthread_rwlock_rdlock", "pthread_rwlock_timedrdlock", "pthread_rwlock_clockrdlock"),
        *("flock", "lockf", "lockf64", "fcntl", "fcntl64"),  # the last two only where they wait for a lock
        *("pthread_rwlock_wrlock", "pthread_rwlock_timedwrlock", "pthread_rwlock_clockwrlock"),
    )
)
_STARTED = re.compile(r"_[^x]")  # in a lineage, which also counts exec: that starts no process


def is_lock(each: Calls) -> bool:
    """Whether native calls wait for a lock that another thread holds."""
    return each.intrinsic.removeprefix(NATIVE) in _LOCKS


def is_message(each: Calls) -> bool:
    """Whether native calls wait for a message queue: for whoever uses it, which need not be a child."""
    return each.intrinsic.removeprefix(NATIVE).startswith(("msgrcv", "msgsnd", "mq_"))


def has_program_only(each: Calls) -> bool:
    """Whether only the program or library that made native calls is known, not the function. If the functions that led
    to them were recorded, one of these functions is the application line."""
    return bool(each.site and each.site.is_native and not each.site.own)


class Programs:
    """The programs that are not Python, of a survey."""

    def __init__(self, survey: Survey) -> None:
        self._processes = [each.process for each in survey.analysis.accounts]
        network = [each for each in survey.of_kind("net", "idle") if self.made(each)]
        serving = {self.of(each) for each in network if each.verb in ACCEPTING}
        self._clients = {self.of(each) for each in network if each.verb == "connect"} - serving

    def made(self, each: Calls) -> bool:
        """Whether only such programs made these calls, and where is known as far as it can be."""
        return each.site is not None and not any(self._processes[number].log.is_python for number, _ in each.threads)

    def of(self, each: Calls) -> str:
        """The program that made these calls."""
        number, _ = min(each.threads)
        return program_label(self._processes[number])

    def may_be_cause(self, each: Calls) -> bool:
        """Whether calls of a program may be why it is slow. They are not if they wait for whatever comes next, as a
        server does, or are one sleep of a child process: its parent waits for that."""
        if each.kind == "net":
            others = ACCEPTING if self.of(each) in self._clients else ACCEPTING | RECEIVING
            return each.intrinsic not in NATIVE_SELECTORS and each.verb not in others
        is_child = all(_STARTED.search(self._processes[number].lineage) for number, _ in each.threads)
        return each.kind != "sleep" or not is_child or each.calls > processes_of([each])
