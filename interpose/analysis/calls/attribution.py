"""Who made the calls that took CPU time or waited: each service, by whom it was invoked and through which module.

A service is a called function. It was invoked by the nearest line of your own code above it or, if the stack has none,
by the frame that takes its place. The frames in between are those that it was called by way of.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import NamedTuple

from interpose.analysis.calls.calltree import TOTAL, Frame, Function, Node, Tree
from interpose.analysis.calls.figures import Vector, put


class Invoker(NamedTuple):
    """The own line that a service was invoked by, and the function that called it, where that is another one."""

    frame: Frame
    via: Function | None


@dataclass
class Service:
    """A called function: its figures, divided among its invokers."""

    function: Function
    figures: Vector
    invokers: dict[Invoker, Vector] = field(default_factory=dict)


def services_of(tree: Tree) -> list[Service]:
    """The services, and time outside calls (`<code>` and similar); all figures add up to the total."""
    found: dict[Function, Service] = {}
    for node in tree.nodes:
        if node.own and node.outer:
            function = node.frame.function
            service = found.get(function)
            if service is None:
                service = found[function] = Service(function, tree.figures.nothing())
            put(service.figures, node.own)
            put(service.invokers.setdefault(_invoker(node), tree.figures.nothing()), node.own)
    return list(found.values())


def _invoker(node: Node) -> Invoker:
    assert node.outer is not None
    caller = node.outer.frame
    for frame in _above(node):
        if frame.function.own:
            return Invoker(frame, None if frame == caller else caller.function)
    return Invoker(Frame(caller.function if caller.function != TOTAL else node.frame.function), None)


def _above(node: Node) -> Iterator[Frame]:
    at = node.outer
    while at:
        yield at.frame
        at = at.outer
