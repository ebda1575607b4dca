"""Lines on stderr, each with our name before it: the only module that writes there."""

from __future__ import annotations

import sys
from collections.abc import Iterable

from interpose.cli.suggestions import did_you_mean
from interpose.errors import ExpressionError, InterposeError
from interpose.reports.formats.table import clean, columns_of

_OF_AN_EXPRESSION = 76  # how many characters around the mistake are shown, and how many before it
_BEFORE_THE_CARET = 56


def say(text: str) -> None:
    """A line."""
    sys.stderr.write(f"interpose: {clean(text)}\n")


def show(lines: Iterable[str]) -> None:
    """The beginning of a report, which has been made for a terminal."""
    sys.stderr.write("".join(f"{line}\n" for line in lines))


def in_words(error: InterposeError) -> str:
    """What is wrong, and a suggestion for an unknown name."""
    directory, slash, _ = error.mistaken.rpartition("/")
    return f"{error}{did_you_mean(error.mistaken, error.known, directory + slash)}" if error.mistaken else str(error)


def tell(error: InterposeError) -> None:
    """What is wrong, in a line; for an expression also where."""
    say(in_words(error))
    if isinstance(error, ExpressionError):
        _point_at(error)


def _point_at(error: ExpressionError) -> None:
    """The expression, or the part of a long one around the mistake, with a caret below."""
    begin = max(error.place - _BEFORE_THE_CARET, 0)
    end = begin + _OF_AN_EXPRESSION
    indent = " " * columns_of(clean(error.text[begin : error.place]))
    show([f"  {clean(error.text[begin:end])}", f"  {indent}^"])
