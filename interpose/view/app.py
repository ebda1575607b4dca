"""The view: five tabs over one experiment, read again once a second while its program runs."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from typing import Any, ClassVar

from rich.text import Text
from textual.app import App
from textual.binding import Binding, BindingType
from textual.message import Message
from textual.widget import Widget
from textual.widgets import Footer, Static, TabbedContent, TabPane

from interpose.experiments.model.experiment import Experiment
from interpose.reports.formats.table import clean
from interpose.view.choice import Facts, Question
from interpose.view.drilling import Calls, Line
from interpose.view.loader import Loader
from interpose.view.panes.calls import CallsPane
from interpose.view.panes.flame import FlamePane
from interpose.view.panes.pane import READING, Pane
from interpose.view.panes.rows import RowsPane
from interpose.view.panes.source import SourcePane
from interpose.view.panes.transactions import TransactionsPane
from interpose.view.reading import Reading

EVERY_S = 1.0
PATIENT_S = 0.5  # if reading takes longer, the tab says so
PART_OF_A_PROCESSOR = 3  # reading takes at most one third
KEYS = (
    ("1 to 5", "the tabs: rows, transactions, calls, flame, source"),
    ("arrows, PgUp, PgDn", "move; a click does, too"),
    ("Home, End", "the first and the last"),
    ("Enter, double click", "what is behind a row; in the flame graph: zoom"),
    ("Escape", "back, or out of the zoom"),
    ("/ then n, N", "search; the next, the one before"),
    ("s, click on a head", "sort by the next column, or by that one"),
    ("b", "rows: by kind, intrinsic, line, function …"),
    ("f", "calls: only those that match an expression"),
    ("c", "flame: CPU time or wall time"),
    ("o", "flame: the source of the function"),
    ("?", "this help"),
    ("q", "quit"),
)


class View(App[None]):
    """What `interpose view` shows."""

    TITLE = "interpose view"
    ENABLE_COMMAND_PALETTE = False
    CSS = """
    #heading { height: auto; max-height: 4; }
    #told { height: auto; max-height: 3; min-height: 1; background: $panel; }
    TabbedContent { height: 1fr; }
    TabPane { padding: 0; }
    """
    BINDINGS: ClassVar[list[BindingType]] = [
        ("q", "quit", "Quit"),
        ("question_mark", "keys", "Help"),
        ("slash", "search", "Search"),
        ("s", "sort", "Sort"),
        ("escape", "out", "Back"),
        Binding("ctrl+c", "quit", show=False),
    ]

    class Read(Message):
        """A pane's part of the experiment was read, or could not be."""

        def __init__(self, made: Any, took_s: float) -> None:
            super().__init__()
            self.made = made
            self.took_s = took_s

    def __init__(self, experiment: Experiment) -> None:
        super().__init__()
        self.animation_level = "none"
        self.experiment = experiment  # an unpacked one goes with this
        self._reading = Reading(experiment)
        self._loader = Loader(lambda made, took_s: self.post_message(self.Read(made, took_s)))
        self._panes = {
            each.NAME: each for each in (RowsPane(), TransactionsPane(), CallsPane(), FlamePane(), SourcePane())
        }
        for each in self._panes.values():
            each.gives_way = lambda: self._loader.has_newer
        self._is_running = False
        self._next_s = self._asked_s = 0.0
        self._text = ""

    def compose(self) -> Iterator[Widget]:
        """What ran, the tabs, all of the chosen row, the keys."""
        yield Static("", markup=False, id="heading")
        with TabbedContent(initial="rows"):
            for name, pane in self._panes.items():
                with TabPane(name, id=name):
                    yield pane
        yield Static("", markup=False, id="told")
        yield Footer()

    def on_mount(self) -> None:
        """Begin to read."""
        for number, name in enumerate(self._panes, 1):
            self.bind(str(number), f"tab('{name}')", show=False)
        self.bind("n", "search_on(1)", show=False)
        self.bind("N", "search_on(-1)", show=False)
        self.set_interval(EVERY_S / 4, self._tick)

    def on_resize(self) -> None:
        """Lay the lines above the tabs out anew."""
        if self.is_mounted(self.pane):
            self._load(self.pane)

    @property
    def pane(self) -> Pane:
        """The tab that is shown."""
        return self._panes[self.query_one(TabbedContent).active or "rows"]

    @property
    def is_settled(self) -> bool:
        """Whether everything that was wanted is shown."""
        return self._loader.is_idle

    def on_tabbed_content_tab_activated(self) -> None:
        """Read what the tab shows."""
        self.pane.body.focus()
        self._load(self.pane)

    def on_pane_wanted(self, message: Pane.Wanted) -> None:
        """Read what a tab wants."""
        if message.pane is self.pane:
            self._load(message.pane)

    def on_pane_opened(self, message: Pane.Opened) -> None:
        """Show a line or some calls in their tab."""
        source, calls = self._panes["source"], self._panes["calls"]
        if isinstance(message.what, Line) and isinstance(source, SourcePane):
            source.open(message.what)
            self.action_tab("source")
        elif isinstance(message.what, Calls) and isinstance(calls, CallsPane):
            calls.choose(message.what.expression)
            self.action_tab("calls")

    def on_view_read(self, message: View.Read) -> None:
        """Show what was read."""
        self._asked_s = 0.0
        self._next_s = time.monotonic() + max(EVERY_S, PART_OF_A_PROCESSOR * message.took_s)
        if isinstance(message.made, Exception):
            self.pane.entitle(str(message.made))
            return
        pane, made, heading, self._is_running, self._reading = message.made
        self.query_one("#heading", Static).update(Text(heading))
        pane.show(made)
        self._tell()

    def on_flame_graph_moved(self) -> None:
        """Say all of the chosen frame."""
        self._tell()

    def on_listing_moved(self) -> None:
        """Say all of the chosen row."""
        self._tell()

    def action_tab(self, name: str) -> None:
        """Show a tab."""
        self.query_one(TabbedContent).active = name

    def action_keys(self) -> None:
        """Show what the keys do."""
        self.push_screen(Facts("Keys", KEYS))

    def action_sort(self) -> None:
        """Sort by the next column."""
        self.pane.sort()

    def action_out(self) -> None:
        """Go back to what was shown before."""
        if not self.pane.back():
            self.bell()

    def action_search(self) -> None:
        """Ask for a text, and choose the next row that has it."""
        self.push_screen(Question("Search", self._text), self._search)

    def action_search_on(self, step: int) -> None:
        """Choose the next row that has the text, or the one before."""
        if self._text and not self.pane.search(self._text, step, here=False):
            self.bell()
        self._tell()

    def _search(self, text: str | None) -> None:
        if text:
            self._text = text
            if not self.pane.search(text, 1, here=True):
                self.bell()
            self._tell()

    def _tell(self) -> None:
        self.query_one("#told", Static).update(Text(clean(self.pane.told)))

    def _tick(self) -> None:
        if self._asked_s and time.monotonic() > self._asked_s + PATIENT_S:
            self.pane.entitle(READING)
        if self._is_running and self._loader.is_idle and time.monotonic() >= self._next_s:
            self._load(self.pane, again=True)

    def _load(self, pane: Pane, again: bool = False) -> None:
        job: Callable[[Reading], Any] = pane.job()
        before, width = self._reading, max(self.size.width, 20)
        self._asked_s = 0.0 if again else time.monotonic()

        def read() -> tuple[Pane, Any, str, bool, Reading]:
            reading = before.again() if again else before
            made = job(reading)
            return pane, made, reading.heading(width), reading.is_running, reading

        self._loader.ask(read)
