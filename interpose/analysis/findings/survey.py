"""The basis of findings: the calls of an experiment by line and detail, and their transactions."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping, Sequence
from functools import cached_property
from operator import add
from typing import NamedTuple, TypeVar

from interpose.analysis.analysis import Analysis
from interpose.analysis.calls.in_progress import InProgress
from interpose.analysis.consolidation.records import Record, Records
from interpose.analysis.consolidation.sums import Sums
from interpose.analysis.findings.blocking_code import with_lines
from interpose.analysis.findings.errors import is_failure
from interpose.analysis.findings.finding import LARGE, Calls
from interpose.analysis.findings.lock_waits import is_for_lock, is_for_semaphore
from interpose.analysis.findings.pool_work import work_of_pool
from interpose.analysis.profile.profiled import Profiled, profiled, program_waits
from interpose.analysis.time.awaited import Awaited, awaited, awaited_at_most_ns, slept
from interpose.analysis.time.blocks_of_loops import Block, blocks_of
from interpose.analysis.time.file_locks import OF_FILE, FileLocks
from interpose.analysis.time.row_locks import RowLocks
from interpose.analysis.time.run_queue import Unseen
from interpose.analysis.time.turns import (
    NATIVE_SELECTORS,
    SELECTORS,
    has_events,
    native_waits_of_loops,
    waits_of_loops,
)
from interpose.analysis.time.waits_for_turns import WaitsAtLine, large, waits_for_turns
from interpose.analysis.transactions.estimate import (
    KEPT,
    WITHIN,
    Population,
    experiment_of,
    is_sampled,
    population_of,
    scaled,
    standings,
)
from interpose.analysis.transactions.response_times import plain_name
from interpose.analysis.transactions.tracking import PSEUDO, is_in_progress, name_of, site_of
from interpose.experiments.metadata.map import Intrinsic
from interpose.experiments.model.process import Process
from interpose.experiments.model.stacks import Site
from interpose.kinds import IDLE, NATIVE

FIELDS = ("intrinsic", "stack", "detail", "error")  # behind the thread
ERROR = 1 + FIELDS.index("error")
# Inner calls of these kinds, of the same kind or native, count as part of the outer call.
WITH_WHAT_IS_INSIDE = frozenset(("db", "net", "process", "sync"))
# All that a connecting call does at its line counts as part of it: it reads certificates, resolves names, logs in.
CONNECTING = frozenset(("connect", "connect_ex", "_connect", "ws_connect"))
OF_CONNECTING = frozenset(("db", "net"))
LOGIC = "logic"  # calls of this kind contain code of the program: requests, jobs, transactions that it marks
_APART = frozenset(("gil", IDLE, LOGIC))  # and all but these, which rules look for wherever they are
_NO_WAITS = frozenset((IDLE, LOGIC))  # for work, and what contains code
_THREADING = "/threading.py"
Group = TypeVar("Group", bound=Hashable)
Item = TypeVar("Item")


_NONE: Counter[tuple[str, str]] = Counter()


class Times(NamedTuple):
    """What sentences compare with: all thread time, the part of it that waited for work, the part that matters, and the
    time of transactions that were not sampled and are not estimated. What matters contains `idle_in_turns_ns`, in which
    loops waited for work and tasks for their turn. `waits_ns` is what calls waited for other things than work and,
    where that is known, users, by kind and intrinsic; `locks_ns` is its part for locks and semaphores of threads."""

    whole_ns: int = 0
    idle_ns: int = 0
    matters_ns: int = 0
    not_kept_ns: int = 0
    idle_in_turns_ns: int = 0
    waits_ns: Counter[tuple[str, str]] = _NONE
    locks_ns: Counter[tuple[str, str]] = _NONE

    def __add__(self, other: tuple[object, ...]) -> Times:
        assert isinstance(other, Times)
        return Times(*map(add, self, other))

    @property
    def not_idle_ns(self) -> int:
        """The part that matters, without what the table of kinds has as idle."""
        return self.matters_ns - self.idle_in_turns_ns

    @property
    def is_partly_idle(self) -> bool:
        """Whether clearly less than all thread time was not idle."""
        return self.not_idle_ns < 0.99 * self.whole_ns


class Named(NamedTuple):
    """What transactions are named by: a text and, if it is that of a function, the line that ended or began them."""

    text: str
    site: Site | None = None


UNNAMED = Named("")


class Survey:
    """The calls of an experiment, like ones combined; those in progress count with the time that is theirs so far.

    `counts` is the number of transactions by what names them; `batches` are the texts of those that no user waited for:
    they end with commits, and follow each other. `thinking_ns` is the time spent reading the terminal. With
    `histograms`, the records that it leaves to other analyses have them. If transactions were sampled, calls within
    those kept, and their number, are estimated for all of them, as in a profile. `not_kept` are those of which nothing
    is estimated: all without `is_scaled`, or if none was kept.
    """

    def __init__(self, analysis: Analysis, histograms: bool = False, is_scaled: bool = True) -> None:
        self.analysis = analysis
        self.counts: Counter[Named] = Counter()
        self._parts: Counter[Named] = Counter()  # units where nothing else has the name: later it was a better one
        self.batches: set[str] = set()
        self.thinking_ns = 0
        self.not_kept = Population()
        self._found: dict[Hashable, Calls] = {}
        self._inner_connects: dict[Hashable, Calls] = {}
        self._within: defaultdict[Calls, set[Named]] = defaultdict(set)  # the transactions in which they were made
        self._kept: dict[str, tuple[Counter[Named], Counter[Named]]] = {}  # what is counted within sampled transactions
        self._logic: dict[tuple[str, int, int], Sums] = {}  # by what they are sampled in, process and thread
        populations: dict[str, Population] = {}  # by experiment
        is_estimated = is_sampled(analysis.experiment) and not analysis.is_part
        for number, process in enumerate(analysis.experiment.processes):
            records = analysis.records_by_transaction(process, ("thread", *FIELDS), histograms)
            analysis.keep(process, records)
            _Reading(self, process, number).add(records, is_estimated)
            if is_estimated:
                population = populations.setdefault(experiment_of(process), Population())
                population.add(population_of(process, records))
        for number, account in enumerate(analysis.accounts):
            _Reading(self, account.process, number).add_in_progress(account.open_calls)
        self._estimate(populations, is_scaled)
        for transaction, parts in self._parts.items():
            self.counts[transaction] = self.counts[transaction] or parts

    def _estimate(self, populations: Mapping[str, Population], is_scaled: bool) -> None:
        known = {name: each for name, each in populations.items() if is_scaled and each.is_known}
        for name in populations.keys() - known.keys():
            self.not_kept.add(populations[name])
        for calls in (*self._found.values(), *self._inner_connects.values()):
            if calls.sampled_in in known:
                calls.stand_for_all(known[calls.sampled_in])
        for key, logic in self._logic.items():
            if key[0] in known:
                self._logic[key] = scaled(logic, known[key[0]])
        for name, kept in self._kept.items():
            of = known.get(name)
            for counts, found in zip((self.counts, self._parts), kept, strict=True):
                for transaction, number in found.items():
                    # Rounded down, so that a rule which needs some calls in each transaction finds what it would in
                    # those kept.
                    counts[transaction] += number * of.seen // of.kept if of else number

    @cached_property
    def calls(self) -> list[Calls]:
        """The calls, those that took most first; one of a database that took far longer than those like it is apart."""
        calls: list[Calls] = []
        for each in self._found.values():
            parts = each.apart() or (each,)
            calls += parts
            self._within |= {part: self._within[each] for part in parts if each in self._within}
        return sorted(calls, key=lambda each: -each.wall_ns)

    @cached_property
    def idle_ns(self) -> int:
        """Thread time in which the program waited for work while no tasks waited for their turn, without the CPU time
        of these calls."""
        return self._waited_for_work_ns - self.idle_in_turns_ns

    @cached_property
    def _waited_for_work_ns(self) -> int:
        return sum(max(each.wall_ns - each.cpu_ns, 0) for each in self._found.values() if each.kind == IDLE)

    @cached_property
    def matters_ns(self) -> int:
        """Thread time without idle time, without users' think time, and without time of which nothing is known: pauses,
        what came before a ring, transactions that are not estimated. Loops that are idle while tasks wait for their
        turn count."""
        return self._not_idle_ns + self.idle_in_turns_ns

    @cached_property
    def _not_idle_ns(self) -> int:
        total = self.analysis.total
        unknown_ns = total.paused_wall_ns + total.before_wall_ns + self.not_kept.passed_wall_ns
        return max(total.wall_ns - self._waited_for_work_ns - self.thinking_ns - unknown_ns, 1)

    @property
    def times(self) -> Times:
        """All thread time, and its parts."""
        waits_ns: Counter[tuple[str, str]] = Counter()
        locks_ns: Counter[tuple[str, str]] = Counter()
        for each in self._found.values():
            if each.kind not in _NO_WAITS and not (each.kind == "screen" and self.thinking_ns):
                waits_ns[each.kind, each.intrinsic] += each.wait_ns
            if each.kind == "sync" and (is_for_lock(each) or is_for_semaphore(each)):
                locks_ns[each.kind, each.intrinsic] += each.wait_ns
        not_kept_ns = self.not_kept.passed_wall_ns
        whole_ns, idle_in_turns_ns = self.analysis.total.wall_ns, self.idle_in_turns_ns
        return Times(whole_ns, self.idle_ns, self.matters_ns, not_kept_ns, idle_in_turns_ns, waits_ns, locks_ns)

    @cached_property
    def elapsed_ns(self) -> int:
        """From the start of the first process to the end of the last one; for a merged experiment, how long the
        experiments took that were merged."""
        accounts = self.analysis.accounts
        if merged_ns := sum(each.process.log.elapsed_ns for each in accounts):
            return merged_ns
        return max(max(each.latest_ns for each in accounts) - min(each.process.log.start_ns for each in accounts), 1)

    @cached_property
    def profiled(self) -> Profiled:
        """The sampled profile of the time between calls."""
        return profiled(self.analysis)

    @cached_property
    def unseen(self) -> Unseen:
        """What the program waited outside of its calls."""
        return program_waits(self.analysis, self.profiled)

    @cached_property
    def code_cpu_ns(self) -> Counter[tuple[int, int]]:
        """The CPU time of the program's code, by process and thread: outside of calls, and in those that contain it."""
        found: Counter[tuple[int, int]] = Counter()
        for process, account in enumerate(self.analysis.accounts):
            for thread, share in account.threads.items():
                found[process, thread] += share.program_cpu_ns
        for (_, process, thread), logic in self._logic.items():
            found[process, thread] += logic.self_cpu_ns
        return found

    @cached_property
    def code_waited_for_cpu_ns(self) -> int:
        """How long that code waited for CPU, estimated: in calls, it is as likely as other calls to do so."""
        logic_cpu_ns = sum(each.self_cpu_ns for each in self._logic.values())
        logic_wait_ns = sum(max(each.self_wall_ns - each.self_cpu_ns, 0) for each in self._logic.values())
        calls_cpu_ns = sum(each.cpu_ns for each in self._found.values() if each.kind != IDLE)
        in_logic_ns = self.unseen.in_calls_ns * logic_cpu_ns // max(calls_cpu_ns, logic_cpu_ns, 1)
        return self.unseen.processor_ns + min(in_logic_ns, logic_wait_ns)

    @cached_property
    def blocks(self) -> list[Block]:
        """What blocked event loops while other tasks waited; nothing of a part."""
        if self.analysis.is_part:
            return []
        return [one for each in self.per_process() for one in self._with_lines(each[0], list(blocks_of(*each)))]

    def _with_lines(self, process: Process, blocks: list[Block]) -> list[Block]:
        if all(each.intrinsic for each in blocks):
            return blocks
        sampled = next((each.sampled for each in self.profiled.processes if each.process is process), None)
        return with_lines(blocks, sampled) if sampled else blocks

    @cached_property
    def lines_of_loops(self) -> set[Site | None]:
        """The lines at which loops run, or wait: those of all that is not in a task."""
        return self._own_lines(waits_of_loops)

    @cached_property
    def awaited(self) -> list[Awaited]:
        """What tasks of event loops awaited of databases and the network; nothing of a part."""
        return [] if self.analysis.is_part else [one for each in self.per_process() for one in awaited(*each)]

    @cached_property
    def slept(self) -> list[Awaited]:
        """The timers that transactions awaited while their loops waited; nothing of a part."""
        return [] if self.analysis.is_part else [one for each in self.per_process() for one in slept(*each)]

    @cached_property
    def _turns(self) -> tuple[list[WaitsAtLine], int]:
        if self.analysis.is_part:
            return [], 0
        loops = [loop for each in self.per_process() for loop in waits_for_turns(*each)]
        return large(loops, self._not_idle_ns, LARGE.least_ns)

    @property
    def waits_for_turns(self) -> list[WaitsAtLine]:
        """The waits of several tasks for their turn, of each loop, that took long enough for a finding; nothing of a
        part."""
        return self._turns[0]

    @property
    def idle_in_turns_ns(self) -> int:
        """For how long event loops were idle while these tasks waited: that does not count as idle."""
        return min(self._turns[1], self._waited_for_work_ns)

    @cached_property
    def awaited_at_most_ns(self) -> int:
        """At most how long tasks awaited what `awaited` and `slept` lack: of a part, or where no events were kept."""
        without = [each for each in self.per_process() if self.analysis.is_part or not has_events(each[0])]
        return sum(awaited_at_most_ns(*each) for each in without)

    @cached_property
    def _lines_of_native_loops(self) -> set[Site | None]:
        return self._own_lines(native_waits_of_loops)

    def _own_lines(self, found: Callable[[Process, Records], Iterable[tuple[int, int]]]) -> set[Site | None]:
        return {process.own_line(stack) for process, kept in self.per_process() for _, stack in found(process, kept)}

    @cached_property
    def waits_of_loops(self) -> list[Calls]:
        """The waits of event loops in their selectors, where these were for more than timers and work. Of native ones
        that is not known."""
        lines, native_lines = self.lines_of_loops, self._lines_of_native_loops
        waits = self.of_kind("net")
        native = [each for each in waits if each.intrinsic in NATIVE_SELECTORS and each.site in native_lines]
        return [each for each in waits if each.intrinsic in SELECTORS and each.site in lines] + native

    @cached_property
    def file_locks(self) -> FileLocks:
        """Who had the locks of files."""
        of_locks = [each for each in self.of_kind("sync") if OF_FILE.fullmatch(each.detail)]
        numbers = sorted({number for each in of_locks for number in each.seen_ns})
        return FileLocks({number: self.analysis.accounts[number] for number in numbers})

    @cached_property
    def row_locks(self) -> RowLocks:
        """Who had locks of rows of databases."""
        numbers = sorted({number for each in self.of_kind("db") for number in each.seen_ns})
        return RowLocks({number: self.analysis.accounts[number] for number in numbers})

    def per_process(self) -> Iterator[tuple[Process, Records]]:
        """Each process, and the records of its calls by thread, intrinsic and stack at least."""
        for process in self.analysis.experiment.processes:
            yield process, self.analysis.records_of_threads(process, ("intrinsic", "stack"))

    def of_kind(self, *kinds: str) -> list[Calls]:
        """The calls of these kinds, largest first."""
        return [each for each in self.calls if each.kind in kinds] if self._kinds.intersection(kinds) else []

    @property
    def connects(self) -> list[Calls]:
        """The calls that connect to databases and over the network. Those that others make inside, as a request does,
        are rows of their own, with all that is inside them; the time of the others contains theirs."""
        return [each for each in (*self.calls, *self.inner_connects) if is_connect(each)]

    @property
    def inner_connects(self) -> Iterable[Calls]:
        """Those that others make inside."""
        return self._inner_connects.values()

    @cached_property
    def _kinds(self) -> frozenset[str]:
        return frozenset(each.kind for each in self._found.values())

    def transactions_of(self, rows: Iterable[Calls]) -> int:
        """How many transactions may have made these calls: those that end at the same lines, or have the same name."""
        return sum(self.counts[named] for named in set[Named]().union(*(self._within[each] for each in rows)))

    def count(self, transaction: Named, number: int, is_part: bool, sampled_in: str) -> None:
        """Count transactions named so, or what other threads did for them."""
        counts = self._kept.setdefault(sampled_in, (Counter(), Counter())) if sampled_in else (self.counts, self._parts)
        counts[is_part][transaction] += number

    def add_logic(self, process: int, record: Record, sampled_in: str) -> None:
        """Add the time of code that ended calls contain. Calls in progress are left out: their code counts as outside
        of calls."""
        known = self._logic.setdefault((sampled_in, process, record.key[0]), Sums())
        known.add(record.sums)

    def calls_like(
        self,
        intrinsic: Intrinsic,
        site: Site | None,
        detail: str,
        transaction: Named,
        sampled_in: str = "",
        work: Site | None = None,
    ) -> Calls:
        """The calls of `intrinsic` with these, made where they are new."""
        return self._like(self._found, intrinsic, site, detail, transaction, sampled_in, work)

    def inner_connects_like(
        self, intrinsic: Intrinsic, site: Site | None, detail: str, transaction: Named, sampled_in: str
    ) -> Calls:
        """The same of calls that connect inside others."""
        return self._like(self._inner_connects, intrinsic, site, detail, transaction, sampled_in)

    def _like(
        self,
        rows: dict[Hashable, Calls],
        intrinsic: Intrinsic,
        site: Site | None,
        detail: str,
        transaction: Named,
        sampled_in: str,
        work: Site | None = None,
    ) -> Calls:
        key = (intrinsic.kind, intrinsic.name, site, detail, transaction.text, sampled_in, work)
        found = rows.get(key)
        if found is None:
            found = rows[key] = Calls(*key, is_end=intrinsic.transaction == "ends")
        if transaction.text:
            self._within[found].add(transaction)
        return found


