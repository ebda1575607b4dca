"""The end of a process, written into its log.xml by who waited for it, where it could not write it itself."""

from __future__ import annotations

import os
import re
import stat

from interpose.experiments import names

CLOSING = b"</experiment>"
LARGEST_LOG_BYTES = 1 << 22


def complete(experiment: str, pid: int, returncode: int, time_ns: int) -> bool:
    """Note how the process `pid` ended, if the experiment is that of this process and does not say so yet.

    `returncode` is its exit code or the negative number of the signal that killed it; `time_ns` is monotonic.
    Gives whether it was written.
    """
    how = f'status="{returncode}"' if returncode >= 0 else f'signal="{-returncode}"'
    event = f'  <event kind="exit" time_ns="{time_ns}" {how}/>\n'.encode()
    flags = os.O_RDWR | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
    try:
        descriptor = os.open(os.path.join(experiment, names.LOG), flags)
    except OSError:
        return False
    try:
        return _insert(descriptor, pid, event)
    except OSError:
        return False
    finally:
        os.close(descriptor)


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
