"""The kernel's view: writes experiments of processes whose system calls are recorded from outside.

A process given by the user is a founder. The processes that it starts are its descendants (`_c1`), and so are theirs
(`_c1_c1`). C code (cext/kernel) writes events and threads while the processes run. This module writes everything else,
mainly when a process starts and when it ends.
"""

from __future__ import annotations

import errno
import os
import re
import shutil
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial

from interpose import __version__
from interpose.errors import ExperimentError
from interpose.experiments.format.records import Overview, SiteRecord, StackRecord
from interpose.experiments.maintenance.observed import Description, Observed, Tables
from interpose.experiments.metadata import describe, names
from interpose.experiments.metadata.map import Intrinsic
from interpose.experiments.model.process_numbers import own_namespace
from interpose.kinds import EVERY, OF_KERNEL
from interpose.timing import kernel, shims

BEGINNING, LATER, END = 1, 2, 3  # kinds of the overview's samples
WRITES_EVERY_S = 1.0
REASONS_AT_MOST = 20  # for failures, that are kept
UNLISTED = "other"  # the name of a system call that is not in the list
UNKNOWN = "?"
LONGEST_NAME_BYTES = 255  # of a file (NAME_MAX)
FILES = ("events", "events.zst", "threads", "strings", "sites", "stacks", "overview")
OTHER_FILE = re.compile(rf'  <data name="(?!(?:{"|".join(FILES)})")[^"]*"[^>]*(?:/>\n|[^/]>\n(?:    .*\n)*  </data>\n)')
ERRORS = [errno.errorcode.get(number, f"error {number}") for number in range(1, kernel.FIRST_TEXT)]


@dataclass(frozen=True)
class Wanted:
    """What to record.

    `settings` are the texts of the settings; `kinds` are the kinds of calls. `follows`: also watch child processes.
    `has_stacks`: record the functions that led to each call. `keeps_paths`: record paths. `redacted` returns what may
    be written of a text. `why_not` says why a process must not be recorded; it is called when a process starts and
    when it executes another program."""

    settings: Mapping[str, str]
    kinds: Sequence[str] = EVERY
    follows: bool = True
    has_stacks: bool = False
    keeps_paths: bool = True
    redacted: Callable[[str], str] = str
    why_not: Callable[[int, Sequence[str]], str] = lambda pid, programs: ""


