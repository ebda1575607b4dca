"""Words for the times, lines and files of findings."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from interpose.analysis.findings.errors import errors_of, name_of
from interpose.analysis.findings.failing import number_failed
from interpose.analysis.findings.failures import mostly_failed
from interpose.analysis.findings.finding import Calls, Finding
from interpose.analysis.findings.lock_waits import path_tried
from interpose.analysis.findings.statements import has_sql
from interpose.experiments.model.stacks import Site
from interpose.reports.formats.short_paths import Places, Shown
from interpose.reports.formats.table import clean, shortened
from interpose.reports.formats.units import count, duration
from interpose.reports.sentences.held_locks import holders, is_row_lock

MOST_LINES = 3
_TRANSACTIONS = 3
_MOST_ERRORS = 2
_LONGEST_DETAIL = 72


class Wording:
    """Words for the times, lines and files of findings, with the shortest paths that tell files apart.

    `matters_ns` is the time that sentences compare with (`Survey.matters_ns`), `shown` notes the lines they name.
    """

    def __init__(
        self, findings: Iterable[Finding], cwd: str, matters_ns: int, shown: Shown | None = None
    ) -> None:
        listed = list(findings)
        sites = {row.site for each in listed for row in each.rows if row.site}
        sites |= {site for each in listed for site in (each.site, *each.callers.lines) if site}
        sites |= {inner.site for each in listed for inner in each.inner if inner.site}
        sites |= {site for each in listed for site in holders(each)}
        self._places = Places([site.file for site in sites], cwd, shown)
        self.shown = self._places.shown
        self._cwd = cwd
        self._matters_ns = matters_ns

    def took(self, finding: Finding) -> str:
        """The time of its evidence in the time that matters: `1.90 s of 2.60 s`, and whether that is estimated."""
        return self.took_of(finding, finding.wall_ns)

    def took_of(self, finding: Finding, wall_ns: int) -> str:
        """The same for a part of its evidence."""
        return self.of_time(wall_ns) + (", estimated" if finding.is_estimated else "")

    def of_time(self, wall_ns: int) -> str:
        """A time in the time that matters."""
        return f"{duration(wall_ns)} of {duration(self._matters_ns)}"

    def where(self, row: Calls | None) -> str:
        """The line that calls were made from."""
        return self.line(row.site) if row else "?"

    def line(self, site: Site | None) -> str:
        """A line with its function: `orders.py:88 get`."""
        return self._places.named(site) if site else "an unknown line"

    def path(self, path: str) -> str:
        """A file that was read or written, relative to where the program ran."""
        under = self._cwd.rstrip("/") + "/"
        return path[len(under) :] if len(under) > 1 and path.startswith(under) else path

    def lines(self, finding: Finding) -> str:
        """The lines of the evidence, those that took most first."""
        sites = [finding.site] if finding.site else [row.site for row in finding.rows]
        told = list(dict.fromkeys(map(self.line, sites)))
        more = f" and {len(told) - MOST_LINES} more" if len(told) > MOST_LINES else ""
        return clean(", ".join(told[:MOST_LINES]) + more)


def per_unit(finding: Finding, calls: int) -> str:
    """How many of `calls` are in each transaction or file: `, 60 per GET /orders`; nothing for one each."""
    each = calls / finding.units if finding.units else 1
    if each <= 1:
        return ""
    number = f"{each:,.0f}" if each == int(each) else f"about {each:,.1f}" if each < 10 else f"about {each:,.0f}"
    return f", {number} per {_unit(finding)}"


def _unit(finding: Finding) -> str:
    named = finding.transactions
    if finding.unit != "transaction" or not named:
        return finding.unit
    if len(named) == 1:
        return named[0]
    more = f" and {len(named) - _TRANSACTIONS} more" if len(named) > _TRANSACTIONS else ""
    return f"transaction, in {', '.join(named[:_TRANSACTIONS])}{more}"


def quoted(text: str) -> str:
    return f'"{shortened(" ".join(text.split()), _LONGEST_DETAIL)}"'


def each_took(finding: Finding) -> str:
    """What follows the calls: the mean of several, and which did not take their time."""
    fetched = _fetched(finding)
    mean = f", {duration(finding.wall_ns // fetched)} each" if fetched else mean_of(finding, finding.calls)
    return mean + cut_off(finding)


def mean_of(finding: Finding, number: int) -> str:
    """The mean of `number` calls or children, apart from one that took far longer: `, 1.90 s in one, 50 us in each
    other`; nothing of a single one."""
    if number < 2:
        return ""
    if one_ns := finding.one_of(number):
        return f", {duration(one_ns)} in one, {duration((finding.wall_ns - one_ns) // (number - 1))} in each other"
    return f", {duration(finding.wall_ns // number)} each"


def _fetched(finding: Finding) -> int:
    """The number of rows, where these calls fetched several a call or, as one event may have many, a fetch; else 0."""
    is_of_rows = finding.first is not None and has_sql(finding.first) and finding.fetched > finding.calls
    return finding.fetched if is_of_rows and not finding.made else 0


def cut_off(finding: Finding) -> str:
    """How many of the calls had not ended, and how many sleeps an exception has ended early."""
    is_sleep = finding.rule == "sleep within a transaction"
    unended = min(sum(row.unended for row in finding.rows), finding.calls)
    failed = min(sum(row.failed for row in finding.rows), finding.calls) if is_sleep else 0
    numbers = [(unended, "in progress at the end"), (failed, "cut off by an exception")]
    several = finding.calls > 1
    return "".join(f", {f'{number:,} ' if several else ''}{what}" for number, what in numbers if number)


def without(finding: Finding) -> str:
    """The call that took far longer than the others and is not in their time."""
    return f", without one of {duration(finding.longest_ns)}" if finding.longest_ns else ""


def calls_made(words: Wording, finding: Finding, calls: int = 0) -> str:
    assert finding.first is not None
    fetched = 0 if calls else _fetched(finding)
    what = f"{count(fetched, 'row')} fetched by" if fetched else f"{count(calls or finding.calls, 'call')} of"
    return f"{what} {finding.first.intrinsic} from {words.lines(finding)}"


def took_about(words: Wording, finding: Finding) -> str:
    about = f": {quoted(finding.about)}" if finding.about else ""
    return f" ({words.took(finding)}){about}"


def in_row_lock(words: Wording, finding: Finding) -> str:
    """Which lines of transactions that were in progress meanwhile took locks, if statements waited for them."""
    if not is_row_lock(finding):
        return ""
    lines = ", ".join(map(words.line, finding.held_at[:MOST_LINES]))
    held = duration(min(finding.held_ns, finding.wall_ns))
    return f" Until the statement returned, a transaction was in progress that took locks at {lines} ({held})."


def if_failed(finding: Finding) -> str:
    """How many of the calls failed, if these took most of the time: `, 2 failed with ReadTimeout`."""
    if not mostly_failed(finding.rows):
        return ""
    return f", {number_failed(finding.rows):,} failed{with_errors(finding.rows)}"


def of_failing(words: Wording, finding: Finding) -> str:
    """Which calls in the function that sleeps failed, if most did."""
    if not finding.failing:
        return ""
    calls = count(sum(row.calls for row in finding.failing), "call")
    made = f"{number_failed(finding.failing):,} of {calls} of {finding.failing[0].intrinsic}"
    tried = next(filter(None, map(path_tried, finding.failing)), "")
    held = f": another process had the lock of {words.path(tried)}" if tried else ""
    return f" In the same function, {made} failed{with_errors(finding.failing)}{held}."


def with_errors(rows: Sequence[Calls]) -> str:
    """The errors that took most of the time: ` with ReadTimeout, ConnectTimeout and 2 more`; nothing without names."""
    named = list(dict.fromkeys(filter(None, map(name_of, errors_of(rows)))))
    more = f" and {len(named) - _MOST_ERRORS} more" if len(named) > _MOST_ERRORS else ""
    return f" with {clean(', '.join(named[:_MOST_ERRORS]))}{more}" if named else ""
