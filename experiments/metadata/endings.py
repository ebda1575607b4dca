"""Events of a run, written into log.xml by who watches it: how a process ended that could not say so, and pauses."""

from __future__ import annotations

import contextlib
import fcntl
import os
import re
import stat
import time
from collections.abc import Callable, Iterator

from interpose.experiments.metadata import names

CLOSING = b"</experiment>"
LARGEST_LOG_BYTES = 1 << 22
TRIES = 4
LOCK_S = 1.0


@contextlib.contextmanager
def held(descriptor: int) -> Iterator[None]:
    """Hold the file, so that nobody else who does the same writes into it. Nobody waits for a holder for long."""
    until_s = time.monotonic() + LOCK_S
    while time.monotonic() < until_s:
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
            break
        except BlockingIOError:
            time.sleep(0)
        except OSError:
            break
    try:
        yield
    finally:
        with contextlib.suppress(OSError):
            fcntl.flock(descriptor, fcntl.LOCK_UN)


def complete(experiment: str, pid: int, returncode: int, time_ns: int) -> bool:
    """Note how the process `pid` ended, if the experiment is that of this process and does not say so yet.

    `returncode` is its exit code or the negative number of the signal that killed it; `time_ns` is monotonic.
    Returns whether it was written.
    """
    how = f'status="{returncode}"' if returncode >= 0 else f'signal="{-returncode}"'
    event = f'  <event kind="exit" time_ns="{time_ns}" {how}/>\n'.encode()
    return _change(experiment, lambda descriptor: _insert(descriptor, pid, event))


def append(experiment: str, event: bytes) -> bool:
    """Append an event, a whole line, to the log of a process that may write its own at the same moment.

    Returns whether it is there. Neither waits long for the other: a line that was overwritten is written again, after
    the other's.
    """
    return _change(experiment, lambda descriptor: any(_is_there_or_put(descriptor, event) for _ in range(TRIES)))


def _change(experiment: str, change: Callable[[int], bool]) -> bool:
    """Have the log, which is held meanwhile, changed by its descriptor. False where it cannot be."""
    flags = os.O_RDWR | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
    try:
        descriptor = os.open(os.path.join(experiment, names.LOG), flags)
    except OSError:
        return False
    try:
        with held(descriptor):
            return change(descriptor)
    except OSError:
        return False
    finally:
        os.close(descriptor)


def _is_there_or_put(descriptor: int, event: bytes) -> bool:
    """Whether the event is in the log, as a second look finds; else it is put in front of the first closing tag: what
    is behind that one is a rest of something longer."""
    status = os.fstat(descriptor)
    if not stat.S_ISREG(status.st_mode) or status.st_size > LARGEST_LOG_BYTES:
        raise OSError("not a log")
    log = os.pread(descriptor, status.st_size, 0)
    end = log.find(CLOSING)
    if end < 0:
        return False
    whole = end + len(CLOSING) + 1
    if len(log) > whole:
        os.ftruncate(descriptor, whole)
    if event in log[:end]:
        return True
    os.pwrite(descriptor, event + CLOSING + b"\n", end)
    return False


def _insert(descriptor: int, pid: int, event: bytes) -> bool:
    """Put the event in the place of the closing tag, and the tag behind it, in one write."""
    status = os.fstat(descriptor)
    if not stat.S_ISREG(status.st_mode) or status.st_size > LARGEST_LOG_BYTES:
        return False
    log = os.pread(descriptor, status.st_size, 0)
    end = log.rfind(CLOSING)
    if end < 0 or _says_its_end(log) or not re.search(rb'<process [^>]*\bpid="%d"' % pid, log):
        return False
    text = event + CLOSING + b"\n"
    return os.pwrite(descriptor, text, end) == len(text)


def _says_its_end(log: bytes) -> bool:
    return re.search(rb'<event [^>]*\bkind="exit"', log) is not None
