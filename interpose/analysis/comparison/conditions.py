"""Conditions for which a comparison fails: `p95(checkout) > +10%`.

    condition = measure ( name ) sign limit
    measure   = mean median p50 p90 p95 p99 max total wall cpu wait calls
    condition = elapsed sign limit, of the whole run
    name      = a row's intrinsic, site, function …; `all`; in quotes, where it has a parenthesis that is not closed
    sign      = > >= < <=
    limit     = +10% -5% +5ms -2s +100 (the change), 200ms 500 (the figure of the second side itself)
"""

from __future__ import annotations

import operator
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from difflib import get_close_matches

from interpose.analysis.comparison.comparison import is_one_sided, named
from interpose.analysis.comparison.differences import RUNS_AT_LEAST, Difference, differences
from interpose.analysis.comparison.figures import ALL, ELAPSED, MEASURES, Figures, Run
from interpose.errors import ExpressionError
from interpose.quantities import TIMES_NS

LONGEST = 1000
SIGNS: dict[str, Callable[[float, float], bool]] = {
    ">": operator.gt,
    ">=": operator.ge,
    "<": operator.lt,
    "<=": operator.le,
}
_LIMIT = re.compile(r"([+-]?)([0-9]{1,12}(?:\.[0-9]{1,9})?)(%|[a-z]*)")


@dataclass(frozen=True)
class Condition:
    """A condition as written, and its parts: `limit` in ns, in calls, or as a fraction for a `%`."""

    text: str
    measure: str
    name: str
    name_place: int
    sign: str
    limit: float
    is_change: bool
    is_part: bool

    def figure_of(self, found: Difference) -> float | None:
        """The figure that is compared with the limit; None if there is no ratio."""
        if not self.is_change:
            return found.b
        if not self.is_part:
            return found.delta
        return None if found.ratio is None else found.ratio - 1


@dataclass(frozen=True)
class Outcome:
    """Whether a condition `holds`; where the figures are beyond the limit, but may be so by chance, it does not."""

    condition: Condition
    difference: Difference
    holds: bool
    may_be_chance: bool


def parse_condition(text: str) -> Condition:
    """The condition that `text` is. Raises ExpressionError, which has the place."""
    reader = _Reader(text)
    measure = reader.measure()
    name_place, name = (0, ALL) if measure == ELAPSED else reader.name()
    sign = reader.sign()
    limit, is_change, is_part = reader.limit(MEASURES[measure].is_time)
    return Condition(text, measure, name, name_place, sign, limit, is_change, is_part)


