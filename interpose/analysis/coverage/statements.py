"""The statements of a source, and to which of them a position belongs.

A statement is one of the syntax tree, or a decorator, an `except` clause or a `case` clause. Only the header of a
compound statement belongs to it; its body belongs to other statements. Its line is the first of its logical line, so
several statements may share a line, and one that spans several lines has the first.
"""

from __future__ import annotations

import ast
from bisect import bisect_right
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

from interpose.analysis.coverage.logical_lines import LogicalLines

DEFINITIONS = (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)
NONE = -1
_COLUMN_BITS = 32
_BLOCKS = ("body", "handlers", "orelse", "finalbody", "cases")


@dataclass
class Statements:
    """The statements of a source, numbered in the order of their beginnings: the line of each.

    `joined` are those that follow the one before them on its line, in the same code: behind a semicolon, or a head.
    """

    lines: list[int] = field(default_factory=list)
    joined: set[int] = field(default_factory=set)
    _begins: list[int] = field(default_factory=list)
    _owners: list[int] = field(default_factory=list)
    _first_of: dict[int, tuple[int, int]] = field(default_factory=dict)
    _of_line: dict[int, list[int]] = field(default_factory=dict)

    def at(self, line: int, column: int) -> int:
        """The innermost statement that has the position, its column in bytes from 0; `NONE` where none has.

        What stands before the first statement of its physical line is of that.
        """
        before, first = self._first_of.get(line, (0, NONE))
        if column < before:
            return first
        place = bisect_right(self._begins, line << _COLUMN_BITS | column) - 1
        return self._owners[place] if place >= 0 else NONE

    def on(self, line: int) -> Sequence[int]:
        """The statements that may be meant by a physical line alone: all that begin there, or the one around it."""
        return self._of_line.get(line) or [each for each in (self.at(line, 0),) if each != NONE]


@dataclass(frozen=True)
class _Span:
    """Where a statement stands, as (line, column) from 1 and 0."""

    begin: tuple[int, int]
    end: tuple[int, int]
    is_definition: bool = False


def statements(tree: ast.Module, text_lines: Sequence[str], lines: LogicalLines) -> Statements:
    """The statements of a syntax tree."""
    spans = sorted(_spans(tree, text_lines), key=lambda span: (span.begin, (-span.end[0], -span.end[1])))
    found = Statements([lines.first(span.begin[0]) for span in spans])
    inside: list[int] = []
    for number, span in enumerate(spans):
        if number and found.lines[number - 1] == found.lines[number] and not spans[number - 1].is_definition:
            found.joined.add(number)
        _close(found, spans, inside, span.begin)
        _begin(found, span.begin, number)
        inside.append(number)
        _note_line(found, number, span.begin, text_lines)
    _close(found, spans, inside, None)
    return found


def _close(found: Statements, spans: Sequence[_Span], inside: list[int], until: tuple[int, int] | None) -> None:
    """End the statements that end before `until`; what follows is of the one around."""
    while inside and (until is None or spans[inside[-1]].end <= until):
        end = spans[inside.pop()].end
        _begin(found, end, inside[-1] if inside else NONE)


def _begin(found: Statements, where: tuple[int, int], owner: int) -> None:
    position = where[0] << _COLUMN_BITS | where[1]
    if found._begins and found._begins[-1] == position:
        found._owners[-1] = owner
    else:
        found._begins.append(position)
        found._owners.append(owner)


def _note_line(found: Statements, number: int, begin: tuple[int, int], text_lines: Sequence[str]) -> None:
    line, column = begin
    found._of_line.setdefault(line, []).append(number)
    text = text_lines[line - 1] if line <= len(text_lines) else ""
    if line not in found._first_of and not text[:column].strip():
        found._first_of[line] = column, number


def _spans(tree: ast.Module, text_lines: Sequence[str]) -> Iterator[_Span]:
    """Those of all statements, in no order. A chain of `elif` is as deep as it is long: there is no recursion."""
    waiting: list[ast.AST] = [*tree.body]
    while waiting:
        node = waiting.pop()
        yield _span(node, text_lines)
        for decorator in getattr(node, "decorator_list", ()):
            yield _Span(_back_to("@", decorator, text_lines), _end(decorator))
        for name in _BLOCKS:
            waiting += getattr(node, name, ())


def _span(node: ast.AST, text_lines: Sequence[str]) -> _Span:
    if isinstance(node, ast.match_case):
        return _Span(_back_to("case", node.pattern, text_lines), _end(node.body[-1]))
    assert isinstance(node, (ast.stmt, ast.excepthandler))
    return _Span((node.lineno, node.col_offset), _end(node), isinstance(node, DEFINITIONS))


def _end(node: ast.stmt | ast.expr | ast.excepthandler) -> tuple[int, int]:
    return node.end_lineno or node.lineno, node.end_col_offset or 0


def _back_to(word: str, node: ast.expr | ast.pattern, text_lines: Sequence[str]) -> tuple[int, int]:
    """Where the word stands that a node comes after, which has no position of its own: at the beginning of a line."""
    for line in range(node.lineno, 0, -1):
        text = text_lines[line - 1]
        if text.lstrip().startswith(word):
            return line, len(text) - len(text.lstrip())
    return node.lineno, node.col_offset
