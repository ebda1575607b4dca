"""The table of what functions and calls took in the last seconds, in parts of one processor and of one thread."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from interpose.analysis.profile.recent import Recent, Seconds
from interpose.reports.formats.short_paths import Places
from interpose.reports.formats.table import Column, clean, lines
from interpose.reports.formats.units import count, duration


def places_of(found: Seconds, cwd: str) -> Places:
    """How the lines of code of the table are shown."""
    return Places([each.site.file for each in found.rows if each.site], cwd)


def recent_lines(
    found: Seconds, places: Places, width: int, limit: int, remarks: Iterable[str] = ()
) -> Iterator[str]:
    """The table as lines, at most `limit` rows of code and of calls; the first line is a header, and `remarks` follow.
    """
    cpu = sum(each.cpu_ns for each in found.rows)
    busy = f"CPU {100 * cpu / max(found.length_ns, 1):.0f} % of a processor"
    yield f"the last {duration(found.length_ns)}: {count(found.threads, 'active thread')}, {busy}"
    if found.before_ring_ns:
        yield f" before the ring  {duration(found.before_ring_ns)} not shown: its calls were overwritten by newer ones"
    yield from remarks
    for title, rows in (
        ("functions", [each for each in found.rows if each.is_function]),
        ("calls", [each for each in found.rows if not each.is_function]),
    ):
        yield ""
        if rows:
            yield from lines(_columns(title, places, found.length_ns), rows[:limit], width)
        elif title == "functions" and not found.is_profiled:
            yield "no functions: there is no profile (interpose attach --record calls,profile PID records one)"
        else:
            yield f"no {title}"


def _columns(title: str, places: Places, length_ns: int) -> list[Column]:
    def part(ns: int) -> str:
        return f"{100 * ns / max(length_ns, 1):.1f} %"

    def where(each: Recent) -> str:
        return clean(places.line(each.site)) if each.site and each.site.file else ""

    name = Column(title, lambda each: clean(each.name), right=False, flexible=True, keep="end")
    line = Column("line", where, right=False, flexible=True, keep="end")
    if title == "functions":
        return [Column("CPU", lambda each: part(each.cpu_ns)), Column("samples", lambda each: f"{each.samples:,}"),
                name, line]  # fmt: skip
    return [
        Column("wall", lambda each: part(each.wall_ns)),
        Column("CPU", lambda each: part(each.cpu_ns)),
        Column("calls", lambda each: f"{each.calls:,}" if each.is_of_calls else ""),
        Column("kind", lambda each: clean(each.kind), right=False, optional=True),
        name,
        line,
    ]
