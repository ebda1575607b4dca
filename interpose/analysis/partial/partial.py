"""A partial result: what was read of one experiment, or of several whose partial results were merged."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field, replace
from typing import Any, Generic, TypeVar

from interpose.analysis.analysis import Analysis
from interpose.analysis.transactions.estimate import is_sampled
from interpose.experiments.metadata.log import Log
from interpose.experiments.model.experiment import Experiment
from interpose.experiments.model.files import Damage, Damages

Value = TypeVar("Value")
_TOLD = ("INTERPOSE", "INTERPOSE_INTERVAL", "INTERPOSE_TRANSACTIONS", "INTERPOSE_SEED")


@dataclass
class Recorded:
    """What tables need to know of how an experiment was recorded."""

    time_ns: int
    name: str
    cwd: str
    settings: dict[str, str]
    inside_ns: int
    resolution_ns: int

    @property
    def log(self) -> Log:
        """The same as a log, for what shows figures."""
        return Log(
            settings=self.settings,
            cwd=self.cwd,
            inside_ns=self.inside_ns,
            resolution_ns=self.resolution_ns,
            time_ns=self.time_ns,
        )


@dataclass
class Head:
    """What every partial result has, whatever was asked.

    `recorded` is of the earliest experiment, by name if several began at once. `one_in` is that of sampled
    transactions, 0 if there are none. `damaged` are the first, of `damages_count`. `is_running` says that a process
    still ran: then the result is one of now.
    """

    recorded: Recorded
    experiments: int = 1
    one_in: int = 0
    damaged: list[Damage] = field(default_factory=list)
    damages_count: int = 0
    is_running: bool = False

    @property
    def damages(self) -> Damages:
        """What could not be read."""
        made = Damages()
        for place, what in self.damaged:
            made.add(place, what)
        made.count = self.damages_count
        return made


@dataclass
class Partial(Generic[Value]):
    """The answer to a question, as far as it has been read."""

    head: Head
    value: Value


@dataclass(frozen=True)
class Question:
    """What is asked of every experiment: the name of a reduction, and its options. `several`: of more than one, so that
    processes are named with their experiment."""

    reduction: str
    by: str = ""
    is_scaled: bool = True
    with_code: bool = False
    with_calls: bool = False
    several: bool = False
    options: tuple[str, ...] = ()


@dataclass(frozen=True)
class Reduction(Generic[Value]):
    """How a question is answered: of one experiment, and of several from the answers of each; `kind` is the type of an
    answer.

    `merge` is associative: it does not matter which answers are merged first. `needs_all_calls`: sampled calls have no
    answer.
    """

    kind: Any
    reduce: Callable[[Analysis, Question], Value]
    merge: Callable[[Iterable[Value]], Value]
    needs_all_calls: bool = False


def reduced(experiment: Experiment, question: Question, reduction: Reduction[Value]) -> Partial[Value]:
    """The answer of one experiment."""
    if question.several:
        for process in experiment.processes:
            process.experiment = experiment.name
    analysis = Analysis(experiment)
    value = reduction.reduce(analysis, question)
    is_running = analysis.is_running
    return Partial(_head(experiment, is_running), value)


def _head(experiment: Experiment, is_running: bool) -> Head:
    log, damages = experiment.founder.log, experiment.damages
    settings = {name: log.settings[name] for name in _TOLD if name in log.settings}
    sampled = next((process.log.one_in for process in experiment.processes if process.log.one_in), 0)
    recorded = Recorded(log.time_ns, experiment.name, log.cwd, settings, log.inside_ns, log.resolution_ns)
    one_in = sampled if is_sampled(experiment) else 0
    return Head(recorded, 1, one_in, list(damages.found), damages.count, is_running)


def merged(partials: Iterable[Partial[Value]], reduction: Reduction[Value]) -> Partial[Value] | None:
    """One answer from those of several, each of which is needed only until the next; None from none."""
    heads = _Heads()
    value = reduction.merge(heads.values(partials))
    return Partial(heads.whole, value) if heads.whole else None


class _Heads:
    """Merges the heads of partial results while their values are taken."""

    def __init__(self) -> None:
        self.whole: Head | None = None

    def values(self, partials: Iterable[Partial[Value]]) -> Iterator[Value]:
        for each in partials:
            self.whole = _together(self.whole, each.head) if self.whole else each.head
            yield each.value


def _together(mine: Head, other: Head) -> Head:
    first = min((mine.recorded, other.recorded), key=lambda each: (each.time_ns, each.name))
    return replace(
        mine,
        recorded=first,
        experiments=mine.experiments + other.experiments,
        one_in=max(mine.one_in, other.one_in),
        damaged=sorted(dict.fromkeys([*mine.damaged, *other.damaged]), key=_experiment_of)[: Damages.KEPT],
        damages_count=mine.damages_count + other.damages_count,
        is_running=mine.is_running or other.is_running,
    )


def _experiment_of(damage: Damage) -> str:
    """The name of the damaged experiment: within one, damage stays in the order in which it was found."""
    return damage.place.partition("/")[0]
