"""Colour, if a terminal shows it and nobody switched it off (https://no-color.org)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TextIO

_CODES = {"bold": "1", "dim": "2", "warning": "31"}


class Paint:
    """Puts text in a style; leaves it as it is where `on` is false."""

    def __init__(self, on: bool) -> None:
        self._on = on

    def __call__(self, style: str, text: str) -> str:
        return f"\x1b[{_CODES[style]}m{text}\x1b[0m" if self._on and text else text


def wants_colour(out: TextIO, environment: Mapping[str, str]) -> bool:
    """Whether output to `out` may have colours."""
    return out.isatty() and not environment.get("NO_COLOR") and environment.get("TERM") != "dumb"
