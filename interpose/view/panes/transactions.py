"""The table of transactions; behind a row are all of its figures."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

from interpose.reports.formats.table import Table, clean
from interpose.reports.formats.units import duration
from interpose.reports.tables.transactions import SORTS
from interpose.view.choice import Facts
from interpose.view.listing import Listing
from interpose.view.panes.list_pane import ListPane
from interpose.view.reading import Reading


class TransactionsPane(ListPane):
    """Transactions by name."""

    NAME = "transactions"

    def __init__(self) -> None:
        super().__init__(lambda row: row.name)
        self._table: Table | None = None
        self._sort: str | None = None
        self._at: int | None = 0

    def job(self) -> Callable[[Reading], Table]:
        sort = self._sort
        return lambda reading: reading.transactions(sort)

    def show(self, made: Table) -> None:
        self._table = made
        self._listing.show(made, self._at)
        self._at = None
        self.entitle("transactions" if self._sort is None else f"transactions, sorted by {self._sort}")

    def sort(self) -> None:
        order = (None, *SORTS)
        self._order(order[(order.index(self._sort) + 1) % len(order)])

    def on_listing_head_clicked(self, message: Listing.HeadClicked) -> None:
        """Sort by the column, if transactions can be sorted by it."""
        by_head = {"transaction": "name", **{name: name for name in SORTS}}
        if sort := by_head.get(message.title.lower()):
            self._order(sort)

    def on_listing_chosen(self, message: Listing.Chosen) -> None:
        """Show all figures of the transaction."""
        if self._table:
            self.app.push_screen(Facts(clean(message.row.name), list(facts(self._table, message.row))))

    def _order(self, sort: str | None) -> None:
        self._sort, self._at = sort, 0
        self.post_message(self.Wanted(self))


def facts(table: Table, row: Any) -> Iterator[tuple[str, str]]:
    """The names and figures of a row, as they are for machines, with units for people."""
    for name, value in table.values(row).items():
        if isinstance(value, int):
            is_time = name.endswith("_ns")
            yield name.removesuffix("_ns").replace("_", " "), duration(value) if is_time else f"{value:,}"
