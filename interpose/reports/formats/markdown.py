"""A table as GitHub's Markdown.

GitHub makes links of `@name`, `#1`, addresses and commits, pictures of `:name:`, and formulas of what is between dollar
signs, even where a backslash precedes them, but never in code. So names are code.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from typing import TextIO

from interpose.reports.formats.table import Column, Table, clean

_SPECIAL = re.compile(r"([\\`*_{}\[\]<>#|~&!@$:])")
_PLAIN = re.compile(r"(?!.*\b[0-9a-f]{7,}\b)(?:[A-Za-z0-9 ,;'()%]|: )*")  # such digits may be a commit
_BACKTICKS = re.compile(r"`+")


def write(table: Table, out: TextIO, width: int) -> None:
    """Write `table` to `out`; texts are code, figures are not."""
    write_cells(table, out, cell)


def write_cells(table: Table, out: TextIO, cell: Callable[[Column, str], str]) -> None:
    """Write `table` to `out`; `cell` gives the Markdown of what a column shows."""
    _write_line(out, [_name(column.title) for column in table.columns])
    _write_line(out, ["---:" if column.right else "---" for column in table.columns])
    for row in table.rows:
        _write_line(out, [cell(column, column.show(row).strip()) for column in table.columns])


def cell(column: Column, text: str) -> str:
    """What a column shows: a figure, or code."""
    return _SPECIAL.sub(r"\\\1", text) if column.right else _name(text)


def code(text: str) -> str:
    """`text` as code within a line; words of which nothing is made as they are."""
    text = clean(text)
    if _PLAIN.fullmatch(text):
        return text
    mark = fence(text, shortest=1)
    room = " " if text[0] in "` " or text[-1] in "` " else ""
    return f"{mark}{room}{text}{room}{mark}"


def sentence(text: str) -> str:
    """`text` with the words as code of which something may be made."""
    return " ".join(map(_word, clean(text).split(" ")))


def _word(word: str) -> str:
    """A word as code, without the marks around it."""
    after = word.lstrip("(")
    bare = after.rstrip("),.;:")
    return f"{word[: len(word) - len(after)]}{code(bare)}{after[len(bare) :]}"


def fence(text: str, shortest: int) -> str:
    """A run of backticks longer than any in `text`."""
    longest = max(map(len, _BACKTICKS.findall(text)), default=0)
    return "`" * max(shortest, longest + 1)


def _name(text: str) -> str:
    """`text` in a cell, where a bar ends even code."""
    return code(text).replace("|", r"\|")


def _write_line(out: TextIO, cells: Iterable[str]) -> None:
    out.write(f"| {' | '.join(cells)} |\n")
