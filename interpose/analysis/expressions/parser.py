"""From the text of an expression to its tree. From what binds least to what binds most:

    ||    &&    == != < <= > >= =~ IN    + -    * / %    ! -    ( )

Comparisons do not chain. A text is read by what its letters are, never run.
"""

from __future__ import annotations

import re
from collections.abc import Callable

from interpose.analysis.expressions.scanner import END, Word, is_unit, scan
from interpose.analysis.expressions.tree import Binary, Call, Junction, Literal, Many, Membership, Name, Part, Unary
from interpose.errors import ExpressionError

DEEPEST = 32  # parentheses and signs within each other
OPERATORS_AT_MOST = 200  # of arithmetic: each may be a part of the next
COMPARISONS = ("==", "!=", "<", "<=", ">", ">=", "=~")
HOWS = ("SOME", "ORDERED", "LEAF")
IN = "IN"
_NUMBER_BEFORE = re.compile(r"([0-9.]+)\s+$")
_UNIT = re.compile(r"\w+")


def parse(text: str) -> Part:
    """The tree of `text`. Raises ExpressionError."""
    parser = _Parser(text)
    found = parser.either()
    if parser.next.what != END:
        raise parser.error(f"an operator or the end was expected{parser.unit_apart()}")
    return found


class _Parser:
    """Reads word after word; `next` is the one that has not been taken."""

    def __init__(self, text: str) -> None:
        self._text = text
        self._words = scan(text)
        self._depth = 0
        self._operators = 0
        self.next: Word = next(self._words)

    def error(self, what: str, place: int | None = None) -> ExpressionError:
        return ExpressionError(what, self._text, self.next.place if place is None else place)

    def unit_apart(self) -> str:
        """How to write the number and the unit that it is apart from; empty if the next word is no unit."""
        place = self.next.place
        number = _NUMBER_BEFORE.search(self._text, 0, place)
        unit = _UNIT.match(self._text, place)
        return f"; write {number[1]}{unit[0]}" if number and unit and is_unit(unit[0]) else ""

    def either(self) -> Part:
        return self._junction("||", lambda: self._junction("&&", self._comparison))

    def _take(self) -> Word:
        taken = self.next
        if taken.what != END:
            self.next = next(self._words)
        return taken

    def _junction(self, operator: str, part: Callable[[], Part]) -> Part:
        parts, place = [part()], self.next.place
        while self.next.what == operator:
            self._take()
            parts.append(part())
        return parts[0] if len(parts) == 1 else Junction(place, operator, tuple(parts))

    def _comparison(self) -> Part:
        left = self._sum()
        if not self._compares():
            return left
        operator = self._take()
        how = str(operator.value) if operator.what == "name" else ""
        if how and how != IN:
            self._expect_in(how)
        right = self._sum()
        if self._compares():
            raise self.error("comparisons do not chain; && puts two together")
        if how:
            return Membership(operator.place, how, left, right)
        return Binary(operator.place, operator.what, left, right)

    def _compares(self) -> bool:
        is_how = self.next.what == "name" and self.next.value in (IN, *HOWS)
        return is_how or self.next.what in COMPARISONS

    def _expect_in(self, how: str) -> None:
        if (self.next.what, self.next.value) != ("name", IN):
            raise self.error(f"{how} needs IN: {how} IN")
        self._take()

    def _sum(self) -> Part:
        return self._chain(("+", "-"), lambda: self._chain(("*", "/", "%"), self._unary))

    def _chain(self, operators: tuple[str, ...], part: Callable[[], Part]) -> Part:
        found = part()
        while self.next.what in operators:
            self._operators += 1
            if self._operators > OPERATORS_AT_MOST:
                raise self.error(f"more than {OPERATORS_AT_MOST} operators of arithmetic")
            operator = self._take()
            found = Binary(operator.place, operator.what, found, part())
        return found

    def _unary(self) -> Part:
        self._depth += 1
        if self._depth > DEEPEST:
            raise self.error(f"more than {DEEPEST} parentheses or signs within each other")
        try:
            if self.next.what not in ("!", "-"):
                return self._primary()
            operator = self._take()
            return Unary(operator.place, operator.what, self._unary())
        finally:
            self._depth -= 1

    def _primary(self) -> Part:
        if self.next.what in ("number", "text"):
            word = self._take()
            return Literal(word.place, word.value, word.unit)
        if self.next.what == "(":
            return self._parentheses()
        if self.next.what != "name" or self.next.value in (IN, *HOWS):
            raise self.error("a name, a number, a text or ( was expected")
        word = self._take()
        if self.next.what == "(":
            return self._call(word)
        return Name(word.place, str(word.value))

    def _call(self, name: Word) -> Part:
        self._take()
        if self.next.what != "text":
            raise self.error(f"{name.value} is of a text in quotes")
        argument = self._take()
        self._close(name.place)
        return Call(name.place, str(name.value), str(argument.value), argument.place + 1)

    def _parentheses(self) -> Part:
        opened = self._take()
        items = [self.either()]
        while self.next.what == ",":
            self._take()
            items.append(self.either())
        self._close(opened.place)
        return items[0] if len(items) == 1 else Many(opened.place, tuple(items))

    def _close(self, opened: int) -> None:
        if self.next.what != ")":
            end = self.next.what == END
            what = "the parenthesis is not closed" if end else f") was expected{self.unit_apart()}"
            raise self.error(what, opened if end else None)
        self._take()
