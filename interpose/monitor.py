"""The monitor of an experiment: a process beside the program that compresses what the program records.

It is `interpose run` while its program runs, or a process that the recorder starts when a program has recorded much.
There is one for an experiment, with all its processes: the one that holds the lock on its directory. It knows the
processes from their directories and from /proc; no program knows of it.
"""

from __future__ import annotations

import errno
import fcntl
import os
import sys
import time
from collections.abc import Sequence
from typing import TYPE_CHECKING

from interpose.analysis.recording.ending import DETACHED, ending, has_mapped, is_running
from interpose.counters import counters_of
from interpose.errors import ExperimentError
from interpose.experiments.format import compressed
from interpose.experiments.maintenance.drain import Drain, Waiting
from interpose.experiments.metadata import names
from interpose.experiments.metadata.control import Control
from interpose.experiments.metadata.creating import without_links
from interpose.experiments.metadata.pauses import Pauses, pauses_of
from interpose.experiments.model.experiment import Experiment, with_forebears
from interpose.experiments.model.files import Damages
from interpose.experiments.model.process import Process
from interpose.experiments.model.process_numbers import is_number_here, number_here

if TYPE_CHECKING:
    from interpose.analysis.consolidation.kept_records import Keeper
    from interpose.profiler import Profiler

CONSOLIDATE = "INTERPOSE_CONSOLIDATE"
CONSOLIDATED_AT_BYTES = 1 << 18  # of compressed events: some hundred thousand
DETAILS_AT_MOST = 5_000  # records with a detail, for each process: some 10 MiB with their contents
SHORTEST_S, LONGEST_S = 0.1, 0.5  # between two looks: the more there was to do, the shorter
FIRST_VERSION = 3  # of the format: before it, blocks in the state full may be in use
FAILED_AT_MOST = 5  # looks at what a process left that has ended: the disk is full, say
ASKED_AT_MOST = 5  # how often to check for the end of a process that was never seen alive
COMING_NS = 10_000_000_000  # so long may a process that was started take until it has described itself
NEVER = float("inf")


class Watched:
    """One process of the experiment. `done` when all that it recorded is compressed, or never will be."""

    def __init__(self, founder: str, place: str) -> None:
        self.directory = os.path.join(founder, place)
        self.place = place
        self._founder = founder
        self._keeper: Keeper | None = None
        self.done = False
        self._process: Process | None = None
        self._drain: Drain | None = None
        self._was_seen = False
        self._has_been_seen_to_end = False
        self._failed = 0  # looks at what was left when it had ended
        self._asked = 0
        self._until_the_end = False  # where space cannot be given back before
        self._emptied_bytes: int | None = None  # the size it had taken, when nothing of it was left

    def given_bytes(self) -> int:
        """How much of what the process took of the pool was given back, by this monitor or an earlier one."""
        if self._emptied_bytes is not None:
            return self._emptied_bytes
        return self._drain.given_bytes if self._drain else 0

    def left_bytes(self) -> int:
        """How much of the disk those blocks have that are full and were not moved yet."""
        try:
            return self._drain.left_bytes() if self._drain and not self.done else 0
        except OSError:
            return 0

    def look(self, deadline_s: float = NEVER, is_low: bool = False) -> bool:
        """Compress what has become full, and all when the process has ended; returns whether there was anything.

        Not much more is done than can be until `deadline_s`, of time.monotonic(), and nothing that takes more of the
        disk where that `is_low`.
        """
        try:
            return not self.done and self._look(deadline_s, is_low)
        except (OSError, ExperimentError):
            self._give_up_after_the_end()
            return False  # removed, or no room: the rest stays as it is, and is tried again

    def _give_up_after_the_end(self) -> None:
        """Of a process that has ended nothing more comes: what cannot be compressed now stays as it is for ever."""
        self._failed += self._has_been_seen_to_end
        self.done = self._failed >= FAILED_AT_MOST

    def _look(self, deadline_s: float, is_low: bool) -> bool:
        drain = self._ready()
        if drain is None or self._process is None:
            return False
        had_ended = self._has_been_seen_to_end = self._has_ended(drain)
        waits = self._until_the_end and (is_low or not had_ended)
        worked = not waits and self._move_full(drain, deadline_s, is_low)
        if self._until_the_end and is_low:  # compressing would take space first, and give it back only later
            self.done = had_ended
            return worked
        if had_ended and not drain.has_grown():
            self._finish(drain, deadline_s)
        if self._process.log.settings.get(CONSOLIDATE) == "1" and not is_low:
            self._consolidate()
        return worked

    def _consolidate(self) -> None:
        """Put like calls together, when many blocks have been compressed, or all; then these are taken away."""
        path = os.path.join(self.directory, compressed.NAME)
        if not os.path.exists(path) or (os.stat(path).st_size < CONSOLIDATED_AT_BYTES and not self.done):
            return
        process = with_forebears(self._founder, self.place.removesuffix(names.SUFFIX), Damages())
        if process.events is None:
            return
        if self._keeper is None:
            from interpose.analysis.consolidation.kept_records import Keeper, slowest_wanted  # long, and rarely needed

            self._keeper = Keeper(process, self._pauses(), slowest_wanted(process), details_at_most=DETAILS_AT_MOST)
        self._keeper.follow(process, self._pauses())
        for block in process.events.blocks():
            if block.place.compressed:
                self._keeper.add(block.head.sequence, block.events)
        self._keeper.write(self.directory, ended=process if self.done else None)
        os.truncate(path, 0)
        if self.done:
            self._keeper = None

    def _pauses(self) -> Pauses:
        return pauses_of(Experiment(self._founder))

    def _ready(self) -> Drain | None:
        """The drain, as soon as the process has described itself."""
        if self._drain is None and _is_described(self.directory):
            process = Process(self.directory, self.place, "", Damages())
            events, into = (process.log.data.get(name) for name in ("events", compressed.NAME))
            if process.log.version < FIRST_VERSION or events is None or into is None or process.is_ring:
                self.done = True
                return None
            self._process = process
            self._drain = Drain(self.directory, self.place, events, into)
        return self._drain

    def _move_full(self, drain: Drain, deadline_s: float, is_low: bool) -> bool:
        if not drain.has_grown():
            return False
        with drain:
            for waiting in drain.full():
                self._move(drain, waiting)
                if time.monotonic() > deadline_s or (is_low and self._until_the_end):
                    break
        return True

    def _move(self, drain: Drain, waiting: Waiting) -> None:
        try:
            drain.move(waiting, give=not self._until_the_end)
        except OSError as error:
            if error.errno != errno.EOPNOTSUPP:
                raise
            self._until_the_end = True

    def _has_ended(self, drain: Drain) -> bool:
        """Whether the process can write no more, because it has ended or become another program.

        If the kernel does not say, it counts as gone if it was seen before or has recorded its end: the number of a
        process in another namespace means nothing here.
        """
        assert self._process is not None
        written = drain.is_written()
        if written is not None:
            return not written
        if is_running(self._process) and has_mapped(self.directory, number_here(self._process.log)):
            self._was_seen = True
            return False
        if self._was_seen:
            return True
        self._asked += 1
        self.done = self._asked > ASKED_AT_MOST
        self._process = Process(self.directory, self.place, "", Damages())
        return ending(self._process).state in ("exit", "killed", DETACHED)

    def _finish(self, drain: Drain, deadline_s: float) -> None:
        with drain:
            for waiting in drain.rest():
                if time.monotonic() > deadline_s:
                    return
                drain.move(waiting, give=False)
            drain.empty()
        self._emptied_bytes = Process(self.directory, self.place, "", Damages()).taken_bytes
        self.done = True


