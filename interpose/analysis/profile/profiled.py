"""The profile of an experiment: what each function and line took of the time between recorded calls.

Calls that contain Python code of the program (a request, a transaction, an import: the kinds in `CONTAINERS`) are
divided like `program` itself: their self time is that of the code within them.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable, Collection, Hashable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from itertools import takewhile
from typing import Generic, NamedTuple, TypeVar

from interpose.analysis.analysis import Analysis
from interpose.analysis.calls.account import ProcessAccount
from interpose.analysis.calls.rows import CODE
from interpose.analysis.consolidation.records import Record
from interpose.analysis.profile.balance import Code, Spent, divided
from interpose.analysis.profile.estimated_stacks import NOT_READABLE, EstimatedStacks
from interpose.analysis.profile.pickling import pickles
from interpose.analysis.profile.unsampled import unsampled
from interpose.analysis.profile.weights import OUTSIDE_CALLS, Place, Pool, Walked, walk
from interpose.analysis.recording.ending import ending
from interpose.analysis.time.run_queue import Unseen, delay_in_calls, delays_of, unseen_by_thread, unseen_wait
from interpose.analysis.transactions.estimate import is_sampled
from interpose.experiments.model.process import Process
from interpose.experiments.model.sampled import Sampled
from interpose.experiments.model.stacks import Site
from interpose.kinds import CONTAINERS, IDLE
from interpose.legacy.codes import STATEMENT

GIL = "gil"  # the kind of waits for the interpreter lock
ONLY_WAITING = frozenset((GIL, "sync", "sleep", IDLE))  # kinds of calls
FIELDS = ("intrinsic", "stack")
NOT_CODE = frozenset((STATEMENT, "interpose.collect"))
# What stands for code where none is known.
NOT_SAMPLED = Site("", 0, "not sampled", False)
NO_PYTHON = Site("", 0, "no Python code", False)
NO_FUNCTION = Site("", 0, "no known function", False)
_TASK = "task "
_IMPORT_SYSTEM = "<frozen importlib."
_IMPORTLIB, _IMPORTING = "<frozen importlib._bootstrap>", ("_find_and_load", "_gcd_import")
# The parts of a function's time.
OWN_CODE, IMPORTS, LIBRARIES = "its own code", "imports", "library code"
CALLERS = 3  # how many lines of a chain are named
NO_CODE = frozenset((NOT_SAMPLED, NOT_READABLE, NO_PYTHON, NO_FUNCTION))

Frames = tuple[Site, ...]  # from the innermost outward
Group = TypeVar("Group", bound=Hashable)


@dataclass
class Sampling:
    """How an experiment was sampled: the number of `processes` with samples, and of their threads. `cut` are samples
    with stacks too deep to be read, `torn` those with unreadable stacks; `estimated` counts the torn
    ones with estimated outer frames. `refused` is why a process could not be sampled."""

    processes: int = 0
    threads: int = 0
    samples: int = 0
    torn: int = 0
    estimated: int = 0
    cut: int = 0
    unplaced: int = 0
    refused: str = ""


@dataclass
class ProcessProfile:
    """The samples of one process, and the totals of its pools: `spent` as long as threads were sampled, `unsampled`
    after their last samples. `moved` are the records with self time that belongs to pools, each with its pool: calls
    that contain code, and waits for the lock outside of other calls. `in_calls_ns` is how long its threads waited for
    CPU elsewhere, and `idle_ns` in calls that wait for work."""

    process: Process
    sampled: EstimatedStacks
    walked: Walked
    spent: dict[Pool, Spent]
    unsampled: dict[Pool, Spent] = field(default_factory=dict)
    moved: list[tuple[Record, Pool, bool]] = field(default_factory=list)
    in_calls_ns: int = 0
    idle_ns: int = 0

    def code(
        self, group_of: Callable[[Frames], Group], with_locks: bool = True, with_tasks: bool = False
    ) -> Iterator[tuple[Pool, Group, Code]]:
        """What each group of stacks took in each pool; without their waits for the interpreter lock if one has these
        otherwise; `with_tasks`, the outermost frame of a task's stack is the task itself."""
        groups = Groups(self.sampled, group_of, with_tasks)
        for pool, spent in self.spent.items():
            for group, code in divided(spent, self.walked.pools[pool], groups, group_of((NOT_SAMPLED,))).items():
                yield pool, group, code
        for pool, spent in self.unsampled.items():
            yield pool, group_of((NOT_SAMPLED,)), Code(0, spent.cpu_ns, 0, spent.processor_ns, spent.unexplained_ns)
        for record, pool, is_lock in self.moved:
            if is_lock and with_locks:
                wall_ns, cpu_ns = moved_ns(record)
                frames = tuple(self.process.frames(record.key[2])) or (NO_PYTHON,)
                yield pool, group_of(frames), Code(cpu_ns=cpu_ns, lock_ns=wall_ns - cpu_ns)

    def totals(self) -> Iterator[tuple[Pool, Spent]]:
        """What was spent in each pool, sampled or not; a pool may be there twice."""
        yield from self.spent.items()
        yield from self.unsampled.items()

    @property
    def end_cpu_ns(self) -> int:
        """The CPU time of Python's own end: of the main thread of a process that exited, after its last Python code."""
        if ending(self.process).state != "exit":
            return 0
        main = [each.number for each in self.process.threads if each.record.main]
        return sum(self.walked.after_python_ns.get(each, 0) for each in main)

    def kind_of(self, pool: Pool) -> str:
        """The kind of the calls of a pool; `code` for time outside calls."""
        return self.process.intrinsic(pool[1]).kind if pool[1] != OUTSIDE_CALLS else CODE


