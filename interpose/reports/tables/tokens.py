"""The table of what can stand in a filter: tokens, functions, operators."""

from __future__ import annotations

from typing import NamedTuple

from interpose.analysis.expressions.tokens import FUNCTIONS, SYNTAX, TOKENS
from interpose.reports.formats.table import Column, Table

NAMES = ("name", "type", "meaning")


class _Row(NamedTuple):
    name: str
    type: str
    meaning: str


def tokens_table() -> Table:
    """The table of all that an expression consists of."""
    rows = [_Row(name, str(token.type), token.meaning) for name, token in TOKENS.items()]
    rows += [_Row(f"{name}( )", "frames", function.meaning) for name, function in FUNCTIONS.items()]
    rows += [_Row(sign, "", meaning) for sign, meaning in SYNTAX]
    columns = [
        Column("name", lambda row: row.name, right=False),
        Column("is", lambda row: row.type, right=False),
        Column("meaning", lambda row: row.meaning, right=False, flexible=True),
    ]
    return Table(NAMES, lambda row: row._asdict(), columns, rows)
