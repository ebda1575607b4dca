"""The ways out of conditions, by the bytecode that a source is compiled to: for code that never ran, and so was not
recorded. They are found as the recorder finds them."""

from __future__ import annotations

import dis
from collections.abc import Callable, Iterator
from types import CodeType
from typing import NamedTuple

from interpose.analysis.coverage.statements import NONE, Statements
from interpose.analysis.coverage.table import Table, code_objects

EXIT = -2  # where a way leads that ends the code
_CONDITIONAL = {
    number
    for name, number in dis.opmap.items()
    if name == "FOR_ITER" or (name.startswith(("POP_JUMP_", "JUMP_IF_")) and number in dis.hasjrel)
}
_JUMPS = {dis.opmap[name] for name in ("JUMP_FORWARD", "JUMP_BACKWARD", "JUMP_BACKWARD_NO_INTERRUPT", "SEND")}
_NEXT_AWAITED, _SEND, _LAST_AWAITED = (dis.opmap[name] for name in ("GET_ANEXT", "SEND", "END_ASYNC_FOR"))
_BACK = {number for name, number in dis.opmap.items() if "BACKWARD" in name}
_RETURNS = {number for name, number in dis.opmap.items() if name in ("RETURN_VALUE", "RETURN_CONST")}
_RAISES = {dis.opmap[name] for name in ("RERAISE", "RAISE_VARARGS")}
_CACHE, _EXTENDED = dis.opmap.get("CACHE", 0), dis.EXTENDED_ARG
_EXPRESSIONS = ("<genexpr>", "<listcomp>", "<setcomp>", "<dictcomp>", "<lambda>")


def is_expression(function: str) -> bool:
    """Whether a code object is part of a statement: its end is no end of what the statement is in."""
    return function.endswith(_EXPRESSIONS)


class _Unit(NamedTuple):
    """An instruction: where it stands, its statement, and the numbers of the next one and of that which it jumps to."""

    opcode: int
    statement: int
    line: int
    column: int
    next: int
    target: int | None


def ways(table: Table) -> set[tuple[int, int]]:
    """From which statement to which other one, or `EXIT`, each condition of a source may lead."""
    found: set[tuple[int, int]] = set()
    for code in code_objects(table.code):
        units = _units(code, table.statements)
        for unit, places in [*_jumps(units), *_awaited(code, units)]:
            if unit.statement != NONE:
                ends = [_end(units, each, unit) for each in places]
                found.update((unit.statement, end) for end in ends if end != EXIT or not is_expression(code.co_name))
    return {(begin, end) for begin, end in found if end not in (begin, NONE)}


def _jumps(units: list[_Unit | None]) -> Iterator[tuple[_Unit, tuple[int, int]]]:
    """Each conditional jump, with the two places that it leads to."""
    for unit in units:
        if unit and unit.opcode in _CONDITIONAL and unit.target is not None:
            yield unit, (unit.next, unit.target)


def _awaited(code: CodeType, units: list[_Unit | None]) -> Iterator[tuple[_Unit, tuple[int, int]]]:
    """Each `async for`, where it asks for what is next, with the places of its body and behind what handles its end."""
    handlers = {
        place // 2: each.target // 2
        for each in dis.Bytecode(code).exception_entries  # type: ignore[attr-defined]
        for place in range(each.start, each.end, 2)
    }
    for place, unit in enumerate(units):
        if unit and unit.opcode == _NEXT_AWAITED and place in handlers:
            last = _first(units, handlers[place], lambda each: each.opcode != _EXTENDED)
            body = _first(units, place, lambda each: each.opcode == _SEND).target
            if last.opcode == _LAST_AWAITED and body is not None:
                yield unit, (body, last.next)


def _first(units: list[_Unit | None], place: int, is_it: Callable[[_Unit], bool]) -> _Unit:
    return next(each for each in units[place:] if each and is_it(each))


def _end(units: list[_Unit | None], place: int, jump: _Unit) -> int:
    """The first statement that a branch reaches; the jump's own if that is another condition of it, `NONE` if it
    raises."""
    for _ in range(len(units)):
        unit = units[place] if place < len(units) else None
        if unit is None:
            return NONE
        stands_there = unit.line <= 0 or (unit.line == jump.line and unit.column <= jump.column)
        if unit.opcode in _CONDITIONAL or (unit.statement not in (NONE, jump.statement) and not stands_there):
            return unit.statement
        if unit.opcode in _RETURNS:
            return EXIT
        if unit.opcode in _RAISES:
            return NONE
        place = unit.next if unit.target is None else unit.target
    return NONE


def _units(code: CodeType, found: Statements) -> list[_Unit | None]:
    """The instructions by number; None for the inline caches of instructions."""
    raw, positions = code.co_code, list(code.co_positions())
    opcodes = raw[::2]
    units: list[_Unit | None] = [None] * len(opcodes)
    for number, argument in _arguments(raw):
        after = number + 1
        while after < len(opcodes) and opcodes[after] == _CACHE:
            after += 1
        line, _, column, _ = positions[number]
        opcode = opcodes[number]
        target = None
        if opcode in _CONDITIONAL or opcode in _JUMPS:
            target = after - argument if opcode in _BACK else after + argument
        statement = _statement(found, line, column)
        units[number] = _Unit(opcode, statement, line or 0, -1 if column is None else column, after, target)
    return units


def _statement(found: Statements, line: int | None, column: int | None) -> int:
    if not line:
        return NONE
    if column is None:
        return next(iter(found.on(line)), NONE)
    return found.at(line, column)


def _arguments(raw: bytes) -> Iterator[tuple[int, int]]:
    """The number of each instruction, and its argument with what extends it."""
    extended = 0
    for number in range(len(raw) // 2):
        opcode, argument = raw[2 * number], raw[2 * number + 1] | extended
        if opcode != _CACHE:
            yield number, argument
        extended = argument << 8 if opcode == _EXTENDED else 0
