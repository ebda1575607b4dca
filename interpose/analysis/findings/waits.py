"""Rules about waiting in recorded calls: slow calls, sleeping within a transaction, contended locks, the interpreter
lock, child processes."""

from __future__ import annotations

from collections.abc import Container, Hashable, Iterator, Sequence

from interpose.analysis.findings.failing import failed_beside
from interpose.analysis.findings.file_locks import sleeps_in_lock
from interpose.analysis.findings.finding import LARGE, SLOW_SHARE, Calls, Finding, Floor, found
from interpose.analysis.findings.lived import while_one_lived
from interpose.analysis.findings.lock_waits import HELD, SEMAPHORES, is_of_a_thread
from interpose.analysis.findings.pool_work import may_be_cause
from interpose.analysis.findings.programs import Programs, has_program_only, is_lock, is_message
from interpose.analysis.findings.row_locks import held_meanwhile
from interpose.analysis.findings.survey import Survey, grouped, threads_of, total_of
from interpose.analysis.findings.watching import Watching, waited_by_packages
from interpose.analysis.recording.children import Children, children_of
from interpose.analysis.recording.installed import package_of, packages_above
from interpose.analysis.recording.lineage import forkserver_line
from interpose.analysis.time.waits_for_turns import takes_from_pool
from interpose.experiments.model.stacks import Site
from interpose.kinds import NATIVE

GIL = "gil"
# Other rules cover these: waits for locks, for users, and for work; and units of work are not waits.
NOT_SLOW = frozenset(("sync", GIL, "screen", "idle", "logic", "process"))
# how many programs of child processes are named
NAMED = 3
# By these C code starts a child, which is known only if it is recorded itself, without the line that started it.
NATIVE_STARTS = frozenset(NATIVE + name for name in ("fork", "posix_spawn", "posix_spawnp", "system", "popen"))
# These are of the kind `process`, and wait for nobody.
NO_WAITS = frozenset(("os.kill", "os.killpg", "os.pipe", "os.pipe2"))
# What a request does after its answer was sent; it is part of its transaction.
BACKGROUND = "starlette.background.BackgroundTask.__call__"
# The unit of a wait at a pipe, which may be anyone's.
PIPE = "pipe"
# The unit of calls of a pool's work, without an own line.
POOL = "pool"
# The unit of short sleeps of an installed package until something else is done.
POLL = "poll"
# The unit of sleeps while the program has the lock of a file, for which others wait.
HELD_LOCK = "held lock"
# Packages sleep for up to a tenth of a second between two looks; that takes longer, most of all on a busy machine.
POLLS_AT_LEAST, POLL_NS = 10, 150_000_000
# Waits at these may be for anyone, too: threads use them.
CHANNELS = ("multiprocessing.connection.", "multiprocessing.Queue.")
# A lock that was waited for less often was met by chance.
WAITS_AT_LEAST = 10
# Others wait for a condition, too, but mostly to be told something.
FOR_A_TURN = frozenset((*SEMAPHORES, "queue.Queue.put"))
STOCKS = frozenset(("queue.Queue.get", "queue.SimpleQueue.get"))


def sleeps(survey: Survey) -> Iterator[Finding]:
    """Sleeping within a transaction, while somebody waits for it."""
    sleeping = [each for each in survey.of_kind("sleep") if each.transaction]
    behind = {each.transaction for each in survey.of_kind("logic") if each.intrinsic == BACKGROUND} if sleeping else ()
    for (_, transaction), rows in grouped(sleeping, lambda each: (each.site, each.transaction)):
        units, about = survey.transactions_of(rows), BACKGROUND if transaction in behind else ""
        failing = failed_beside(survey, rows)
        yield found("sleep within a transaction", rows, units=units, unit="transaction", about=about, failing=failing)


def convoys(survey: Survey) -> Iterator[Finding]:
    """Threads that wait for locks that were taken at one line; who waits for a thread's end waits for no lock. In a
    program that is not Python, nobody knows who holds them: there it is those that wait."""
    for holder, rows in grouped(survey.of_kind("sync"), lambda each: _holder(each.detail)):
        if holder and threads_of(rows) > 1 and not is_of_a_thread(holder):
            floor = Floor(WAITS_AT_LEAST)
            yield found("lock convoy", rows, units=threads_of(rows), unit="waiting thread", about=holder, floor=floor)
    programs = Programs(survey)
    waits = [each for each in survey.of_kind("sync") if is_lock(each) and programs.made(each)]
    for _, rows in grouped(waits, lambda each: (_line_or_program(each, programs), each.intrinsic)):
        yield found("lock convoy", rows, units=threads_of(rows), unit="waiting thread", floor=LARGE)