class KernelView:
    """Watches processes until it is closed. Raises OSError if the kernel does not permit it."""

    def __init__(self, wanted: Wanted) -> None:
        self.wanted = wanted
        costs_ns = kernel.measured_costs(wanted.has_stacks)
        self.description = Description(_head(wanted, costs_ns), _intrinsics())
        self._failures: dict[tuple[str, str], _Failure] = {}  # by what was not done, and why
        self._view = kernel.View(
            wanted.follows, wanted.has_stacks, sum(1 << EVERY.index(kind) for kind in wanted.kinds), costs_ns
        )
        self._recorded: dict[int, _Recorded] = {}
        self._unwritten: dict[int, _Recorded] = {}  # those that began, or executed another program, since the last look
        self._ended: list[_Recorded] = []  # founders; `close` may know their exit codes
        self._gone: set[int] = set()  # processes that had ended at the last check
        self._expected: str | None = None  # the experiment for the next child of ours
        self._written_s = time.monotonic()

    def watch(self, pid: int, directory: str) -> None:
        """Record the process `pid`, from now on, in the experiment that was made for it. Raises OSError, with the path
        of the experiment if that cannot be written."""
        process = self._view.watch(pid)
        try:
            self._recorded[pid] = _Recorded(self, process, directory)
            self._recorded[pid].write()
        except OSError as error:
            self._view.forget(process)
            raise OSError(error.errno, error.strerror, directory) from None

    def watch_child(self, directory: str) -> None:
        """Record the next child of the calling thread, from its `exec` on. Raises OSError."""
        self._view.watch_child()
        self._expected = directory

    @property
    def has_nobody(self) -> bool:
        """Whether all processes have ended."""
        return not self._recorded and self._expected is None

    @property
    def failures(self) -> list[str]:
        """What could not be recorded, and why: a sentence for each reason."""
        return [str(each) for each in self._failures.values()]

    def look(self, is_last: bool = False) -> None:
        """Process all perf records that have arrived."""
        self._view.look(is_last)
        while found := self._view.next():
            what, process = found
            if what == "place":
                self._begin(process)
            elif recorded := self._recorded.get(process.pid):
                self._continue(recorded, what)
            elif what == "end":
                self._view.forget(process)
        for recorded in self._unwritten.values():
            self._try(recorded.pid, recorded.write)
        self._unwritten.clear()
        if time.monotonic() > self._written_s + WRITES_EVERY_S:
            self._end_the_gone()
            self._write()

    def close(self, returncodes: Mapping[int, int] | None = None) -> None:
        """Stop watching all processes. `returncodes`, by PID, says how our own children ended: an exit code, or the
        negative number of a signal."""
        self.look(is_last=True)
        for recorded in list(self._recorded.values()):
            self._end(recorded)
        self._view.close()
        for recorded in self._ended:
            self._try(recorded.pid, partial(recorded.finish, (returncodes or {}).get(recorded.pid)))

    def _begin(self, process: kernel.Watched) -> None:
        """Make the experiment of a new process, unless it is unknown or must not be recorded."""
        parent, expected = self._recorded.get(process.parent), self._expected
        is_wanted = expected is not None if parent is None else self.wanted.follows
        if not is_wanted:
            return
        if self._why_not(process):
            self._expected = None if parent is None else self._expected
            return
        try:
            if parent is None:
                self._expected = None
                recorded = _Recorded(self, process, expected or "")
            else:
                recorded = parent.descendant(process)
            self._recorded[process.pid] = self._unwritten[process.pid] = recorded
        except (OSError, ExperimentError) as error:
            self._note_error(process.pid, error)

    def _why_not(self, process: kernel.Watched) -> str:
        """Why a process must not be recorded; empty if it may be. The reason is added to the failures."""
        became = filter(None, (process.program, process.name))
        why = self.wanted.why_not(process.pid, list(dict.fromkeys(became)))
        if why:
            self._note_failure(process.pid, "recorded", why)
        return why

    def _continue(self, recorded: _Recorded, what: str) -> None:
        """The process has ended, or executed another program, which may be forbidden."""
        if what == "end" or self._why_not(recorded.process):
            self._end(recorded)
        else:
            recorded.note_program()
            self._unwritten[recorded.pid] = recorded

    def _end(self, recorded: _Recorded) -> None:
        del self._recorded[recorded.pid]
        self._unwritten.pop(recorded.pid, None)
        self._view.leave(recorded.process)
        self._try(recorded.pid, recorded.end)
        self._view.forget(recorded.process)
        if recorded.is_founder:
            self._ended.append(recorded)
        else:
            self._try(recorded.pid, partial(recorded.finish, None))

    def _end_the_gone(self) -> None:
        """End the recording of processes that have ended if the perf record of their end was lost."""
        gone = {pid for pid in self._recorded if _has_ended(pid)}
        for pid in gone & self._gone:
            self._recorded[pid].is_gone = True
            self._view.note_gone(self._recorded[pid].process)
            self._end(self._recorded[pid])
        self._gone = gone

    def _write(self) -> None:
        for recorded in self._recorded.values():
            self._try(recorded.pid, recorded.write_more)
        self._written_s = time.monotonic()

    def _try(self, pid: int, act: Callable[[], None]) -> None:
        try:
            act()
        except (OSError, ExperimentError) as error:
            self._note_error(pid, error)

    def _note_error(self, pid: int, error: Exception) -> None:
        path = getattr(error, "filename", None)
        why = str(getattr(error, "strerror", None) or error)
        self._note_failure(pid, "recorded whole", why, f"{path}: " if path else "")

    def _note_failure(self, pid: int, what: str, why: str, place: str = "") -> None:
        if (what, why) not in self._failures and len(self._failures) >= REASONS_AT_MOST:
            why, place = "other reasons", ""
        failure = self._failures.setdefault((what, why), _Failure(what, f"{place}{why}", pid))
        failure.pids.add(pid)


