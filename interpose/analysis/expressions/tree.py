"""What an expression consists of: a tree, each part of it with its place in the text."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass


@dataclass(frozen=True)
class Part:
    """A part of an expression."""

    place: int


@dataclass(frozen=True)
class Literal(Part):
    """A text, or a number with the `unit` `time`, `size`, or none."""

    value: str | int | float
    unit: str = ""


@dataclass(frozen=True)
class Name(Part):
    """A token or a label, in capitals."""

    name: str


@dataclass(frozen=True)
class Call(Part):
    """A function of a text."""

    name: str
    argument: str
    argument_place: int


@dataclass(frozen=True)
class Many(Part):
    """Several parts in parentheses."""

    items: tuple[Part, ...]


@dataclass(frozen=True)
class Unary(Part):
    """`!` or `-` before a part."""

    operator: str
    operand: Part


@dataclass(frozen=True)
class Binary(Part):
    """Two parts with an operator of arithmetic or a comparison between them, which is at the place."""

    operator: str
    left: Part
    right: Part


@dataclass(frozen=True)
class Membership(Part):
    """A test for frames in a stack; `how` is `IN`, `SOME`, `ORDERED` or `LEAF`."""

    how: str
    left: Part
    right: Part


@dataclass(frozen=True)
class Junction(Part):
    """Conditions that must hold all (`&&`), or of which one must (`||`)."""

    operator: str
    parts: tuple[Part, ...]


def below(part: Part) -> tuple[Part, ...]:
    """The parts that `part` consists of."""
    match part:
        case Many(items=parts) | Junction(parts=parts):
            return parts
        case Unary(operand=operand):
            return (operand,)
        case Binary(left=left, right=right) | Membership(left=left, right=right):
            return (left, right)
    return ()


def names(part: Part) -> Iterator[str]:
    """The tokens and labels in it, and those among them again that are there several times."""
    if isinstance(part, Name):
        yield part.name
    for each in below(part):
        yield from names(each)
