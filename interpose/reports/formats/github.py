"""A table, and what stands around it, as Markdown for GitHub: comments on pull requests, summaries of jobs."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from typing import TextIO

from interpose.reports.formats import markdown
from interpose.reports.formats.table import Column, Table, clean, shortened

LONGEST = 120  # letters of a name: a comment may have 65,536
_SHORTEST_FENCE = 3


def write(table: Table, out: TextIO, width: int) -> None:
    """Write `table` to `out`, with long names shortened."""
    markdown.write_cells(table, out, _cell)


def fenced(lines: Iterable[str]) -> Iterator[str]:
    """The lines as a block that is shown as it is."""
    shown = [clean(line) for line in lines]
    fence = markdown.fence("\n".join(shown), _SHORTEST_FENCE)
    yield from (f"{fence}text", *shown, fence)


@contextmanager
def folded(title: str, out: TextIO) -> Iterator[None]:
    """Fold what is written to `out` inside below `title`, which must be ours."""
    out.write(f"\n<details><summary>{title}</summary>\n\n")
    yield
    out.write("\n</details>\n")


def _cell(column: Column, text: str) -> str:
    return markdown.cell(column, text if column.right else shortened(text, LONGEST, column.keep))