@dataclass
class _Failure:
    """What was not done, why, and for which processes; a path in `why` is that of the first one, `pid`."""

    what: str
    why: str
    pid: int
    pids: set[int] = field(default_factory=set)

    def __str__(self) -> str:
        others = len(self.pids) - 1
        more = f" and {others:,} {'other' if others == 1 else 'others'} are" if others else " is"
        return f"process {self.pid}{more} not {self.what}: {self.why}"


@dataclass
class _Lineage:
    """The place of a process among the others of its experiment."""

    name: str = ""
    above: _Lineage | None = None
    descendants: int = 0

    def next_below(self) -> _Lineage:
        """The place of the next process that this one started: below it or, if the name would be too long, below one of
        its ancestors."""
        self.descendants += 1
        made = _Lineage(f"{self.name}_c{self.descendants}", self)
        is_too_long = len(f"{made.name}{names.SUFFIX}") > LONGEST_NAME_BYTES
        return self.above.next_below() if is_too_long and self.above else made


class _Recorded:
    """A recorded process and its experiment, in `directory`; a descendant's is in that of `founder`. The experiment
    cannot be read before `write`. Raises OSError."""

    def __init__(
        self,
        view: KernelView,
        process: kernel.Watched,
        directory: str,
        founder: str = "",
        lineage: _Lineage | None = None,
    ) -> None:
        self.process, self.pid = process, process.pid
        self._view, self._founder, self._lineage = view, founder or directory, lineage or _Lineage()
        self._has_said_status = False
        self._end_ns = 0
        self.is_gone = False  # it has ended, but the record of its end was lost
        self._tables = Tables()
        self._sizes = (0, 0, 0)  # of what was written
        self._observed = Observed(directory, view.description, self._about(), founder)
        process.place(directory)
        self._sample(BEGINNING)
        self.note_program()

    def descendant(self, process: kernel.Watched) -> _Recorded:
        """A child process of this one, with its own experiment. Raises OSError."""
        lineage = self._lineage.next_below()
        directory = names.lineage_path(self._founder, lineage.name)
        names.make_like_above(directory)
        try:
            return _Recorded(self._view, process, directory, self._founder, lineage)
        except OSError:
            shutil.rmtree(directory, ignore_errors=True)
            raise

    def note_program(self) -> None:
        """From now on, its calls come from the program that it runs now."""
        path, redacted = self._path, self._view.wanted.redacted
        self._observed.name(redacted(path), redacted(self._cwd))
        self.process.begin_program(path)

    @property
    def is_founder(self) -> bool:
        """Whether the process that started it is not recorded."""
        return not self._lineage.name

    @property
    def _path(self) -> str:
        """The path of its program; from /proc if it was already running when watching started."""
        if self.process.program:
            return self.process.program
        try:
            return os.readlink(f"/proc/{self.pid}/exe")
        except OSError:
            return self._name

    @property
    def _name(self) -> str:
        try:
            with open(f"/proc/{self.pid}/comm", encoding="utf-8", errors="replace") as file:
                return file.read().strip() or UNKNOWN
        except OSError:
            return UNKNOWN

    def write_more(self) -> None:
        """Write what is known so far, if it is more than before."""
        if self.process.sizes != self._sizes:
            self.write()

    def write(self) -> None:
        """Write what is known so far."""
        self._sizes = self.process.sizes
        wanted = self._view.wanted
        texts = [text.decode("utf-8", "replace") for text in self.process.texts]
        known = {number for site in self.process.sites for number in site[:2]}
        kept = [
            wanted.redacted(text) if wanted.keeps_paths or number in known or text.startswith("<") else UNKNOWN
            for number, text in enumerate(texts, kernel.FIRST_TEXT)
        ]
        self._tables.strings = [text.encode("utf-8", "replace") for text in [*ERRORS, *kept]]
        self._tables.sites = [SiteRecord(file, function, 0, own, 0) for file, function, own in self.process.sites]
        self._tables.stacks = [StackRecord(*each) for each in self.process.stacks]
        self._observed.write(self._tables)

    def end(self) -> None:
        """Write the end: it has ended, or is no longer watched."""
        _, end_ns, _, _ = self.process.times
        self._end_ns, status = end_ns, self.process.status
        lost = self.process.lost
        if lost is not None:
            why = f"the kernel lost {f'{lost:,} ' if lost else ''}perf records of system calls and context switches"
            self._observed.note("missed", time_ns=end_ns, what="calls", why=why)
        elif self.is_gone:
            self._observed.note(
                "missed", time_ns=end_ns, what="calls", why="the kernel lost perf records, also of its end"
            )
        if error := self.process.failed:
            self._observed.note("stopped", time_ns=end_ns, why=os.strerror(error))
        if not self.process.has_ended:
            self._observed.note("detached", time_ns=end_ns)
        elif status is not None:
            self._observed.note("exit", time_ns=end_ns, status=status)
            self._has_said_status = True
        self._sample(END if self._has_said_status else LATER)
        self.write()

    def finish(self, returncode: int | None = None) -> None:
        """Write how it ended, unless its perf records said so, and compress its events."""
        if returncode is not None and not self._has_said_status:
            how = {"status": returncode} if returncode >= 0 else {"signal": -returncode}
            self._observed.note("exit", time_ns=self._end_ns, **how)
            self._observed.write(self._tables)
        self._observed.compress()

    def _sample(self, kind: int) -> None:
        begin_ns, end_ns, cpu_ns, delay_ns = self.process.times
        values = dict.fromkeys(Overview._fields, 0) | {"kind": kind, "run_delay_ns": delay_ns, "cpu_ns": cpu_ns}
        values |= {"time_ns": begin_ns if kind == BEGINNING else end_ns, "status": self.process.status or 0}
        self._tables.overview.append(Overview(**values))

    @property
    def _cwd(self) -> str:
        try:
            return os.readlink(f"/proc/{self.pid}/cwd")
        except OSError:
            return ""

    def _about(self) -> dict[str, object]:
        begun_ns = self.process.times[0]
        time_ns = time.time_ns() - (time.monotonic_ns() - begun_ns)
        of_kernel = {"pid": self.pid, "ppid": self.process.parent, "start_ns": begun_ns, "time_ns": time_ns}
        return {**of_kernel, "parent": "", "lineage": self._lineage.name, "pid_namespace": own_namespace()}


