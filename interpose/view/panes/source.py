"""A source with the times of its lines."""

from __future__ import annotations

from collections.abc import Callable

from interpose.view.drilling import Line
from interpose.view.panes.list_pane import ListPane
from interpose.view.reading import Reading
from interpose.view.source import SourceView, source_view


class SourcePane(ListPane):
    """The source of the line that was chosen elsewhere; at first of your line that took most."""

    NAME = "source"

    def __init__(self) -> None:
        super().__init__(lambda line: line.number)
        self._wanted: Line | None = None
        self._is_new = True

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
