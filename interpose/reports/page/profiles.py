"""The page's tables of calls: by kind, intrinsic, line, function and detail, with wall against CPU time."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial

from interpose.analysis.calls.profile import Profile, by_kind
from interpose.analysis.calls.rows import Row, wait_ns
from interpose.analysis.consolidation.sums import total
from interpose.reports.formats.counts import count_shown, counter_title
from interpose.reports.formats.short_paths import Places
from interpose.reports.formats.units import percent, scale_for
from interpose.reports.page.anchors import Anchors
from interpose.reports.page.drawings import bar, kind_class
from interpose.reports.page.grid import Field, grid, note, section
from interpose.reports.page.markup import Markup, element
from interpose.reports.page.material import Material

TITLES = {
    "intrinsic": "By intrinsic",
    "site": "By line",
    "function": "By function",
    "detail": "By statement, path or address",
    "thread": "By thread",
}
_MORE = "interpose report --by {by} has all of them."
WAIT = "self wall less self CPU: it waited"
_EXPLAINED = (
    "Self wall is the time in the calls themselves, without the recorded calls made inside them. Self CPU is the part"
    " of it on a processor, the strong colour in the bar; the rest is wait, the pale one. Self wall adds up to the"
    " thread time, and shares are of all of it, idle time too."
)


def kinds(material: Material) -> Markup:
    """The section of the kinds, with a column of wall times that adds up to the thread time."""
    made = material.profiles["site"]
    rows = by_kind(made)
    fields = [
        Field("kind", _kind_text, drawn=_kind),
        *_numbers(made, rows, with_inclusive=False),
        Field("remark", lambda row: row.comment),
    ]
    calls = [row for row in rows if row.is_of_calls]
    table = grid("kinds", "Wall and CPU time by kind", fields, calls, [r for r in rows if not r.is_of_calls])
    return section("time", "Time by kind", table, note(_EXPLAINED))


def calls(material: Material, anchors: Anchors) -> Markup:
    """The section of the tables by everything else."""
    parts = [_table(material, by, anchors) for by in TITLES]
    panels = [
        element("div", [element("h3", TITLES[by]), table], id=f"by-{by}", class_="panel", data_title=TITLES[by])
        for by, table in zip(TITLES, parts, strict=True)
    ]
    return section("calls", "Calls", element("div", panels, class_="panels"), note(_EXPLAINED))


def _table(material: Material, by: str, anchors: Anchors) -> Markup:
    made = material.code.get(by, material.profiles[by])
    rows = [row for row in made.rows if row.is_of_calls or row.is_of_code]
    closing = [row for row in made.rows if not row.is_of_calls and not row.is_of_code]
    fields = [*_names(material, made, by, anchors), *_numbers(made, made.rows)]
    return grid(f"table-{by}", TITLES[by], fields, rows, closing, _MORE.format(by=by), _rest)


def _names(material: Material, made: Profile, by: str, anchors: Anchors) -> list[Field]:
    kind = Field("kind", _kind_text, drawn=_kind)
    intrinsic = Field("intrinsic", lambda row: row.intrinsic or ("" if row.is_of_calls else row.comment))
    if by == "intrinsic":
        return [kind, intrinsic]
    if by == "thread":
        return [
            Field("thread", lambda row: row.labels.get("thread", row.kind or "")),
            Field("process", lambda row: row.labels.get("process", "")),
            Field("kind", lambda row: row.kind or "recorded calls"),
        ]
    if by == "detail":
        return [kind, intrinsic, Field("about", lambda row: row.labels.get("detail", ""))]
    places = Places([row.site.file for row in made.rows if row.site], material.experiment.founder.log.cwd)
    function = Field("function", lambda row: row.labels.get("function", ""))
    if by == "function":
        return [kind, intrinsic, function, Field("file", lambda row: places.file(row.labels.get("file", "")))]
    line = Field("line", lambda row: places.line(row.site) if row.site else "", link=lambda row: anchors.of(row.site))
    return [kind, intrinsic, line, function]


def _numbers(made: Profile, rows: Sequence[Row], with_inclusive: bool = True) -> list[Field]:
    whole_ns = made.total.wall_ns
    scale = scale_for(whole_ns)
    longest_ns = max((row.sums.self_wall_ns for row in rows), default=0)

    def time(title: str, ns_of: Callable[[Row], int], hint: str = "") -> Field:
        return Field(title, lambda row: scale.show(ns_of(row)), ns_of, hint)

    fields = [
        Field("calls", lambda row: f"{row.sums.calls:,}" if row.is_of_calls else "", lambda row: row.sums.calls),
        time("self wall", lambda row: row.sums.self_wall_ns, "wall time, without the recorded calls made inside"),
        time("self CPU", lambda row: row.sums.self_cpu_ns, "of it, time on a processor"),
        time("wait", wait_ns, WAIT),
    ]
    if any(row.sums.errors for row in rows):
        fields.insert(1, Field("errors", lambda row: f"{row.sums.errors or ''}", lambda row: row.sums.errors))
    if with_inclusive:
        hint = "wall time, whatever was called inside"
        shown = Field("inclusive", lambda row: scale.show(row.sums.wall_ns) if row.is_of_calls else "", _wall_ns, hint)
        fields.append(shown)
    fields += [_counter(name) for name in made.counters]
    share = Field("share", lambda row: percent(row.sums.self_wall_ns, whole_ns), lambda row: row.sums.self_wall_ns)
    wide = Field("CPU and wait", drawn=lambda row: bar(row.sums.self_wall_ns, row.sums.self_cpu_ns, longest_ns))
    return [*fields, share, wide]


def _counter(name: str) -> Field:
    def number(row: Row) -> int | None:
        return row.counts[name].count if name in row.counts else None

    return Field(counter_title(name), partial(count_shown, counter=name), number, "~: divided by samples")


def _wall_ns(row: Row) -> int:
    return row.sums.wall_ns


def _kind_text(row: Row) -> str:
    return row.kind or "?"


def _kind(row: Row) -> Markup:
    return element("span", _kind_text(row), class_=f"kind {kind_class(row.kind)}")


def _rest(rows: Sequence[Row]) -> Row:
    """The rows that are not shown, as one."""
    return Row("", f"{len(rows):,} more rows", sums=total(row.sums for row in rows))
