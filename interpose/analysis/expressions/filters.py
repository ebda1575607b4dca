"""Filters: which events an expression holds for."""

from __future__ import annotations

from collections.abc import Callable, Iterable

from interpose.analysis.expressions.checking import Checker
from interpose.analysis.expressions.deciding import DECIDED_AT_MOST, ENDED, Decider, Of
from interpose.analysis.expressions.parser import parse
from interpose.analysis.expressions.tokens import Surroundings, TransactionOf, surroundings
from interpose.analysis.expressions.tree import Part, names
from interpose.analysis.transactions.spans import TransactionsOfCalls
from interpose.experiments.format.records import Event
from interpose.experiments.metadata.map import Intrinsic
from interpose.experiments.model.experiment import Experiment
from interpose.experiments.model.process import Process

Keeps = Callable[[Event, int], bool]


class Filter:
    """An expression over the events of an experiment, or of several read as one. Raises ExpressionError.

    `names` are its tokens and labels; `without` are unavailable tokens, with the reasons. `transaction_of` names the
    transaction of a call, by default as `interpose transactions` does.
    """

    def __init__(
        self,
        text: str,
        experiment: Experiment,
        transaction_of: TransactionOf | None = None,
        without: dict[str, str] | None = None,
    ) -> None:
        transaction_of = transaction_of or TransactionsOfCalls()
        self._around: dict[Process, Surroundings] = {}
        labels: set[str] = set()
        for each in experiment.experiments:
            around = surroundings(each, transaction_of)
            labels.update(around.labels)
            self._around.update(dict.fromkeys(each.processes, around))
        self._labels = dict.fromkeys(labels, ())
        self._tree: Part = parse(text)
        Checker(text, sorted(labels), without or {}).condition(self._tree)
        self.names = frozenset(names(self._tree))
        self._known: dict[tuple[Process, str], Keeps] = {}

    def keeps(self, process: Process, event: Event, depth: int = 0, state: str = ENDED) -> bool:
        """Whether the expression is true for an event of `process` at that depth, which has ended or is in progress
        (`state`)."""
        return self._over_kept(process, state)(event, depth)

    def has_kept(self, process: Process, events: Iterable[Event]) -> bool:
        """Whether one of these events of `process`, which have ended, is kept, or may be, where the depth decides."""
        of_process = self._over_kept(process)
        return "DEPTH" in self.names or any(of_process(event, 0) for event in events)

    def _over_kept(self, process: Process, state: str = ENDED) -> Keeps:
        found = self._known.get((process, state))
        if found is None:
            found = self._known[process, state] = self.over(process, state)
        return found

    def over(self, process: Process, state: str = ENDED) -> Keeps:
        """What says whether it holds for an event of `process` and its depth."""
        known = _ByIntrinsic(self._tree, process, self._with_all_labels(self._around[process]), state)
        return lambda event, depth: known[event.intrinsic](event, depth)

    def _with_all_labels(self, around: Surroundings) -> Surroundings:
        """With those of the other experiments: in this one they have no windows."""
        return Surroundings(around.start_ns, {**self._labels, **around.labels}, around.transaction_of)


class _ByIntrinsic(dict[int, Of]):
    """What decides of the calls of each intrinsic, made when the first of them comes."""

    def __init__(self, tree: Part, process: Process, around: Surroundings, state: str) -> None:
        super().__init__()
        self._tree, self._process, self._around, self._state = tree, process, around, state
        self._made: dict[tuple[Intrinsic, str], Of] = {}

    def __missing__(self, number: int) -> Of:
        found = self._process.intrinsic(number)
        decide = self._made.get((found, found.moves))  # alike in all that a token tells of it
        if decide is None:
            decide = Decider(self._process, number, self._around, self._state).decision(self._tree)
            self._made[found, found.moves] = decide
        if len(self) >= DECIDED_AT_MOST:
            self.clear()
        self[number] = decide
        return decide
