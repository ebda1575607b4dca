"""The statement table of a source: its statements that have code, by what Python compiles; nothing of it is run."""

from __future__ import annotations

import ast
import re
import tokenize
import warnings
from collections.abc import Iterator, Sequence, Set
from dataclasses import dataclass
from functools import cached_property
from types import CodeType

from interpose.analysis.coverage.exclusion import left_out, without_branches
from interpose.analysis.coverage.logical_lines import LogicalLines, logical_lines
from interpose.analysis.coverage.statements import NONE, Statements, statements
from interpose.errors import Caught

END_OF_LINE = re.compile(r"\r\n|\r")
LARGEST_BYTES = 4 << 20  # longer sources are not read
_ANNOTATIONS = "__annotate__"
_NO_PYTHON = "its source is not Python that this version reads"


class Unreadable(Caught):
    """Why a source has no statement table, in a few words."""


@dataclass
class Table:
    """A source: its lines of text, its statements, and the numbers of those that count, in the order of the source.

    `excluded` are the lines of excluded code, `no_branch` those whose branches all count as taken.
    """

    text: Sequence[str]
    logical: LogicalLines
    statements: Statements
    counted: Sequence[int]
    excluded: Set[int]
    no_branch: Set[int]
    code: CodeType

    @cached_property
    def code_lines(self) -> dict[int, int]:
        """The first line of the code that each statement is in: of a function or class, with decorators, or 1."""
        found: dict[int, int] = {}
        for each in code_objects(self.code):  # the head of a definition is of the code around it, which comes first
            for number in _with_code_of(each, self.statements):
                found.setdefault(number, each.co_firstlineno)
        return found


def statement_table(text: str, patterns: Sequence[re.Pattern[str]] = ()) -> Table:
    """The table of a source, without what matches one of the patterns. Raises Unreadable."""
    if len(text) > LARGEST_BYTES:
        raise Unreadable("its source is too long")
    text = END_OF_LINE.sub("\n", text)
    try:
        tree, code = _compiled(text)
        lines = logical_lines(text)
    except (SyntaxError, tokenize.TokenError) as error:
        line = getattr(error, "lineno", None)
        raise Unreadable(f"{_NO_PYTHON}{f' (line {line})' if line else ''}") from None
    except (ValueError, RecursionError, MemoryError, OverflowError):
        raise Unreadable(_NO_PYTHON) from None
    text_lines = text.split("\n")
    found = statements(tree, text_lines, lines)
    with_code = _with_code(code, found)
    code_lines = {found.lines[number] for number in with_code}
    out = left_out(text, tree, lines, patterns, code_lines)
    ignored = out.excluded | out.docstrings
    counted = [number for number in sorted(with_code) if found.lines[number] not in ignored]
    shown = text_lines if text_lines[-1] else text_lines[:-1]
    return Table(shown, lines, found, counted, out.excluded & code_lines, without_branches(text, lines), code)


def _compiled(text: str) -> tuple[ast.Module, CodeType]:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        tree = ast.parse(text)
        return tree, compile(text, "<source>", "exec", dont_inherit=True)


def code_objects(code: CodeType) -> Iterator[CodeType]:
    """A code object, and all within it; annotations that are put off are not counted as code."""
    waiting = [code]
    while waiting:
        each = waiting.pop()
        yield each
        waiting += [
            constant
            for constant in each.co_consts
            if isinstance(constant, CodeType) and constant.co_name != _ANNOTATIONS
        ]


def _with_code(code: CodeType, found: Statements) -> set[int]:
    """The statements that an instruction belongs to."""
    numbers: set[int] = set()
    for each in code_objects(code):
        numbers |= _with_code_of(each, found)
    numbers.discard(NONE)
    return numbers


def _with_code_of(code: CodeType, found: Statements) -> set[int]:
    """The same of one code object, without those within it; perhaps `NONE`."""
    numbers: set[int] = set()
    for line, _, column, _ in set(code.co_positions()):
        if line:
            numbers.update(found.on(line) if column is None else (found.at(line, column),))
    return numbers
