"""The first screen's table of kinds: where the time went, and below `code` the functions that took most."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial
from operator import itemgetter

from interpose.analysis.calls.account import Share
from interpose.analysis.calls.profile import Profile, by_kind
from interpose.analysis.calls.rows import BEFORE, CODE, OVERHEAD, Row, is_uncertain, wait_ns
from interpose.analysis.findings.survey import Times
from interpose.analysis.profile.profiled import NO_PYTHON, NOT_SAMPLED, Function
from interpose.analysis.recording.left_out import left_out
from interpose.experiments.metadata.log import Log
from interpose.experiments.model.sampled import COLLECTOR
from interpose.kinds import CONTAINERS
from interpose.reports.formats.short_paths import Places
from interpose.reports.formats.table import Column, clean, columns_of, layout_of, lines, shortened, wrapped
from interpose.reports.formats.units import (
    Scale,
    are_few_samples,
    duration,
    margin_of_samples,
    margin_percent,
    percent,
    scale_for,
)
from interpose.reports.screen.screen import Screen

_FUNCTIONS = 3
# Where a screen is narrower than this, names of functions and comments are so short that no column is left out.
_WIDE = 100
_LONGEST_FUNCTION, _LEAST_COMMENT = 11, 12
_LEAST_SHARE = 0.01  # of the CPU time, or of the thread time: smaller items have no line
# The comments of the rows are shorter than in other formats, for 80 columns.
_COMMENTS = {OVERHEAD: "estimated", BEFORE: "overwritten"}
# Rows below `code` that stand for no function, with their comments.
_WITHOUT_CODE = {NO_PYTHON: "Python's end, C threads", NOT_SAMPLED: "no samples then"}


_KIND_COLUMNS = (
    Column("", itemgetter(0), right=False),
    Column("calls", itemgetter(1)),
    Column("self wall", itemgetter(2)),
    Column("self CPU", itemgetter(3), optional=True),
    Column("wait", itemgetter(4), optional=True),
    Column("share", itemgetter(5)),
    Column("", itemgetter(6), right=False, flexible=True, optional=True),
)


def part_that_matters(times: Times, whole: Share) -> str:
    """How much of the thread time sentences compare with, and what it is without; empty if that is all of it."""
    if not times.is_partly_idle:
        return ""
    unknown_ns = whole.paused_wall_ns + whole.before_wall_ns
    is_idle = times.whole_ns - unknown_ns - times.not_idle_ns > 0.01 * times.whole_ns
    words = ["not paused"] if whole.paused_wall_ns else []
    words += ["in the ring"] if whole.before_wall_ns else []
    words += ["not idle"] if is_idle or not words else []
    return f" ({duration(times.not_idle_ns)} {', '.join(words)})"


def what_shares_are_of(times: Times, width: int) -> list[str]:
    """A line below the table if there is idle time: its shares are of that as well, and sentences compare with less."""
    if not times.is_partly_idle:
        return []
    of_table = f"shares are of all thread time, {scale_for(times.whole_ns).show(times.whole_ns)}"
    of_sentences = f"sentences compare with {duration(times.matters_ns)}"
    if times.idle_in_turns_ns:
        of_sentences += f", including {duration(times.idle_in_turns_ns)} of idle time while tasks waited for a turn"
    return wrapped(f" {of_table}; {of_sentences}", width, "  ")


def kinds(screen: Screen) -> list[str]:
    """The table of the kinds; its column of wall times adds up to the thread time."""
    is_narrow = bool(screen.profiled.processes) and screen.width < _WIDE
    return kinds_of(screen.profile, screen.log, screen.width, partial(code_cells, screen), is_narrow)


def _nothing_below(row: Row, scale: Scale) -> Iterator[list[str]]:
    return iter(())


def kinds_of(
    profile: Profile,
    log: Log,
    width: int,
    below: Callable[[Row, Scale], Iterator[list[str]]] = _nothing_below,
    is_narrow: bool = False,
) -> list[str]:
    """The same of a profile by site; `below` has the lines below a row, for which there is little room if `is_narrow`.
    """
    whole = profile.total
    scale = scale_for(whole.wall_ns)
    rows = by_kind(profile)
    if log.interval:
        cells = [_sampled_cells(row, scale, whole.cpu_ns) for row in rows]
    else:
        cells = [line for row in rows for line in (_kind_cells(row, scale, log, whole), *below(row, scale))]
        cells = _with_room(cells, width - 1) if is_narrow else cells
    shown = layout_of(_KIND_COLUMNS, cells, width - 1).columns
    cells = [each for each in cells if any(column.show(each) for column in shown[1:])]  # else there is only a name
    return [f" {line}" for line in lines(_KIND_COLUMNS, cells, width - 1)]


def code_cells(screen: Screen, row: Row, scale: Scale) -> Iterator[list[str]]:
    """Rows below a row of code: the functions with the most CPU time in it; below `code` also its waits."""
    kind = row.kind or ""
    if not screen.profiled.processes or kind not in (CODE, *CONTAINERS) or row.is_of_calls != (kind != CODE):
        return
    every = screen.profiled.by_function(kind)
    functions = [each for each in every if each.is_known]
    places = Places([each.site.file for each in functions], screen.log.cwd, screen.shown)
    for each in functions[:_FUNCTIONS]:
        if each.code.cpu_ns >= max(_LEAST_SHARE * screen.profile.total.cpu_ns, 1):
            yield _function_cells(each, scale, places, row.sums.self_cpu_ns, screen.width >= _WIDE)
    for each in every:
        if each.site in _WITHOUT_CODE and each.code.cpu_ns >= max(_LEAST_SHARE * screen.profile.total.cpu_ns, 1):
            comment = _WITHOUT_CODE[each.site]
            yield [f"  {each.site.function}", "", "", scale.show(each.code.cpu_ns), "", "", comment]
    if kind == CODE:
        yield from _wait_cells(screen, scale)


def _function_cells(each: Function, scale: Scale, places: Places, whole_ns: int, is_wide: bool) -> list[str]:
    name, told = clean(each.site.function), places.line(each.site)
    if name == COLLECTOR:
        name, told = "gc", COLLECTOR
    if not is_wide and columns_of(name) > _LONGEST_FUNCTION:
        name = shortened(name if each.site.is_native else name.rpartition(".")[2], _LONGEST_FUNCTION)
    if is_wide:
        margin = margin_of_samples(each.code.margin_ns, each.code.cpu_ns)
        told += f"  {percent(each.code.cpu_ns, whole_ns)} of CPU {margin}".rstrip()
    mark = "~" if are_few_samples(each.code.margin_ns, each.code.cpu_ns) else ""
    return [f"  {name}", "", "", mark + scale.show(each.code.cpu_ns), "", "", clean(told)]


def _wait_cells(screen: Screen, scale: Scale) -> Iterator[list[str]]:
    """What the program waited for outside of its calls, without the interpreter lock, which is a kind of its own."""
    waits = screen.unseen
    whole_ns = screen.profile.total.wall_ns
    unknown = "maybe in calls that were not recorded" if left_out(screen.analysis.accounts) else "no known cause"
    told = {"wait for CPU": (waits.processor_ns, "processors busy"),
            "unexplained": (waits.unexplained_ns, unknown)}  # fmt: skip
    for name, (ns, comment) in told.items():
        if ns >= max(_LEAST_SHARE * whole_ns, 1):
            yield [f"  {name}", "", "", "", scale.show(ns), "", comment]


def _with_room(cells: list[list[str]], width: int) -> list[list[str]]:
    """The cells, with comments shortened until every column fits."""
    heads = [column.title for column in _KIND_COLUMNS[:-1]]
    taken = sum(max(map(columns_of, column)) for column in zip(heads, *(line[:-1] for line in cells), strict=True))
    room = max(width - taken - 2 * len(heads), _LEAST_COMMENT)
    return [[*others, shortened(comment, room)] for *others, comment in cells]


def _kind_cells(row: Row, scale: Scale, log: Log, whole: Share) -> list[str]:
    margins = ""
    if row.margin:
        calls = margin_percent(row.margin.calls, row.sums.calls)
        wall = margin_percent(row.margin.self_wall_ns, row.sums.self_wall_ns)
        margins = ", ".join([f"{what} {text}" for text, what in ((calls, "calls"), (wall, "wall")) if text])
        margins = margins.replace(" %", "%")  # for 80 columns

    def shown(ns: int) -> str:
        mark = "~" if is_uncertain(ns, row.sums.calls, log.inside_ns, log.resolution_ns) else ""
        return mark + scale.show(ns)

    return [
        clean(row.kind or "?"),
        f"{row.sums.calls:,}" if row.is_of_calls else "",
        shown(row.sums.self_wall_ns),
        shown(row.sums.self_cpu_ns),
        shown(wait_ns(row)),
        percent(row.sums.self_wall_ns, whole.wall_ns),
        row.comment or margins if row.is_of_calls else _comment_on(row, scale, whole),
    ]


def _comment_on(row: Row, scale: Scale, whole: Share) -> str:
    """The comment on a closing row; it tells what recording cost within calls if that is much."""
    if row.kind == OVERHEAD and whole.inside_wall_ns >= max(_LEAST_SHARE * whole.wall_ns, 1):
        return f"+~{duration(whole.inside_wall_ns)} in calls"
    return _COMMENTS.get(row.kind or "", row.comment)


def _sampled_cells(row: Row, scale: Scale, whole_cpu_ns: int) -> list[str]:
    """Sampled calls have only CPU times; `share` is the share of the CPU time."""
    share = percent(row.sums.self_cpu_ns, whole_cpu_ns)
    comment = "" if row.is_of_calls else row.comment
    return [clean(row.kind or "?"), "", "", scale.show(row.sums.self_cpu_ns), "", share, comment]
