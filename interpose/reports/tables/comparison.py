"""The table of a comparison: a row for each name, its figure on either side, the change and the verdict."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import chain

from interpose.analysis.comparison.comparison import Compared, Comparison
from interpose.analysis.comparison.conditions import Outcome
from interpose.analysis.comparison.differences import CHANGED, Difference
from interpose.analysis.comparison.figures import ELAPSED, MEASURES, TRANSACTION
from interpose.reports.formats.table import Column, Table, Values, clean
from interpose.reports.formats.units import count, duration
from interpose.reports.tables.rows import LABELS

MODES = ("on", "delta", "ratio")
NAMES = ("measure", "unit", "a", "b", "delta", "ratio", "ratio_low", "ratio_high", "chance", "verdict")
COUNTS = ("calls_a", "calls_b", "runs_a", "runs_b")

Show = Callable[[float], str]


def comparison_table(found: Comparison, by: str, mode: str, limit: int | None = None) -> Table:
    """The table of the differences `found`, at most `limit` rows and then `all`; `mode` is how people see the second
    side."""
    labels = (by,) if by == TRANSACTION else LABELS.get(by, ())
    judged = [
        Column("verdict", lambda row: _verdict(row, found), right=False),
        Column("95 % interval", lambda row: interval(row.difference)),
    ]
    if found.runs_a == found.runs_b == 1:  # which has neither
        judged = []
    return Table(
        names=("kind", "intrinsic", *labels, *NAMES, *COUNTS),
        values=lambda row: _values(row, found, labels),
        columns=[
            *judged[:1],
            *_figure_columns(found, mode),
            Column("change", lambda row: change(row.difference)),
            *judged[1:],
            Column("calls", lambda row: _calls(row), optional=True),
            *_name_columns(found, labels),
        ],
        rows=chain(found.rows[:limit], last_rows(found)),
    )


def last_rows(found: Comparison) -> list[Compared]:
    """What follows the rows: all of them together and, of every measure, how long the runs lasted."""
    return [found.whole, found.elapsed] if found.elapsed else [found.whole]


def change(found: Difference) -> str:
    """How the second side differs, in per cent: `+5.2 %`."""
    if found.ratio is None:
        return "new" if found.b > 0 else ""
    return "gone" if found.b == 0 else _percent(found.ratio)


def interval(found: Difference) -> str:
    """The interval of the change: `+3.9 to +6.6 %`."""
    if found.low is None or found.high is None or found.ratio is None:
        return ""
    return f"{_percent(found.low).removesuffix(' %')} to {_percent(found.high)}"


def verdict_on(found: Comparison) -> str:
    """The verdict on all rows: `changed in 2`."""
    return _verdict(found.whole, found)


def conditions_table(outcomes: Sequence[Outcome]) -> Table:
    """The table of conditions: a row for each, whether it holds, and the figures."""
    return Table(
        names=("condition", "holds", "a", "b", "ratio", "ratio_low", "ratio_high"),
        values=_values_of_condition,
        columns=[
            Column("condition", lambda each: clean(each.condition.text), right=False, flexible=True),
            Column("outcome", _outcome, right=False),
            Column("A", lambda each: show_measure(each.condition.measure)(each.difference.a)),
            Column("B", lambda each: show_measure(each.condition.measure)(each.difference.b)),
            Column("change", lambda each: change(each.difference)),
            Column("95 % interval", lambda each: interval(each.difference)),
        ],
        rows=outcomes,
    )


def outcome_line(outcome: Outcome) -> str:
    """What became of a condition, in a line."""
    found, show = outcome.difference, show_measure(outcome.condition.measure)
    told = f"{show(found.a)}, then {show(found.b)}" + (f", {change(found)}" if change(found) else "")
    if interval(found):
        told += f" ({interval(found)})"
    return f"{outcome.condition.text}: {_outcome(outcome)}: {told}"


def _outcome(outcome: Outcome) -> str:
    return "holds" if outcome.holds else "may be chance" if outcome.may_be_chance else "does not hold"


def _values_of_condition(outcome: Outcome) -> Values:
    found = outcome.difference
    return {
        "condition": outcome.condition.text,
        "holds": outcome.holds,
        "a": found.a,
        "b": found.b,
        "ratio": found.ratio,
        "ratio_low": found.low,
        "ratio_high": found.high,
    }


def _verdict(row: Compared, found: Comparison) -> str:
    """The verdict; on all, in how many rows there is a change."""
    if row is not found.whole or row.verdict != CHANGED or found.measure == ELAPSED:
        return row.verdict
    return f"{CHANGED} in {sum(each.matters and each.verdict == CHANGED for each in found.rows)}"


def _percent(ratio: float) -> str:
    """A ratio as a change."""
    part = 100 * (ratio - 1)
    return f"{part:+,.1f} %" if abs(part) < 1000 else f"{part:+,.0f} %"


def show_measure(measure: str) -> Show:
    """How people see a figure of a measure."""
    return (lambda figure: duration(round(figure))) if MEASURES[measure].is_time else (lambda figure: f"{figure:,.0f}")


def _figure_columns(found: Comparison, mode: str) -> list[Column]:
    def show(row: Compared) -> Show:
        return show_measure(_measure_of(row, found))

    first = Column(f"A, {count(found.runs_a, 'run')}", lambda row: show(row)(row.difference.a))
    if mode == "delta":
        return [first, Column("B - A", lambda row: _signed(row.difference.delta, show(row)))]
    if mode == "ratio":
        return [first, Column("B / A", lambda row: _times(row.difference.ratio))]
    return [first, Column(f"B, {count(found.runs_b, 'run')}", lambda row: show(row)(row.difference.b))]


def _measure_of(row: Compared, found: Comparison) -> str:
    return ELAPSED if row is found.elapsed else found.measure


def _signed(delta: float, show: Show) -> str:
    return f"{'-' if delta < 0 else '+'}{show(abs(delta))}"


def _times(ratio: float | None) -> str:
    return "" if ratio is None else f"x {ratio:.3f}"


def _calls(row: Compared) -> str:
    one, other = f"{row.calls_a:,.0f}", f"{row.calls_b:,.0f}"
    return one if one == other else f"{one} > {other}"


def _name_columns(found: Comparison, labels: tuple[str, ...]) -> list[Column]:
    columns = [Column("kind", lambda row: clean(row.name.kind or ""), right=False)]
    if labels == (TRANSACTION,):
        return [Column(TRANSACTION, lambda row: clean(row.name.parts[0]), right=False, flexible=True)]
    if any(row.name.intrinsic for row in found.rows):
        columns.append(
            Column("intrinsic", lambda row: clean(row.name.intrinsic or ""), right=False, flexible=True, keep="end")
        )
    return [*columns, *(_label_column(label) for label in labels)]


def _label_column(label: str) -> Column:
    return Column(
        label, lambda row: clean(dict(row.name.labels).get(label, "")), right=False, flexible=True, keep="end"
    )


def _values(row: Compared, found: Comparison, labels: tuple[str, ...]) -> Values:
    named = {"kind": row.name.kind, "intrinsic": row.name.intrinsic}
    named |= {label: dict(row.name.labels).get(label) for label in labels}
    difference = row.difference
    return named | {
        "measure": _measure_of(row, found),
        "unit": "ns" if MEASURES[_measure_of(row, found)].is_time else "calls",
        "a": difference.a,
        "b": difference.b,
        "delta": difference.delta,
        "ratio": difference.ratio,
        "ratio_low": difference.low,
        "ratio_high": difference.high,
        "chance": difference.chance,
        "verdict": row.verdict,
        "calls_a": row.calls_a,
        "calls_b": row.calls_b,
        "runs_a": found.runs_a,
        "runs_b": found.runs_b,
    }
