"""Draws ratios as bars: a picture of a benchmark's rows."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from html import escape

from measuring import Row

WIDTH, LABEL, LINE, BAR, MARGIN = 760, 260, 18, 11, 12
OURS, OTHERS, TEXT = "#d9480f", "#8b95a1", "#495057"
MOST = 4.0  # a longer bar ends there, and its figure says how long it is


def drawn(title: str, rows: Sequence[Row]) -> str:
    """The rows with a ratio as bars from 1.0 x on, those of interpose in a colour of their own: a picture as SVG."""
    shown = [(row.what, float(row.ratio.removesuffix(" x").replace(",", ""))) for row in rows if row.ratio]
    height = MARGIN * 2 + LINE * (len(shown) + 2)
    size, font = f'width="{WIDTH}" height="{height}"', 'font-family="sans-serif" font-size="12"'
    return "\n".join([
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {height}" {size} {font}>',
        f'<rect {size} fill="#fff"/>',
        _text(MARGIN, MARGIN + BAR, title, weight="bold"),
        *_bars(shown),
        "</svg>\n",
    ])


def _bars(shown: Iterable[tuple[str, float]]) -> Iterable[str]:
    room = WIDTH - LABEL - MARGIN - 70
    for index, (what, ratio) in enumerate(shown):
        y = MARGIN + LINE * (index + 2)
        width = room * max(min(ratio, MOST) - 1, 0) / (MOST - 1)
        colour = OURS if what.endswith("interpose") else OTHERS
        yield _text(LABEL - 8, y + BAR - 2, what, anchor="end")
        yield f'<rect x="{LABEL}" y="{y}" width="{max(width, 1):.1f}" height="{BAR}" fill="{colour}"/>'
        yield _text(LABEL + width + 5, y + BAR - 2, f"{ratio:,.2f} x")


def _text(x: float, y: float, text: str, anchor: str = "start", weight: str = "normal") -> str:
    place = f'x="{x:.1f}" y="{y:.1f}" text-anchor="{anchor}" font-weight="{weight}" fill="{TEXT}"'
    return f"<text {place}>{escape(text)}</text>"
