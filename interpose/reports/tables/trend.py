"""The table of a trend: a row for each run, its figure, and where a new period begins."""

from __future__ import annotations

import time
from typing import Any

from interpose.analysis.comparison.figures import MEASURES
from interpose.analysis.comparison.trend import Period, Trend
from interpose.reports.formats.table import Column, Table, Values, clean
from interpose.reports.formats.units import SECOND_NS
from interpose.reports.tables.comparison import change, interval, show_measure

NAMES = (
    *("run", "experiment", "time_ns", "measure", "unit", "name", "figure", "calls"),
    *("period", "typical", "is_change", "ratio", "ratio_low", "ratio_high", "chance"),
)
_BAR = 20


def trend_table(trend: Trend) -> Table:
    """The table of a trend, the oldest run first."""
    show = show_measure(trend.measure)
    most = max(trend.figures, default=0)
    return Table(
        names=NAMES,
        values=lambda number: _values(number, trend),
        columns=[
            Column("run", lambda number: f"{number + 1:,}"),
            Column("began", lambda number: when(trend.times_ns[number]), right=False),
            Column(clean(trend.title), lambda number: show(trend.figures[number])),
            Column("", lambda number: _bar(trend.figures[number], most), right=False, optional=True),
            Column("typical", lambda number: show(trend.period_of(number).figure) if _begins(number, trend) else ""),
            Column("change", lambda number: _of_step(number, trend, change)),
            Column("95 % interval", lambda number: _of_step(number, trend, interval)),
            Column("experiment", lambda number: clean(trend.runs[number].name), right=False, flexible=True, keep="end"),
        ],
        rows=range(len(trend.runs)),
    )


def change_line(trend: Trend, period: Period) -> str:
    """A change in a line."""
    assert period.change is not None and period.chance is not None
    show = show_measure(trend.measure)
    told = f"{show(period.change.a)}, then {show(period.change.b)}, {change(period.change)}".rstrip(", ")
    margin = f" ({interval(period.change)})" if interval(period.change) else ""
    since = f"since run {period.first + 1:,}, {clean(trend.runs[period.first].name)}"
    return f"changed {since}: {told}{margin}; by chance in {100 * period.chance:.2g} of 100 such trends"


def when(time_ns: int) -> str:
    """A time of the calendar, to the minute, where one is."""
    try:
        return time.strftime("%Y-%m-%d %H:%M", time.localtime(time_ns // SECOND_NS)) if time_ns else ""
    except (OverflowError, ValueError, OSError):
        return ""


def _begins(number: int, trend: Trend) -> bool:
    return trend.period_of(number).first == number


def _of_step(number: int, trend: Trend, show: Any) -> str:
    period = trend.period_of(number)
    return show(period.change) if period.first == number and period.change else ""


def _bar(figure: float, most: float) -> str:
    return "\u2587" * round(_BAR * figure / most) if most > 0 else ""


def _values(number: int, trend: Trend) -> Values:
    period = trend.period_of(number)
    step = period.change if period.first == number else None
    return {
        "run": number + 1,
        "experiment": trend.runs[number].name,
        "time_ns": trend.times_ns[number] or None,
        "measure": trend.measure,
        "unit": "ns" if MEASURES[trend.measure].is_time else "calls",
        "name": trend.name,
        "figure": trend.figures[number],
        "calls": trend.calls[number],
        "period": trend.periods.index(period) + 1,
        "typical": period.figure,
        "is_change": step is not None,
        "ratio": step and step.ratio,
        "ratio_low": step and step.low,
        "ratio_high": step and step.high,
        "chance": period.chance if step else None,
    }
