"""The lines of a source as its tokens have them: which physical lines one statement line spans, and its depth."""

from __future__ import annotations

import token
import tokenize
from collections.abc import Set
from dataclasses import dataclass, field
from io import StringIO

_NO_CODE = (token.INDENT, token.DEDENT, token.NL, token.NEWLINE, token.ENDMARKER, tokenize.COMMENT)


@dataclass
class LogicalLines:
    """Each line of statements by its first physical line: `depths` says how deep it is indented, in the order of lines.

    `firsts` has the first line of each physical line that is not one itself.
    """

    depths: dict[int, int] = field(default_factory=dict)
    firsts: dict[int, int] = field(default_factory=dict)

    def first(self, line: int) -> int:
        """The first physical line of the one that `line` belongs to."""
        return self.firsts.get(line, line)

    def with_suites(self, chosen: Set[int]) -> set[int]:
        """The lines `chosen`, and those that stand indented below one of them."""
        found, above = set(chosen), -1
        for line, depth in self.depths.items():
            if depth <= above:
                above = -1
            if above >= 0:
                found.add(line)
            elif line in chosen:
                above = depth
        return found


def logical_lines(text: str) -> LogicalLines:
    """The logical lines of a source, which must end with newlines. Raises SyntaxError, tokenize.TokenError."""
    found, depth, first = LogicalLines(), 0, 0
    for kind, _, (line, _), (end, _), _ in tokenize.generate_tokens(StringIO(text).readline):
        if kind == token.INDENT:
            depth += 1
        elif kind == token.DEDENT:
            depth -= 1
        elif kind == token.NEWLINE:
            if first:
                found.firsts.update(dict.fromkeys(range(first + 1, end + 1), first))
            first = 0
        elif not first and kind not in _NO_CODE:
            first = line
            found.depths[first] = depth
    return found
