"""Whether a signal went to our whole process group, and so to the child as well: the kernel does not tell.

A process in the group blocks all signals and takes none. What went to the group, or to all processes, is pending there.
"""

from __future__ import annotations

import os
import select
import signal
import time
from collections.abc import Iterable

LATER_S = 0.001  # the kernel sends it to one process of a group after the other, and the witness may come after us
FORGETS_WITHIN_S = 1.0  # it may have been stopped, as we were, and not go on yet


class GroupWitness:
    """A process that has these signals pending if the group got them. The caller has blocked them."""

    def __init__(self, signals: Iterable[signal.Signals]) -> None:
        asked, self._ask = os.pipe()
        self._answered, answer = os.pipe()
        self._pid = self._start(asked, answer, frozenset(signals))
        os.close(asked)
        os.close(answer)

    def _start(self, asked: int, answer: int, signals: frozenset[signal.Signals]) -> int:
        """Its number; 0 if there can be no other process."""
        try:
            pid = os.fork()
        except OSError:
            return 0
        if not pid:
            try:
                os.close(self._ask)
                _witness(asked, answer, signals)
            finally:
                os._exit(0)
        return pid

    def saw(self, number: int) -> bool:
        """Whether the group got this signal since the last time that it was asked about one that the group got."""
        if not self._has_pending(number):
            time.sleep(LATER_S)
            if not self._has_pending(number):
                return False
        os.write(self._ask, b"?")
        if select.select([self._answered], [], [], FORGETS_WITHIN_S)[0]:
            os.read(self._answered, 1)
        return True

    def _has_pending(self, number: int) -> bool:
        try:
            with open(f"/proc/{self._pid}/status", "rb") as file:
                bits = [int(line.split()[1], 16) for line in file if line.startswith(b"ShdPnd:")]
        except OSError:
            return False
        return any(each >> (number - 1) & 1 for each in bits)

    def end(self) -> None:
        """End it."""
        os.close(self._ask)
        os.close(self._answered)
        if self._pid:
            os.kill(self._pid, signal.SIGKILL)  # it may have been stopped
            os.waitpid(self._pid, 0)


def _witness(asked: int, answer: int, signals: frozenset[signal.Signals]) -> None:
    """Forget what is pending when asked to, until who asks is gone."""
    signal.pthread_sigmask(signal.SIG_BLOCK, signal.valid_signals())
    while os.read(asked, 1):
        while signal.sigtimedwait(signals, 0):
            pass
        os.write(answer, b".")
