"""Who had the locks of files, and who waited for them. Nothing notes who holds such a lock, so it is read from the
events of all processes of the experiment."""

from __future__ import annotations

import os
import re
from bisect import bisect_right
from collections import Counter, defaultdict
from collections.abc import Iterator
from functools import cache
from itertools import accumulate
from typing import NamedTuple

from interpose.analysis.calls.account import ProcessAccount
from interpose.analysis.time.awaited import Span
from interpose.analysis.time.turns import PLACE, Call, calls_of
from interpose.experiments.model.process import Process
from interpose.experiments.model.stacks import Site

# The operation on the lock of a file, or of a part of it, as cext/hooks/file_lock_detail.c says it.
OF_FILE = re.compile(
    r"(?:(?P<unlock>unlock)|(?P<tries>try )?(?:shared )?lock) (?P<part>part of )?(?P<path>/.+)", re.DOTALL
)
# A lock of flock ends with the last descriptor of what was opened: which was closed is not known. Other locks of a
# process end when it closes any descriptor of the file.
_OF_WHAT_WAS_OPENED = "fcntl.flock"
# Packages sleep for up to a quarter of a second between two attempts to take a lock. After a longer pause, the program
# did something else meanwhile.
_TRIED_AGAIN_NS = 1_000_000_000
_CLOSING = frozenset(("io.FileIO.close", "os.close"))
Thread = tuple[int, int]  # number of the process, number of the thread in it


class Hold(NamedTuple):
    """The time in which a thread had the lock of a file, and the line that took it."""

    start_ns: int
    end_ns: int
    thread: Thread
    site: Site | None


class Held(NamedTuple):
    """A lock that was taken, and when it ends if nothing releases it; 0 with the process."""

    start_ns: int
    site: Site | None
    ends_at_close: bool
    closed_ns: int = 0


class Waited(NamedTuple):
    """A wait for the lock of a file, or the time between two attempts to take it: when, for which, and where."""

    span: Span
    path: str
    thread: Thread
    place: tuple[str, Site | None]


class FileLocks:
    """Who had the locks of whole files, and who waited for them, by the events of some processes, by their numbers."""

    def __init__(self, accounts: dict[int, ProcessAccount]) -> None:
        self._holds: defaultdict[str, list[Hold]] = defaultdict(list)
        self._waits: list[Waited] = []
        for number, account in accounts.items():
            self._read(account.process, number, account.latest_ns)
        for holds in self._holds.values():
            holds.sort(key=lambda each: each.start_ns)
        self._starts = {path: [each.start_ns for each in holds] for path, holds in self._holds.items()}
        self._latest = {
            path: list(accumulate((each.end_ns for each in holds), max)) for path, holds in self._holds.items()
        }

    def _read(self, process: Process, number: int, latest_ns: int) -> None:
        held: dict[tuple[str, int], Held] = {}  # by path and thread
        failed_ns: dict[tuple[str, int], int] = {}  # when an attempt failed, also by these
        for call in sorted(_calls(process), key=lambda each: each.end_ns):
            thread, site = (number, call.thread), process.own_line(call.stack)
            name = process.intrinsic(call.intrinsic).name
            detail = process.string(call.detail)
            lock = OF_FILE.fullmatch(detail)
            path = lock["path"] if lock else os.path.normpath(os.path.join(process.log.cwd, detail))
            if lock and lock["part"]:
                continue
            is_taken = lock is not None and lock["unlock"] is None
            if is_taken and (since_ns := failed_ns.pop((path, call.thread), 0)) + _TRIED_AGAIN_NS > call.start_ns:
                self._waits.append(Waited((since_ns, call.start_ns), path, thread, (name, site)))
            if is_taken and call.error:
                failed_ns[path, call.thread] = call.end_ns
                continue
            if lock is None:
                for key in [each for each in held if each[0] == path]:
                    if key[1] == call.thread or not held[key].closed_ns:
                        held[key] = held[key]._replace(closed_ns=call.start_ns)
                    if held[key].ends_at_close:
                        self._end(number, key, held.pop(key), call.start_ns)
                continue
            key = path, call.thread
            if key not in held and not is_taken:  # one thread may take it, and another release it
                key = next((each for each in held if each[0] == path), key)
            if key in held:
                ended_ns = held[key].closed_ns if is_taken else 0
                self._end(number, key, held.pop(key), ended_ns or call.start_ns)
            if is_taken:
                held[path, call.thread] = Held(call.end_ns, site, name != _OF_WHAT_WAS_OPENED)
                if lock["tries"] is None:
                    self._waits.append(Waited((call.start_ns, call.end_ns), path, thread, (name, site)))
        for key, each in held.items():
            self._end(number, key, each, each.closed_ns or latest_ns)

    def _end(self, number: int, key: tuple[str, int], held: Held, end_ns: int) -> None:
        path, thread = key
        self._holds[path].append(Hold(held.start_ns, max(end_ns, held.start_ns), (number, thread), held.site))

    def holders(self, path: str, intrinsic: str, site: Site | None) -> Counter[Site]:
        """For how long other threads, from which lines, had the lock of `path` while calls from this line waited."""
        found: Counter[Site] = Counter()
        for waited in self._waits:
            if waited.path == path and waited.place == (intrinsic, site):
                for hold, (start_ns, end_ns) in self._meanwhile(waited):
                    if hold.site:
                        found[hold.site] += end_ns - start_ns
        return found

    def _meanwhile(self, waited: Waited) -> Iterator[tuple[Hold, Span]]:
        start_ns, end_ns = waited.span
        holds, latest = self._holds.get(waited.path, []), self._latest.get(waited.path, [])
        for place in range(bisect_right(self._starts.get(waited.path, []), end_ns) - 1, -1, -1):
            hold = holds[place]
            if latest[place] <= start_ns:
                break
            within = max(hold.start_ns, start_ns), min(hold.end_ns, end_ns)
            if hold.thread != waited.thread and within[0] < within[1]:
                yield hold, within

    def awaited_at(self, path: str, thread: Thread) -> list[Span]:
        """When the thread had the lock of `path` while others waited for it."""
        waits = [each for each in self._waits if each.path == path]
        return [span for each in waits for hold, span in self._meanwhile(each) if hold.thread == thread]

    @property
    def paths(self) -> list[str]:
        """The files whose locks were waited for."""
        return sorted({each.path for each in self._waits})


def _calls(process: Process) -> Iterator[Call]:
    """The calls that take, release or end locks of files."""
    if process.events is None:
        return

    @cache
    def is_one(number: int) -> bool:
        return process.intrinsic(number).name in _CLOSING

    @cache
    def is_lock(detail: int) -> bool:
        return OF_FILE.fullmatch(process.string(detail)) is not None

    detail = Call._fields.index("detail")
    yield from calls_of(process, lambda values: is_lock(values[detail]) or is_one(values[PLACE][0]))