@dataclass(frozen=True)
class Function:
    """A function: its line with the most CPU time, and its times."""

    site: Site
    code: Code

    @property
    def is_known(self) -> bool:
        """Whether it stands for known code."""
        return self.site not in NO_CODE


@dataclass
class Part:
    """A part of the CPU time of a function of the application, in nanoseconds by the line that was executed, and by the
    line of the function. `what` is `OWN_CODE`, `IMPORTS` or `LIBRARIES`."""

    what: str
    code: Code = field(default_factory=Code)
    sites: Counter[Site] = field(default_factory=Counter)
    lines: Counter[Site] = field(default_factory=Counter)

    @property
    def line(self) -> Site:
        """The line of the function with most of it."""
        return self.lines.most_common(1)[0][0]


class Callers(NamedTuple):
    """The line that called a function, the line that called that one, and so on; and the share of the function's CPU
    time that it used below all of them."""

    lines: Frames = ()
    share: float = 0.0


NO_CALLERS = Callers()


@dataclass
class Profiled:
    """The profile of an experiment: of each process that was sampled, and how well that was done."""

    processes: list[ProcessProfile]
    sampling: Sampling

    def code(self, group_of: Callable[[Frames], Group], kind: str = "") -> dict[Group, Code]:
        """What each group of stacks took in all, or in the pools of one kind alone."""
        found: dict[Group, Code] = defaultdict(Code)
        for each in self.processes:
            for pool, group, code in each.code(group_of):
                if not kind or each.kind_of(pool) == kind:
                    found[group].add(code)
        return dict(found)

    def by_function(self, kind: str = "") -> list[Function]:
        """The functions, each with the line that has the most CPU time, those with the most CPU time first."""
        return functions_from(self.code(innermost, kind), self.code(function_of, kind))

    def tasks(self, group_of: Callable[[Frames], Group]) -> dict[Group, dict[str, int]]:
        """The CPU time of each group of stacks in tasks and greenlets, by their names."""
        found: dict[Group, dict[str, int]] = defaultdict(lambda: defaultdict(int))
        for each in self.processes:
            groups = each.code(lambda frames: (group_of(frames), task_of(frames)), with_tasks=True)
            for _, (group, task), code in groups:
                if task and code.cpu_ns:
                    found[group][task] += code.cpu_ns
        return found

    def unseen_threads(self) -> list[tuple[Site, int]]:
        """The functions of threads that recorded nothing, with their CPU time in nanoseconds, those with most first."""
        found: Counter[Site] = Counter()
        for each in self.processes:
            for stack, cpu_ns in each.walked.unplaced_ns.items():
                site = application_line(sampled_frames(each.sampled, stack))
                found[replace(site, line=0)] += cpu_ns
        return [each for each in found.most_common() if each[0] not in NO_CODE]

    def by_application_function(self) -> list[Function]:
        """The same for the functions of the application, each with the library code that ran below it."""
        return functions_from(self.code(application_line), self.code(_application_function))

    def parts_of(self, function: tuple[str, str]) -> list[Part]:
        """What `function` of the application executed itself, imported, and called of libraries, each library function
        for itself, those with the most CPU time first."""
        of_parts = self.code(lambda frames: _part_of(frames, function))
        parts = {
            part: Part(part if isinstance(part, str) else LIBRARIES, code) for part, code in of_parts.items() if part
        }
        groups = self.code(lambda frames: (_part_of(frames, function), innermost(frames), application_line(frames)))
        for (part, site, line), code in groups.items():
            if part:
                parts[part].sites[site] += code.cpu_ns
                parts[part].lines[line] += code.cpu_ns
        return sorted(parts.values(), key=lambda each: -each.code.cpu_ns)

    def callers_of(self, function: tuple[str, str]) -> Callers:
        """The line from which `function` of the application used the most CPU time, and the callers of that line, as
        long as one chain has at least half of the time, and its samples support it."""
        groups = self.code(lambda frames: _callers_in(frames, function))
        chains = {chain: code for chain, code in groups.items() if chain is not None}
        whole_ns = sum(code.cpu_ns for code in chains.values())
        found = NO_CALLERS
        for depth in range(CALLERS):
            used: dict[Site, Code] = defaultdict(Code)
            for chain, code in chains.items():
                if chain[:depth] == found.lines and len(chain) > depth:
                    used[chain[depth]].add(code)
            site = max(used, key=lambda each: used[each].cpu_ns, default=None)
            if not site or not used[site].is_supported or (depth and 2 * used[site].cpu_ns < whole_ns):
                break
            found = Callers((*found.lines, site), used[site].cpu_ns / whole_ns)
        return found


