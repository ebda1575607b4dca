"""What the sections of a performance profile are made from, of one experiment or of several.

All figures are sums, so it does not matter which parts are merged first. Only what a section needs is read.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any

from interpose.analysis.analysis import Analysis
from interpose.analysis.calls import resources
from interpose.analysis.calls.attribution import Service, services_of
from interpose.analysis.calls.calltree import Function, calls_of
from interpose.analysis.calls.figures import Vector, put, put_all_at, put_at
from interpose.analysis.calls.functions import by_function
from interpose.analysis.calls.identification import Identified, identified
from interpose.analysis.calls.input_output import input_output
from interpose.analysis.calls.resources import ResourcesPart
from interpose.analysis.lines import functions_part
from interpose.analysis.lines.functions_part import LinesPart
from interpose.analysis.partial.partial import Question, Reduction
from interpose.analysis.recording import session_part
from interpose.analysis.recording.session_part import SessionPart
from interpose.analysis.time import activity
from interpose.analysis.time.activity import ActivityPart
from interpose.analysis.transactions import response_times
from interpose.analysis.transactions.response_times import TransactionsPart

NAME = "profile"  # of this reduction
SLICES = 10
_FIGURES = 4  # of a vector: wall time, CPU time, wait and calls, which those of all experiments begin with


@dataclass
class ProfilePart:
    """The basis of the sections; empty is what was not asked for.

    `services` have wall time, CPU time, wait and calls. `procedures` have calls, CPU time and wait of all calls below
    them. With `is_sampled`, the program's functions have the CPU time and the wait of their samples, too. `files` have
    calls, bytes and time by file and operation. `identified` have calls, wall and CPU time.
    """

    session: SessionPart = field(default_factory=SessionPart)
    resources: ResourcesPart = field(default_factory=ResourcesPart)
    activity: ActivityPart = field(default_factory=ActivityPart)
    services: list[Service] = field(default_factory=list)
    procedures: dict[Function, Vector] = field(default_factory=dict)
    is_sampled: bool = False
    lines: LinesPart = field(default_factory=LinesPart)
    transactions: TransactionsPart = field(default_factory=TransactionsPart)
    files: dict[tuple[str, str], Vector] = field(default_factory=dict)
    identified: dict[Identified, Vector] = field(default_factory=dict)


RESOURCES, ACTIVITY, SERVICES, PROCEDURES = "resources", "activity", "services", "procedures"
LINES, TRANSACTIONS, FILES, IDENTIFIED = "lines", "transactions", "files", "identified"
_OF_CALLS = {SERVICES, PROCEDURES}  # what needs the tree of calls


def question(needs: Iterable[str], slices: int) -> Question:
    """The question for these parts of a profile, with so many slices of time."""
    return Question(NAME, options=(str(slices), *sorted(set(needs))))


def reduced(analysis: Analysis, asked: Question) -> ProfilePart:
    """What the sections that were asked for are made from."""
    slices, *needs = asked.options
    made = ProfilePart(session=session_part.reduced(analysis))
    if RESOURCES in needs:
        made.resources = resources.reduced(analysis)
    if not _OF_CALLS.isdisjoint(needs):
        _add_calls(made, analysis, needs)
    if ACTIVITY in needs:
        made.activity = activity.reduced(analysis, int(slices))
    if LINES in needs:
        made.lines = functions_part.reduced(analysis)
    if TRANSACTIONS in needs:
        made.transactions = response_times.reduced(analysis)
    if FILES in needs:
        for (file, operation, _), found in input_output(analysis).found.items():
            put_at(made.files, (file, operation), [found.sums.calls, found.sums.bytes, found.sums.self_wall_ns])
    if IDENTIFIED in needs or made.session.collectors:
        for what, sums in identified(analysis).items():
            put_at(made.identified, what, [sums.calls, sums.self_wall_ns, sums.self_cpu_ns])
    return made


def merged(parts: Iterable[ProfilePart]) -> ProfilePart:
    """The basis of the sections of all; those given do not change."""
    made, given = ProfilePart(), list(parts)
    made.session = session_part.merged([each.session for each in given])
    made.resources = resources.merged([each.resources for each in given])
    made.activity = activity.merged([each.activity for each in given])
    made.is_sampled = any(each.is_sampled for each in given)
    made.services = _all_services(service for each in given for service in each.services)
    made.lines = functions_part.merged([each.lines for each in given])
    made.transactions = response_times.merged(each.transactions for each in given)
    for each in given:
        put_all_at(made.procedures, each.procedures)
        put_all_at(made.files, each.files)
        put_all_at(made.identified, each.identified)
    return made


PROFILE: Reduction[Any] = Reduction(ProfilePart, reduced, merged, needs_all_calls=True)


def _add_calls(made: ProfilePart, analysis: Analysis, needs: Iterable[str]) -> None:
    calls = calls_of(analysis)
    made.is_sampled = calls.is_sampled
    if SERVICES in needs:
        made.services = _all_services(services_of(calls.tree))
    if PROCEDURES in needs:
        for row in by_function(calls.tree):
            if row.what.own and any(row.inclusive[:_FIGURES]):
                _, cpu_ns, wait_ns, count = row.inclusive[:_FIGURES]
                made.procedures[row.what] = [count, cpu_ns, wait_ns]


def _all_services(given: Iterable[Service]) -> list[Service]:
    found: dict[Function, Service] = {}
    for each in given:
        into = found.setdefault(each.function, Service(each.function, [0] * _FIGURES))
        put(into.figures, each.figures[:_FIGURES])
        for invoker, figures in each.invokers.items():
            put_at(into.invokers, invoker, figures[:_FIGURES])
    return list(found.values())
