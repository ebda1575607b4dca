"""Drawings without scripts: bars of wall and CPU time, and the pie."""

from __future__ import annotations

import math
from collections.abc import Sequence

from interpose.kinds import EVERY
from interpose.reports.page.markup import Markup, element

COLOURED = (*EVERY, "code")
OTHER = "other"
_RADIUS = 90.0
_SLICES = 8


def kind_class(kind: str | None) -> str:
    """The class that gives a kind its colour."""
    return f"k-{kind if kind in COLOURED else OTHER}"


def bar(wall_ns: int, cpu_ns: int, whole_ns: int) -> Markup:
    """A bar as long as `wall_ns` is of `whole_ns`: the dark part was on the CPU, the light part waited."""
    wall = 100 * min(wall_ns / whole_ns, 1) if whole_ns > 0 else 0
    cpu = wall * min(cpu_ns / wall_ns, 1) if wall_ns > 0 else 0
    parts = [
        element("rect", class_="wait", x="0", width=f"{wall:.2f}%", height="10"),
        element("rect", class_="cpu", x="0", width=f"{cpu:.2f}%", height="10"),
    ]
    return element("svg", parts, class_="wallbar", height="10", aria_hidden="true")


def pie(shares: Sequence[tuple[str, int]]) -> Markup:
    """A pie of named numbers, the largest ones by themselves and the rest as one; the table beside it says the same."""
    whole = sum(number for _, number in shares)
    named = [each for each in shares if each[1] > 0]
    drawn = named[:_SLICES]
    if rest := sum(number for _, number in named[_SLICES:]):
        drawn.append(("the rest", rest))
    parts, begin = [], 0.0
    for place, (name, number) in enumerate(drawn):
        end = begin + number / whole
        label = f"{name}: {100 * number / whole:.1f} %"
        parts.append(element("g", [_slice(begin, end, place), element("title", label)]))
        begin = end
    names = ", ".join(f"{name} {100 * number / whole:.0f} %" for name, number in drawn)
    return element("svg", parts, class_="pie", viewBox="-100 -100 200 200", role="img", aria_label=names or "nothing")


def slice_class(place: int) -> str:
    """The class of the pie's slice for the row `place` of its table."""
    return f"s-{min(place, _SLICES)}"


def _slice(begin: float, end: float, place: int) -> Markup:
    if end - begin > 0.999999:
        return element("circle", r=f"{_RADIUS:g}", class_=slice_class(place))
    first, last = _point(begin), _point(end)
    large = int(end - begin > 0.5)
    way = f"M0 0L{first}A{_RADIUS:g} {_RADIUS:g} 0 {large} 1 {last}Z"
    return element("path", d=way, class_=slice_class(place))


def _point(turn: float) -> str:
    angle = 2 * math.pi * turn - math.pi / 2
    return f"{_RADIUS * math.cos(angle):.3f} {_RADIUS * math.sin(angle):.3f}"