def _head(wanted: Wanted, costs_ns: Mapping[str, int]) -> str:
    """The log up to the command, without the files that a kernel's view does not have."""
    made: str = describe.head(
        shims.format_version(),
        OTHER_FILE.sub("", shims.layout()),
        version=__version__,
        settings=wanted.settings,
        clock=("kernel", "perf events", 0, 1e-9),
        cost={"call_ns": costs_ns["call_ns"], "inside_ns": costs_ns["inside_ns"], "wait_above_ns": 0},
        interposed=(describe.BY_KERNEL, ""),
        arguments=None,
        redacted=wanted.redacted,
    )
    return made


def _has_ended(pid: int) -> bool:
    """Whether no thread of a process is left. Its number may remain until its parent asks for the exit code."""
    try:
        with open(f"/proc/{pid}/stat", "rb") as file:
            state = file.read().rpartition(b")")[2].split()[0]
        return state in (b"Z", b"X") and os.listdir(f"/proc/{pid}/task") == [str(pid)]
    except OSError:
        return True


def _intrinsics() -> list[Intrinsic]:
    """The intrinsics: one for each system call and each kind that its calls may be of."""
    listed = [*kernel.system_calls(EVERY), (UNLISTED, [OF_KERNEL])]
    return [Intrinsic(f"syscall.{name}", kind, by=describe.BY_KERNEL) for name, kinds in listed for kind in kinds]