class Page:
    """What the monitor tells the program, on the experiment's control page. Raises ExperimentError."""

    def __init__(self, control: Control) -> None:
        self._control = control
        self._begun = False
        self._times_full = 0

    def tell(self, given_bytes: int, left_bytes: int) -> None:
        """That the monitor lives, how much was ever given back, by whomever, and how much can still be.

        Nothing where the experiment is no longer there.
        """
        try:
            page = self._control.read()
            if not self._begun:
                self._times_full = page.full_waits + page.full_drops if page.emptied_after_full else 0
                self._begun = True
            emptied = page.emptied_after_full
            if not left_bytes and page.full_waits + page.full_drops > self._times_full:
                self._times_full = page.full_waits + page.full_drops
                emptied += 1
            self._control.write(
                monitor=os.getpid(),
                monitor_ns=time.monotonic_ns(),
                drained_bytes=given_bytes,
                emptied_after_full=emptied,
            )
        except (ExperimentError, OSError):
            return

    def tell_if_low(self, free_bytes: int) -> bool:
        """Whether less disk space is free than the reserve. Each process then checks at its next call, and stops
        recording."""
        try:
            is_low = free_bytes < self._control.read().reserve_bytes
            if is_low:
                self._control.want_sample()
            return is_low
        except (ExperimentError, OSError):
            return False

    def leave(self) -> None:
        """That there is no monitor any more."""
        try:
            self._control.write(monitor=0)
        except (ExperimentError, OSError):
            return


def _free_bytes(directory: str) -> int:
    """The free space of the file system for users other than root; 0 if the directory is gone."""
    try:
        status = os.statvfs(directory)
    except OSError:
        return 0
    return status.f_bavail * status.f_frsize


def _is_described(directory: str) -> bool:
    """Whether a process has described itself there; the founder never does where ranks of MPI are all there is."""
    try:
        return os.stat(os.path.join(directory, names.LOG)).st_size > 0
    except OSError:
        return False


