"""A program started in our place: it has our terminal and our signals, and we end as it ends."""

from __future__ import annotations

import os
import resource
import signal
import subprocess
import sys
import time
import warnings
from collections.abc import Iterable, Sequence
from typing import NamedTuple, Protocol

from interpose.cli.running.group_witness import GroupWitness

# What cannot be caught, what job control does with us, and what is for a parent or for who opened a file.
JOB_CONTROL = (signal.SIGSTOP, signal.SIGTSTP, signal.SIGTTIN, signal.SIGTTOU, signal.SIGCONT)
OURS = frozenset((*JOB_CONTROL, signal.SIGKILL, signal.SIGCHLD, signal.SIGIO))
FORWARDED = frozenset(signal.valid_signals() - OURS)  # if sent to us alone
OUR_TIMERS = (signal.SIGALRM, signal.SIGVTALRM, signal.SIGPROF)  # those that run out before the program has them
TIMERS = (signal.ITIMER_REAL, signal.ITIMER_VIRTUAL, signal.ITIMER_PROF)  # an exec keeps them, a fork does not
SI_KERNEL = 0x80


class Attendant(Protocol):
    """Tasks beside the child while it runs."""

    signals: frozenset[signal.Signals]
    """Signals to us that are for it, and are not passed on to the child."""

    def signalled(self, number: signal.Signals) -> None:
        """One of its signals came."""

    def attend(self) -> float | None:
        """Do what is due; return the seconds until something may be due again, None for never."""


class Ended(NamedTuple):
    """How the child ended: its exit code, or the negative number of the signal that killed it.

    `time_ns` is the monotonic instant, `used` what the kernel counted of the child and those that it waited for.
    """

    pid: int
    returncode: int
    time_ns: int
    used: resource.struct_rusage


def run(words: Sequence[str], environment: dict[str, str], attendants: Sequence[Attendant] = ()) -> Ended:
    """Start a program, pass signals on to it, wait for its end. Raises OSError if it cannot be started.

    The signals are blocked from before it starts until its end, and taken one at a time: none is lost, none comes
    twice, and none goes to a process that has the number after the child. While blocked, even an ignored one comes.
    """
    waited_for = {signal.SIGCHLD, *FORWARDED}
    handlers = {number: signal.getsignal(number) for number in (signal.SIGCHLD, signal.SIGINT)}
    mask = signal.pthread_sigmask(signal.SIG_BLOCK, {*waited_for, signal.SIGIO})
    timers = {each: signal.setitimer(each, 0) for each in TIMERS}  # who executed us set them for the program
    witness = GroupWitness(FORWARDED)

    def as_we_were() -> None:
        if handlers[signal.SIGINT] != signal.SIG_IGN:
            signal.signal(signal.SIGINT, signal.SIG_DFL)  # Python's handler is ours
        signal.signal(signal.SIGCHLD, handlers[signal.SIGCHLD])
        for each, left in timers.items():
            signal.setitimer(each, *left)
        signal.pthread_sigmask(signal.SIG_SETMASK, mask)

    try:
        signal.signal(
            signal.SIGCHLD, signal.SIG_DFL
        )  # where it is ignored, the kernel forgets how a child ended
        with warnings.catch_warnings(action="ignore"):  # as errors, they would be raised after the fork
            process = subprocess.Popen(words, env=environment, close_fds=False, preexec_fn=as_we_were)
        while (ended := _ended(process)) is None:
            came = next_signal(waited_for, [each.attend() for each in attendants])
            if came is not None and not _taken(came, attendants) and not _has_it(process.pid, came, witness):
                _pass_on(process.pid, came)
        return ended
    finally:
        witness.end()
        while signal.sigtimedwait({*waited_for, signal.SIGIO}, 0):  # it was for the child, which has ended as it wanted
            pass
        signal.signal(signal.SIGCHLD, handlers[signal.SIGCHLD])
        signal.pthread_sigmask(signal.SIG_SETMASK, mask)


def _has_it(child: int, came: signal.struct_siginfo, witness: GroupWitness) -> bool:
    """Whether the child got the signal itself, from the terminal or with our process group, or must not have it."""
    by_kernel = came.si_code == SI_KERNEL
    if by_kernel and came.si_signo in OUR_TIMERS:
        return False
    is_of_group = by_kernel and not _may_be_for_us_alone(came.si_signo)
    return (is_of_group or witness.saw(came)) and _is_in_our_group(child)


def _may_be_for_us_alone(number: int) -> bool:
    """Whether the kernel may send the signal to us and not to our group.

    When the terminal goes away, the kernel sends SIGHUP to the leader of the session alone.
    The terminal's foreground group gets it when the leader ends, which is after the child.
    """
    return number == signal.SIGHUP and os.getsid(0) == os.getpid()


def _is_in_our_group(child: int) -> bool:
    """Whether the child gets what our group gets, or could have left the group without us, too. A leader cannot."""
    return os.getpgid(child) == os.getpgrp() or os.getpgrp() != os.getpid()


def _pass_on(child: int, came: signal.struct_siginfo) -> None:
    try:
        os.kill(child, came.si_signo)
        if came.si_code == SI_KERNEL and came.si_signo == signal.SIGHUP:
            os.kill(child, signal.SIGCONT)  # as the kernel does, so that what was stopped gets to know
    except PermissionError:
        pass  # it is another user's now, and who sent the signal could not have signalled it


def _ended(process: subprocess.Popen[bytes]) -> Ended | None:
    """How the child ended; None while it runs."""
    pid, status, used = os.wait4(process.pid, os.WNOHANG)
    if not pid:
        return None
    process.returncode = os.waitstatus_to_exitcode(status)
    return Ended(pid, process.returncode, time.monotonic_ns(), used)


def next_signal(
    waited_for: set[signal.Signals], seconds: Iterable[float | None]
) -> signal.struct_siginfo | None:
    """The signal that comes within the least of `seconds`, or None.

    If we were stopped for longer than that and go on, CPython gives a signal with any number (sigwaitinfo waits on).
    """
    limit = min((each for each in seconds if each is not None), default=None)
    came = signal.sigwaitinfo(waited_for) if limit is None else signal.sigtimedwait(waited_for, max(limit, 0))
    return came if came and came.si_signo in waited_for else None


def _taken(came: signal.struct_siginfo, attendants: Sequence[Attendant]) -> bool:
    """Whether the signal is not for the child."""
    for each in attendants:
        if came.si_signo in each.signals:
            each.signalled(signal.Signals(came.si_signo))
            return True
    is_our_own = came.si_code <= 0 and came.si_pid == os.getpid()  # such as SIGPIPE, where nobody reads what we say
    return is_our_own or came.si_signo == signal.SIGCHLD


def end_as(returncode: int) -> int:
    """The exit code to end with; where a signal killed the child, it kills us, without another core file."""
    if returncode >= 0:
        return returncode
    number = -returncode
    sys.stdout.flush()
    sys.stderr.flush()
    _write_no_core()
    if number != signal.SIGKILL:
        signal.signal(number, signal.SIG_DFL)
    signal.pthread_sigmask(signal.SIG_UNBLOCK, {number})
    os.kill(os.getpid(), number)
    return 128 + number  # process 1 of a container is not killed by its own signals


def _write_no_core() -> None:
    """Limit cores to one byte, not to none: a core that goes to a program is written at any other limit."""
    _, hard = resource.getrlimit(resource.RLIMIT_CORE)
    resource.setrlimit(resource.RLIMIT_CORE, (min(1, hard) if hard >= 0 else 1, hard))
