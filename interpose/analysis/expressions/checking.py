"""Whether an expression is valid: every name exists, and operands have matching types."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from difflib import get_close_matches
from typing import TypeGuard

from interpose.analysis.expressions.patterns import Pattern, PatternError
from interpose.analysis.expressions.tokens import (
    FRAMES,
    FUNCTIONS,
    LABELS,
    NUMBER,
    SEVERAL,
    SIZE,
    STACK,
    TEXT,
    TIME,
    TOKENS,
    TRUTH,
    Type,
)
from interpose.analysis.expressions.tree import (
    Binary,
    Call,
    Junction,
    Literal,
    Many,
    Membership,
    Name,
    Part,
    Unary,
    below,
)
from interpose.errors import ExpressionError

_POWERS_AT_MOST = 3
_EQUAL = ("==", "!=")
_NAMES_SHOWN = 12


@dataclass(frozen=True)
class Checker:
    """Knows the text of the expression, the labels, and the tokens that are not available, with the reasons."""

    text: str
    labels: Collection[str] = ()
    without: dict[str, str] | None = None

    def condition(self, part: Part) -> None:
        """Raises ExpressionError if `part` is no condition, or means nothing."""
        found = self._type(part)
        if found == FRAMES:
            raise self._error("frames are in something: … SOME IN STACK, … LEAF IN STACK", part)
        if found != TRUTH:
            raise self._error(f"{_shown(part, found)}, and no condition; compare it with something", part)

    def _error(self, what: str, part: Part | int) -> ExpressionError:
        return ExpressionError(what, self.text, part if isinstance(part, int) else part.place)

    def _type(self, part: Part) -> Type:
        match part:
            case Literal(value=str()):
                return TEXT
            case Literal(unit=unit):
                return {"time": TIME, "size": SIZE}.get(unit, NUMBER)
            case Name():
                return self._of_name(part)
            case Call():
                return self._of_function(part)
            case Unary():
                return self._of_unary(part)
            case Binary():
                return self._of_binary(part)
            case Membership():
                return self._of_membership(part)
            case Junction():
                for each in part.parts:
                    self.condition(each)
                return TRUTH
        return SEVERAL

    def _of_name(self, part: Name) -> Type:
        if part.name in TOKENS:
            if self.without and part.name in self.without:
                raise self._error(f"{part.name}: {self.without[part.name]}", part)
            return TOKENS[part.name].type
        if part.name in self.labels:
            return TRUTH
        if part.name in FUNCTIONS:
            raise self._error(f"{part.name} is of a text: {part.name}('…')", part)
        raise self._error(f"{part.name} is not a name or a label{_nearest(part.name, [*TOKENS, *self.labels])}", part)

    def _of_function(self, part: Call) -> Type:
        if part.name not in FUNCTIONS:
            raise self._error(f"{part.name} is not a function{_nearest(part.name, list(FUNCTIONS))}", part)
        if FUNCTIONS[part.name].is_pattern:
            self._check_pattern(part.argument, part.argument_place)
        return FRAMES

    def _check_pattern(self, pattern: str, place: int) -> None:
        try:
            Pattern(pattern)
        except PatternError as error:
            raise self._error(f"the pattern: {error}", place + error.place) from error

    def _of_unary(self, part: Unary) -> Type:
        if part.operator == "!":
            found = self._type(part.operand)
            if found != TRUTH:
                raise self._error(f"! is of a condition, not of {found}; ! ( … ) is of all that is in it", part)
            return TRUTH
        return self._number(part.operand)

    def _number(self, part: Part) -> Type:
        found = self._type(part)
        if found.what != "number":
            raise self._error(f"{_shown(part, found)}, and no number", part)
        return found

    def _of_binary(self, part: Binary) -> Type:
        if part.operator in "+-*/%":
            return self._of_arithmetic(part, self._number(part.left), self._number(part.right))
        left, right = self._type(part.left), self._type(part.right)
        for side, found in ((part.left, left), (part.right, right)):
            if found != TEXT and found.what != "number":
                raise self._error(f"{_shown(side, found)}, which is not compared", side)
        if part.operator == "=~":
            self._check_match(part, left)
        elif left == TEXT == right and part.operator not in _EQUAL:
            raise self._error("texts are compared with == != =~ and IN", part)
        else:
            self._check_alike(part, left, right)
        return TRUTH

    def _check_match(self, part: Binary, left: Type) -> None:
        if left != TEXT:
            raise self._error(f"=~ is of a text, not of {left}", part)
        if not isinstance(part.right, Literal) or not isinstance(part.right.value, str):
            raise self._error("behind =~ stands a regular expression in quotes", part.right)
        self._check_pattern(part.right.value, part.right.place + 1)

    def _check_alike(self, part: Binary, left: Type, right: Type) -> None:
        if left == right or (TEXT not in (left, right) and (_is_nought(part.left) or _is_nought(part.right))):
            return
        if NUMBER in (left, right) and {left, right} & {TIME, SIZE}:
            bare, needed = (part.left, right) if left == NUMBER else (part.right, left)
            unit = "ms" if needed == TIME else "B"
            remedy = f"write {bare.value}{unit}" if _is_plain(bare) else f"write its unit, as in 5{unit}"
            raise self._error(f"{needed} is compared with a number that has no unit; {remedy}", bare)
        raise self._error(f"{left} is compared with {right}", part)

    def _of_arithmetic(self, part: Binary, left: Type, right: Type) -> Type:
        if part.operator in "+-%":
            if left != right:
                raise self._error(f"{part.operator} is of what is alike, not of {left} and {right}", part)
            return left
        sign = 1 if part.operator == "*" else -1
        made = Type("number", left.time + sign * right.time, left.size + sign * right.size)
        if max(abs(made.time), abs(made.size)) > _POWERS_AT_MOST:
            raise self._error("times or sizes are multiplied too often", part)
        return made

    def _of_membership(self, part: Membership) -> Type:
        right = self._type(part.right)
        if right == STACK:
            self._check_each(part.left, (FRAMES, TEXT), "in STACK there are frames: FNAME('…'), FUNC('…'), 'function'")
            return TRUTH
        if part.how not in ("IN", "SOME"):
            raise self._error(f"{part.how} IN is of STACK", part.right)
        if right == LABELS:
            self._check_each(part.left, (TEXT,), "in LABEL there are labels: 'load'")
            for each in items(part.left):
                self._check_label(each)
            return TRUTH
        if part.how != "IN":
            raise self._error("SOME IN is of STACK or LABEL", part.right)
        self._check_list(part, self._type(part.left))
        return TRUTH

    def _check_each(self, left: Part, types: Sequence[Type], what: str) -> None:
        for each in items(left):
            is_constant = isinstance(each, (Call, Literal))
            if self._type(each) not in types or not is_constant:
                raise self._error(what, each)

    def _check_label(self, part: Part) -> None:
        name = part.value if isinstance(part, Literal) else ""
        if str(name).upper() not in self.labels:
            raise self._error(f"no such label: {name}{_nearest(str(name).upper(), list(self.labels))}", part)

    def _check_list(self, part: Membership, left: Type) -> None:
        if left != TEXT and left.what != "number":
            raise self._error(f"{_shown(part.left, left)}, which is in no list", part.left)
        for each in items(part.right):
            if not isinstance(each, Literal):
                raise self._error("IN is of STACK, LABEL, or of texts and numbers in parentheses", each)
            self._check_alike(Binary(each.place, "==", part.left, each), left, self._type(each))


def items(part: Part) -> tuple[Part, ...]:
    """Those in parentheses; of one alone that."""
    return below(part) if isinstance(part, Many) else (part,)


def _is_nought(part: Part) -> bool:
    return isinstance(part, Literal) and part.value == 0 and not part.unit


def _is_plain(part: Part) -> TypeGuard[Literal]:
    """Whether it is a number, and not a sum, nor so large that it is shown with an exponent."""
    return isinstance(part, Literal) and str(part.value).replace(".", "").isdecimal()


def _shown(part: Part, found: Type) -> str:
    return f"{part.name} is {found}" if isinstance(part, (Name, Call)) else f"this is {found}"


def _nearest(name: str, known: Sequence[str]) -> str:
    """What else could have been meant."""
    if near := get_close_matches(name, known, 1, 0.6):
        return f"; did you mean {near[0]}?"
    more = ", …" if len(known) > _NAMES_SHOWN else ""
    return f"; there are {', '.join(known[:_NAMES_SHOWN])}{more}" if known else "; there are none"
