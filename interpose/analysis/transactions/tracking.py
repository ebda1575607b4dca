"""Finds where transactions begin and end, from the outermost calls of a thread as they come.

A call that is a transaction itself (a served request, a task, a marked block) is known by its intrinsic, as is one that
continues the transaction of another thread, whose name it has. Otherwise a transaction begins with a read of the
terminal, whose time is think time, and lasts until the next one. In a thread with neither, each commit ends one, also
the statement COMMIT. It began with the statement BEGIN, or with the first call of the database since the commit or
rollback before; calls that no commit follows are in none. Tasks take turns: a commit of a task ends a transaction of
the task, inside what its thread is in, until a call of the thread is one itself. Names from data collectors take
precedence over commits: each applies until the next name, or until it is cleared. Time before, between and after
transactions has a name that begins with a dot, so each moment of a thread is in exactly one transaction, tasks aside.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import astuple, dataclass, replace
from functools import lru_cache
from typing import NamedTuple

from interpose.analysis.calls.paused import NOT_PAUSED, PausedTimes
from interpose.experiments.metadata.map import Intrinsic, Intrinsics
from interpose.experiments.model.process import Process
from interpose.experiments.model.recorded_files import UNKNOWN
from interpose.experiments.model.stacks import Site
from interpose.kinds import IDLE as FOR_WORK
from interpose.legacy.codes import STATEMENT

# What a call means for transactions: bits.
READS, KEYS, SPAN, MARKED, BEGINS, ENDS, BUSY, NAMES, ASKS, AFRESH, DROPS, RELEASES = (1 << bit for bit in range(12))
WAITS = 1 << 12  # nothing for transactions: the call waits for new work
MARK = "interpose.transaction"
DECIDES = READS | BEGINS | ENDS | NAMES | AFRESH | DROPS  # a tracker is asked at each such call
ECHO_WITHIN_NS = 100_000_000  # a program that takes longer between two keys does more than show what was typed
ROLLBACK = "rollback"
CLOSES = ("close", "reset")  # of a connection: after the work, also by a pool; what is not committed is rolled back
_BEGINS = re.compile(r"\W*(begin|start\s+transaction)\b", re.IGNORECASE)
# END is of SQLite and PostgreSQL, ABORT of PostgreSQL. COMMIT PREPARED and ROLLBACK TO do not end the transaction.
_COMMITS = re.compile(
    r"\W*(commit(?!\s+prepared\b)|end(?=(\s+(work|transaction)\b.*)?[\s;]*$))(?![\w-])", re.IGNORECASE | re.DOTALL
)
_ROLLS_BACK = re.compile(
    r"\W*(rollback|abort)(?!(\s+(work|transaction))?\s+(to|prepared)\b)(?![\w-])", re.IGNORECASE
)
_COMMITS_AT_ITS_END = re.compile(r";\s*commit(\s+(work|transaction))?[\s;]*$", re.IGNORECASE)
# END is also the last word of a block of a procedural language, whose BEGIN is followed by the block's first statement.
_IS_ONE = re.compile(
    r"\W*(begin|start\s+transaction)(\s+(work|transaction|deferred|immediate|exclusive|read|isolation)\b[^;]*)?\s*;"
    r".*;\s*end(\s+(work|transaction))?[\s;]*$",
    re.IGNORECASE | re.DOTALL,
)
_RELEASES = re.compile(r"\W*release\s+savepoint\b", re.IGNORECASE)
_LOOPS = ("/asyncio/events.py", "/asyncio/runners.py")  # they run tasks; uvloop's own frames are not of Python
QUIET_KINDS = frozenset(("screen", FOR_WORK, "sleep"))

# The name of a transaction: what its number is a number of, in the upper half.
OF_ITSELF, BY_STACK, BY_DETAIL, BY_INTRINSIC = (kind << 32 for kind in range(1, 5))
# The same of one in progress at the end: its detail or its intrinsic.
IN_PROGRESS = 2 << 32
NUMBER = (1 << 32) - 1
PSEUDO = (".INIT", ".IDLE", ".EXIT", ".ECHO", ".OTHER")
INIT, IDLE, EXIT, ECHO, OTHER = (OF_ITSELF | number for number in range(len(PSEUDO)))
OPEN = OF_ITSELF | len(PSEUDO)  # in kept records: of calls in what has not ended yet, and has no name before


class Life(NamedTuple):
    """From when to when a thread lived, on both clocks; its CPU time is not known where `end_cpu_ns` is 0."""

    start_ns: int
    start_cpu_ns: int
    end_ns: int
    end_cpu_ns: int


class Outermost(NamedTuple):
    """An outermost call: its times, and what it and the calls inside it mean for transactions.

    `think_wall_ns` and `think_cpu_ns` are those of reads of the terminal, inside it or itself; `stack` is that of the
    last read or commit, `name` the name that it would give a transaction, or 0.
    """

    start_ns: int
    wall_ns: int
    start_cpu_ns: int
    cpu_ns: int
    bits: int
    think_wall_ns: int
    think_cpu_ns: int
    stack: int
    name: int


class Closing(NamedTuple):
    """A transaction that has ended. `wall_ns` and `cpu_ns` are with what the user took to think. `times` is 0 if this
    goes on with the one of its name that was closed just before."""

    name: int
    start_ns: int
    wall_ns: int
    cpu_ns: int
    think_wall_ns: int = 0
    think_cpu_ns: int = 0
    times: int = 1


class Unended(NamedTuple):
    """A call that is a transaction and was in progress at the end, with the calls in progress inside it.

    `calls` has their numbers and the names that they would give a transaction (0 for none), the innermost first;
    `is_marked` says of each whether its own name counts in any case.
    """

    thread: int
    call: Outermost
    calls: tuple[tuple[int, int, bool], ...]

    def name(self, inside: Mapping[int, int]) -> int:
        """What names it, if calls that ended within the calls in progress have told these names."""
        name = 0
        for call, own, is_marked in self.calls:
            name = name or inside.get(call, 0)
            if own and (is_marked or name in (0, IDLE)):
                name = own
        return name


class Between(NamedTuple):
    """Since when a thread has been between two transactions that are calls, and what is left of its CPU time."""

    start_ns: int
    start_cpu_ns: int
    cpu_left_ns: int


class Step(NamedTuple):
    """What an outermost call does to the current transaction of its thread.

    `before` ends before the call, `after` with it; the call belongs to the one that is current in between, unless it
    `is_its_own`.
    """

    before: Closing | None = None
    is_its_own: bool = False
    after: Closing | None = None


@dataclass(slots=True)
class _Current:
    """The transaction of a thread: when and how it began, and the part of it that does not count."""

    start_ns: int
    start_cpu_ns: int
    # READS, BEGINS, NAMES, ASKS (a call of a database), ENDS (one ended with a commit) or SPAN; 0: it is the first
    begun_by: int = 0
    name: int = 0  # of calls of a database that no commit ends: that of the time before them, which they go on with
    goes_on: int = 0  # the name of what was closed just before, if this may go on with it
    read_until_ns: int = 0
    read_until_cpu_ns: int = 0
    think_wall_ns: int = 0
    think_cpu_ns: int = 0
    echo_ns: int = 0
    echo_cpu_ns: int = 0


class Tracker:
    """Follows the transactions of the threads of one process."""

    def __init__(
        self, lives: Mapping[int, Life], paused: PausedTimes | None = None, details: Details | None = None
    ) -> None:
        self._lives = dict(lives)
        self._paused = paused
        self._details = details
        self.stays_open = False  # whether more comes, so that what threads are in does not end when it is finished
        self.unended: list[Unended] = []  # of threads, one each at most
        self._gone_on_with: dict[int, int] = {}  # the names of what was open, once it has ended
        self._current: dict[int, _Current] = {}
        self._names: dict[int, int] = {}  # what collectors named the transaction of each thread, as long as it holds
        self._gone_on: set[int] = set()
        self._serving: set[int] = set()  # threads of which a call was a transaction
        # What the clocks read a little late or early: more CPU than wall time, which is that of the next transaction.
        self._cpu_left: dict[int, int] = {}

    def go_on_from(self, until: Iterable[tuple[int, int, int]]) -> None:
        """Note that the transactions of these threads are known until these instants on both clocks."""
        for thread, until_ns, until_cpu_ns in until:
            if life := self._lives.get(thread):
                begun = max(life.start_ns, until_ns), max(life.start_cpu_ns, until_cpu_ns)
                end = max(life.end_ns, begun[0]), max(life.end_cpu_ns, begun[1]) if life.end_cpu_ns else 0
                self._lives[thread] = Life(*begun, *end)
                self._gone_on.add(thread)

    def go_on_with(self, states: Iterable[tuple[int, ...]]) -> None:
        """Have these threads be in what was open, as `open_states` says."""
        for thread, named, *state in states:
            self._current[thread] = _Current(*state)
            self._names[thread] = named

    def open_states(self) -> list[tuple[int, ...]]:
        """What each thread is in: its number, the name from a collector, and how that began."""
        states = []
        for thread, life in self._lives.items():
            current = self._current.get(thread) or _Current(life.start_ns, life.start_cpu_ns)
            start_cpu_ns = max(current.start_cpu_ns - self._cpu_left.get(thread, 0), 0)
            state = astuple(replace(current, start_cpu_ns=start_cpu_ns))
            states.append((thread, self._names.get(thread, 0), *state))
        return states

    def name_of_open(self, thread: int) -> int:
        """The name of the first that ended of a thread; OPEN if none has."""
        return self._gone_on_with.get(thread, OPEN)

    def follow(self, lives: Mapping[int, Life], paused: PausedTimes | None, details: Details) -> None:
        """Note the threads with their known ends, what they spent in pauses, if given, and the statements."""
        self._lives = dict(lives)
        self._paused = paused or self._paused
        self._details = details

    def step(self, thread: int, call: Outermost, is_busy: bool) -> Step:
        """What `call` does to the transactions of `thread`; where `is_busy`, the current one did more than to echo."""
        step = self._step(thread, call, is_busy)
        if ended := step.before or step.after:
            self._gone_on_with.setdefault(thread, ended.name)
        return step

    def _step(self, thread: int, call: Outermost, is_busy: bool) -> Step:
        current = self._current.get(thread)
        if current is None:
            life = self._lives.get(thread)
            start = (life.start_ns, life.start_cpu_ns) if life else (call.start_ns, call.start_cpu_ns)
            current = self._current[thread] = _Current(*start)
        if call.bits & SPAN:
            return self._span(thread, current, call)
        if call.bits & READS:
            return self._read(thread, current, call, is_busy)
        if call.bits & NAMES:
            return self._name(thread, current, call)
        if call.bits & BEGINS:
            return self._begin(thread, current, call)
        return self._ask(thread, current, call)

    def step_of_task(self, thread: int, task: int, call: Outermost) -> Step:
        """What a call of a database does to the transaction of its task; between two of them a task is in none."""
        number = number_of_task(thread, task)
        step = self._step(number, call, False)
        if self._current[number].begun_by != ASKS:
            del self._current[number]
        self._cpu_left.pop(number, None)
        return step

    def serve(self, thread: int, since_ns: int) -> None:
        """Note that a call of `thread`, which began then, is a transaction: from then on, its tasks commit none."""
        self._serving.add(thread)
        self.forget_tasks(thread)

    def is_serving(self, thread: int) -> bool:
        """Whether a call of `thread` was a transaction."""
        return thread in self._serving

    def forget_tasks(self, thread: int | None = None) -> None:
        """Forget the transactions in progress of the tasks of `thread`, or of all."""
        for number in [each for each in self._current if each > NUMBER and thread in (None, each & NUMBER)]:
            del self._current[number]

    def role_of(self, detail: int) -> int:
        """What a call of a database with this detail means for transactions, beside what its intrinsic says: bits."""
        return self._details.role_of(detail) if self._details else 0

    def between(self, thread: int) -> Between | None:
        """Where `thread` is, if a call that is a transaction would do nothing but end an `IDLE` one that began there.

        The caller may end such ones without asking, and then calls `go_on_between` before the next step.
        """
        current = self._current.get(thread)
        if current is None or current.begun_by != SPAN or self._names.get(thread) or self._paused:
            return None
        return Between(current.start_ns, current.start_cpu_ns, self._cpu_left.get(thread, 0))

    def go_on_between(self, thread: int, between: Between) -> None:
        """Note that `thread` has been between transactions since then."""
        self._current[thread] = _Current(between.start_ns, between.start_cpu_ns, SPAN)
        self._cpu_left[thread] = between.cpu_left_ns

    def end_unended(self, unended: Unended, name: int, is_busy: bool) -> tuple[Closing, Closing] | None:
        """Two closings: what the thread was in when the unended transaction began, and that transaction up to the end.
        None if the transaction is part of another one."""
        thread, call = unended.thread, unended.call._replace(name=name)
        current = self._current.get(thread)
        late_ns = max(current.start_ns - call.start_ns, 0) if current else 0  # a task's: the thread ran others since
        if late_ns and late_ns >= call.wall_ns:
            return None  # kept records have it already
        call = call._replace(start_ns=call.start_ns + late_ns, wall_ns=call.wall_ns - late_ns)
        step = self.step(thread, call, is_busy)
        if not step.is_its_own or step.before is None:
            return None
        return step.before, Closing(name + IN_PROGRESS, call.start_ns, call.wall_ns, call.cpu_ns)

    def finish(self) -> Iterator[tuple[int, Closing]]:
        """What each thread was in when it ended."""
        within = {each.thread for each in self.unended}
        for thread, life in self._lives.items():
            current = self._current.get(thread) or _Current(life.start_ns, life.start_cpu_ns)
            if thread in within and current.start_ns >= life.end_ns:
                continue  # nothing comes after what was in progress
            if self.stays_open:
                yield thread, Closing(OPEN, current.start_ns, 0, 0, times=0)
                continue
            asked = OTHER if current.name == INIT else EXIT
            left = {0: OTHER, ASKS: asked, BEGINS: current.name, NAMES: current.name}
            closing = self._closed(thread, current, left.get(current.begun_by, EXIT), life.end_ns, life.end_cpu_ns)
            more_ns = max(self._cpu_left.pop(thread, 0), 0)  # the clocks are read one after the other
            self._gone_on_with.setdefault(thread, closing.name)
            if closing.wall_ns or thread not in self._gone_on:
                yield thread, closing._replace(cpu_ns=closing.cpu_ns + more_ns)

    def _span(self, thread: int, current: _Current, call: Outermost) -> Step:
        if current.begun_by in (READS, BEGINS):
            current.name = call.name if call.bits & MARKED else current.name
            return Step()
        named = self._names.get(thread, 0)
        end = call.start_ns + call.wall_ns, call.start_cpu_ns + call.cpu_ns
        self._current[thread] = _Current(*end, NAMES if named else SPAN, named)
        return Step(self._closed_before(thread, current, call), is_its_own=True)

    def _read(self, thread: int, current: _Current, call: Outermost, is_busy: bool) -> Step:
        if call.bits & KEYS and current.begun_by == READS and not is_busy:
            echo_ns = call.start_ns - current.read_until_ns
            if 0 <= echo_ns < ECHO_WITHIN_NS:
                return self._echo(thread, current, call, echo_ns)
        before = self._closed_before(thread, current, call)
        name = self._names.get(thread) or (call.stack and BY_STACK | call.stack)
        current = self._current[thread] = _Current(call.start_ns, call.start_cpu_ns, READS, name)
        _think(current, call)
        return Step(before)

    def _echo(self, thread: int, current: _Current, call: Outermost, echo_ns: int) -> Step:
        echo_cpu_ns = min(max(call.start_cpu_ns - current.read_until_cpu_ns, 0), echo_ns)
        closing = Closing(ECHO, current.read_until_ns, echo_ns, echo_cpu_ns)
        current.echo_ns += echo_ns
        current.echo_cpu_ns += echo_cpu_ns
        current.name = self._names.get(thread) or (call.stack and BY_STACK | call.stack)
        _think(current, call)
        return Step(closing)

    def _name(self, thread: int, current: _Current, call: Outermost) -> Step:
        """A collector gave a name: to the response to what was read, or to what begins now; or it cleared the name."""
        named = 0 if call.name == IDLE else call.name
        self._names[thread] = named
        if current.begun_by == READS:
            current.name = named or current.name
            return Step()
        if not named and current.begun_by != NAMES:
            return Step()
        self._current[thread] = _Current(call.start_ns, call.start_cpu_ns, NAMES if named else SPAN, named)
        return Step(self._closed_before(thread, current, call))

    def _begin(self, thread: int, current: _Current, call: Outermost) -> Step:
        name = call.name or (call.stack and BY_STACK | call.stack)
        self._current[thread] = _Current(call.start_ns, call.start_cpu_ns, BEGINS, name)
        return Step(self._closed_before(thread, current, call))

    def _ask(self, thread: int, current: _Current, call: Outermost) -> Step:
        """A call of a database, maybe one with which a transaction begins or ends."""
        if current.begun_by in (READS, SPAN, NAMES):
            return Step()
        before = None
        may_begin = current.begun_by in (0, ENDS) and not call.bits & DROPS
        if call.bits & ASKS and (may_begin or (current.begun_by == ASKS and call.bits & AFRESH)):
            before = self._closed_before(thread, current, call)
            current = _Current(call.start_ns, call.start_cpu_ns, ASKS, before.name, before.name)
            self._current[thread] = current
        if call.bits & ENDS:
            return self._end(thread, current, call)._replace(before=before)
        if call.bits & DROPS and current.begun_by == ASKS:
            end_ns, end_cpu_ns = call.start_ns + call.wall_ns, call.start_cpu_ns + call.cpu_ns
            begun_by = 0 if current.name == INIT else ENDS
            self._current[thread] = _Current(end_ns, end_cpu_ns, begun_by, goes_on=current.name)
            return Step(before, after=self._closed(thread, current, current.name, end_ns, end_cpu_ns))
        return Step(before)

    def _end(self, thread: int, current: _Current, call: Outermost) -> Step:
        end_ns, end_cpu_ns = call.start_ns + call.wall_ns, call.start_cpu_ns + call.cpu_ns
        self._current[thread] = _Current(end_ns, end_cpu_ns, SPAN if current.begun_by == BEGINS else ENDS)
        named = current.name if current.begun_by != ASKS else 0
        name = named or (call.stack and BY_STACK | call.stack)
        return Step(after=self._closed(thread, current, name, end_ns, end_cpu_ns))

    def _closed_before(self, thread: int, current: _Current, call: Outermost) -> Closing:
        """The current transaction, ended where `call` begins."""
        names = {0: INIT, **dict.fromkeys((READS, BEGINS, NAMES, ASKS), current.name)}
        return self._closed(thread, current, names.get(current.begun_by, IDLE), call.start_ns, call.start_cpu_ns)

    def _closed(self, thread: int, current: _Current, name: int, end_ns: int, end_cpu_ns: int) -> Closing:
        paused = self._paused.within(thread & NUMBER, current.start_ns, end_ns) if self._paused else NOT_PAUSED
        wall_ns = max(end_ns - current.start_ns - current.echo_ns - paused.wall_ns, current.think_wall_ns, 0)
        used_ns = end_cpu_ns - current.start_cpu_ns - current.echo_cpu_ns - paused.cpu_ns
        used_ns += self._cpu_left.pop(thread, 0)
        cpu_ns = min(max(used_ns, current.think_cpu_ns, 0), wall_ns - current.think_wall_ns + current.think_cpu_ns)
        self._cpu_left[thread] = used_ns - cpu_ns
        thought = (current.think_wall_ns, current.think_cpu_ns)
        name = name or IDLE
        return Closing(name, current.start_ns, wall_ns, cpu_ns, *thought, int(name != current.goes_on))


def number_of_task(thread: int, task: int) -> int:
    """The number that stands for a task in place of a thread's number: larger than that of any thread."""
    return task << 32 | thread


