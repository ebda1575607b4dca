"""What was demanded: calls and times of each kind of call with its file or address, alone and in total."""

from __future__ import annotations

from dataclasses import dataclass, field

from interpose.analysis.analysis import Analysis
from interpose.analysis.calls.calltree import outside_calls
from interpose.analysis.calls.figures import Vector, put_all_at, put_at
from interpose.analysis.time.concurrency import Resource, resource_of, solo_times


@dataclass
class ResourcesPart:
    """Calls, wall and CPU time of each resource; wall and CPU time of what is outside of calls, by its name.

    All times add up to those of the threads: what ran between calls is `<code>`, whether it was sampled or not.
    `solo` is None if it is unknown.
    """

    figures: dict[Resource, Vector] = field(default_factory=dict)
    outside: dict[str, Vector] = field(default_factory=dict)
    solo: dict[Resource, int] | None = field(default_factory=dict)

    @property
    def whole_ns(self) -> int:
        """All wall time."""
        return sum(each[1] for each in self.figures.values()) + sum(each[0] for each in self.outside.values())


def reduced(analysis: Analysis) -> ResourcesPart:
    """The resources of one experiment."""
    made = ResourcesPart()
    for process in analysis.experiment.processes:
        for key, sums in analysis.records(process, ("intrinsic", "stack", "detail")).sums().items():
            put_at(made.figures, resource_of(process, *key), [sums.calls, sums.self_wall_ns, sums.self_cpu_ns])
    for account in analysis.accounts:
        for share in account.threads.values():
            for function, *times in outside_calls(share):
                put_at(made.outside, function.name, times)
    if all(len(account.threads) <= 1 for account in analysis.accounts):
        made.solo = {resource: figures[1] for resource, figures in made.figures.items()}
    else:
        solo = solo_times(analysis.experiment)
        made.solo = None if solo is None else {resource: solo.get(resource, 0) for resource in made.figures}
    return made


def merged(given: list[ResourcesPart]) -> ResourcesPart:
    """The resources of all; `solo` is unknown where it is of one."""
    made = ResourcesPart()
    for each in given:
        put_all_at(made.figures, each.figures)
        put_all_at(made.outside, each.outside)
        if made.solo is not None and each.solo is not None:
            for resource, time_ns in each.solo.items():
                made.solo[resource] = made.solo.get(resource, 0) + time_ns
        else:
            made.solo = None
    return made
