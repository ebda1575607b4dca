"""Which waits are for a lock that another thread has, and not for its end, or to be told something."""

from __future__ import annotations

import re

from interpose.analysis.findings.finding import Calls
from interpose.analysis.time.file_locks import OF_FILE

# Waits in threading's own classes (conditions, events, joins) are calls of these classes, not of the locks inside them.
LOCKS = ("threading.Lock.", "threading.RLock.")
# What only some can have at a time.
SEMAPHORES = ("threading.Semaphore.acquire", "multiprocessing.SemLock.acquire", "multiprocessing.SemLock.__enter__")
HELD = re.compile(r"held by thread (?P<thread>\d+)(?: at (?P<place>.+))?", re.DOTALL)
_OF_A_THREAD = re.compile(r"Thread\._bootstrap|_bootstrap_inner")  # locks held for the life of a thread


def is_for_lock(calls: Calls) -> bool:
    """Whether they wait for a lock. If its holder is unknown, only those in the program's own code: a library uses such
    a lock as a signal."""
    if not calls.intrinsic.startswith(LOCKS) or not calls.site:
        return False
    held = HELD.fullmatch(calls.detail)
    return not is_of_a_thread(held["place"] or "") if held else calls.caller == calls.site


def is_for_semaphore(calls: Calls) -> bool:
    """Whether they wait for a semaphore of the program's own code, and not in a condition of multiprocessing."""
    return calls.intrinsic in SEMAPHORES and calls.site is not None and calls.caller == calls.site


def path_tried(calls: Calls) -> str:
    """The file whose lock they take only if it is free; empty for other calls."""
    lock = OF_FILE.fullmatch(calls.detail)
    return lock["path"] if lock and lock["tries"] and calls.kind == "sync" else ""


def is_of_a_thread(place: str) -> bool:
    """Whether a lock taken there is held for the life of a thread: a wait for it is one for the thread's end."""
    return bool(_OF_A_THREAD.search(place))