def _think(current: _Current, call: Outermost) -> None:
    current.think_wall_ns += call.think_wall_ns
    current.think_cpu_ns += call.think_cpu_ns
    current.read_until_ns = call.start_ns + call.wall_ns
    current.read_until_cpu_ns = call.start_cpu_ns + call.cpu_ns


class Details:
    """The statements of a process. Copies of a tracker share them."""

    def __init__(self, process: Process) -> None:
        self._process = process

    def __deepcopy__(self, memo: object) -> Details:
        return self

    def role_of(self, detail: int) -> int:
        """AFRESH if this is a statement that begins a transaction, ENDS if it commits one, DROPS if it rolls one back,
        RELEASES if it ends a part of one, which its intrinsic takes for the end.

        A script that begins one first and commits last does both."""
        statement = self._process.string(detail) if detail else ""
        commits_last = _COMMITS_AT_ITS_END.search(statement) or _IS_ONE.match(statement)
        if _BEGINS.match(statement):
            return AFRESH | (ENDS if commits_last else 0)
        if commits_last or _COMMITS.match(statement):
            return ENDS
        if _ROLLS_BACK.match(statement):
            return DROPS
        return RELEASES if _RELEASES.match(statement) else 0


def roles_of(process: Process) -> Mapping[int, int]:
    """What the calls of each intrinsic of `process` mean for transactions, by its number; most mean BUSY alone."""
    return _roles_in(process.numbered_intrinsics, _is_typed(process))


