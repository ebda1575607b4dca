"""A flame graph in a terminal: a line for each depth, a bar for each frame, as wide as its time."""

from __future__ import annotations

from typing import Any, ClassVar

from rich.segment import Segment
from rich.style import Style
from textual import events
from textual.binding import BindingType
from textual.geometry import Size
from textual.message import Message
from textual.scroll_view import ScrollView
from textual.strip import Strip

from interpose.analysis.profile.flame import Flame, FlameFrame
from interpose.reports.flame.colours import BY_KIND, INK, class_of
from interpose.reports.formats.table import clean, columns_of, shortened
from interpose.view.bars import Bar, Bars

EDGE, FILL = "\u258f", "\u2500"  # so that bars are told apart without colours, too


class FlameGraph(ScrollView, can_focus=True):
    """The frames of a flame graph, one of them chosen, callers above what they call."""

    DEFAULT_CSS = "FlameGraph { height: 1fr; overflow-y: scroll; scrollbar-size-vertical: 1; overflow-x: hidden; }"
    BINDINGS: ClassVar[list[BindingType]] = [
        ("up,k", "go('above')"),
        ("down,j", "go('below')"),
        ("left", "go('left')"),
        ("right", "go('right')"),
        ("enter", "zoom"),
        ("home,g", "whole"),
    ]

    class Moved(Message):
        """Another frame is chosen."""

    def __init__(self, **options: Any) -> None:
        super().__init__(**options)
        self._bars: Bars | None = None
        self._lines: list[list[Bar]] = []
        self.chosen = 0
        self.zoomed = 0

    @property
    def flame(self) -> Flame | None:
        """What is shown."""
        return self._bars.flame if self._bars else None

    @property
    def frame(self) -> FlameFrame | None:
        """The chosen frame."""
        return self._bars.flame.frames[self.chosen] if self._bars else None

    @property
    def room(self) -> Size:
        """What there is beside the scroll bar."""
        return self.scrollable_content_region.size

    def show(self, flame: Flame) -> None:
        """Show `flame`; the frames with the same callers as before are chosen and zoomed."""
        made = Bars(flame)
        if self._bars:
            self.chosen, self.zoomed = (made.like(self._bars, each) for each in (self.chosen, self.zoomed))
        self._bars = made
        self._lay()

    def find(self, text: str, step: int, here: bool = False) -> bool:
        """Choose the next frame (`step` 1), or the one before, whose name has `text`. False if none has."""
        frames, wanted = (self.flame.frames if self.flame else []), text.casefold()
        for away in range(0 if here else 1, len(frames) + 1):
            place = (self.chosen + step * away) % len(frames)
            if wanted in frames[place].function.name.casefold():
                self._choose(place)
                return True
        return False

    def lines(self) -> list[str]:
        """The lines of the graph as text."""
        return ["".join(segment.text for segment in self._line(line, self.room.width)) for line in self._lines]

    def render_line(self, y: int) -> Strip:
        """A line of the terminal."""
        place, width = round(self.scroll_y) + y, self.room.width
        if self._bars is None or place >= len(self._lines):
            return Strip.blank(width, self.rich_style)
        return Strip(self._line(self._lines[place], width)).crop_extend(0, width, self.rich_style)

    def on_resize(self) -> None:
        """Lay the frames out anew."""
        self._lay()

    def on_click(self, event: events.Click) -> None:
        """Choose a frame; a second click zooms."""
        place = round(self.scroll_y) + event.y
        for bar in self._lines[place] if place < len(self._lines) else ():
            if bar.left <= event.x < bar.right:
                self._choose(bar.frame)
                if event.chain == 2:
                    self.action_zoom()

    def action_go(self, where: str) -> None:
        """Choose the frame above, below or beside."""
        if self._bars is None:
            return
        ways = {
            "above": lambda bars: bars.above(self.chosen),
            "below": lambda bars: bars.below(self.chosen),
            "left": lambda bars: bars.beside(self.chosen, -1),
            "right": lambda bars: bars.beside(self.chosen, 1),
        }
        self._choose(ways[where](self._bars))

    def action_zoom(self) -> None:
        """Show the chosen frame as wide as the terminal."""
        self.zoomed = self.chosen
        self._lay()

    def action_whole(self) -> None:
        """Choose the whole, and show all of it."""
        self.zoomed = 0
        self._choose(0)
        self._lay()

    def unzoom(self) -> bool:
        """Show what is around the zoomed frame. False if that is all already."""
        if self._bars is None or not self.zoomed:
            return False
        self.zoomed = self._bars.above(self.zoomed)
        self._lay()
        return True

    def _choose(self, number: int) -> None:
        self.chosen = number
        if self._bars and self.zoomed not in self._bars.path(number) and number not in self._bars.path(self.zoomed):
            self.zoomed = self._bars.above(number)  # it would be out of sight
            self._lay()
        self._have_in_sight()
        self.post_message(self.Moved())
        self.refresh()

    def _have_in_sight(self) -> None:
        depth, height = self.frame.depth if self.frame else 0, max(self.room.height, 1)
        if not self.scroll_y <= depth < self.scroll_y + height:
            self.scroll_to(y=max(depth - height // 2, 0), animate=False)

    def _lay(self) -> None:
        width = max(self.room.width, 1)
        self._lines = self._bars.laid(self.zoomed, width) if self._bars else []
        self.virtual_size = Size(width, len(self._lines))
        self._have_in_sight()
        self.post_message(self.Moved())
        self.refresh()

    def _line(self, bars: list[Bar], width: int) -> list[Segment]:
        segments, at = [], 0
        for bar in bars:
            segments.append(Segment(" " * (bar.left - at), self.rich_style))
            segments.append(self._segment(bar))
            at = bar.right
        segments.append(Segment(" " * (width - at), self.rich_style))
        return segments

    def _segment(self, bar: Bar) -> Segment:
        assert self._bars
        frame, room = self._bars.flame.frames[bar.frame], bar.right - bar.left - 1
        name = shortened(clean(frame.function.name), room) if room > 1 else ""
        text = EDGE + name + FILL * (room - columns_of(name))
        style = Style(color=INK, bgcolor=BY_KIND[class_of(frame)])
        return Segment(text, style + Style(bold=True, reverse=True) if bar.frame == self.chosen else style)