def _is_one_coming(described: list[Watched]) -> bool:
    """Whether a process that was just started, or that another just became, may yet describe itself."""
    try:
        processes = [Process(each.directory, each.place, "", Damages()) for each in described]
        begun_ns: dict[int, int] = {}  # by each number the latest
        for process in processes:
            begun_ns[process.log.pid] = max(process.log.start_ns, begun_ns.get(process.log.pid, 0))
        seen = [process for process in processes if is_number_here(process.log)]
        records = [child.record for process in seen for child in process.children if not child.why]
    except (ExperimentError, OSError):
        return False
    after_ns = time.clock_gettime_ns(time.CLOCK_MONOTONIC) - COMING_NS
    return any(
        record.start_ns > max(after_ns, begun_ns.get(record.pid, 0))
        and not (record.error or record.end_ns)
        and os.path.exists(f"/proc/{record.pid}")
        for record in records
    )


def page_of(founder: str) -> Page | None:
    """The page of the experiment, or None if it has none."""
    try:
        return Page(Control(Process(founder, "", "", Damages())))
    except (ExperimentError, OSError):
        return None


class Monitor:
    """Watches all the processes of the experiment in `founder`. Raises BlockingIOError where another one does.

    It holds the directory open and uses that, not the path: another experiment may replace this one there. Shortening
    that one's files would kill its program. `lock` is a descriptor of the directory, if it is already open and locked.
    """

    def __init__(self, founder: str, lock: int | None = None) -> None:
        self._watched: dict[str, Watched] = {}
        self._pause_s = SHORTEST_S
        self._page: Page | None = None
        self._is_gone = False
        self._profiler: Profiler | None = None
        self._lock = _locked(founder) if lock is None else lock
        held = f"/proc/self/fd/{self._lock}/."  # without the dot, it is a symbolic link, and those are not followed
        self._founder = held if os.path.isdir(held) else without_links(founder)

    def profile(self, rate: float, counters: Sequence[str] = ()) -> None:
        """Sample the Python code of the processes at this rate, if that is possible, and read these counters."""
        from interpose.profiler import Profiler

        try:
            self._profiler = Profiler(self._founder, rate, counters)
        except OSError:
            return

    def profile_as_asked(self) -> None:
        """The same, if the program asks for it."""
        try:
            log = Process(self._founder, "", "", Damages()).log
        except ExperimentError:
            return
        if log.profile_hz:
            self.profile(log.profile_hz, counters_of(log.settings))

    def close(self) -> None:
        """Let another one watch."""
        if self._profiler:
            self._profiler.close()
        if self._page:
            self._page.leave()
        os.close(self._lock)

    def look(self, deadline_s: float = NEVER) -> float:
        """Look at every process once; gives for how many seconds there will be nothing to do."""
        self._find()
        if self._page is None and names.is_recorded(self._founder):
            self._page = page_of(self._founder)
        is_low = self._page is not None and self._page.tell_if_low(_free_bytes(self._founder))
        if is_low and self._profiler:  # samples would take more of it
            self._profiler.close()
            self._profiler = None
        worked = [each.look(deadline_s, is_low) for each in self._watched.values()]
        if self._page:
            left_bytes = sum(each.left_bytes() for each in self._watched.values())
            self._page.tell(sum(each.given_bytes() for each in self._watched.values()), left_bytes)
        self._pause_s = SHORTEST_S if any(worked) else min(2 * self._pause_s, LONGEST_S)
        return self._pause_s

    @property
    def is_done(self) -> bool:
        """Whether every recorded process has ended and everything is compressed, or the experiment is gone."""
        if self._is_gone or not self._watched:
            return self._is_gone
        described = [each for each in self._watched.values() if _is_described(each.directory)]
        return all(each.done for each in described) and not _is_one_coming(described)

    def _find(self) -> None:
        """Take in the processes that have come; the founder is the first."""
        try:
            found = os.listdir(self._founder)
        except OSError:
            self._watched.clear()
            self._is_gone = True
            return
        for name in ("", *found):
            lineage = name.removesuffix(names.SUFFIX)
            if name not in self._watched and (name == "" or (lineage != name and names.is_lineage(lineage))):
                self._watched[name] = Watched(self._founder, name)


def _locked(founder: str) -> int:
    """The directory, open and locked. Raises OSError."""
    opened = os.open(founder, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC)
    try:
        fcntl.flock(opened, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        os.close(opened)
        raise
    return opened


def main(founder: str, lock: int | None = None) -> None:
    """Watch until every process of the experiment has ended; nothing if it is watched already. `lock` is a descriptor
    of the directory, if cext/starter has locked it."""
    try:
        if lock is not None:
            os.set_inheritable(lock, False)
        monitor = Monitor(founder, lock)
    except OSError:
        return
    monitor.profile_as_asked()
    while True:
        pause_s = monitor.look()
        if monitor.is_done:
            return monitor.close()
        time.sleep(pause_s)


if __name__ == "__main__":
    main(sys.argv[1])
