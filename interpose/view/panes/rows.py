"""The report's table: by kind at first, then by what somebody chooses; what a row consists of is behind it."""

from __future__ import annotations

from collections.abc import Callable
from typing import ClassVar

from textual.binding import BindingType

from interpose.analysis.calls.groupings import GROUPINGS
from interpose.analysis.calls.rows import Row
from interpose.reports.formats.table import Table
from interpose.reports.tables.rows import SORTS
from interpose.view.choice import Choice
from interpose.view.drilling import Step, behind
from interpose.view.listing import Listing
from interpose.view.panes.list_pane import ListPane
from interpose.view.reading import Reading

BY_HEAD = {"self wall": "wall", "self CPU": "cpu", **{name: name for name in SORTS}}
TITLES = {"line" if by == "site" else by: by for by in GROUPINGS}


class RowsPane(ListPane):
    """Rows of calls and code."""

    NAME = "rows"
    BINDINGS: ClassVar[list[BindingType]] = [("b", "choose_by", "By")]

    def __init__(self) -> None:
        super().__init__(lambda row: row.likeness)
        self._steps = [Step("kind")]
        self._places: list[int] = []
        self._sort: str | None = None
        self._at: int | None = 0

    def job(self) -> Callable[[Reading], Table]:
        step, sort = self._steps[-1], self._sort
        return lambda reading: reading.rows(step, sort)

    def show(self, made: Table) -> None:
        self._listing.show(made, self._at)
        self._at = None
        sort = "" if self._sort is None else f", sorted by {self._sort}"
        self.entitle(f"{self._steps[-1].title}{sort}")

    def sort(self) -> None:
        order = (None, *SORTS)
        self._order(order[(order.index(self._sort) + 1) % len(order)])

    def on_listing_head_clicked(self, message: Listing.HeadClicked) -> None:
        """Sort by the column, or by name for one that is no figure."""
        self._order(BY_HEAD.get(message.title, "name"))

    def on_listing_chosen(self, message: Listing.Chosen) -> None:
        """Show what the row consists of, here or in another tab."""
        row: Row = message.row
        found = behind(self._steps[-1], row)
        if isinstance(found, Step):
            self._places.append(self._listing.cursor)
            self._steps.append(found)
            self._want(at=0)
        elif found:
            self.post_message(self.Opened(found))
        else:
            self.app.bell()

    def action_choose_by(self) -> None:
        """Let somebody choose what rows are grouped by."""
        self.app.push_screen(Choice("Rows by", list(TITLES)), self.group_by)

    def group_by(self, title: str | None) -> None:
        """Have a row for each kind, intrinsic, line …"""
        if title:
            self._steps, self._places = [Step(TITLES[title])], []
            self._want(at=0)

    def back(self) -> bool:
        if not self._places:
            return False
        self._steps.pop()
        self._want(at=self._places.pop())
        return True

    def _order(self, sort: str | None) -> None:
        self._sort = sort
        self._want(at=0)

    def _want(self, at: int) -> None:
        self._at = at
        self.post_message(self.Wanted(self))