def sampled_frames(sampled: Sampled, stack: int) -> Frames:
    """The frames of a sample's stack, or what stands for them."""
    if not stack:
        return (NO_PYTHON if sampled.is_python else NO_FUNCTION,)
    return tuple(sampled.frames(stack)) or (NOT_READABLE,)


def innermost(frames: Frames) -> Site:
    """The line that was executed, or that imported what the import system did."""
    return next((site for site in frames if not site.file.startswith(_IMPORT_SYSTEM)), frames[0])


def function_of(frames: Frames) -> tuple[str, str]:
    """The function of that line, and its file."""
    site = innermost(frames)
    return site.function, site.file


def application_line(frames: Frames) -> Site:
    """The innermost line of the application; without one, the line that began to pickle what is sent to another
    process, or else the line that was executed."""
    own = next((site for site in frames if site.own), None)
    return own or next(filter(pickles, reversed(frames)), innermost(frames))


def _application_function(frames: Frames) -> tuple[str, str]:
    return function_of((application_line(frames),))


def _part_of(frames: Frames, function: tuple[str, str]) -> str | tuple[str, str]:
    """What `function` of the application executed: `OWN_CODE`, `IMPORTS`, or a library function; empty if another
    function did, or it could not be read."""
    if _application_function(frames) != function or frames[0] == NOT_READABLE:
        return ""
    if frames[0].own or function_of(frames[:1]) == function:
        return OWN_CODE
    return IMPORTS if _imports(frames) else function_of(frames)


def _imports(frames: Frames) -> bool:
    """Whether the innermost line of the application imported what was executed."""
    inside = takewhile(lambda frame: not frame.own, frames)
    return any(frame.file == _IMPORTLIB and frame.function in _IMPORTING for frame in inside)


def functions_from(lines: Mapping[Site, Code], functions: Mapping[tuple[str, str], Code]) -> list[Function]:
    """The functions, each with the line that has the most CPU time, those with the most CPU time first."""
    hottest: dict[tuple[str, str], tuple[int, Site]] = {}
    for site, code in lines.items():
        known = hottest.get(function_of((site,)))
        if known is None or code.cpu_ns > known[0]:
            hottest[function_of((site,))] = (code.cpu_ns, site)
    made = [Function(hottest[key][1], code) for key, code in functions.items()]
    made.sort(key=lambda each: (-each.code.cpu_ns, -each.code.wall_ns, each.site.function, each.site.file))
    return made


def task_frame(name: str) -> Site:
    """What stands for a task in a stack."""
    return Site("", 0, _TASK + name, False)


def task_of(frames: Frames) -> str:
    """The name of the task of the stack; empty if it has none."""
    outermost = frames[-1]
    return outermost.function.removeprefix(_TASK) if not outermost.file and outermost not in NO_CODE else ""


def _callers_in(frames: Frames, function: tuple[str, str]) -> Frames | None:
    """The application lines around `function`, from the innermost outward, in a stack in which it was executed, or a
    library function that it called; else None."""
    own = [site for site in frames if site.own] or frames
    if function_of((own[0],)) != function:
        return None
    return tuple(site for site in own if (site.function, site.file) != function)[:CALLERS]


