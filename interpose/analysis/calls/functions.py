"""From the tree of calls to rows: the exclusive and inclusive figures of each function, line or object.

Exclusive figures are those of the calls made there; over all rows they add up to `<Total>`. Inclusive figures include
everything below, and count a recursive function once.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass, field
from typing import Any

from interpose.analysis.calls.calltree import Frame, Function, Node, Tree
from interpose.analysis.calls.figures import Vector, put


@dataclass
class Row:
    """A function, a frame, or an object by its name, and its figures."""

    what: Any
    exclusive: Vector
    inclusive: Vector


def by_function(tree: Tree) -> list[Row]:
    """A row for each function, that of `<Total>` first."""
    return _rows(tree, lambda node: node.frame.function)


def by_line(tree: Tree) -> list[Row]:
    """A row for each line of each function, and for each function that has none."""
    return _rows(tree, lambda node: node.frame)


def by_object(tree: Tree) -> list[Row]:
    """A row for each object; functions without an object have their own."""
    return _rows(tree, lambda node: object_of(node.frame.function))


def object_of(function: Function) -> str:
    """The object of a function, or its name if it has none."""
    return function.object or function.name


def by_source_line(tree: Tree, file: str) -> dict[int, Row]:
    """The rows of the lines of a file, by number."""
    found = _rows(tree, lambda node: node.frame.line if node.frame.function.object == file else None)
    return {row.what: row for row in found if row.what}


def _rows(tree: Tree, group_of: Callable[[Node], Hashable]) -> list[Row]:
    found: dict[Hashable, Row] = {}
    totals = tree.totals()
    around: dict[Hashable, int] = {}
    waiting: list[tuple[Node, bool]] = [(tree.root, True)]
    while waiting:
        node, is_entered = waiting.pop()
        group = group_of(node)
        if not is_entered:
            around[group] -= 1
            continue
        row = found.get(group)
        if row is None:
            row = found[group] = Row(group, tree.figures.nothing(), tree.figures.nothing())
        if node.own:
            put(row.exclusive, node.own)
        if not around.get(group):
            put(row.inclusive, totals[node])
        if node.inner:
            around[group] = around.get(group, 0) + 1
            waiting.append((node, False))
            waiting.extend((each, True) for each in node.inner.values())
    of_all = found[group_of(tree.root)]
    if group_of(tree.root) is not None:
        of_all.exclusive = list(of_all.inclusive)  # as it is the sum of the column
    return list(found.values())


def functions_only(tree: Tree) -> Tree:
    """The same tree without the lines: calls from several lines of a function are one."""
    return rewritten(tree, lambda outer, new, frame: Frame(frame.function))


def rewritten(tree: Tree, frame_of: Callable[[Node, Node, Frame], Frame | None]) -> Tree:
    """The tree with other frames; the calls of a frame that is left out belong to the one above it.

    `frame_of` gets the node above a frame, in this tree and in the new one, and the frame.
    """
    made = Tree(tree.figures)
    new = {tree.root: made.root}
    for node in tree.nodes[1:]:
        assert node.outer is not None
        above = new[node.outer]
        frame = frame_of(node.outer, above, node.frame)
        new[node] = above if frame is None else made.inside(above, frame)
    for node, into in new.items():
        if node.own:
            made.add(into, node.own)
    made.is_full = tree.is_full
    return made


@dataclass
class Callers:
    """The callers and callees of the `fragment`, a chain of functions that call each other.

    The callers' attributed figures add up to `inclusive`; so do the callees' together with `exclusive`. For a recursive
    function, the caller is that of the outermost call, and the innermost one has the callees.
    """

    fragment: tuple[Function, ...]
    exclusive: Vector
    inclusive: Vector
    callers: dict[Function, Vector] = field(default_factory=dict)
    called: dict[Function, Vector] = field(default_factory=dict)


def callers_and_called(tree: Tree, fragment: Sequence[Function]) -> Callers:
    """The callers of `fragment`, the functions in the order of calling, and what the last one called."""
    made = Callers(tuple(fragment), tree.figures.nothing(), tree.figures.nothing())
    for node in tree.nodes:
        if node.own and (found := _found_in(_path(node), made.fragment)):
            _attribute(made, node.own, found[0])
            _attribute_below(made, node.own, found[1])
    return made


def callers_of_all(tree: Tree) -> dict[Function, Callers]:
    """The same for each function by itself, in one pass over the tree."""
    made: dict[Function, Callers] = {}
    for node in tree.nodes:
        if node.own:
            path = _path(node)
            last = {function: place for place, function in enumerate(path)}
            met: set[Function] = set()
            for place, function in enumerate(path):
                of = made.get(function)
                if of is None:
                    of = made[function] = Callers((function,), tree.figures.nothing(), tree.figures.nothing())
                if function not in met:
                    _attribute(of, node.own, path[place - 1] if place else None)
                if last[function] == place:
                    _attribute_below(of, node.own, path[place + 1] if place + 1 < len(path) else None)
                met.add(function)
    return made


def _attribute(of: Callers, own: Vector, caller: Function | None) -> None:
    put(of.inclusive, own)
    if caller is not None:
        put(of.callers.setdefault(caller, [0] * len(own)), own)


def _attribute_below(of: Callers, own: Vector, called: Function | None) -> None:
    put(of.exclusive if called is None else of.called.setdefault(called, [0] * len(own)), own)


def _path(node: Node) -> tuple[Function, ...]:
    """The functions from `<Total>` to `node`."""
    found: list[Function] = []
    at: Node | None = node
    while at:
        found.append(at.frame.function)
        at = at.outer
    return tuple(reversed(found))


def _found_in(
    path: tuple[Function, ...], fragment: tuple[Function, ...]
) -> tuple[Function | None, Function | None] | None:
    """What stands before the first place of `fragment` in `path` and behind the last; None if it has none."""
    length = len(fragment)
    places = [place for place in range(len(path) - length + 1) if path[place : place + length] == fragment]
    if not places:
        return None
    first, beyond = places[0], places[-1] + length
    return (path[first - 1] if first else None), (path[beyond] if beyond < len(path) else None)