@lru_cache(maxsize=64)
def _roles_in(numbered: Intrinsics, is_typed: bool) -> Mapping[int, int]:
    drivers = {_package(each) for each in numbered.values() if each.kind == "db" and each.transaction == "ends"}
    roles = {
        number: _role(each, is_typed)
        | (_of_driver(each) if _package(each) in drivers else 0)
        | (WAITS if each.kind == FOR_WORK else 0)
        for number, each in numbered.items()
    }
    return {number: role for number, role in roles.items() if number and role}


def _package(intrinsic: Intrinsic) -> str:
    return intrinsic.name.partition(".")[0]


def _of_driver(intrinsic: Intrinsic) -> int:
    """What calls mean of a driver whose commits are recorded."""
    of, _, method = intrinsic.name.rpartition(".")
    is_close = method in CLOSES
    is_of_part = is_close and not of.lower().endswith("connection")  # of a cursor: nothing begins or ends with it
    if intrinsic.kind != "db" or intrinsic.transaction not in ("", "ends") or is_of_part:
        return 0
    return ASKS | (DROPS if is_close or method == ROLLBACK else 0)


def _is_typed(process: Process) -> bool:
    """Whether a user types what standard input delivers; reading from a pipe or a file is not think time."""
    streams = process.log.user.get("streams")
    return bool(process.log.user.get("terminal")) if streams is None else "0" in streams.split()


