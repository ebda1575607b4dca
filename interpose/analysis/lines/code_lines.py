"""Which lines of a source have code, and where its functions begin."""

from __future__ import annotations

import warnings
from dataclasses import dataclass, field
from types import CodeType

LARGEST_BYTES = 2 << 20  # longer sources are shown without them
_SCOPES_WITHOUT_NAME = ("<module>", "<listcomp>", "<setcomp>", "<dictcomp>", "<genexpr>")


@dataclass
class CodeLines:
    """The lines that have code, and the names of the functions that begin at a line."""

    lines: set[int] = field(default_factory=set)
    functions: dict[int, list[str]] = field(default_factory=dict)


def code_lines(text: str) -> CodeLines | None:
    """Those of a source; None if this Python cannot read it, or it is too long. Nothing of it is run."""
    if len(text) > LARGEST_BYTES:
        return None
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            code = compile(text, "<source>", "exec", dont_inherit=True)
    except (SyntaxError, ValueError, RecursionError, MemoryError, OverflowError):
        return None
    found = CodeLines()
    waiting = [code]
    while waiting:
        each = waiting.pop()
        found.lines.update(line for _, _, line in each.co_lines() if line)
        if each.co_name not in _SCOPES_WITHOUT_NAME:
            found.functions.setdefault(each.co_firstlineno, []).append(each.co_qualname)
        waiting += [constant for constant in each.co_consts if isinstance(constant, CodeType)]
    return found
