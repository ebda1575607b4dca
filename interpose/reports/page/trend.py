"""A trend as a page that runs nothing: a drawing of runs and periods, what changed, and the table."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

from interpose.analysis.comparison.trend import Period, Trend
from interpose.reports.formats.html import table_element
from interpose.reports.page.markup import Markup, element
from interpose.reports.page.still import still_page
from interpose.reports.tables.comparison import show_measure
from interpose.reports.tables.trend import trend_table

_WIDTH, _HEIGHT, _EDGE = 1000, 260, 12
_STYLE = """
svg { width: 100%; height: auto; border-bottom: 1px solid; margin: 1em 0 }
circle { fill: light-dark(#0b5cad, #6cb2f5) }
path { stroke: light-dark(#c53030, #ef6b6b); stroke-width: 2; fill: none }
path.change { stroke-dasharray: 4 4; opacity: .7 }
"""


def trend_page(trend: Trend, told: Sequence[str], version: str) -> str:
    """The text of the page of a trend; `told` are its conclusions, a line each."""
    head = trend.title
    table = trend_table(trend)
    parts = [
        element("h1", f"{head} of {len(trend.runs):,} runs"),
        *(element("p", line) for line in told),
        _drawing(trend, head),
        table_element(table, [period.first for period in trend.periods[1:]]),
    ]
    foot = element("footer", [element("p", f"interpose {version}", class_="said")])
    return still_page(f"{head} · interpose trend", [element("main", parts), foot], _STYLE)


def _drawing(trend: Trend, head: str) -> Markup:
    """A point a run, from 0 on; a line a period, and one where it changes."""
    most = max(trend.figures, default=0) or 1
    step = (_WIDTH - 2 * _EDGE) / max(len(trend.runs), 1)

    def x(number: float) -> float:
        return _EDGE + step * number

    def y(figure: float) -> float:
        return _HEIGHT - _EDGE - (_HEIGHT - 2 * _EDGE) * figure / most

    show = show_measure(trend.measure)
    points = [
        element("circle", element("title", f"{run.name}: {show(each)}"), cx=_at(x(number + 0.5)), cy=_at(y(each)), r=4)
        for number, (run, each) in enumerate(zip(trend.runs, trend.figures, strict=True))
    ]
    lines = [each for period in trend.periods for each in _lines(period, x, y)]
    label = f"{head} of each run from 0 to {show(most)}, the oldest first"
    return element("svg", [*lines, *points], viewBox=f"0 0 {_WIDTH} {_HEIGHT}", role="img", aria_label=label)


def _lines(period: Period, x: Callable[[float], float], y: Callable[[float], float]) -> Iterator[Markup]:
    height = _at(y(period.figure))
    yield element("path", d=f"M{_at(x(period.first))} {height}H{_at(x(period.end))}")
    if period.change:
        yield element("path", d=f"M{_at(x(period.first))} {_EDGE}V{_HEIGHT - _EDGE}", class_="change")


def _at(number: float) -> str:
    return f"{number:.1f}"
