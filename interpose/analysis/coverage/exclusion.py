"""Which lines of a source its coverage leaves out, wholly or their branches, as in coverage.py; and docstrings."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterable, Iterator, Sequence, Set
from typing import NamedTuple

from interpose.analysis.coverage.logical_lines import LogicalLines
from interpose.analysis.coverage.statements import DEFINITIONS

# What coverage.py excludes by default: the comment, imports for type checkers, and bodies of three dots.
# Sources may be hostile: no expression here takes longer than the text is long.
DEFAULTS = (
    r"#\s*(?:pragma|PRAGMA)[:\s]?\s*(?:no|NO)\s*(?:cover|COVER)",
    r"^[^\S\n]*if (?:typing\.)?TYPE_CHECKING:",
)
# The lines whose branches all count as taken, as in coverage.py.
_NO_BRANCH = re.compile(r"#\s*(?:pragma|PRAGMA)[:\s]?\s*(?:no|NO)\s*(?:branch|BRANCH)")
_DOTS = re.compile(r"^\.\.\.\s*(?:#|$)")
_RESULT = re.compile(r"[\])]\s*->")


class LeftOut(NamedTuple):
    """The first lines of excluded code, and all lines of docstrings."""

    excluded: Set[int]
    docstrings: Set[int]


def left_out(
    text: str, tree: ast.Module, lines: LogicalLines, patterns: Sequence[re.Pattern[str]], with_code: Set[int]
) -> LeftOut:
    """What is excluded from a source: lines that match a pattern, with their suites; `with_code` are the lines with
    code.

    A decorator or the header of a definition excludes all of it, and an excluded body also the `case _` before it.
    """
    found = [*bodies_of_dots(text.split("\n")), *(line for pattern in patterns for line in _matching(pattern, text))]
    chosen = {lines.first(line) for line in found}
    excluded = lines.with_suites(chosen) if chosen else set()
    docstrings: set[int] = set()
    waiting: list[ast.AST] = [tree]
    while waiting:
        node = waiting.pop()
        if isinstance(node, (*DEFINITIONS, ast.Module)):
            docstrings.update(_docstring(node.body))
        if isinstance(node, DEFINITIONS) and excluded:
            first = min((each.lineno for each in node.decorator_list), default=node.lineno)
            if any(line in excluded for line in range(first, node.lineno + 1)):
                excluded.update(range(first, _last(node) + 1))
        elif isinstance(node, ast.match_case) and excluded and _is_for_all(node):
            body = with_code & set(range(node.body[0].lineno, _last(node.body[-1]) + 1))
            if body and body <= excluded:
                excluded.update(range(node.pattern.lineno, (node.pattern.end_lineno or 0) + 1))
        for name in ("finalbody", "orelse", "cases", "handlers", "body"):
            waiting += reversed(getattr(node, name, ()))
    return LeftOut(excluded, docstrings)


def without_branches(text: str, lines: LogicalLines) -> Set[int]:
    """The first lines of what has the comment `# pragma: no branch`."""
    return {lines.first(line) for line in _matching(_NO_BRANCH, text)}


def _matching(pattern: re.Pattern[str], text: str) -> Iterable[int]:
    """The physical lines of a match."""
    line, counted = 1, 0
    for match in pattern.finditer(text):
        line += text.count("\n", counted, match.start())
        counted = match.start()
        yield from range(line, line + text.count("\n", *match.span()) + 1)


def bodies_of_dots(text_lines: Sequence[str]) -> Iterator[int]:
    """Lines with only three dots, alone or after the header of a definition, and that header above."""
    above = 0  # the last line before that is not blank
    for number, line in enumerate(text_lines, 1):
        place = line.rfind("...", 0, line.find("#") if "#" in line else len(line))
        if place >= 0 and _DOTS.match(line[place:]):
            before = line[:place].strip()
            if not before or _ends_head(before):
                yield number
            if not before and above and _ends_head(text_lines[above - 1].strip()):
                yield from range(above, number)
        if line.strip():
            above = number


def _ends_head(text: str) -> bool:
    """Whether a line is a definition's head, or the end of one: `) -> int:`."""
    if not text.endswith(":"):
        return False
    if text.startswith(("def ", "async def ")):
        return text[-2] in ")]" or _RESULT.search(text) is not None
    rest = text[:-1].lstrip(")]")
    return rest != text[:-1] and (not rest or rest.lstrip().startswith("->"))


def _docstring(body: Sequence[ast.stmt]) -> Iterable[int]:
    first = body[0] if body else None
    if isinstance(first, ast.Expr) and isinstance(first.value, ast.Constant) and isinstance(first.value.value, str):
        return range(first.lineno, _last(first) + 1)
    return ()


def _is_for_all(case: ast.match_case) -> bool:
    """Whether it is `case _`, or `case` with another name that matches everything."""
    pattern: ast.pattern | None = case.pattern
    while isinstance(pattern, (ast.MatchAs, ast.MatchOr)):
        inner = pattern.patterns[-1] if isinstance(pattern, ast.MatchOr) else pattern.pattern
        if inner is None:
            return case.guard is None
        pattern = inner
    return False


def _last(node: ast.stmt) -> int:
    return node.end_lineno or node.lineno
