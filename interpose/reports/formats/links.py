"""Lines of code as links that a terminal opens (OSC 8), where it is one that does.

Other terminals, and editors' own, make links of a plain `orders.py:88` themselves, or show the command as letters.
"""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from typing import TextIO
from urllib.parse import quote

from interpose.reports.formats.colour import wants_colour

# Terminals that name themselves, from the version on that has links.
_PROGRAMS = {
    "iTerm.app": (3, 1),
    "WezTerm": (20200620,),
    "ghostty": (),
    "Hyper": (),
    "mintty": (3, 1),
    "tmux": (3, 4),  # which passes links on to a terminal that has them
    "rio": (),
    "Tabby": (),
}
_TERMS = ("xterm-kitty", "xterm-ghostty", "alacritty", "foot", "foot-direct", "contour")
_OF_THEIR_OWN = ("WT_SESSION", "DOMTERM", "KITTY_WINDOW_ID")
_LEAST = {"VTE_VERSION": 5001, "KONSOLE_VERSION": 201200}  # VTE 0.50.0 crashes
_LONGEST_URL = 2_000  # bytes; terminals ignore longer ones
_LINE = re.compile(r"[^\s(),;]+:\d+")
_SOURCES = (".py", ".pyw", ".pyx", ".pxd", ".pxi")  # nothing else: an experiment may be forged


def wants_links(out: TextIO, environment: Mapping[str, str]) -> bool:
    """Whether output to `out` may have links: to a terminal that is known to have them, if colours are wanted, too."""
    if not wants_colour(out, environment):
        return False
    if (program := environment.get("TERM_PROGRAM", "")) in _PROGRAMS:
        return _version(environment.get("TERM_PROGRAM_VERSION", "")) >= _PROGRAMS[program]
    if environment.get("TERM") in _TERMS or any(environment.get(name) for name in _OF_THEIR_OWN):
        return True
    return any(_version(environment.get(name, "")) >= (least,) for name, least in _LEAST.items())


def linked(text: str, shown: Mapping[str, str | None]) -> str:
    """`text` with each line of code in it that is among the `shown` as a link to its file."""
    return _LINE.sub(lambda found: _link(found[0], shown.get(found[0])), text)


def _link(text: str, path: str | None) -> str:
    if not path or not path.startswith("/") or not path.endswith(_SOURCES):
        return text
    url = f"file://{quote(os.uname().nodename)}{quote(os.path.normpath(path), errors='replace')}"
    url += f"#{text.rpartition(':')[2]}"
    return f"\x1b]8;;{url}\x1b\\{text}\x1b]8;;\x1b\\" if len(url) <= _LONGEST_URL else text


def _version(text: str) -> tuple[int, ...]:
    return tuple(int(number) for number in re.findall(r"\d{1,9}", text)[:3])
