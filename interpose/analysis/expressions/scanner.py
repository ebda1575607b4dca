"""Words of an expression: names, numbers with units, texts in quotes, operators; each with its place."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import NamedTuple

from interpose import quantities
from interpose.errors import ExpressionError

LONGEST = 4096  # letters of an expression
END = "end"
# Units, in lower case, by what they measure.
TIMES_NS = quantities.TIMES_NS
SIZES_BYTES = {unit.lower(): size_bytes for unit, size_bytes in quantities.SIZES_BYTES.items()}
UNITS = f"{' '.join(TIMES_NS)}, {' '.join(quantities.SIZES_BYTES)}"
_WORD = re.compile(
    r"""(?P<space>\s+)
    | (?P<number>[0-9]+(?:\.[0-9]+)?)(?P<unit>\w*)
    | (?P<name>[^\W\d]\w*)
    | (?P<text>'[^']*'|"[^"]*")
    | (?P<operator>==|!=|<=|>=|=~|&&|\|\||[<>!+\-*/%(),])
    """,
    re.VERBOSE,
)
_MEANT = {"=": "== compares", "&": "&& means and", "|": "|| means or"}


class Word(NamedTuple):
    """A word: `what` it is (`name`, `text`, `number`, `end`, or the operator itself), its place, and its value.

    A name is in capitals, as names are of any case. `unit` is `time` or `size` of a number with a unit; its value is
    in nanoseconds, or in bytes.
    """

    what: str
    place: int
    value: str | int | float = ""
    unit: str = ""


def scan(text: str) -> Iterator[Word]:
    """The words of `text`, then one that is the end. Raises ExpressionError."""
    if len(text) > LONGEST:
        raise ExpressionError(f"an expression can have at most {LONGEST:,} characters", text, LONGEST)
    place = 0
    while place < len(text):
        found = _WORD.match(text, place)
        if found is None:
            raise ExpressionError(_what_is_none(text[place]), text, place)
        if found.lastgroup != "space":
            yield _word(found, text)
        place = found.end()
    yield Word(END, len(text))


def is_unit(text: str) -> bool:
    """Whether `text` is a unit of times or sizes."""
    return text.lower() in TIMES_NS or text.lower() in SIZES_BYTES


def _word(found: re.Match[str], text: str) -> Word:
    if found["number"]:
        return _number(found, text)
    if found["name"]:
        return Word("name", found.start(), found["name"].upper())
    if found["text"]:
        return Word("text", found.start(), found["text"][1:-1])
    return Word(found["operator"], found.start(), found["operator"])


def _number(found: re.Match[str], text: str) -> Word:
    digits, unit = found["number"], found["unit"].lower()
    if len(digits) > quantities.LONGEST_NUMBER:
        raise ExpressionError(f"a number has at most {quantities.LONGEST_NUMBER} digits", text, found.start())
    if unit in TIMES_NS:
        return Word("number", found.start(), quantities.times(digits, TIMES_NS[unit]), "time")
    if unit in SIZES_BYTES:
        return Word("number", found.start(), quantities.times(digits, SIZES_BYTES[unit]), "size")
    if unit:
        raise ExpressionError(f"{found['unit']} is not a unit; use {UNITS}", text, found.start("unit"))
    return Word("number", found.start(), quantities.times(digits, 1))


def _what_is_none(letter: str) -> str:
    if letter in "'\"":
        return f"the text that begins with {letter} does not end"
    return f"{letter} is not an operator" + (f"; {_MEANT[letter]}" if letter in _MEANT else "")