class _Reading:
    """Reads the records of one process into a survey."""

    def __init__(self, survey: Survey, process: Process, number: int) -> None:
        self._survey = survey
        self._process = process
        self._number = number
        self._names: dict[int, Named] = {}
        self._works: dict[int, Site | None] = {}
        self._standings: dict[int, int] = {}  # where records stand, if transactions were sampled

    def add(self, records: Records, is_sampled: bool) -> None:
        """Add all calls in `records`, each to its transaction. Transactions that were not sampled do not count, because
        their calls are missing."""
        if is_sampled:
            self._standings = {id(record): standing for record, standing in standings(self._process, records)}
        waiting: list[tuple[Record, Named, Calls | None, bool, int]]
        waiting = [(record, UNNAMED, None, False, 0) for record in records.roots]
        while waiting:
            record, transaction, around, connects, error = waiting.pop()
            intrinsic = self._process.intrinsic(record.key[1]) if record.is_call else None
            if intrinsic and intrinsic.passed_over:
                waiting.extend((each, UNNAMED, None, False, 0) for each in record.inner)
                continue
            if not transaction.text and record.name:
                transaction = self._transaction(record)
            if intrinsic:
                outer, around = around, self._put(record, intrinsic, transaction, around, error)
                error = error if around is outer else record.key[ERROR]
                if intrinsic.kind == LOGIC:
                    self._survey.add_logic(self._number, record, self._sampled_in(record))
                around.end_at(self._number, record.sums.last_ns)
                is_inner = around is outer and not connects and is_connect(intrinsic)
                if is_inner:
                    self._put_inner_connect(record, intrinsic, transaction)
                connects = is_inner or (around is outer and connects) or is_connect(around)
            if record.inner:
                waiting.extend([(each, transaction, around, connects, error) for each in record.inner])

    def add_in_progress(self, calls: Iterable[InProgress]) -> None:
        """Add calls in progress, each thread's from the outermost on, with the time that is theirs so far."""
        around: dict[int, Calls] = {}
        for each in calls:
            call, intrinsic = each.call, self._process.intrinsic(each.call.intrinsic)
            if not intrinsic.passed_over:
                sums = Sums(calls=1, self_wall_ns=each.self_wall_ns, self_cpu_ns=each.self_cpu_ns)
                sums.first_ns, sums.last_ns = call.start_ns, each.until_ns
                record = Record(None, (each.thread, call.intrinsic, call.stack, call.detail, 0), 0, True, sums)
                outer = around.get(each.thread)
                made = around[each.thread] = self._put(record, intrinsic, UNNAMED, outer)
                if made is not outer:
                    made.unended += 1
                    made.unended_at[self._number, each.thread] = call.start_ns, each.self_wall_ns

    def _transaction(self, record: Record) -> Named:
        """What names the transactions `record`; UNNAMED if they have no name."""
        if record.name not in self._names:
            text, site = name_of(self._process, record.name), site_of(self._process, record.name)
            self._names[record.name] = UNNAMED if text in PSEUDO else Named(plain_name(text), site)
        named = self._names[record.name]
        is_part = record.is_call and self._process.intrinsic(record.key[1]).continues_transaction
        if named.text:
            self._survey.count(named, record.sums.calls, is_part, self._sampled_in(record))
            if not record.is_call and not record.sums.think_wall_ns and not is_in_progress(record.name):
                self._survey.batches.add(named.text)
        return named

    def _sampled_in(self, record: Record) -> str:
        """The experiment of the calls if they are those of sampled transactions, which represent the others; else
        empty."""
        return experiment_of(self._process) if self._standings.get(id(record)) in (KEPT, WITHIN) else ""

    def _put(
        self, record: Record, intrinsic: Intrinsic, transaction: Named, around: Calls | None, error: int = 0
    ) -> Calls:
        """Add the calls of `record`, which were made in calls `around` that ended with `error`; returns what they are
        among."""
        (_, _, stack, detail, _), sums, sampled_in = record.key, record.sums, self._sampled_in(record)
        is_of_package = around is not None and self._is_sleep_of_package(around, intrinsic, stack)
        if around and around.kind in WITH_WHAT_IS_INSIDE and around.sampled_in == sampled_in:
            is_native = _is_native(intrinsic)
            is_back_off = is_of_package and error > 0 and is_failure(around, self._process.string(error))
            is_inside = is_native or is_back_off or around.kind == intrinsic.kind
            if is_inside or self._is_of_connecting(around, intrinsic, stack):
                around.add_inner(intrinsic.kind, sums, is_native)
                around.slept_ns += sums.self_wall_ns if is_back_off else 0
                self._add_failures(around, error, 0, sums.self_wall_ns)
                return around
        if intrinsic.terminal and intrinsic.kind == "screen":
            self._survey.thinking_ns += sums.self_wall_ns
        site, text = self._process.own_line(stack), self._process.string(detail)
        work = self._work(stack) if site and not site.own else None
        found = self._survey.calls_like(intrinsic, site, text, transaction, sampled_in, work)
        self._add(found, record, sums.self_wall_ns, sums.self_cpu_ns)
        found.slept_ns += sums.self_wall_ns if is_of_package else 0
        found.longest_ns = max(found.longest_ns, self._longest_ns(record, intrinsic))
        if intrinsic.kind in ("sync", "sleep") and not found.caller:
            frames = self._process.frames(stack)
            found.caller = next((each for each in frames if not each.file.endswith(_THREADING)), None)
        return found

    def _work(self, stack: int) -> Site | None:
        """Where the work of a pool began that made calls without an own line; None outside of pools."""
        if stack not in self._works:
            self._works[stack] = work_of_pool(list(self._process.frames(stack)))
        return self._works[stack]

    def _put_inner_connect(self, record: Record, intrinsic: Intrinsic, transaction: Named) -> None:
        """Add calls that connect inside others, with all that is inside them."""
        (_, _, stack, detail, _), sampled_in = record.key, self._sampled_in(record)
        site, text = self._process.own_line(stack), self._process.string(detail)
        found = self._survey.inner_connects_like(intrinsic, site, text, transaction, sampled_in)
        self._add(found, record, record.sums.wall_ns, record.sums.cpu_ns)

    def _is_of_connecting(self, around: Calls, intrinsic: Intrinsic, stack: int) -> bool:
        """Whether calls inside `around` are what its library does to connect."""
        return is_connect(around) and intrinsic.kind not in _APART and self._process.own_line(stack) == around.site

    def _is_sleep_of_package(self, around: Calls, intrinsic: Intrinsic, stack: int) -> bool:
        """Whether the package of calls `around` sleeps, as between its attempts."""
        is_there = intrinsic.kind == "sleep" and around.kind in OF_CONNECTING
        return is_there and self._process.own_line(stack) == around.site

    def _add(self, found: Calls, record: Record, wall_ns: int, cpu_ns: int) -> None:
        sums = record.sums
        found.calls += sums.calls
        found.failed += sums.errors
        self._add_failures(found, record.key[ERROR], sums.calls, wall_ns)
        found.wall_ns += wall_ns
        found.cpu_ns += cpu_ns
        found.bytes += sums.bytes
        found.rows += sums.rows
        found.threads.add((self._number, record.key[0]))
        found.see(self._number, sums.first_ns, sums.last_ns)

    def _add_failures(self, found: Calls, error: int, calls: int, wall_ns: int) -> None:
        """Note that so many of these calls ended with `error`, if it is one, and what they took."""
        if error:
            found.add_failures(self._process.string(error), calls, wall_ns)

    def _longest_ns(self, record: Record, intrinsic: Intrinsic) -> int:
        """What one of these calls took at least, without what counts apart from it; 0 if that is unknown."""
        if not record.sums.wall_most_ns:
            return 0
        inside = [(each, self._process.intrinsic(each.key[1])) for each in record.inner if each.is_call]
        apart_ns = sum(each.sums.wall_ns for each, of in inside if of.kind != intrinsic.kind and not _is_native(of))
        return max(record.sums.wall_most_ns - record.suspended_ns - apart_ns, 0)


def is_connect(calls: Calls | Intrinsic) -> bool:
    """Whether calls connect to a database or over the network."""
    name = calls.intrinsic if isinstance(calls, Calls) else calls.name
    return calls.kind in OF_CONNECTING and name.rpartition(".")[2] in CONNECTING


def _is_native(intrinsic: Intrinsic) -> bool:
    return intrinsic.name.startswith(NATIVE)


def grouped(found: Iterable[Item], group_of: Callable[[Item], Group]) -> Iterator[tuple[Group, list[Item]]]:
    """The calls, or what else was found, by what `group_of` gives of them."""
    groups: dict[Group, list[Item]] = defaultdict(list)
    for each in found:
        groups[group_of(each)].append(each)
    return iter(groups.items())


def threads_of(calls: Sequence[Calls]) -> int:
    """How many threads made these calls."""
    return len(set().union(*(each.threads for each in calls)))


def processes_of(calls: Sequence[Calls]) -> int:
    """How many processes made these calls."""
    return len({process for each in calls for process, _ in each.threads})


def total_of(calls: Iterable[Calls]) -> tuple[int, int]:
    """How many calls these are, and their wall time."""
    listed = list(calls)
    return sum([each.calls for each in listed]), sum([each.wall_ns for each in listed])
