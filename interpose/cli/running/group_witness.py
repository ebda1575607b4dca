"""Find out whether a signal went to our whole process group, and so to the child as well. The kernel does not say.

So another process of the group, the witness, notes each signal that the group gets. It has a name of its own, because
signals to all processes called `interpose` are for us alone.
"""

from __future__ import annotations

import fcntl
import os
import signal
import struct
import time
import warnings
from collections.abc import Iterable

LATER_S = 0.001  # what goes to several processes goes to one after the other
AT_MOST_S = 0.1
RECENT_NS = 100_000_000  # what it noted before that was for itself
_NOTE = struct.Struct("=IIq")  # the number of a signal, the process that sent it, and the monotonic time
_NAME = b"group-witness"
_ARG_START, _ARG_END = 45, 46  # where they are in /proc/PID/stat behind the name of the program


class GroupWitness:
    """A process that gets these signals if the group gets them. The caller has blocked them. It ends when we do."""

    def __init__(self, signals: Iterable[signal.Signals]) -> None:
        alive, self._alive = os.pipe()
        self._notes, note = os.pipe()
        os.set_blocking(self._notes, False)
        self._noted: list[tuple[int, int, int]] = []
        self._expected: list[int] = []  # signals that were seen pending: a note of each is still to come
        self._pid = self._start(alive, note, frozenset(signals))
        os.close(alive)
        os.close(note)

    def _start(self, alive: int, note: int, signals: frozenset[signal.Signals]) -> int:
        """Start the witness. Returns its process ID; 0 if fork fails."""
        try:
            with warnings.catch_warnings(action="ignore"):  # as errors, they would be raised after the fork
                pid = os.fork()
        except OSError:
            return 0
        if not pid:
            try:
                os.close(self._alive)
                _witness(alive, note, signals)
            finally:
                os._exit(0)
        return pid

    def saw(self, came: signal.struct_siginfo) -> bool:
        """Whether the group got this signal, which we have just got."""
        until = time.monotonic() + AT_MOST_S
        while not self._has_got(came):
            time.sleep(LATER_S)
            if self._status()["State"][0] != "R" or time.monotonic() > until:  # else it may be about to note something
                return self._has_got(came)
        return True

    def _has_got(self, came: signal.struct_siginfo) -> bool:
        self._read_notes()
        oldest_ns = time.monotonic_ns() - RECENT_NS
        self._noted = [each for each in self._noted if each[2] >= oldest_ns]
        for each in self._noted:
            if each[:2] == (came.si_signo, came.si_pid):
                self._noted.remove(each)
                return True
        if not self._is_pending(came.si_signo):
            return False
        if came.si_signo >= signal.SIGRTMIN or came.si_signo not in self._expected:
            self._expected.append(came.si_signo)  # another that came again before it was noted is one with it
        return True

    def _read_notes(self) -> None:
        try:
            notes = os.read(self._notes, 4096 * _NOTE.size)
        except BlockingIOError:
            return
        for each in _NOTE.iter_unpack(notes):
            if each[0] in self._expected:
                self._expected.remove(each[0])
            else:
                self._noted.append(each)

    def _is_pending(self, number: int) -> bool:
        """Whether the signal is still pending for the witness; never if the witness was killed."""
        told = self._status()
        return told["State"][0] != "Z" and bool(int(told["ShdPnd"], 16) >> (number - 1) & 1)

    def _status(self) -> dict[str, str]:
        """What the kernel says of the witness, or that of one that is gone."""
        try:
            with open(f"/proc/{self._pid}/status", encoding="ascii", errors="replace") as file:
                return dict(line.split(":\t", 1) for line in file if ":\t" in line)
        except OSError:
            return {"State": "Z", "ShdPnd": "0"}

    def end(self) -> None:
        """End it."""
        os.close(self._alive)
        os.close(self._notes)
        if self._pid:
            os.kill(self._pid, signal.SIGKILL)  # it may have been stopped
            os.waitpid(self._pid, 0)


def _witness(alive: int, note: int, signals: frozenset[signal.Signals]) -> None:
    """Note the signals that come, until who wants to know is gone: then `alive` is closed, and another SIGIO comes."""
    signal.pthread_sigmask(signal.SIG_BLOCK, signal.valid_signals())
    os.set_blocking(note, False)
    fcntl.fcntl(alive, fcntl.F_SETOWN, os.getpid())
    fcntl.fcntl(alive, fcntl.F_SETFL, os.O_ASYNC | os.O_NONBLOCK)
    _take_name()
    while not _is_closed(alive):
        came = signal.sigwaitinfo({*signals, signal.SIGIO})
        if came.si_signo in signals:
            try:
                os.write(note, _NOTE.pack(came.si_signo, came.si_pid, time.monotonic_ns()))
            except OSError:
                pass  # nobody reads, and there is no room


def _is_closed(pipe: int) -> bool:
    try:
        return not os.read(pipe, 1)
    except BlockingIOError:
        return False


def _take_name() -> None:
    """Have another name and command line, where the kernel allows it."""
    try:
        with open("/proc/self/comm", "wb", 0) as file:
            file.write(_NAME)
        with open("/proc/self/stat", "rb") as file:
            fields = file.read().rpartition(b")")[2].split()
        begin, end = int(fields[_ARG_START]), int(fields[_ARG_END])
        with open("/proc/self/mem", "r+b", 0) as memory:
            memory.seek(begin)
            memory.write(_NAME[: end - begin - 1].ljust(end - begin, b"\0"))
    except OSError:
        pass