def turns(survey: Survey) -> Iterator[Finding]:
    """Threads that wait at one line for their turn: for what a pool, a semaphore or a queue lets only some have."""
    waits = [each for each in survey.of_kind("sync") if each.site and each.site.own and _is_for_a_turn(each)]
    for _, rows in grouped(waits, lambda each: (each.site, each.intrinsic)):
        if threads_of(rows) > 1:
            yield found("waits for a turn", rows, units=threads_of(rows), unit="waiting thread", floor=LARGE)


def _is_for_a_turn(each: Calls) -> bool:
    """Whether others had what it waited for. In an installed package a condition is mostly for that: a pool's."""
    if not each.caller or _holder(each.detail):
        return False
    if each.intrinsic in FOR_A_TURN:
        return not each.caller.function.endswith(".wait")  # of multiprocessing's conditions and events
    is_taken = each.intrinsic in STOCKS and takes_from_pool(each.caller)
    return (is_taken or each.intrinsic == "threading.Condition.wait") and bool(packages_above(each.caller.file))


def interpreter_lock(survey: Survey) -> Iterator[Finding]:
    """Threads that wait for the interpreter lock, which others give up at one line: the place where they had it."""
    for holder, rows in grouped(survey.of_kind(GIL), lambda each: _holder(each.detail)):
        if holder:
            yield found("lock convoy", rows, units=threads_of(rows), unit="waiting thread", about=holder, floor=LARGE)


def _holder(detail: str) -> str:
    """The place at which a lock was taken; empty if it is unknown."""
    held = HELD.fullmatch(detail)
    return held["place"] or "" if held else ""


def slow_calls(survey: Survey) -> Iterator[Finding]:
    """Calls from one line, or from one program without lines, that took much of the time, of any kind. Those of a
    database that took far longer than others like them are apart. Work of a pool without an own line is named by the
    line at which it began."""
    for rows in slow_lines(survey):
        unit, failing = POLL if polling_package(rows) else "", failed_beside(survey, rows)
        held = "" if unit else sleeps_in_lock(survey, rows)
        unit = HELD_LOCK if held else unit
        holders = held_meanwhile(survey, rows)
        yield found("slow calls", rows, floor=LARGE, unit=unit, about=held, failing=failing, **holders)
    for rows in slow_work(survey):
        yield found("slow calls", rows, site=rows[0].work, intrinsic=rows[0].intrinsic, unit=POOL, floor=LARGE)


def slow_lines(survey: Survey) -> Iterator[list[Calls]]:
    """The calls that may be slow, of one intrinsic and from one line, or from one program without lines."""
    calls, programs = _candidates(survey), Programs(survey)
    slow = [each for each in calls if (programs.may_be_cause if programs.made(each) else _is_own)(each)]
    for _, rows in grouped(slow, lambda each: (_line_or_program(each, programs), each.intrinsic, bool(each.among))):
        yield rows


def slow_work(survey: Survey) -> Iterator[list[Calls]]:
    """The calls without an own line that may be slow, of one intrinsic and of a pool's work that began at one line."""
    slow = [each for each in _candidates(survey) if may_be_cause(each)]
    for _, rows in grouped(slow, lambda each: (each.work, each.intrinsic, bool(each.among))):
        yield rows


def _candidates(survey: Survey) -> list[Calls]:
    waits = {id(each) for each in survey.waits_of_loops}
    return [each for each in survey.calls if id(each) not in waits and each.kind not in NOT_SLOW]


def _is_own(each: Calls) -> bool:
    return each.site is not None and each.site.own


def _line_or_program(each: Calls, programs: Programs) -> Hashable:
    return programs.of(each) if has_program_only(each) else each.site


