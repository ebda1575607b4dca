"""Where time was spent, as stacks: what pprof, speedscope and callgrind show.

Each stack has figures of its own, which are self times, so the sums over all stacks are those of the whole report.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from interpose.analysis.calls.calltree import Frame, Node, Tree

# The figures that are written, by their names in `interpose.analysis.calls.figures`: what each is called, and its unit.
MEASURED = {
    "wall": ("wall", "nanoseconds"),
    "cpu": ("cpu", "nanoseconds"),
    "wait": ("wait", "nanoseconds"),
    "calls": ("calls", "count"),
    "bytes": ("bytes", "bytes"),
}


class Stack(NamedTuple):
    """Frames from the outermost inward, their figures for `MEASURED`, and the kind of the call, if it is one."""

    frames: tuple[Frame, ...]
    values: tuple[int, ...]
    kind: str


def stacks(tree: Tree) -> Iterator[Stack]:
    """Each stack that has figures of its own, without the frame of the total."""
    places = places_in(tree)
    for node in tree.nodes:
        if node.own:
            values = tuple(node.own[place] for place in places)
            yield Stack(path(node), values, tree.figures.kind_of(node.own))


def places_in(tree: Tree) -> list[int]:
    """Where in the figures of `tree` those of `MEASURED` stand."""
    metrics = tree.figures.metrics()
    return [metrics[name].place for name in MEASURED]


def path(node: Node) -> tuple[Frame, ...]:
    """The frames from the outermost inward, without that of the total."""
    found: list[Frame] = []
    at: Node | None = node
    while at and at.outer:
        found.append(at.frame)
        at = at.outer
    return tuple(reversed(found))