class Groups(Generic[Group]):
    """The group of the stack at each place; `with_tasks`, the outermost frame of a task's is the task itself."""

    def __init__(self, sampled: Sampled, group_of: Callable[[Frames], Group], with_tasks: bool = False) -> None:
        self._sampled = sampled
        self._group_of = group_of
        self._with_tasks = with_tasks
        self._known: dict[Place, Group] = {}

    def __call__(self, place: Place) -> Group:
        found = self._known.get(place)
        if found is None:
            found = self._known[place] = self._group_of(self._frames(place))
        return found

    def may_be(self, place: Place, places: Iterable[Place]) -> set[Group]:
        """The groups that code at a place with an estimated stack may belong to: its own, and those of the places that
        are below the frames which are known of it. Empty if the stack is known."""
        if not isinstance(self._sampled, EstimatedStacks) or not self._sampled.is_estimated(place.stack):
            return set()
        below = self._sampled.below(place.stack)
        return {self(place), *(self(each) for each in places if each.stack in below)}

    def _frames(self, place: Place) -> Frames:
        frames = sampled_frames(self._sampled, place.stack)
        task = self._sampled.task_name(place.task) if self._with_tasks else ""
        return (*frames, task_frame(task)) if task else frames


def moved_ns(record: Record) -> tuple[int, int]:
    """The self wall and CPU time of a record that a pool has; never more CPU than wall time."""
    return record.sums.self_wall_ns, min(record.sums.self_cpu_ns, record.sums.self_wall_ns)


def profiled(analysis: Analysis) -> Profiled:
    """The profile of an analysis. Parts of experiments, calls sampled by CPU time, and processes that were not sampled
    from outside have none."""
    made = Profiled([], Sampling())
    if analysis.is_part:
        return made
    for account in analysis.accounts:
        sampled = EstimatedStacks(account.process)
        if refused := _why_refused(sampled):
            made.sampling.refused = refused
        elif sampled.is_there and not account.process.log.interval:
            found = _of_process(analysis, account, sampled)
            made.processes.append(found)
            _count(made.sampling, found)
    return made


def _why_refused(sampled: Sampled) -> str:
    """Why the process could not be sampled; empty if it could be."""
    if sampled.is_elsewhere:
        return "it is in another PID namespace than the monitor's /proc"
    needed = "its memory cannot be read" if sampled.is_python else "the kernel permits no perf events"
    return f"{needed}: {sampled.why_not}" if sampled.why_not else ""


def _count(sampling: Sampling, found: ProcessProfile) -> None:
    sampling.processes += 1
    sampling.threads += len(found.walked.delays_ns)
    sampling.samples += found.walked.samples
    sampling.unplaced += found.walked.unplaced
    counts: Counter[Place] = Counter()
    for weights in found.walked.pools.values():
        for samples in (weights.ran, weights.waited, weights.ready):
            counts.update(samples)
    sampling.cut += sum(number for place, number in counts.items() if found.sampled.is_cut(place.stack))
    sampling.estimated += found.sampled.estimated
    sampling.torn += found.walked.torn + found.sampled.estimated


def _of_process(analysis: Analysis, account: ProcessAccount, sampled: EstimatedStacks) -> ProcessProfile:
    process = account.process
    containers, locks = numbers_of(process, CONTAINERS), numbers_of(process, (GIL,))
    if is_sampled(analysis.experiment):  # then times of calls are estimated, and nothing can be taken from them
        containers, locks = set(), set()
    started = {thread.number: thread.record.start_cpu_ns for thread in process.threads}
    walked = walk(sampled, started, containers, numbers_of(process, ONLY_WAITING))
    known = delays_of(account)
    delays = {number: max(known.get(number, 0), walked.delays_ns.get(number, 0)) for number in account.threads}
    waits = unseen_by_thread(account, delays)
    spent = {
        (number, OUTSIDE_CALLS): Spent(share.program_wall_ns, share.program_cpu_ns, waits[number].processor_ns)
        for number, share in account.threads.items()
    }
    made = ProcessProfile(process, sampled, walked, spent)
    roots = analysis.records_of_threads(process, FIELDS).roots
    made.moved = [each for each in _moved(roots, containers, locks) if each[1] in walked.pools or each[1] in spent]
    _spend_in_containers(made)
    made.unsampled.update(unsampled(account, walked, spent, delays))
    while_sampled = dict(delays)
    for pool, each in made.unsampled.items():
        spent[pool].take(each)
        while_sampled[pool[0]] = walked.delays_ns[pool[0]]
    _settle(made, account, while_sampled)
    for number, share in account.threads.items():
        of_code_ns = sum(spent.processor_ns for (thread, _), spent in made.totals() if thread == number)
        idle_wait_ns = account.idle_waits_ns.get(number, 0)
        in_calls_ns, idle_ns = delay_in_calls(share, of_code_ns, delays[number], idle_wait_ns)
        made.in_calls_ns, made.idle_ns = made.in_calls_ns + in_calls_ns, made.idle_ns + idle_ns
    return made


