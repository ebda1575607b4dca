"""A source with the times of its lines."""

from __future__ import annotations

from collections.abc import Callable

from textual.widget import Widget

from interpose.view.drilling import Line
from interpose.view.listing import Listing
from interpose.view.panes.pane import Pane
from interpose.view.reading import Reading
from interpose.view.source import SourceView, source_view


class SourcePane(Pane):
    """The source of the line that was chosen elsewhere; at first of your line that took most."""

    NAME = "source"

    def __init__(self) -> None:
        super().__init__()
        self._listing = Listing(lambda line: line.number, id=f"shown-{self.NAME}")
        self._wanted: Line | None = None
        self._is_new = True

    @property
    def body(self) -> Widget:
        return self._listing

    @property
    def searched(self) -> Listing:
        return self._listing

    @property
    def told(self) -> str:
        line = self._listing.row
        return "" if line is None else line.text.strip()

    def open(self, line: Line) -> None:
        """Show this line."""
        self._wanted, self._is_new = line, True
        self.post_message(self.Wanted(self))

    def job(self) -> Callable[[Reading], SourceView | None]:
        wanted = self._wanted
        return lambda reading: source_view(reading, wanted)

    def show(self, made: SourceView | None) -> None:
        if made is None:
            self.entitle("no recorded call came from a line of code")
            return
        self._listing.show(made.table, made.place if self._is_new else None)
        self._wanted, self._is_new = self._wanted or Line(made.file), False
        self.entitle(made.title)
