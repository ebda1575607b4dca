"""A flame graph as a page: one file, with zoom and search, that loads nothing."""

from __future__ import annotations

from typing import TextIO

from interpose.analysis.profile.flame import Flame
from interpose.reports.flame.colours import styles
from interpose.reports.flame.drawing import drawing, heading, legend
from interpose.reports.page.markup import element
from interpose.reports.page.shell import asset, page

KEYS = "Click or tap a frame to zoom. With the keyboard: arrow keys choose a frame, Enter zooms, Escape shows all."


def write(flame: Flame, name: str, cwd: str, out: TextIO) -> None:
    """Write the page of the experiment `name`, whose program ran in `cwd`, to `out`."""
    tools = [
        element("button", "Show all", id="all", type="button"),
        element("input", id="search", type="search", placeholder="Search functions", aria_label="Search functions"),
    ]
    colours = [element("span", title, class_=f"c-{colour}") for colour, title in legend(flame)]
    graph = {"id": "graph", "tabindex": "0", "role": "region", "aria_label": "Flame graph", "aria_describedby": "keys"}
    parts = [
        element("h1", heading(flame, name)),
        element("p", tools),
        element("p", colours, class_="legend"),
        element("output", id="told", aria_live="polite"),
        element("div", [drawing(flame, name, cwd)], **graph),
        element("p", KEYS, id="keys"),
    ]
    title = f"{name} · interpose flame"
    out.write(page(title, [element("main", parts)], [styles(), asset("flame.css")], [asset("flame.js")]))
