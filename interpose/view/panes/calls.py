"""The calls one after the other, by pages; with a filter only some of them."""

from __future__ import annotations

from collections.abc import Callable
from typing import ClassVar, NamedTuple

from textual.binding import BindingType

from interpose.reports.formats.table import Table
from interpose.view.calls import CALLS, CallPages, Page, key_of, site_of
from interpose.view.choice import Question
from interpose.view.drilling import Line
from interpose.view.listing import Listing
from interpose.view.panes.list_pane import ListPane
from interpose.view.reading import Reading

LATEST = -1


class Made(NamedTuple):
    """A page that was read: of which pages, which number it has, and its table."""

    pages: CallPages
    number: int
    page: Page
    table: Table


class CallsPane(ListPane):
    """Calls in the order in which they began. While the program runs, the latest of them until somebody pages."""

    NAME = "calls"
    BINDINGS: ClassVar[list[BindingType]] = [("f", "filter", "Filter")]

    def __init__(self) -> None:
        super().__init__(key_of)
        self._pages: CallPages | None = None
        self._expression = ""
        self._number: int | None = None
        self._at: int | None = None
        self._sought: str | None = None

    def job(self) -> Callable[[Reading], Made]:
        pages, number, expression, sought = self._pages, self._number, self._expression, self._sought

        def read(reading: Reading) -> Made:
            of = pages
            is_old = of is not None and of.experiment is not reading.experiment and number in (None, LATEST)
            if of is None or of.expression != expression or is_old:
                of = CallPages(reading.experiment, expression, self.gives_way)
            wanted = number if number is not None else LATEST if reading.is_running else 0
            page = of.latest() if wanted == LATEST else of.page(wanted)
            while sought and page.is_full and wanted != LATEST and not self._has(of, page, sought):
                wanted, page = wanted + 1, of.page(wanted + 1)
            return Made(of, wanted, page, of.table(page))

        return read

    @staticmethod
    def _has(pages: CallPages, page: Page, text: str) -> bool:
        columns = pages.table(page).columns
        return any(text.casefold() in column.show(row).casefold() for row in page.rows for column in columns)

    def show(self, made: Made) -> None:
        if not made.page.rows and made.number > 0:  # the pages before it are all there are
            self._number = made.number - 1
            self.app.bell()
            return
        self._pages, self._number, sought = made.pages, made.number, self._sought
        if made.number == LATEST and self._at is None and self._listing.cursor >= len(self._listing.rows) - 1:
            self._at = CALLS  # the latest one, as before
        self._listing.show(made.table, self._at)
        self._at, self._sought = None, None
        if sought and not self._listing.find(sought, 1, here=True):
            self.app.bell()
        self.entitle(self._words(made))

    def _words(self, made: Made) -> str:
        what = "records" if made.pages.is_of_records else "calls"
        if made.page.first is None:
            told = f"the latest {len(made.page.rows):,} {what}"
        elif made.page.rows:
            told = f"{what} {made.page.first + 1:,} to {made.page.first + len(made.page.rows):,}"
        else:
            told = f"no {what}"
        return f"{told}, where {self._expression}" if self._expression else told

    def on_listing_left(self, message: Listing.Left) -> None:
        """Read the page behind or before; the first or the last one, if that is wanted."""
        if message.is_far:
            self._turn(0 if message.step < 0 else LATEST)
        elif self._number not in (None, LATEST):
            self._turn_over(message.step)

    def _turn_over(self, step: int) -> None:
        number = (self._number or 0) + step
        if number >= 0 and (step < 0 or len(self._listing.rows) == CALLS):
            self._turn(number, at=0 if step > 0 else CALLS)

    def on_listing_chosen(self, message: Listing.Chosen) -> None:
        """Show the line that the call came from."""
        site = site_of(message.row)
        if site is not None:
            self.post_message(self.Opened(Line(site.file, site.line)))
        else:
            self.app.bell()

    def action_filter(self) -> None:
        """Ask which calls to show."""
        asked = Question("Only calls that match, as in KIND == 'db' && WALL > 5ms", self._expression)
        self.app.push_screen(asked, self.choose)

    def choose(self, expression: str | None) -> None:
        """Show the calls that match `expression`; all if it is empty."""
        if expression is not None:
            self._expression, self._pages = expression.strip(), None
            self._turn(None, at=0)

    def back(self) -> bool:
        had = self._expression
        if had:
            self.choose("")
        return bool(had)

    def search(self, text: str, step: int, here: bool) -> bool:
        rows, place = self._listing.rows, self._listing.cursor
        if self._listing.find(text, step, here) and (step < 0 or self._listing.cursor >= place):
            return True
        if step > 0 and len(rows) == CALLS and self._number not in (None, LATEST):
            self._sought = text
            self._turn((self._number or 0) + 1, at=0)
            return True
        return bool(rows) and self._listing.find(text, step, here=True)

    def _turn(self, number: int | None, at: int | None = None) -> None:
        last = len(self._listing.rows) - 1
        self._at = at if at is not None else last if number == LATEST else 0
        self._number = number
        self.post_message(self.Wanted(self))
