"""Who had the locks of files, and who waited for them. Nothing notes who holds such a lock, so it is read from the
events of all processes of the experiment."""

from __future__ import annotations

import os
import re
from bisect import bisect_right
from collections import Counter, defaultdict
from collections.abc import Iterator, Sequence
from functools import cache, cached_property
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
    thread: Thread
    place: tuple[str, Site | None]


class FileLocks:
    """Who had the locks of whole files, and who waited for them, by the events of some processes, by their numbers."""

    def __init__(self, accounts: dict[int, ProcessAccount]) -> None:
        self._holds: defaultdict[str, list[Hold]] = defaultdict(list)
        self._waits: defaultdict[str, list[Waited]] = defaultdict(list)
        for number, account in accounts.items():
            self._read(account.process, number, account.latest_ns)
        for holds in self._holds.values():
            holds.sort(key=lambda each: each.start_ns)
        self._starts = {path: [each.start_ns for each in holds] for path, holds in self._holds.items()}
        self._before = {path: _of_others_before(holds) for path, holds in self._holds.items()}

    def _read(self, process: Process, number: int, latest_ns: int) -> None:
        held: defaultdict[str, dict[int, Held]] = defaultdict(dict)  # by path and thread
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
                self._waits[path].append(Waited((since_ns, call.start_ns), thread, (name, site)))
            if is_taken and call.error:
                failed_ns[path, call.thread] = call.end_ns
                continue
            there = held[path] if lock else held.get(path, {})
            if lock is None:
                for key, each in list(there.items()):
                    if key == call.thread or not each.closed_ns:
                        there[key] = each._replace(closed_ns=call.start_ns)
                    if each.ends_at_close:
                        self._end(path, (number, key), there.pop(key), call.start_ns)
                continue
            key = call.thread
            if key not in there and not is_taken:  # one thread may take it, and another release it
                key = next(iter(there), key)
            if key in there:
                ended_ns = there[key].closed_ns if is_taken else 0
                self._end(path, (number, key), there.pop(key), ended_ns or call.start_ns)
            if is_taken:
                there[call.thread] = Held(call.end_ns, site, name != _OF_WHAT_WAS_OPENED)
                if lock["tries"] is None:
                    self._waits[path].append(Waited((call.start_ns, call.end_ns), thread, (name, site)))
        for path, there in held.items():
            for key, each in there.items():
                self._end(path, (number, key), each, each.closed_ns or latest_ns)

    def _end(self, path: str, thread: Thread, held: Held, end_ns: int) -> None:
        self._holds[path].append(Hold(held.start_ns, max(end_ns, held.start_ns), thread, held.site))

    def holders(self, path: str, intrinsic: str, site: Site | None) -> Counter[Site]:
        """For how long other threads, from which lines, had the lock of `path` while calls from this line waited."""
        found: Counter[Site] = Counter()
        for waited in self._waits.get(path, ()):
            if waited.place == (intrinsic, site):
                for hold, (start_ns, end_ns) in self._meanwhile(path, waited):
                    if hold.site:
                        found[hold.site] += end_ns - start_ns
        return found

    def _meanwhile(self, path: str, waited: Waited) -> Iterator[tuple[Hold, Span]]:
        start_ns, end_ns = waited.span
        holds = self._holds.get(path, [])
        place = bisect_right(self._starts.get(path, []), end_ns) - 1
        while place >= 0:
            hold = holds[place]
            if hold.thread == waited.thread:
                place = self._before[path][place]
                continue
            if hold.end_ns <= start_ns:
                break
            within = max(hold.start_ns, start_ns), min(hold.end_ns, end_ns)
            if within[0] < within[1]:
                yield hold, within
            place -= 1

    @cached_property
    def _awaited(self) -> dict[Thread, dict[str, list[Span]]]:
        found: defaultdict[Thread, defaultdict[str, list[Span]]] = defaultdict(lambda: defaultdict(list))
        for path in sorted(self._waits):
            for each in self._waits[path]:
                for hold, span in self._meanwhile(path, each):
                    found[hold.thread][path].append(span)
        return {thread: dict(spans) for thread, spans in found.items()}

    def awaited(self, thread: Thread) -> dict[str, list[Span]]:
        """When the thread had the locks of files while others waited for them, by their paths."""
        return self._awaited.get(thread, {})


def _of_others_before(holds: Sequence[Hold]) -> list[int]:
    """For each place, the last one before it of another thread, or -1: one thread may have taken the lock often."""
    found: list[int] = []
    for place, hold in enumerate(holds):
        is_same = place > 0 and holds[place - 1].thread == hold.thread
        found.append(found[-1] if is_same else place - 1)
    return found


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
