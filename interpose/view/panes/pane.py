"""What every tab has: a line that says what is shown, and a part of the experiment that is read for it."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any, ClassVar, Protocol

from rich.text import Text
from textual.containers import Vertical
from textual.message import Message
from textual.widget import Widget
from textual.widgets import Static

from interpose.reports.formats.table import clean
from interpose.view.reading import Reading

READING = "reading …"


class Searched(Protocol):
    """A widget in which texts are found."""

    def find(self, text: str, step: int, here: bool = False) -> bool: ...


class Pane(Vertical):
    """A tab. `job` says, in the thread of the terminal, what is to be read; the result is shown by `show`."""

    DEFAULT_CSS = "Pane > .title { height: 1; text-style: dim; }"
    NAME: ClassVar[str]

    class Wanted(Message):
        """The pane wants to be read again; what it shows no longer is what was chosen."""

        def __init__(self, pane: Pane) -> None:
            super().__init__()
            self.pane = pane

    class Opened(Message):
        """Somebody wants to see something that another tab shows."""

        def __init__(self, what: object) -> None:
            super().__init__()
            self.what = what

    def __init__(self) -> None:
        super().__init__(id=f"pane-{self.NAME}")
        self.gives_way: Callable[[], bool] = lambda: False  # whether a job should stop, because another one waits
        self._title = Static(READING, markup=False, classes="title")

    def compose(self) -> Iterator[Widget]:
        """The line that says what is shown, and what the tab has below it."""
        yield self._title
        yield self.body

    @property
    def body(self) -> Widget:
        """What is below the title, and has the focus."""
        raise NotImplementedError

    @property
    def searched(self) -> Searched:
        """Where texts are looked for."""
        raise NotImplementedError

    @property
    def told(self) -> str:
        """All that is known of the chosen row."""
        return ""

    def job(self) -> Callable[[Reading], Any]:
        """What reads the tab's part of an experiment, in another thread."""
        raise NotImplementedError

    def show(self, made: Any) -> None:
        """Show what was read."""
        raise NotImplementedError

    def entitle(self, text: str) -> None:
        """Say what is shown, or why nothing is."""
        self._title.update(Text(clean(text)))

    def sort(self) -> None:
        """Take the next order of rows."""
        self.app.bell()

    def back(self) -> bool:
        """Go back to what was shown before; False if that was nothing."""
        return False

    def search(self, text: str, step: int, here: bool) -> bool:
        """Choose the next row that has `text`; False if none has."""
        return self.searched.find(text, step, here)
