"""What the sections of a performance profile are made from, of one experiment or of several.

All figures are sums, so it does not matter which parts are merged first. Only what a section needs is read.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable
from dataclasses import dataclass, field
from typing import Any, TypeVar

from interpose.analysis.analysis import Analysis
from interpose.analysis.calls.attribution import Service, services_of
from interpose.analysis.calls.calltree import Calls, Function, calls_of
from interpose.analysis.calls.figures import Vector, put
from interpose.analysis.calls.functions import by_function
from interpose.analysis.calls.identification import Identified, identified
from interpose.analysis.calls.input_output import input_output
from interpose.analysis.lines.line_rows import Figures, Place, line_trace
from interpose.analysis.partial.partial import Question, Reduction
from interpose.analysis.time.concurrency import Resource, resource_of, solo_times
from interpose.analysis.time.run_queue import Spent, spent_by_thread, whole_of
from interpose.analysis.time.slices import slices_of
from interpose.analysis.transactions import response_times
from interpose.analysis.transactions.response_times import TransactionsPart
from interpose.experiments.metadata.map import Collector
from interpose.reports.screen.state import command_line

NAME = "profile"  # of this reduction
SLICES = 10
NOTES = 10  # as many of line trace are kept, each once
NO_SPENT = Spent()
_FIGURES = 4  # of a vector: wall time, CPU time, wait and calls, which those of all experiments begin with
Key = TypeVar("Key", bound=Hashable)


@dataclass
class SessionPart:
    """What was measured. `begins_ns` and `ends_ns` are on the calendar; `is_alone` where no process had two threads.

    `name` is that of the first experiment; `commands` and `hosts` are those of all, each once.
    """

    name: str = ""
    commands: list[str] = field(default_factory=list)
    hosts: list[str] = field(default_factory=list)
    experiments: int = 0
    processes: int = 0
    threads: int = 0
    begins_ns: int = 0
    ends_ns: int = 0
    spent: Spent = NO_SPENT
    calls: int = 0
    dropped: int = 0
    samples: int = 0
    collectors: dict[str, Collector] = field(default_factory=dict)
    is_estimated: bool = False
    is_alone: bool = True


@dataclass
class ResourcesPart:
    """Calls, wall and CPU time of each resource; wall and CPU time of what is outside of calls, by its name.

    `solo` is None if it is unknown.
    """

    figures: dict[Resource, Vector] = field(default_factory=dict)
    outside: dict[str, Vector] = field(default_factory=dict)
    solo: dict[Resource, int] | None = field(default_factory=dict)
    whole_ns: int = 0


@dataclass
class SlicePart:
    """The same slice of several experiments: sums of their times, with the time of calls by kind."""

    start_ns: int = 0
    length_ns: int = 0
    cpu_ns: int = 0
    run_delay_ns: int = 0
    calls: int = 0
    kinds: dict[str, int] = field(default_factory=dict)

    def add(self, other: SlicePart) -> None:
        """Add the slice of another experiment."""
        self.start_ns += other.start_ns
        self.length_ns += other.length_ns
        self.cpu_ns += other.cpu_ns
        self.run_delay_ns += other.run_delay_ns
        self.calls += other.calls
        for kind, time_ns in other.kinds.items():
            self.kinds[kind] = self.kinds.get(kind, 0) + time_ns


@dataclass
class ActivityPart:
    """The slices of each experiment; `samples` and `has_events` as in `Slices`."""

    slices: list[SlicePart] = field(default_factory=list)
    samples: int = 0
    has_events: bool = True


@dataclass
class LinesPart:
    """What line trace says of functions: CPU time outside of them and that of recording, in how many threads."""

    functions: dict[Place, Figures] = field(default_factory=dict)
    outside_cpu_ns: int = 0
    own_ns: int = 0
    threads: int = 0
    notes: list[str] = field(default_factory=list)


@dataclass
class ProfilePart:
    """The basis of the sections; empty is what was not asked for.

    `services` have wall time, CPU time, wait and calls. `procedures` have calls, CPU time and wait of all calls below
    them. `files` have calls, bytes and time by file and operation. `identified` have calls, wall and CPU time.
    """

    session: SessionPart = field(default_factory=SessionPart)
    resources: ResourcesPart = field(default_factory=ResourcesPart)
    activity: ActivityPart = field(default_factory=ActivityPart)
    services: list[Service] = field(default_factory=list)
    procedures: dict[Function, Vector] = field(default_factory=dict)
    lines: LinesPart = field(default_factory=LinesPart)
    transactions: TransactionsPart = field(default_factory=TransactionsPart)
    files: dict[tuple[str, str], Vector] = field(default_factory=dict)
    identified: dict[Identified, Vector] = field(default_factory=dict)


RESOURCES, ACTIVITY, SERVICES, PROCEDURES = "resources", "activity", "services", "procedures"
LINES, TRANSACTIONS, FILES, IDENTIFIED = "lines", "transactions", "files", "identified"
_OF_CALLS = {RESOURCES, SERVICES, PROCEDURES}  # what needs the tree of calls


def question(needs: Iterable[str], slices: int) -> Question:
    """The question for these parts of a profile, with so many slices of time."""
    return Question(NAME, options=(str(slices), *sorted(set(needs))))


def reduced(analysis: Analysis, asked: Question) -> ProfilePart:
    """What the sections that were asked for are made from."""
    slices, *needs = asked.options
    made = ProfilePart(session=_session(analysis))
    if not _OF_CALLS.isdisjoint(needs):
        _add_calls(made, analysis, needs)
    if ACTIVITY in needs:
        made.activity = _activity(analysis, int(slices))
    if LINES in needs:
        made.lines = _lines(analysis)
    if TRANSACTIONS in needs:
        made.transactions = response_times.reduced(analysis)
    if FILES in needs:
        for (file, operation, _), activity in input_output(analysis).found.items():
            sums = activity.sums
            _put(made.files, (file, operation), [sums.calls, sums.bytes, sums.self_wall_ns])
    if IDENTIFIED in needs or made.session.collectors:
        for what, sums in identified(analysis).items():
            _put(made.identified, what, [sums.calls, sums.self_wall_ns, sums.self_cpu_ns])
    return made


def merged(parts: Iterable[ProfilePart]) -> ProfilePart:
    """The basis of the sections of all; those given do not change."""
    made, given = ProfilePart(), list(parts)
    made.session = _sessions([each.session for each in given])
    made.resources = _all_resources([each.resources for each in given])
    made.activity = _activities([each.activity for each in given])
    made.services = _all_services(service for each in given for service in each.services)
    made.lines = _all_lines([each.lines for each in given])
    made.transactions = response_times.merged(each.transactions for each in given)
    for each in given:
        _put_all(made.procedures, each.procedures)
        _put_all(made.files, each.files)
        _put_all(made.identified, each.identified)
    return made


PROFILE: Reduction[Any] = Reduction(ProfilePart, reduced, merged, needs_all_calls=True)


def _session(analysis: Analysis) -> SessionPart:
    experiment, accounts = analysis.experiment, analysis.accounts
    log = experiment.founder.log
    first_ns = min(process.log.start_ns for process in experiment.processes)
    last_ns = max(each.latest_ns for each in accounts)
    return SessionPart(
        name=experiment.name,
        commands=[command_line(experiment.founder)],
        hosts=[f"{log.system.get('host', '?')}, {log.system.get('cpus', '?')} processors"],
        experiments=1,
        processes=len(accounts),
        threads=sum(len(each.threads) for each in accounts),
        begins_ns=log.time_ns + first_ns - log.start_ns,
        ends_ns=log.time_ns + last_ns - log.start_ns,
        spent=whole_of(spent_by_thread(accounts).values()),
        calls=sum(each.found for each in accounts),
        dropped=sum(each.dropped for each in accounts),
        samples=sum(max(len(process.overview) - 1, 0) for process in experiment.processes),
        collectors={each.name: each for process in experiment.processes for each in process.collectors},
        is_estimated=any(each.estimated for each in accounts),
        is_alone=all(len(each.threads) <= 1 for each in accounts),
    )


def _sessions(given: list[SessionPart]) -> SessionPart:
    return SessionPart(
        name=next((each.name for each in given), ""),
        commands=_each_once(each.commands for each in given),
        hosts=_each_once(each.hosts for each in given),
        experiments=sum(each.experiments for each in given),
        processes=sum(each.processes for each in given),
        threads=sum(each.threads for each in given),
        begins_ns=min((each.begins_ns for each in given), default=0),
        ends_ns=max((each.ends_ns for each in given), default=0),
        spent=whole_of(each.spent for each in given),
        calls=sum(each.calls for each in given),
        dropped=sum(each.dropped for each in given),
        samples=sum(each.samples for each in given),
        collectors={name: each for part in reversed(given) for name, each in part.collectors.items()},
        is_estimated=any(each.is_estimated for each in given),
        is_alone=all(each.is_alone for each in given),
    )


def _each_once(given: Iterable[list[str]]) -> list[str]:
    return list(dict.fromkeys(text for texts in given for text in texts))


def _add_calls(made: ProfilePart, analysis: Analysis, needs: Iterable[str]) -> None:
    calls = calls_of(analysis)
    if RESOURCES in needs:
        made.resources = _resources(analysis, calls)
    if SERVICES in needs:
        made.services = _all_services(services_of(calls.tree))
    if PROCEDURES in needs:
        for row in by_function(calls.tree):
            if row.what.own and row.inclusive[3]:
                _, cpu_ns, wait_ns, count = row.inclusive[:_FIGURES]
                made.procedures[row.what] = [count, cpu_ns, wait_ns]


def _resources(analysis: Analysis, calls: Calls) -> ResourcesPart:
    made = ResourcesPart(whole_ns=calls.tree.totals()[calls.tree.root][0])
    for process in analysis.experiment.processes:
        for key, sums in analysis.records(process, ("intrinsic", "stack", "detail")).sums().items():
            _put(made.figures, resource_of(process, *key), [sums.calls, sums.self_wall_ns, sums.self_cpu_ns])
    for node in calls.tree.root.inner.values():
        if node.own and not node.frame.function.object:
            _put(made.outside, node.frame.function.name, node.own[:2])
    if all(len(account.threads) <= 1 for account in analysis.accounts):
        made.solo = {resource: figures[1] for resource, figures in made.figures.items()}
    else:
        solo = solo_times(analysis.experiment)
        made.solo = None if solo is None else {resource: solo.get(resource, 0) for resource in made.figures}
    return made


def _all_resources(given: list[ResourcesPart]) -> ResourcesPart:
    made = ResourcesPart(whole_ns=sum(each.whole_ns for each in given))
    for each in given:
        _put_all(made.figures, each.figures)
        _put_all(made.outside, each.outside)
        if made.solo is not None and each.solo is not None:
            for resource, time_ns in each.solo.items():
                made.solo[resource] = made.solo.get(resource, 0) + time_ns
        else:
            made.solo = None
    return made


def _activity(analysis: Analysis, number: int) -> ActivityPart:
    found = slices_of(analysis, number)
    first_ns, figures = found.slices[0].start_ns, found.figures
    made = ActivityPart([], found.samples, found.has_events)
    for each in found.slices:
        kinds = {kind: time_ns for kind in figures.kinds if (time_ns := figures.of_kind(each.calls, kind))}
        times = each.start_ns - first_ns, each.stop_ns - each.start_ns, round(each.cpu_ns), round(each.run_delay_ns)
        made.slices.append(SlicePart(*times, each.calls[3], kinds))
    return made


def _activities(given: list[ActivityPart]) -> ActivityPart:
    number = max((len(each.slices) for each in given), default=0)
    slices = [SlicePart() for _ in range(number)]
    for part in given:
        for into, each in zip(slices, part.slices, strict=False):
            into.add(each)
    return ActivityPart(slices, sum(each.samples for each in given), all(each.has_events for each in given))


def _all_services(given: Iterable[Service]) -> list[Service]:
    found: dict[Function, Service] = {}
    for each in given:
        into = found.setdefault(each.function, Service(each.function, [0] * _FIGURES))
        put(into.figures, each.figures[:_FIGURES])
        for invoker, figures in each.invokers.items():
            _put(into.invokers, invoker, figures[:_FIGURES])
    return list(found.values())


def _lines(analysis: Analysis) -> LinesPart:
    trace = line_trace(analysis.experiment)
    return LinesPart(
        {each.place: each.figures for each in trace.functions},
        sum(thread.outside.self_cpu_ns for thread in trace.threads),
        sum(thread.own_ns for thread in trace.threads),
        len({(id(thread.process), thread.thread) for thread in trace.threads}),
        trace.notes,
    )


def _all_lines(given: list[LinesPart]) -> LinesPart:
    made = LinesPart(
        {},
        sum(each.outside_cpu_ns for each in given),
        sum(each.own_ns for each in given),
        sum(each.threads for each in given),
        _each_once(each.notes for each in given)[:NOTES],
    )
    for each in given:
        for place, figures in each.functions.items():
            made.functions.setdefault(place, Figures()).add(figures)
    return made


def _put(into: dict[Key, Vector], key: Key, figures: Vector) -> None:
    put(into.setdefault(key, [0] * len(figures)), figures)


def _put_all(into: dict[Key, Vector], more: dict[Key, Vector]) -> None:
    for key, figures in more.items():
        _put(into, key, figures)
