"""Draws a part of a trace as viewers of traces show it: spans by time on tracks, an arrow where one made a request that
another process served. The spans are read from a file of OTLP/JSON lines."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from html import escape
from pathlib import Path
from typing import Any, NamedTuple

COLOURS = {"db": "#e8a13a", "file": "#7aa6da", "net": "#8abf6a", "sleep": "#b9a0d8", "process": "#d98080"}
OTHER = "#a0a8b0"
WIDTH, ROW, GAP = 960, 18, 14
LETTER = 6.2  # how wide one is, about
DEEPEST = 6
NS_PER_MS = 1e6


class Span(NamedTuple):
    """A call: when it began and ended, its process and thread, what it is, and the span around it."""

    begin: int
    end: int
    track: str
    name: str
    kind: str
    identity: str
    parent: str


class Box(NamedTuple):
    """A span, in how many others of its track it is."""

    span: Span
    depth: int


def drawn_trace(path: Path, begin: float, end: float) -> str:
    """The picture of the trace between two shares of its time."""
    spans = sorted(_spans(path), key=lambda each: (each.begin, -each.end))
    first, last = spans[0].begin, max(each.end for each in spans)
    since, until = first + (last - first) * begin, first + (last - first) * end
    shown = [box for box in _boxes(spans) if box.span.end > since and box.span.begin < until and box.depth < DEEPEST]
    return "\n".join(_Drawing(shown, since, until).lines())


def _spans(path: Path) -> Iterator[Span]:
    """The spans of calls: those of whole processes have no thread."""
    for line in path.read_text().splitlines():
        (resource,) = json.loads(line)["resourceSpans"]
        service = _attributes(resource["resource"])["service.name"]
        for each in resource["scopeSpans"][0]["spans"]:
            told = _attributes(each)
            if "thread.name" in told:
                times = int(each["startTimeUnixNano"]), int(each["endTimeUnixNano"])
                track, kind = f"{service}: {told['thread.name']}", told["interpose.kind"]
                yield Span(*times, track, each["name"], kind, each["spanId"], each.get("parentSpanId", ""))


def _attributes(told: dict[str, Any]) -> dict[str, str]:
    return {each["key"]: next(iter(each["value"].values())) for each in told.get("attributes", ())}


def _boxes(spans: Iterable[Span]) -> Iterator[Box]:
    around: dict[str, list[int]] = {}
    for each in spans:
        ends = [end for end in around.get(each.track, []) if end > each.begin]
        yield Box(each, len(ends))
        around[each.track] = [*ends, each.end]


class _Drawing:
    """Boxes on tracks, and arrows between them."""

    def __init__(self, boxes: list[Box], since: float, until: float) -> None:
        self._boxes, self._since, self._until = boxes, since, until
        self._tops: dict[str, int] = {}
        top = GAP
        for track in dict.fromkeys(box.span.track for box in boxes):
            self._tops[track] = top + GAP
            top += GAP * 2 + ROW * (1 + max(box.depth for box in boxes if box.span.track == track))
        self._height = top

    def lines(self) -> Iterator[str]:
        """The picture."""
        yield f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {self._height}" font-family="sans-serif">'
        yield '<defs><marker id="head" markerWidth="6" markerHeight="6" refX="5" refY="3" orient="auto">'
        yield '<path d="M0,0L6,3L0,6z"/></marker></defs>'
        yield f'<rect width="{WIDTH}" height="{self._height}" fill="#fff"/>'
        for track, top in self._tops.items():
            yield f'<text x="4" y="{top - 3}" font-size="11" fill="#444">{escape(track)}</text>'
        yield from self._drawn_boxes()
        yield from self._arrows()
        length_ms = (self._until - self._since) / NS_PER_MS
        yield f'<text x="{WIDTH - 80}" y="11" font-size="10" fill="#666">{length_ms:.1f} ms in all</text>'
        yield "</svg>"

    def _x(self, instant: float) -> float:
        return 4 + (WIDTH - 8) * min(max((instant - self._since) / (self._until - self._since), 0), 1)

    def _y(self, box: Box) -> int:
        return self._tops[box.span.track] + ROW * box.depth

    def _drawn_boxes(self) -> Iterator[str]:
        """The calls; of several within a pixel the first."""
        until: dict[tuple[str, int], float] = {}
        for box in self._boxes:
            place, right = (box.span.track, box.depth), self._x(box.span.end)
            if right - until.get(place, 0) >= 1:
                until[place] = max(right, self._x(box.span.begin) + 1)
                yield self._drawn(box)

    def _drawn(self, box: Box) -> str:
        x, y, name = self._x(box.span.begin), self._y(box), box.span.name
        width = max(self._x(box.span.end) - x, 0.5)
        colour = COLOURS.get(box.span.kind, OTHER)
        drawn = f'<rect x="{x:.1f}" y="{y}" width="{width:.1f}" height="{ROW - 2}" fill="{colour}" rx="1"/>'
        letters = int((width - 4) / LETTER)
        if letters < 4:
            return drawn
        name = name if len(name) <= letters else f"{name[: letters - 1]}…"
        return f'{drawn}<text x="{x + 2:.1f}" y="{y + 12}" font-size="11">{escape(name)}</text>'

    def _arrows(self) -> Iterator[str]:
        """From each call that made a request to the call of another track that served it."""
        known = {box.span.identity: box for box in self._boxes}
        for box in self._boxes:
            made = known.get(box.span.parent)
            if made and made.span.track != box.span.track:
                x, right = self._x(made.span.begin), self._x(box.span.begin)
                yield (
                    f'<path d="M{x:.1f},{self._y(made) + ROW - 2}L{right:.1f},{self._y(box)}" stroke="#000" '
                    'fill="none" marker-end="url(#head)"/>'
                )
