"""A table to walk through: the lines of a report's table, one of them chosen. All texts are data, never markup."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence
from typing import Any, ClassVar

from rich.segment import Segment
from textual import events
from textual.binding import BindingType
from textual.geometry import Size
from textual.message import Message
from textual.scroll_view import ScrollView
from textual.strip import Strip

from interpose.reports.formats.table import LineLayout, Table, clean, layout_of

KeyOf = Callable[[Any], Hashable]


class Listing(ScrollView, can_focus=True):
    """The rows of a table below its heads; the heads stay where they are."""

    COMPONENT_CLASSES: ClassVar[set[str]] = {"listing--cursor", "listing--heads"}
    DEFAULT_CSS = """
    Listing { height: 1fr; overflow-y: scroll; scrollbar-size-vertical: 1; scrollbar-size-horizontal: 1; }
    Listing > .listing--heads { text-style: bold underline; }
    Listing > .listing--cursor { background: $primary-darken-2; }
    Listing:focus > .listing--cursor { background: $primary; color: $text; text-style: bold; }
    """
    BINDINGS: ClassVar[list[BindingType]] = [
        ("up,k", "move(-1)"),
        ("down,j", "move(1)"),
        ("pageup", "turn(-1)"),
        ("pagedown", "turn(1)"),
        ("home,g", "end(-1)"),
        ("end,G", "end(1)"),
        ("enter", "choose"),
    ]

    class Chosen(Message):
        """Somebody wants to see what is behind a row."""

        def __init__(self, row: Any) -> None:
            super().__init__()
            self.row = row

    class Moved(Message):
        """Another row is chosen."""

    class HeadClicked(Message):
        """Somebody wants the rows in the order of a column."""

        def __init__(self, title: str) -> None:
            super().__init__()
            self.title = title

    class Left(Message):
        """Somebody goes on where the rows end, or before they begin (`step` -1)."""

        def __init__(self, step: int, is_far: bool = False) -> None:
            super().__init__()
            self.step = step
            self.is_far = is_far

    def __init__(self, key_of: KeyOf, **options: Any) -> None:
        super().__init__(**options)
        self._key_of = key_of
        self._table: Table | None = None
        self._layout: LineLayout | None = None
        self._laid_for = 0
        self.rows: Sequence[Any] = ()
        self.cursor = 0

    @property
    def row(self) -> Any:
        """The chosen row; None if there is none."""
        return self.rows[self.cursor] if self.cursor < len(self.rows) else None

    @property
    def room(self) -> Size:
        """What there is between the scroll bars."""
        return self.scrollable_content_region.size

    def show(self, table: Table, at: int | None = None) -> None:
        """Show `table`, with its row `at` chosen; without it the same row as before, where that is still there."""
        above = self.cursor - round(self.scroll_y)
        chosen = self._key_of(self.row) if self.row is not None else None
        self._table, self.rows, self._layout = table, list(table.rows), None
        self._measure()
        if at is None:
            at = next((place for place, row in enumerate(self.rows) if self._key_of(row) == chosen), self.cursor)
            self.scroll_to(y=max(min(at, len(self.rows) - 1) - above, 0), animate=False)
        elif not 0 <= at - self.scroll_y < self.room.height - 1:
            self.scroll_to(y=max(at - self.room.height // 2, 0), animate=False)
        self.go_to(at)

    def go_to(self, place: int) -> None:
        """Choose the row at `place`, or the nearest there is, and have it in sight."""
        self.cursor = max(min(place, len(self.rows) - 1), 0)
        self._measure()
        shown = max(self.room.height - 2, 0)
        if self.cursor < self.scroll_y:
            self.scroll_to(y=self.cursor, animate=False)
        elif self.cursor > self.scroll_y + shown:
            self.scroll_to(y=self.cursor - shown, animate=False)
        self.post_message(self.Moved())
        self.refresh()

    def find(self, text: str, step: int, here: bool = False) -> bool:
        """Choose the next row (`step` 1), or the one before (-1), that has `text`; from the chosen one on with `here`.
        False if none has."""
        wanted = text.casefold()
        for away in range(0 if here else 1, len(self.rows) + 1):
            place = (self.cursor + step * away) % len(self.rows)
            if wanted in self.text_of(self.rows[place]).casefold():
                self.go_to(place)
                return True
        return False

    @property
    def told(self) -> str:
        """All that the table says of the chosen row, with what its line has no room for."""
        columns = self._table.columns if self._table and self.row is not None else ()
        shown = [(column, column.show(self.row).strip()) for column in columns]
        return clean("  ".join(f"{column.title} {text}" if column.right else text for column, text in shown if text))

    def text_of(self, row: Any) -> str:
        """The texts of a row, in which one searches."""
        return "  ".join(column.show(row) for column in self._table.columns) if self._table else ""

    def lines(self) -> list[str]:
        """The lines of the whole table, as wide as they are shown."""
        layout = self._laid()
        return [layout.heads(), *(layout.line_of(row) for row in self.rows)] if layout else []

    def render_line(self, y: int) -> Strip:
        """A line of the terminal."""
        layout, width = self._laid(), self.room.width
        place = round(self.scroll_y) + y - 1
        if layout is None or place >= len(self.rows):
            return Strip.blank(width, self.rich_style)
        style = self.rich_style
        if y == 0:
            style += self.get_component_rich_style("listing--heads")
        elif place == self.cursor:
            style += self.get_component_rich_style("listing--cursor")
        text = clean(layout.heads() if y == 0 else layout.line_of(self.rows[place]))
        left = round(self.scroll_x)
        return Strip([Segment(text, style)]).crop_extend(left, left + width, style)

    def on_resize(self) -> None:
        """Lay the columns out anew."""
        self.go_to(self.cursor)

    def on_click(self, event: events.Click) -> None:
        """Choose the row; a second click opens it. A click on a head sorts."""
        if event.y == 0:
            column = self._layout.column_at(event.x + round(self.scroll_x)) if self._layout else None
            if column:
                self.post_message(self.HeadClicked(column.title))
            return
        place = round(self.scroll_y) + event.y - 1
        if place < len(self.rows):
            self.go_to(place)
            if event.chain == 2:
                self.action_choose()

    def action_move(self, step: int) -> None:
        """One row up or down."""
        if 0 <= self.cursor + step < len(self.rows):
            self.go_to(self.cursor + step)
        else:
            self.post_message(self.Left(step))

    def action_turn(self, step: int) -> None:
        """A screenful up or down."""
        if self.cursor == (0 if step < 0 else max(len(self.rows) - 1, 0)):
            self.post_message(self.Left(step))
        self.go_to(self.cursor + step * max(self.room.height - 2, 1))

    def action_end(self, step: int) -> None:
        """The first or the last row."""
        self.go_to(0 if step < 0 else len(self.rows) - 1)
        self.post_message(self.Left(step, is_far=True))

    def action_choose(self) -> None:
        """Open the chosen row."""
        if self.row is not None:
            self.post_message(self.Chosen(self.row))

    def _laid(self) -> LineLayout | None:
        if self._table and (self._layout is None or self._laid_for != self.room.width):
            self._laid_for = self.room.width
            self._layout = layout_of(self._table.columns, self.rows, self.room.width)
        return self._layout

    def _measure(self) -> None:
        layout = self._laid()
        self.virtual_size = Size(layout.width if layout else 1, len(self.rows) + 1)
