"""What was demanded: calls and times of each kind of call with its file or address, alone and in total."""

from __future__ import annotations

from dataclasses import dataclass, field

from interpose.analysis.analysis import Analysis
from interpose.analysis.calls.calltree import Calls
from interpose.analysis.calls.figures import Vector, put_all_at, put_at
from interpose.analysis.time.concurrency import Resource, resource_of, solo_times


@dataclass
class ResourcesPart:
    """Calls, wall and CPU time of each resource; wall and CPU time of what is outside of calls, by its name.

    `solo` is None if it is unknown.
    """

    figures: dict[Resource, Vector] = field(default_factory=dict)
    outside: dict[str, Vector] = field(default_factory=dict)
    solo: dict[Resource, int] | None = field(default_factory=dict)
    whole_ns: int = 0


def reduced(analysis: Analysis, calls: Calls) -> ResourcesPart:
    """The resources of one experiment; `calls` are its tree."""
    made = ResourcesPart(whole_ns=calls.tree.totals()[calls.tree.root][0])
    for process in analysis.experiment.processes:
        for key, sums in analysis.records(process, ("intrinsic", "stack", "detail")).sums().items():
            put_at(made.figures, resource_of(process, *key), [sums.calls, sums.self_wall_ns, sums.self_cpu_ns])
    for node in calls.tree.root.inner.values():
        if node.own and not node.frame.function.object:
            put_at(made.outside, node.frame.function.name, node.own[:2])
    if all(len(account.threads) <= 1 for account in analysis.accounts):
        made.solo = {resource: figures[1] for resource, figures in made.figures.items()}
    else:
        solo = solo_times(analysis.experiment)
        made.solo = None if solo is None else {resource: solo.get(resource, 0) for resource in made.figures}
    return made


def merged(given: list[ResourcesPart]) -> ResourcesPart:
    """The resources of all; `solo` is unknown where it is of one."""
    made = ResourcesPart(whole_ns=sum(each.whole_ns for each in given))
    for each in given:
        put_all_at(made.figures, each.figures)
        put_all_at(made.outside, each.outside)
        if made.solo is not None and each.solo is not None:
            for resource, time_ns in each.solo.items():
                made.solo[resource] = made.solo.get(resource, 0) + time_ns
        else:
            made.solo = None
    return made
