"""From the tree of an expression to functions that decide about events, as fast as Python allows.

What is the same for all events of an intrinsic is decided once per intrinsic, and disappears: for a file's calls
nothing is left of `KIND == 'db' && WALL > 5ms`, and for a database's only the comparison of WALL. What depends only on
the number of a stack, a text or a thread is decided once per number.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Iterable, Set
from dataclasses import dataclass
from typing import Any, NamedTuple

from interpose.analysis.expressions.checking import items
from interpose.analysis.expressions.patterns import Pattern
from interpose.analysis.expressions.tokens import BY_NUMBER, FUNCTIONS, OF_CALL, OF_PROCESS, TOKENS, Surroundings
from interpose.analysis.expressions.tree import Binary, Call, Junction, Literal, Membership, Name, Part, Unary
from interpose.experiments.format.records import Event
from interpose.experiments.metadata.labels import is_in
from interpose.experiments.model.process import Process
from interpose.experiments.model.stacks import Site

Of = Callable[[Event, int], Any]
Chooses = Callable[[Site], bool]
DECIDED_AT_MOST = 200_000  # how many decided numbers are kept
ENDED = "ended"
_PLACES = {name: place for place, name in enumerate(Event._fields)}
_NOTHING: frozenset[str] = frozenset()
_NUMBERED = frozenset(BY_NUMBER)
_NUMBER_OF_ERROR = " errno "
_UNKNOWN = float("nan")  # no comparison with it holds


class Value(NamedTuple):
    """The value of a part: `constant`, or the result of `of` for an event and its depth.

    `by` are the fields of the event on which it depends, none for a constant; `place` is the position of the field, if
    it is one.
    """

    constant: Any = None
    of: Of | None = None
    by: frozenset[str] = _NOTHING
    place: int | None = None

    def function(self) -> Of:
        """What gives the value for each event."""
        constant = self.constant
        return self.of or (lambda event, depth: constant)


class _Decided(dict[int, Any]):
    """Decisions by number, made when first needed."""

    def __init__(self, decide: Callable[[int], Any]) -> None:
        super().__init__()
        self._decide = decide

    def __missing__(self, number: int) -> Any:
        if len(self) >= DECIDED_AT_MOST:
            self.clear()
        found = self[number] = self._decide(number)
        return found


@dataclass(frozen=True)
class Decider:
    """Makes the functions for the calls of one process that are of one intrinsic, and ended or are in progress."""

    process: Process
    intrinsic: int
    around: Surroundings
    state: str = ENDED

    def decision(self, part: Part) -> Of:
        """Whether the condition `part` holds for an event and its depth."""
        return _remembered(self._value(part)).function()

    def _value(self, part: Part) -> Value:
        match part:
            case Literal():
                return Value(part.value)
            case Name():
                return self._of_name(part.name)
            case Unary():
                return _applied(operator.not_ if part.operator == "!" else operator.neg, self._value(part.operand))
            case Binary(operator="=~", right=Literal(value=str() as pattern)):
                return _remembered(_applied(Pattern(pattern).is_in, self._value(part.left)))
            case (
                Binary(operator="==" | "!=" as how, left=Name(name="ERROR"), right=Literal(value=str() as error))
                | Binary(operator="==" | "!=" as how, left=Literal(value=str() as error), right=Name(name="ERROR"))
            ):
                return self._of_error({error}, how == "==")
            case Binary():
                found = _combined(_OPERATORS[part.operator], self._value(part.left), self._value(part.right))
                return _remembered(found) if part.operator not in _ARITHMETIC else found
            case Junction():
                return _joined(part.operator, map(self._value, part.parts))
            case Membership():
                return self._of_membership(part)
        raise AssertionError(part)

    def _of_name(self, name: str) -> Value:
        if name not in TOKENS:
            return self._of_label(name)
        token, process, around = TOKENS[name], self.process, self.around
        if token.needs_end and self.state != ENDED:
            return Value(_UNKNOWN)
        if token.by == OF_PROCESS:
            return Value(token.read(process, self.state))
        if token.by == "intrinsic":
            return Value(token.read(process, self.intrinsic))
        if token.by in BY_NUMBER:
            known, place = _Decided(lambda number: token.read(process, number)), _PLACES[token.by]
            return Value(of=lambda event, depth: known[event[place]], by=frozenset((token.by,)))
        if token.field:
            return self._of_field(token.field, token.moves)
        read = token.read
        return Value(of=lambda event, depth: read(process, event, depth, around), by=frozenset((OF_CALL,)))

    def _of_field(self, field: str, moves: str) -> Value:
        if moves and self.process.intrinsic(self.intrinsic).moves != moves:
            return Value(0)
        place = _PLACES[field]
        return Value(of=lambda event, depth: event[place], by=frozenset((OF_CALL,)), place=place)

    def _of_label(self, name: str) -> Value:
        found = self.around.labels[name]
        return Value(of=lambda event, depth: is_in(found, event.start_ns), by=frozenset((OF_CALL,)))

    def _of_membership(self, part: Membership) -> Value:
        wanted = items(part.left)
        match part.right:
            case Name(name="STACK"):
                return self._of_stack(part.how, [_chooser(each) for each in wanted])
            case Name(name="LABEL"):
                named = [str(each.value).upper() for each in wanted if isinstance(each, Literal)]
                return _joined("||" if part.how == "SOME" else "&&", map(self._of_label, named))
        members = frozenset(each.value for each in items(part.right) if isinstance(each, Literal))
        if isinstance(part.left, Name) and part.left.name == "ERROR":
            return self._of_error(members, True)
        return _remembered(_applied(members.__contains__, self._value(part.left)))

    def _of_error(self, wanted: Set[Any], expected: bool) -> Value:
        """Whether an error, or its name without the number behind it, is among `wanted`."""

        def is_as_expected(error: str) -> bool:
            return (error in wanted or error.partition(_NUMBER_OF_ERROR)[0] in wanted) is expected

        return _remembered(_applied(is_as_expected, self._of_name("ERROR")))

    def _of_stack(self, how: str, choosers: list[Chooses]) -> Value:
        holds, process, place = _HOWS[how], self.process, _PLACES["stack"]
        known = _Decided(lambda stack: holds(list(process.frames(stack)), choosers))
        return Value(of=lambda event, depth: known[event[place]], by=frozenset(("stack",)))


def _chooser(part: Part) -> Chooses:
    """A test whether `part` matches a frame; each site is examined once."""
    if isinstance(part, Literal):
        name = part.value
        return lambda site: site.function == name
    assert isinstance(part, Call)
    function = FUNCTIONS[part.name]
    argument = Pattern(part.argument) if function.is_pattern else part.argument
    return lambda site: function.chooses(site, argument)


def _all_in(frames: list[Site], choosers: list[Chooses]) -> bool:
    return all(any(chooses(site) for site in frames) for chooses in choosers)


def _some_in(frames: list[Site], choosers: list[Chooses]) -> bool:
    return any(chooses(site) for site in frames for chooses in choosers)


def _ordered_in(frames: list[Site], choosers: list[Chooses]) -> bool:
    """Whether there are frames for all, each further in than that of the one before."""
    left = iter(reversed(frames))
    return all(any(chooses(site) for site in left) for chooses in choosers)


def _leaf_in(frames: list[Site], choosers: list[Chooses]) -> bool:
    return bool(frames) and any(chooses(frames[0]) for chooses in choosers)


_HOWS = {"IN": _all_in, "SOME": _some_in, "ORDERED": _ordered_in, "LEAF": _leaf_in}


def _reckoned(reckon: Callable[[Any, Any], Any]) -> Callable[[Any, Any], Any]:
    """The same; what cannot be reckoned is not known."""

    def reckoned(one: Any, other: Any) -> Any:
        try:
            return reckon(one, other)
        except (ZeroDivisionError, OverflowError):
            return _UNKNOWN

    return reckoned


def _differs(one: Any, other: Any) -> bool:
    return bool(one != other and one == one and other == other)


_ARITHMETIC = ("+", "-", "*", "/", "%")
_OPERATORS: dict[str, Callable[[Any, Any], Any]] = {
    "==": operator.eq,
    "!=": _differs,
    "<": operator.lt,
    "<=": operator.le,
    ">": operator.gt,
    ">=": operator.ge,
    "+": _reckoned(operator.add),
    "-": _reckoned(operator.sub),
    "*": _reckoned(operator.mul),
    "/": _reckoned(operator.truediv),
    "%": _reckoned(operator.mod),
}


def _applied(apply: Callable[[Any], Any], value: Value) -> Value:
    if value.of is None:
        return Value(apply(value.constant))
    of = value.of
    return Value(of=lambda event, depth: apply(of(event, depth)), by=value.by)


def _combined(combine: Callable[[Any, Any], Any], left: Value, right: Value) -> Value:
    if left.of is None and right.of is None:
        return Value(combine(left.constant, right.constant))
    by = left.by | right.by
    if left.place is not None and right.of is None:
        place, constant = left.place, right.constant
        return Value(of=lambda event, depth: combine(event[place], constant), by=by)
    one, other = left.function(), right.function()
    return Value(of=lambda event, depth: combine(one(event, depth), other(event, depth)), by=by)


def _joined(sign: str, values: Iterable[Value]) -> Value:
    """`all` or `any` of the parts; constant parts disappear, or decide the whole."""
    settles = sign == "||"
    open_values = []
    for value in values:
        if value.of is not None:
            open_values.append(value)
        elif bool(value.constant) is settles:
            return Value(settles)
    if not open_values:
        return Value(not settles)
    by = frozenset().union(*(value.by for value in open_values))
    functions = [_remembered(value).function() for value in open_values]
    return Value(of=_some(functions) if settles else _every(functions), by=by)


def _every(functions: list[Of]) -> Of:
    if len(functions) == 1:
        return functions[0]
    if len(functions) == 2:
        one, other = functions
        return lambda event, depth: one(event, depth) and other(event, depth)
    return lambda event, depth: all(each(event, depth) for each in functions)


def _some(functions: list[Of]) -> Of:
    if len(functions) == 1:
        return functions[0]
    if len(functions) == 2:
        one, other = functions
        return lambda event, depth: one(event, depth) or other(event, depth)
    return lambda event, depth: any(each(event, depth) for each in functions)


def _remembered(value: Value) -> Value:
    """The same, decided once for each number where it hangs on one alone."""
    if value.of is None or len(value.by) != 1 or not value.by <= _NUMBERED:
        return value
    (field,) = value.by
    place, decide = _PLACES[field], value.of
    known: dict[int, Any] = {}

    def of(event: Event, depth: int) -> Any:
        number = event[place]
        found = known.get(number)
        if found is None:
            if len(known) >= DECIDED_AT_MOST:
                known.clear()
            found = known[number] = decide(event, depth)
        return found

    return Value(of=of, by=value.by)