def child_processes(survey: Survey) -> Iterator[Finding]:
    """Waits at one line for child processes, or at a pipe or channel if children lived for most of that time; only the
    time in which one lived counts. A finding names the children that were started there, or else all that lived
    meanwhile. In a process without children, waits are for something else."""
    yield from _polls(survey)
    experiment = survey.analysis.experiment
    children = [each for each in children_of(experiment) if each.wall_ns]
    parents = {number for number, each in enumerate(experiment.processes) if each.children or each.descendants}
    forkservers = set(map(forkserver_line, experiment.processes)) - {None}
    floor = Floor(share=SLOW_SHARE)
    of_files = {each.name for process in experiment.processes for each in process.intrinsics if each.kind == "file"}
    calls = [each for each in survey.of_kind("process") if each.intrinsic not in NO_WAITS and not is_message(each)]
    calls = [each for each in calls if not waited_by_packages(survey, each)]
    watching = Watching(survey, [each for each in calls if not _is_anyones(each, of_files)])
    for (site, _), rows in grouped(calls, lambda each: (each.site, parents.isdisjoint(each.seen_ns))):
        living = [each for each in children if any(_lived_meanwhile(each, row) for row in rows)]
        is_pipe = all(row.intrinsic in of_files for row in rows)
        anyones = [row for row in rows if _is_anyones(row, of_files)]
        others = [row for row in rows if row not in anyones]
        awaited = watching.awaited_at(site, living) if others and len(living) > 1 else living
        there = [each for each in awaited if each.site == site] or _without_line_if_native(awaited, rows)
        others = watching.without_idle(others, there)
        lives = (life for each in living for life in each.lives if life.end_ns)
        meanwhile = [*others, *while_one_lived(experiment, anyones, lives)]
        if 2 * total_of(meanwhile)[1] > total_of([*others, *anyones])[1]:
            about, unit = ", ".join(each.program for each in there[:NAMED]), PIPE if is_pipe else ""
            yield found(
                "child processes",
                meanwhile,
                about=about,
                unit=unit,
                floor=floor,
                starter=_starter(there, site),
                recording_ns=_recording_ns(survey, there),
                is_forkserver=site in forkservers,
            )
        elif site and site.own:
            yield found("slow calls", rows, floor=floor)


def _is_anyones(each: Calls, of_files: Container[str]) -> bool:
    """Whether it is a wait at a pipe or channel, which may be for anyone."""
    return each.intrinsic in of_files or each.intrinsic.startswith(CHANNELS)


def _without_line_if_native(children: list[Children], rows: Sequence[Calls]) -> list[Children]:
    """All of them, unless C code started some at that line: then those without a line, which may be its own."""
    is_native = any(row.intrinsic in NATIVE_STARTS for row in rows)
    return [each for each in children if not each.site] if is_native else children


def polling_package(rows: Sequence[Calls]) -> str:
    """The installed package whose code makes these calls, if they are short sleeps, one after another; else empty."""
    packages = {package_of(each.caller.file) if each.kind == "sleep" and each.caller else "" for each in rows}
    calls, wall_ns = total_of(rows)
    is_poll = len(packages) == 1 and calls >= POLLS_AT_LEAST and wall_ns < calls * POLL_NS
    return packages.pop() if is_poll else ""


def _polls(survey: Survey) -> Iterator[Finding]:
    """Short sleeps of an installed package while child processes lived that the same package started."""
    experiment = survey.analysis.experiment
    sleeps = [each for each in survey.of_kind("sleep") if not waited_by_packages(survey, each)]
    for _, rows in grouped(sleeps, lambda each: each.site):
        package = polling_package(rows)
        there = [each for each in children_of(experiment) if package in each.packages] if package else []
        living = [each for each in there if any(_lived_meanwhile(each, row) for row in rows)]
        meanwhile = while_one_lived(experiment, rows, (life for each in living for life in each.lives if life.end_ns))
        if 2 * total_of(meanwhile)[1] > total_of(rows)[1]:
            about = ", ".join(each.program for each in living[:NAMED])
            yield found("child processes", meanwhile, about=about, unit=POLL, floor=Floor(share=SLOW_SHARE))


def _recording_ns(survey: Survey, children: Sequence[Children]) -> int:
    """What recording took in all threads of these."""
    recorded = {id(process) for each in children for process in each.recorded}
    accounts = (each for each in survey.analysis.accounts if id(each.process) in recorded)
    return sum(share.own_wall_ns for each in accounts for share in each.threads.values())


def _starter(children: Sequence[Children], waits_at: Site | None) -> Site | None:
    """The line that started all of these, if it is known and another one."""
    sites = {each.site for each in children}
    return next(iter(sites)) if len(sites) == 1 and waits_at not in sites else None


def _lived_meanwhile(children: Children, row: Calls) -> bool:
    """Whether one of them lived, or may have, between the first and the last of these calls of its parent."""
    for life in children.lives:
        first_ns, last_ns = row.seen_ns.get(life.parent, (0, 0))
        if max(life.start_ns, first_ns) < min(life.end_ns or last_ns, last_ns):
            return True
    return False
