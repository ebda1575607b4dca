"""Screens above the tabs: a choice, a question, facts, and the help."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import ClassVar, TypeVar

from rich.text import Text
from textual.binding import BindingType
from textual.containers import Vertical, VerticalScroll
from textual.screen import ModalScreen
from textual.widget import Widget
from textual.widgets import Input, OptionList, Static

Result = TypeVar("Result")


class _Above(ModalScreen[Result]):
    """A box in the middle of the terminal; Escape closes it."""

    DEFAULT_CSS = """
    _Above { align: center middle; }
    _Above > .box { width: auto; min-width: 30; max-width: 90%; height: auto; max-height: 90%;
                    border: round $primary; padding: 0 1; background: $surface; }
    _Above Input { width: 60; max-width: 100%; }
    _Above OptionList { width: 28; border: none; padding: 0; }
    _Above OptionList:focus { border: none; }
    _Above > .wide { width: 76; }
    """
    BINDINGS: ClassVar[list[BindingType]] = [("escape,q", "close", "Close")]

    def action_close(self) -> None:
        """Close it without a result."""
        self.dismiss(None)


class Choice(_Above[str]):
    """One of several words."""

    def __init__(self, title: str, words: Sequence[str]) -> None:
        super().__init__()
        self._title = title
        self._words = words

    def compose(self) -> Iterator[Widget]:
        """The words, one a line."""
        with Vertical(classes="box"):
            yield Static(self._title, markup=False)
            yield OptionList(*self._words)

    def on_option_list_option_selected(self, message: OptionList.OptionSelected) -> None:
        """That one."""
        self.dismiss(self._words[message.option_index])


class Question(_Above[str]):
    """A line of text."""

    BINDINGS: ClassVar[list[BindingType]] = [("escape", "close", "Close")]

    def __init__(self, title: str, value: str = "") -> None:
        super().__init__()
        self._title = title
        self._value = value

    def compose(self) -> Iterator[Widget]:
        """The question, and room for the answer."""
        with Vertical(classes="box"):
            yield Static(self._title, markup=False)
            yield Input(self._value)

    def on_input_submitted(self, message: Input.Submitted) -> None:
        """That is the answer."""
        self.dismiss(message.value)


class Facts(_Above[None]):
    """Names and their values, or keys and what they do."""

    BINDINGS: ClassVar[list[BindingType]] = [("escape,q,enter,question_mark", "close", "Close")]

    def __init__(self, title: str, facts: Sequence[tuple[str, str]]) -> None:
        super().__init__()
        self._title = title
        self._facts = facts

    def compose(self) -> Iterator[Widget]:
        """A line for each."""
        width = max((len(name) for name, _ in self._facts), default=0)
        lines = [f"{name:<{width}}  {value}" for name, value in self._facts]
        with VerticalScroll(classes="box wide"):
            yield Static(Text("\n".join([self._title, "", *lines])))
