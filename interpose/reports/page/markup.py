"""Writes HTML: everything from an experiment is escaped, and elements accept only escaped text."""

from __future__ import annotations

import html
import json
from collections.abc import Iterable
from typing import Any

from interpose.reports.formats.table import clean


class Markup(str):
    """Text that is HTML already."""

    __slots__ = ()


Content = str | Iterable[str]
_EMPTY = frozenset(("meta", "link", "rect", "path", "input"))
# No script element ends within data, none begins, and no old JavaScript takes a line to end.
_ESCAPED = {"<": "\\u003c", ">": "\\u003e", "&": "\\u0026", "\u2028": "\\u2028", "\u2029": "\\u2029"}


def escaped(text: str) -> Markup:
    """`text` as HTML; unprintable characters are shown as escapes. HTML stays unchanged."""
    return text if isinstance(text, Markup) else Markup(html.escape(clean(text)))


def element(name: str, content: Content = "", /, **attributes: object) -> Markup:
    """An element. Attributes that are None or False are left out; in their names `_` stands for `-`, and is dropped at
    the end (`class_`)."""
    shown = "".join(
        _attribute(key.rstrip("_").replace("_", "-"), value)
        for key, value in attributes.items()
        if value is not None and value is not False
    )
    if name in _EMPTY:
        return Markup(f"<{name}{shown}/>")
    inner = escaped(content) if isinstance(content, str) else joined(content)
    return Markup(f"<{name}{shown}>{inner}</{name}>")


def _attribute(name: str, value: object) -> str:
    return f" {name}" if value is True else f' {name}="{html.escape(clean(str(value)))}"'


def joined(parts: Iterable[str]) -> Markup:
    """Several texts, each escaped unless it is HTML, one behind the other."""
    return Markup("".join(escaped(part) for part in parts))


def lines(text: str) -> Markup:
    """A line of source as HTML: tabs and spaces stay, all else that is not printable is shown as an escape."""
    return Markup(html.escape("\t".join(clean(part) for part in text.split("\t"))))


def data(name: str, values: Any) -> Markup:
    """Values for the page's script, as JSON in an element that is no script to a browser."""
    text = json.dumps(values, separators=(",", ":"))
    for letter, escape in _ESCAPED.items():
        text = text.replace(letter, escape)
    return Markup(f'<script type="application/json" id="{name}">{text}</script>')