def _role(intrinsic: Intrinsic, is_typed: bool) -> int:
    role = 0 if intrinsic.kind in QUIET_KINDS or intrinsic.name == STATEMENT else BUSY
    if intrinsic.terminal and intrinsic.kind == "screen" and is_typed:
        role |= READS | (KEYS if intrinsic.terminal == "keys" else 0)
    role |= {"is": SPAN, "continues": SPAN | MARKED, "begins": BEGINS, "ends": ENDS, "named": NAMES}.get(
        intrinsic.transaction, 0
    )
    if role & NAMES:
        return NAMES
    return role | MARKED if intrinsic.name == MARK else role


def is_in_progress(name: int) -> bool:
    """Whether the transaction with this name was in progress at the end."""
    return name & ~NUMBER in (BY_DETAIL + IN_PROGRESS, BY_INTRINSIC + IN_PROGRESS)


def is_pseudo(name: int) -> bool:
    """Whether this names no transaction, but the time before, between or after those of a thread."""
    return name & ~NUMBER == OF_ITSELF


def name_of(process: Process, name: int) -> str:
    """The name of a transaction of `process`; that of the function if it is named by its line."""
    if is_in_progress(name):
        name -= IN_PROGRESS
    number = name & NUMBER
    if name & ~NUMBER == OF_ITSELF:
        return PSEUDO[number] if number < len(PSEUDO) else UNKNOWN
    if name & ~NUMBER == BY_DETAIL:
        return process.string(number)
    if name & ~NUMBER == BY_INTRINSIC:
        return process.intrinsic(number).name
    site = site_of(process, name)
    return site.function if site else PSEUDO[IDLE & NUMBER]


def site_of(process: Process, name: int) -> Site | None:
    """The line that names a transaction of `process`; None if it has another name.

    It is the program's own. In a task without own code it is that of the task's coroutine.
    """
    if name & ~NUMBER != BY_STACK:
        return None
    inside = None
    for site in process.frames(name & NUMBER):
        if site.own:
            break
        if inside and site.file.endswith(_LOOPS):
            return inside
        inside = site
    return process.own_line(name & NUMBER)
