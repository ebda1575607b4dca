"""The calls of an experiment by pages: few are in memory, however many there are."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Hashable, Iterator, Sequence
from itertools import islice
from typing import Any, NamedTuple

from interpose.analysis.analysis import Analysis
from interpose.analysis.calls.structure import is_consolidated_alone, structure
from interpose.analysis.calls.trace import Traced, last, trace, with_one_start
from interpose.analysis.expressions.filters import Filter
from interpose.errors import UsageError
from interpose.experiments.format.records import Event
from interpose.experiments.model.experiment import Experiment
from interpose.experiments.model.process import Process
from interpose.experiments.model.stacks import Site
from interpose.reports.formats.table import Table
from interpose.reports.tables.events import events_table
from interpose.reports.tables.structure import structure_table
from interpose.view.loader import GaveWay

CALLS = 500  # of a page
PAGES_KEPT = 20


class Page(NamedTuple):
    """Some calls, one after the other; `first` is the number of the first, from 0, None if they are the latest."""

    rows: list[Any]
    first: int | None

    @property
    def is_full(self) -> bool:
        """Whether there may be more behind it."""
        return len(self.rows) == CALLS


class CallPages:
    """The calls that match `expression`, or all, in the order in which they began. Raises ExpressionError.

    They are read as far as somebody pages; an earlier page that is no longer kept is read again from the start. Where
    single events were not kept, the pages are of consolidated records. Reading raises GaveWay if `gives_way` says so.
    """

    def __init__(
        self, experiment: Experiment, expression: str = "", gives_way: Callable[[], bool] = lambda: False
    ) -> None:
        self.experiment = experiment
        self._gives_way = gives_way
        self.expression = expression
        self.is_of_records = is_consolidated_alone(experiment)
        if expression and self.is_of_records:
            raise UsageError("single events were not recorded, so no filter applies")
        self._chosen = Filter(expression, experiment) if expression else None
        self._kept: dict[int, Page] = {}
        self._rows: Iterator[Any] = iter(())
        self._next: int | None = None

    def table(self, page: Page) -> Table:
        """The table of `interpose events`."""
        made = structure_table if self.is_of_records else events_table
        return made(self.experiment, page.rows)

    def page(self, number: int) -> Page:
        """The page with that number, from 0; an empty one behind the last."""
        if number not in self._kept:
            if number != self._next:
                self._next, self._rows = None, self._all()
                deque(islice(self._rows, number * CALLS), maxlen=0)
            self._keep(number, Page(list(islice(self._rows, CALLS)), number * CALLS))
        return self._kept[number]

    def latest(self) -> Page:
        """The calls that began last, as many as a page has."""
        if self.is_of_records:
            return self.page(0)
        if self._chosen:
            return Page(list(deque(self._all(), maxlen=CALLS)), None)
        return Page(list(with_one_start(last(self.experiment, CALLS))), None)

    def _keep(self, number: int, page: Page) -> None:
        self._kept[number] = page
        self._next = number + 1
        while len(self._kept) > PAGES_KEPT:
            del self._kept[next(iter(self._kept))]

    def _all(self) -> Iterator[Any]:
        if self.is_of_records:
            return structure(Analysis(self.experiment))
        if self._chosen is None:
            return with_one_start(self._watched(trace(self.experiment)))
        chosen = self._chosen

        def has_chosen(process: Process, events: Sequence[Event]) -> bool:
            self._give_way()
            return chosen.has_kept(process, events)

        rows = self._watched(trace(self.experiment, has_wanted=has_chosen))
        return with_one_start(row for row in rows if chosen.keeps(row.process, row.event, row.depth, row.state))

    def _watched(self, rows: Iterator[Traced]) -> Iterator[Traced]:
        for number, row in enumerate(rows):
            if number % CALLS == 0:
                self._give_way()
            yield row

    def _give_way(self) -> None:
        if self._gives_way():
            self._next = None
            raise GaveWay


def key_of(row: Any) -> Hashable:
    """What tells a call from all others."""
    return (row.process.lineage, row.event.thread, row.event.call) if isinstance(row, Traced) else id(row)


def site_of(row: Any) -> Site | None:
    """The line that a call came from, if known."""
    stack = row.event.stack if isinstance(row, Traced) else 0
    return row.process.own_line(stack) if stack else None
