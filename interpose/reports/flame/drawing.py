"""A flame graph as SVG: a frame is as wide as its time, callers above what they call."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TextIO

from interpose.analysis.profile.flame import CPU, Flame, FlameFrame
from interpose.reports.flame.colours import BY_CHANGE, BY_KIND, TITLES, class_of, styles
from interpose.reports.formats.short_paths import Places
from interpose.reports.formats.table import clean, shortened
from interpose.reports.formats.units import count, duration
from interpose.reports.page.markup import Markup, element

WIDTH, ROW, LETTER = 1200, 17, 6.7  # in the drawing's units
TOP = 58  # for the heading and the legend of a drawing that stands by itself
_METRICS = {True: "CPU time", False: "wall time"}


def write(flame: Flame, name: str, cwd: str, out: TextIO) -> None:
    """Write the flame graph of the experiment `name`, whose program ran in `cwd`, to `out`."""
    out.write('<?xml version="1.0" encoding="UTF-8"?>\n')
    out.write(drawing(flame, name, cwd, is_alone=True))
    out.write("\n")


def drawing(flame: Flame, name: str, cwd: str, is_alone: bool = False) -> Markup:
    """The drawing as an element; if it stands by itself, with its style sheet, its heading and its legend."""
    top = TOP if is_alone else 0
    height = top + (max(each.depth for each in flame.frames) + 1) * ROW + 6
    places = Places({each.function.object for each in flame.frames if each.function.object}, cwd)
    around = [
        Markup(f"<style>{styles()}</style>"),
        element("rect", x=0, y=0, width=WIDTH, height=height, fill="#ffffff"),
        element("text", heading(flame, name), x=4, y=16),
        *_legend(flame),
    ]
    parts = [*(around if is_alone else []), *(_frame(each, flame, places, top) for each in flame.frames)]
    return element("svg", parts, xmlns="http://www.w3.org/2000/svg", viewBox=f"0 0 {WIDTH} {height}", class_="flame",
                   width=WIDTH, height=height, role="img", aria_label=heading(flame, name))  # fmt: skip


def heading(flame: Flame, name: str) -> str:
    """What the drawing shows, in a line."""
    told = f"{name}: {_METRICS[flame.metric == CPU]} {duration(flame.total_ns)}"
    before_ns = flame.frames[0].before_ns
    if before_ns is not None:
        told += f", was {duration(before_ns)}; {duration(flame.gone_ns)} of it in functions that are not here now"
    if flame.left_out:
        told += f"; {count(flame.left_out, 'frame')} too small to show"
    return told


def _legend(flame: Flame) -> Iterator[Markup]:
    """The legend of a drawing that stands by itself."""
    x = 4.0
    for name, title in legend(flame):
        box = element("rect", x=round(x, 1), y=28, width=12, height=12)
        yield element("g", [box, element("text", title, x=round(x + 16, 1), y=38)], class_=f"c-{name}")
        x += 16 + LETTER * len(title) + 16


def legend(flame: Flame) -> list[tuple[str, str]]:
    """The colours, each with its meaning."""
    used = {class_of(each) for each in flame.frames}
    return [(each, _title_of(each)) for each in BY_KIND | BY_CHANGE if each in used]


def _title_of(name: str) -> str:
    if name in BY_CHANGE and name != "alike":
        least = {"1": "5 %", "2": "25 %", "3": "60 %"}[name[-1]]
        return f"{name[:-1]} by {least}"
    return TITLES.get(name, name)


def _frame(frame: FlameFrame, flame: Flame, places: Places, top: int) -> Markup:
    """A frame: its box, as much of its name as fits, and the whole name as a tooltip."""
    total_ns = max(flame.total_ns, 1)
    x, width = WIDTH * frame.start_ns / total_ns, WIDTH * frame.width_ns / total_ns
    y = top + frame.depth * ROW
    name = clean(frame.function.name)
    parts = [
        element("title", told(frame, flame, places)),
        element("rect", x=round(x, 2), y=y, width=round(width, 2), height=ROW - 1, rx=1),
    ]
    if room := int((width - 5) / LETTER) if width > 24 else 0:
        parts.append(element("text", shortened(name, room), x=round(x + 3, 2), y=y + 12))
    return element("g", parts, class_=f"frame c-{class_of(frame)}", data_x=frame.start_ns, data_w=frame.width_ns,
                   data_d=frame.depth, data_n=name)  # fmt: skip


def told(frame: FlameFrame, flame: Flame, places: Places) -> str:
    """All that is known of a frame, in lines."""
    where = f" ({places.file(frame.function.object)})" if frame.function.object and not frame.kind else ""
    kind = f" [{frame.kind}]" if frame.kind else ""
    share = 100 * frame.width_ns / max(flame.total_ns, 1)
    parts = [f"{frame.function.name}{where}{kind}", f"{duration(frame.width_ns)}, {share:.1f} %"]
    if frame.own_ns:
        parts.append(f"{duration(frame.own_ns)} by itself")
    if frame.before_ns is not None:
        change_ns = frame.width_ns - frame.before_ns
        parts.append(f"was {duration(frame.before_ns)}, {'+' if change_ns >= 0 else '-'}{duration(abs(change_ns))}")
    return " · ".join(parts)
