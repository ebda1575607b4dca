"""What a profile says of the measurement itself: commands, hosts, processes, times and losses, of all experiments."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field

from interpose.analysis.analysis import Analysis
from interpose.analysis.recording.calendar import span_of
from interpose.analysis.recording.command import command_of
from interpose.analysis.time.run_queue import Spent, spent_by_thread, whole_of
from interpose.experiments.metadata.map import Collector

NO_SPENT = Spent()


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


def reduced(analysis: Analysis) -> SessionPart:
    """What was measured in one experiment."""
    experiment, accounts = analysis.experiment, analysis.accounts
    log = experiment.founder.log
    first_ns = min(process.log.start_ns for process in experiment.processes)
    last_ns = max(each.latest_ns for each in accounts)
    return SessionPart(
        name=experiment.name,
        commands=[command_of(experiment.founder)],
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


def merged(given: list[SessionPart]) -> SessionPart:
    """What was measured in all."""
    begins_ns, ends_ns = span_of((each.begins_ns, each.ends_ns) for each in given)
    return SessionPart(
        name=next((each.name for each in given), ""),
        commands=_each_once(each.commands for each in given),
        hosts=_each_once(each.hosts for each in given),
        experiments=sum(each.experiments for each in given),
        processes=sum(each.processes for each in given),
        threads=sum(each.threads for each in given),
        begins_ns=begins_ns,
        ends_ns=ends_ns,
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
