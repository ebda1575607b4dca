"""A table, and what stands around it, as Markdown for GitHub: comments on pull requests, summaries of jobs.

GitHub makes links of `@name`, `#1` and addresses even where a backslash precedes them, but never in code. So names
from an experiment are code.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from typing import TextIO

from interpose.reports.formats import markdown
from interpose.reports.formats.table import Column, Table, clean, shortened

LONGEST = 120  # letters of a name: a comment may have 65,536
_PLAIN = re.compile(r"(?:[A-Za-z0-9 ,;'()%]|: )*")
_BACKTICKS = re.compile(r"`+")
_SHORTEST_FENCE = 3


def write(table: Table, out: TextIO, width: int) -> None:
    """Write `table` to `out`; texts are code, figures are not."""
    markdown.write_cells(table, out, _cell)


def code(text: str) -> str:
    """`text` as code within a line, also in a table; words of which nothing is made as they are."""
    text = clean(text)
    if _PLAIN.fullmatch(text):
        return text
    fence = _fence(text, shortest=1)
    room = " " if text[0] in "` " or text[-1] in "` " else ""
    return f"{fence}{room}{text}{room}{fence}".replace("|", r"\|")


def fenced(lines: Iterable[str]) -> Iterator[str]:
    """The lines as a block that is shown as it is."""
    shown = [clean(line) for line in lines]
    fence = _fence("\n".join(shown), _SHORTEST_FENCE)
    yield from (f"{fence}text", *shown, fence)


@contextmanager
def folded(title: str, out: TextIO) -> Iterator[None]:
    """Fold what is written to `out` inside below `title`, which must be ours."""
    out.write(f"\n<details><summary>{title}</summary>\n\n")
    yield
    out.write("\n</details>\n")


def _cell(column: Column, text: str) -> str:
    return markdown.escaped(text) if column.right else code(shortened(text, LONGEST, column.keep))


def _fence(text: str, shortest: int) -> str:
    """A run of backticks longer than any in `text`."""
    longest = max(map(len, _BACKTICKS.findall(text)), default=0)
    return "`" * max(shortest, longest + 1)