def numbers_of(process: Process, kinds: Collection[str]) -> set[int]:
    """The numbers of the intrinsics of these kinds, without those that are not code of the program."""
    known = process.numbered_intrinsics.items()
    return {number for number, each in known if each.kind in kinds and each.name not in NOT_CODE}


def _moved(roots: list[Record], containers: set[int], locks: set[int]) -> Iterator[tuple[Record, Pool, bool]]:
    """The records that contain code, and the waits for the lock outside of other calls, each with its pool."""
    waiting: list[tuple[Record, int | None]] = [(record, OUTSIDE_CALLS) for record in reversed(roots)]
    while waiting:
        record, within = waiting.pop()
        if record.is_call:
            thread, intrinsic = record.key[0], record.key[1]
            if intrinsic in locks and within is not None:
                yield record, (thread, within), True
            within = intrinsic if intrinsic in containers else None
            if within is not None:
                yield record, (thread, within), False
        waiting.extend((each, within) for each in reversed(record.inner))


def _spend_in_containers(made: ProcessProfile) -> None:
    """The totals of the pools of calls, from their self times."""
    for record, pool, is_lock in made.moved:
        if not is_lock:
            wall_ns, cpu_ns = moved_ns(record)
            spent = made.spent.setdefault(pool, Spent())
            spent.wall_ns += wall_ns
            spent.cpu_ns += cpu_ns


def _settle(made: ProcessProfile, account: ProcessAccount, delays: Mapping[int, int]) -> None:
    """Divide the waits of the pools; in calls, waits for CPU are as likely as in other code."""
    for (thread, within), spent in made.spent.items():
        share = account.threads.get(thread)
        if within != OUTSIDE_CALLS and share and share.cpu_ns > 0:
            delay_ns = delays.get(thread, 0) * spent.cpu_ns // share.cpu_ns
            spent.processor_ns = min(delay_ns, spent.wall_ns - spent.cpu_ns)
        if (thread, within) in made.walked.pools:
            ready = made.walked.ready.get(thread, 0)
            spent.settle(made.walked.pools[thread, within], delays.get(thread, 0), ready)
    _spend_where_none_was_seen_to_wait(made, delays)


def _spend_where_none_was_seen_to_wait(made: ProcessProfile, delays: Mapping[int, int]) -> None:
    """The wait of a pool was for a processor if no sample found its thread waiting for anything else, as far as the
    kernel says that the thread waited for one, and no other pool has it: threads of milliseconds have few samples."""
    left_ns = Counter(delays)
    for (thread, _), spent in made.spent.items():
        left_ns[thread] -= spent.processor_ns
    for pool, spent in made.spent.items():
        if pool not in made.walked.pools or not made.walked.pools[pool].waited:
            more_ns = max(min(left_ns[pool[0]], spent.unexplained_ns), 0)
            spent.processor_ns += more_ns
            left_ns[pool[0]] -= more_ns


def program_waits(analysis: Analysis, found: Profiled) -> Unseen:
    """What the program waited outside of its calls; of processes that were sampled as their samples say."""
    sampled = {each.process for each in found.processes}
    other = unseen_wait(each for each in analysis.accounts if each.process not in sampled)
    spent = [spent for each in found.processes for pool, spent in each.totals() if pool[1] == OUTSIDE_CALLS]
    return Unseen(
        other.processor_ns + sum(each.processor_ns for each in spent),
        other.unexplained_ns + sum(each.unexplained_ns for each in spent),
        in_calls_ns=other.in_calls_ns + sum(each.in_calls_ns for each in found.processes),
        idle_ns=other.idle_ns + sum(each.idle_ns for each in found.processes),
    )
