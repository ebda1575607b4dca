"""Nodes of globals as M's ZWRITE shows them: `^lvtr("MYTRACE",812,"shop","total",3)="10:4"`, in M's order."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator

from interpose.legacy.nodes import Node, Subscript

_NUMBER = re.compile(r"-?(?:0|[1-9][0-9]{0,17})")


def zwr(nodes: Iterable[Node]) -> Iterator[str]:
    """A line for each node: numbers go before texts."""
    for node in sorted(nodes, key=lambda node: (node.name, [_order(each) for each in node.subscripts])):
        subscripts = ",".join(_shown(each) for each in node.subscripts)
        value = node.value if _NUMBER.fullmatch(node.value) else _quoted(node.value)
        yield f"^{node.name}{f'({subscripts})' if subscripts else ''}={value}"


def _order(subscript: Subscript) -> tuple[int, int, str]:
    return (0, subscript, "") if isinstance(subscript, int) else (1, 0, subscript)


def _shown(subscript: Subscript) -> str:
    return str(subscript) if isinstance(subscript, int) else _quoted(subscript)


def _quoted(text: str) -> str:
    """A text in quotes; unprintable characters are written by number, as in ZWRITE."""
    parts = re.findall(r"[ -~]+|[^ -~]", text)
    shown = [
        '"' + part.replace('"', '""') + '"' if " " <= part[0] <= "~" else f"$C({ord(part)})" for part in parts
    ]
    return "_".join(shown) or '""'
