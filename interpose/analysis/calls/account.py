"""The accounting of thread time: what calls took, what recording cost, and the rest, which is `code`.

Thread time is the sum, over the threads of all processes, of the wall time from a thread's beginning to its
end. For each thread it is divided without remainder:

    thread time = self time of its calls + overhead + code + in progress + before the ring + paused

`in progress` is the self time of calls that had not ended, but for those that contain code of the program (the kinds in
`CONTAINERS`). Their CPU time lasts until the thread's last known reading.

`paused` is the part of the recording's pauses outside of calls. Its CPU time was not measured, but estimated
(`interpose.analysis.calls.paused`).

`overhead` is the measured cost outside of calls (`own_wall_ns` less `inside_wall_ns`, and the same of CPU time) plus
the calibrated cost of each outermost call outside its own two clock readings. The cost of recording calls inside
another call is in its self time; `Share.inside_wall_ns` estimates it. If the parts exceed the thread time (a damaged
record, an unknown end), the overhead is reduced first; after that the thread counts as long as its calls. CPU time is
divided in the same way. `before the ring` is the measured time of events that newer ones have overwritten
(`interpose.analysis.recording.ring`), 0 if there are none.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import astuple, dataclass, field, replace

from interpose.analysis.calls.in_progress import InProgress, calls_in_progress, self_time_in_progress
from interpose.analysis.calls.paused import NOT_PAUSED, Lived, Paused, Reading, paused_times
from interpose.analysis.consolidation.sums import Sums, total
from interpose.analysis.recording.ending import Ending, ending
from interpose.analysis.recording.last_known import last_cpu_ns, last_events
from interpose.analysis.recording.ring import NOTHING as NOTHING_BEFORE
from interpose.analysis.recording.ring import Before, before_the_ring
from interpose.analysis.recording.signs_of_life import lived_until_ns
from interpose.experiments.format.records import ThreadRecord
from interpose.experiments.metadata.log import Log
from interpose.experiments.metadata.pauses import Pauses
from interpose.experiments.model.process import Process
from interpose.experiments.model.threads import Thread
from interpose.legacy.codes import STATEMENT

NO_PAUSES = Pauses()


@dataclass(frozen=True)
class Share:
    """Wall and CPU time, divided into calls (self time), the cost of recording, code, time before a ring, pauses, and
    calls in progress. `inside_wall_ns` and `inside_cpu_ns` are estimates of what recording cost within calls: a part of
    their self time."""

    wall_ns: int
    cpu_ns: int
    own_wall_ns: int
    own_cpu_ns: int
    program_wall_ns: int
    program_cpu_ns: int
    before_wall_ns: int = 0
    before_cpu_ns: int = 0
    paused_wall_ns: int = 0
    paused_cpu_ns: int = 0
    open_wall_ns: int = 0
    open_cpu_ns: int = 0
    inside_wall_ns: int = 0
    inside_cpu_ns: int = 0

    def __add__(self, other: Share) -> Share:
        return Share(*(a + b for a, b in zip(astuple(self), astuple(other), strict=True)))


NOTHING = Share(0, 0, 0, 0, 0, 0)


@dataclass(frozen=True)
class ProcessAccount:
    """The account of one process. `estimated` where a thread's end is the last that is known of it.

    `passed` are calls of the kind `sync` that did not wait: they were counted and not recorded. `found` are the
    events that are there, `overwritten` those that gave way to newer ones in a ring, `missing` those that were recorded
    and are not there. `idle_waits_ns` is how long each thread waited for work.
    """

    process: Process
    ending: Ending
    latest_ns: int
    threads: dict[int, Share]
    estimated: bool
    open_calls: list[InProgress] = field(default_factory=list)
    dropped: int = 0
    found: int = 0
    missing: int = 0
    overwritten: int = 0
    passed: int = 0
    unseen_cpu_ns: int = 0
    idle_waits_ns: Mapping[int, int] = field(default_factory=dict)


def account(process: Process, sums: Mapping[int, Sums], pauses: Pauses = NO_PAUSES) -> ProcessAccount:
    """The account of `process`, with the `sums` of its events by thread, and the pauses of its experiment."""
    end = ending(process)
    latest_ns = latest_instant_ns(process, sums.values())
    events = last_events(process)
    known_cpu_ns = last_cpu_ns(process, events)
    until_ns = lived_until_ns(process, end, latest_ns, events, known_cpu_ns)
    is_running = end.state == "running"
    open_calls = list(calls_in_progress(process, events, until_ns, known_cpu_ns, is_running))
    shares = _shares(process, sums, pauses, until_ns, known_cpu_ns, open_calls, is_running)
    found = total(sums.values()).calls
    missing = 0 if is_running else missing_events(process, found)
    return ProcessAccount(
        process=process,
        ending=end,
        latest_ns=max([until_ns, *(each.until_ns for each in open_calls)]),
        threads=shares,
        estimated=until_ns != end.end_ns and any(not thread.record.end_ns for thread in process.threads),
        open_calls=open_calls,
        dropped=process.lost_calls + sum(thread.record.dropped for thread in process.threads),
        found=found,
        missing=missing,
        overwritten=process.overwritten,
        passed=sum(thread.record.passed for thread in process.threads),
        unseen_cpu_ns=_unseen_cpu_ns(process, shares.values()),
    )


def recording_ns(log: Log, calls: int, statements: int) -> int:
    """The calibrated cost of recording that many calls, some of them line events, outside of their own times."""
    return (calls - statements) * max(log.call_ns - log.inside_ns, 0) + statements * log.statement_ns


def number_of_statements(process: Process) -> int:
    """The number of the intrinsic for line events; 0 without them."""
    known = process.numbered_intrinsics
    return next((number for number, intrinsic in known.items() if intrinsic.name == STATEMENT), 0)


def latest_instant_ns(process: Process, sums: Iterable[Sums]) -> int:
    """The latest monotonic instant that anything in the experiment tells of `process`."""
    instants = [process.log.start_ns]
    instants += [each.last_ns for each in sums]
    instants += [sample.time_ns for sample in process.overview]
    for thread in process.threads:
        instants += [thread.record.seen_ns, thread.record.end_ns]
        instants += [call.start_ns for call in thread.open_calls]
    return max(instants)


def _shares(
    process: Process,
    sums: Mapping[int, Sums],
    pauses: Pauses,
    until_ns: int,
    known_cpu_ns: Mapping[int, int],
    open_calls: Sequence[InProgress],
    is_running: bool,
) -> dict[int, Share]:
    """What became of the time of each thread."""
    known = {thread.number: thread for thread in process.threads}
    before = defaultdict(Before, before_the_ring(process))
    ends_ns = {each.thread: each.until_ns for each in open_calls}
    lived = {
        number: lived_of(thread, ends_ns.get(number, until_ns), known_cpu_ns.get(number, 0), before[number])
        for number, thread in known.items()
    }
    paused = paused_times(process, pauses, lived, open_calls)
    open_ns = self_time_in_progress(process, open_calls)
    shares = {
        number: _share(
            process,
            thread,
            sums.get(number, Sums()),
            lived[number].end,
            before[number],
            paused.within(number),
            open_ns.get(number, (0, 0)),
        )
        for number, thread in known.items()
    }
    for number in sums.keys() - known.keys():  # of a process that runs, threads that began since they were read
        if not is_running:
            note_missing_thread(process, number)
        shares[number] = _share_of_unknown(process, sums[number])
    return shares


def lived_of(thread: Thread, until_ns: int, known_cpu_ns: int, before: Before) -> Lived:
    """From where on the calls of a thread are there, and until when it is known. A reading from outside may be later:
    the thread cannot have used more CPU time than it lived."""
    record = thread.record
    start = Reading(record.start_ns + before.wall_ns, record.start_cpu_ns + before.cpu_ns)
    known_cpu_ns = min(known_cpu_ns, record.start_cpu_ns + max(until_ns - record.start_ns, 0))
    return Lived(start, Reading(record.end_ns or until_ns, max(record.end_cpu_ns, known_cpu_ns)))


def _share(
    process: Process,
    thread: Thread,
    made: Sums,
    end: Reading,
    before: Before,
    paused: Paused,
    open_ns: tuple[int, int],
) -> Share:
    record, wall_ns = thread.record, end.wall_ns - thread.record.start_ns
    if wall_ns < 0:
        process.damages.add(f"{process.place}/threads", f"thread {thread.number} the end is before the beginning")
    if record.end_ns and made.self_wall_ns > max(wall_ns, 0):
        process.damages.add(f"{process.place}/threads", f"thread {thread.number} was longer in calls than it lived")
    inside_ns = recording_ns(process.log, made.inner_calls, made.inner_statements)
    measured_ns, measured_cpu_ns = _inside(record, made)
    own_ns = recording_ns(process.log, made.calls + record.gathered, made.statements) - inside_ns
    share = _divided(
        wall_ns,
        max(end.cpu_ns - record.start_cpu_ns, made.top_cpu_ns),
        made,
        max(record.own_wall_ns - measured_ns - before.own_wall_ns, 0) + own_ns,
        max(record.own_cpu_ns - measured_cpu_ns - before.own_cpu_ns, 0) + own_ns,
        before,
        paused,
        open_ns,
    )
    return replace(
        share,
        inside_wall_ns=min(inside_ns + measured_ns, made.self_wall_ns),
        inside_cpu_ns=min(inside_ns + measured_cpu_ns, made.self_cpu_ns),
    )


def _inside(record: ThreadRecord, made: Sums) -> tuple[int, int]:
    """Measured wall and CPU time of recording within calls; of a ring, only the part of the calls that it still has."""
    calls = min(made.calls, record.recorded)
    parts = [each * calls // max(record.recorded, 1) for each in (record.inside_wall_ns, record.inside_cpu_ns)]
    return parts[0], parts[1]


def _share_of_unknown(process: Process, sums: Sums) -> Share:
    """The share of a thread of which nothing is left but its events."""
    return _divided(sums.last_ns - sums.first_ns, sums.top_cpu_ns, sums, 0, 0)


def _divided(
    wall_ns: int,
    cpu_ns: int,
    calls: Sums,
    own_wall_ns: int,
    own_cpu_ns: int,
    before: Before = NOTHING_BEFORE,
    paused: Paused = NOT_PAUSED,
    open_ns: tuple[int, int] = (0, 0),
) -> Share:
    wall_ns = max(wall_ns, calls.self_wall_ns)
    cpu_ns = max(cpu_ns, calls.self_cpu_ns)
    before_wall_ns = min(before.wall_ns, wall_ns - calls.self_wall_ns)
    before_cpu_ns = min(before.cpu_ns, before_wall_ns, cpu_ns - calls.self_cpu_ns)
    left_wall_ns = wall_ns - calls.self_wall_ns - before_wall_ns
    own_wall_ns = min(own_wall_ns, left_wall_ns)
    left_cpu_ns = cpu_ns - calls.self_cpu_ns - before_cpu_ns
    program_wall_ns = left_wall_ns - own_wall_ns
    # Calibration may be slightly off: code never gets more CPU time than wall time because of it.
    own_cpu_ns = min(max(own_cpu_ns, left_cpu_ns - program_wall_ns), left_cpu_ns)
    program_cpu_ns = left_cpu_ns - own_cpu_ns
    open_wall_ns = min(open_ns[0], program_wall_ns)
    open_cpu_ns = min(open_ns[1], open_wall_ns, program_cpu_ns)
    # What code has no wall time for was used in the call in progress, which woke up and returned to its wait.
    open_cpu_ns = max(open_cpu_ns, program_cpu_ns - (program_wall_ns - open_wall_ns))
    program_wall_ns, program_cpu_ns = program_wall_ns - open_wall_ns, program_cpu_ns - open_cpu_ns
    paused_wall_ns = min(paused.wall_ns, program_wall_ns)
    most_cpu_ns = program_wall_ns - paused_wall_ns  # of code
    paused_cpu_ns = max(min(paused.cpu_ns, paused_wall_ns, program_cpu_ns), program_cpu_ns - most_cpu_ns)
    return Share(
        wall_ns=wall_ns,
        cpu_ns=cpu_ns,
        own_wall_ns=own_wall_ns,
        own_cpu_ns=own_cpu_ns,
        program_wall_ns=program_wall_ns - paused_wall_ns,
        program_cpu_ns=program_cpu_ns - paused_cpu_ns,
        before_wall_ns=before_wall_ns,
        before_cpu_ns=before_cpu_ns,
        paused_wall_ns=paused_wall_ns,
        paused_cpu_ns=paused_cpu_ns,
        open_wall_ns=open_wall_ns,
        open_cpu_ns=open_cpu_ns,
    )


def note_missing_thread(process: Process, number: int) -> None:
    """Note as damage that a thread that has events is not there."""
    process.damages.add(f"{process.place}/threads", f"thread {number} is not there")


def missing_events(process: Process, found: int) -> int:
    """How many events were recorded and are not there, of which `found` are; that is noted."""
    recorded = sum(thread.record.recorded for thread in process.threads) - process.overwritten
    missing = max(recorded - found, 0)
    if missing:
        process.damages.add(f"{process.place}/events", f"{missing:,} of {recorded:,} recorded calls are not there")
    return missing


def _unseen_cpu_ns(process: Process, shares: Iterable[Share]) -> int:
    """CPU time of the process, while it was recorded, that is of no thread that was seen."""
    if len(process.overview) < 2:
        return 0
    used_ns = process.overview[-1].cpu_ns - process.overview[0].cpu_ns
    return max(used_ns - sum(share.cpu_ns for share in shares), 0)