class _Reader:
    """Reads a condition from its beginning to its end."""

    def __init__(self, text: str) -> None:
        self._text = text
        self._place = 0
        if len(text) > LONGEST:
            raise self._error(f"a condition is at most {LONGEST:,} characters long", LONGEST)

    def _error(self, what: str, place: int | None = None) -> ExpressionError:
        return ExpressionError(what, self._text, self._place if place is None else place)

    def _skip(self) -> None:
        while self._text[self._place : self._place + 1].isspace():
            self._place += 1

    def measure(self) -> str:
        self._skip()
        found = re.compile(r"\w*").match(self._text, self._place)
        name = found[0].lower() if found else ""
        if name not in MEASURES:
            near = get_close_matches(name, MEASURES, 1, 0.6)
            meant = f"did you mean {near[0]}?" if near else f"there are {', '.join(MEASURES)}"
            raise self._error(f"{name} is not a measure; {meant}" if name else f"a measure was expected; {meant}")
        self._place += len(name)
        self._skip()
        if name == ELAPSED:
            return name
        if not self._text.startswith("(", self._place):
            raise self._error(f"( was expected: {name}(checkout)")
        self._place += 1
        return name

    def name(self) -> tuple[int, str]:
        self._skip()
        place, quote = self._place, self._text[self._place : self._place + 1]
        end = self._end_of_text(quote) if quote in ("'", '"') else self._end_of_name()
        name = self._text[place:end].strip().strip(quote if quote in ("'", '"') else "")
        if not name:
            raise self._error("a name was expected", place)
        self._place = end
        self._skip()
        if not self._text.startswith(")", self._place):
            raise self._error(") was expected")
        self._place += 1
        return place, name

    def _end_of_text(self, quote: str) -> int:
        end = self._text.find(quote, self._place + 1)
        if end < 0:
            raise self._error(f"the text that begins with {quote} does not end")
        return end + 1

    def _end_of_name(self) -> int:
        """Where the parenthesis is closed; a name may have such in it."""
        depth = 0
        for place in range(self._place, len(self._text)):
            depth += {"(": 1, ")": -1}.get(self._text[place], 0)
            if depth < 0:
                return place
        raise self._error("the parenthesis is not closed", self._place - 1)

    def sign(self) -> str:
        self._skip()
        for sign in sorted(SIGNS, key=len, reverse=True):
            if self._text.startswith(sign, self._place):
                self._place += len(sign)
                return sign
        raise self._error(f"one of {' '.join(SIGNS)} was expected")

    def limit(self, is_time: bool) -> tuple[float, bool, bool]:
        self._skip()
        found = _LIMIT.match(self._text, self._place)
        if not found:
            raise self._error("a limit was expected: +10%, +5ms, 200ms")
        sign, digits, unit = found.groups()
        factor = self._factor(unit, is_time, found.start(3))
        if unit == "%" and not sign:
            raise self._error("a part is a change: +10% or -10%")
        self._place = found.end()
        self._skip()
        if self._place < len(self._text):
            raise self._error("the end was expected; each condition is a --fail-if of its own")
        return (-1 if sign == "-" else 1) * float(digits) * factor, bool(sign), unit == "%"

    def _factor(self, unit: str, is_time: bool, place: int) -> float:
        if unit == "%":
            return 0.01
        if is_time and unit not in TIMES_NS:
            raise self._error(f"a time has one of the units {' '.join(TIMES_NS)}; or a change in %", place)
        if not is_time and unit:
            raise self._error("a number of calls has no unit; or a change in %", place)
        return TIMES_NS[unit] if is_time else 1


def outcome(condition: Condition, a: Sequence[Run], b: Sequence[Run]) -> Outcome:
    """Whether the condition holds for two sides. Raises ExpressionError if nothing has the name.

    A change holds if the figures are beyond the limit and differ by more than chance. With one or two runs a side,
    chance is unknown and the figures decide.
    """
    found_a, found_b = named(a, condition.name), named(b, condition.name)
    if found_a is None and found_b is None:
        raise ExpressionError(_no_such_name(condition.name, [*a, *b]), condition.text, condition.name_place)
    of, grain = MEASURES[condition.measure].of, MEASURES[condition.measure].grain
    rows_a, rows_b = (found or [Figures() for _ in side] for found, side in ((found_a, a), (found_b, b)))
    figures_a, figures_b = ([of(each) for each in rows] for rows in (rows_a, rows_b))
    one_sided = [is_one_sided(rows_a, rows_b)]
    [difference] = differences([figures_a], [figures_b], grain=grain, one_sided=one_sided)
    figure = condition.figure_of(difference)
    if figure is None:  # from nothing to something is more than any part
        is_beyond = difference.b > 0 and condition.sign in (">", ">=")
    else:
        is_beyond = SIGNS[condition.sign](figure, condition.limit)
    is_sure = not condition.is_change or min(len(a), len(b)) < RUNS_AT_LEAST or _is_sure(difference)
    return Outcome(condition, difference, is_beyond and is_sure, is_beyond and not is_sure)


def _is_sure(difference: Difference) -> bool:
    if difference.low is None:
        return difference.chance is not None and difference.chance < 0.05
    return difference.is_sure


def _no_such_name(name: str, runs: Sequence[Run]) -> str:
    if name == ALL:
        return "there is nothing to judge: no row is of the program's work"
    known = list(dict.fromkeys(part for run in runs for each in run.rows for part in each.parts))
    near = get_close_matches(name, known, 1, 0.6)
    return f"no row is called {name}" + (f"; did you mean {near[0]}?" if near else "")
