"""The whole page: one file with its style, its script and its data, and a policy that lets nothing else in."""

from __future__ import annotations

from typing import TextIO

from interpose.reports.page.anchors import Anchors
from interpose.reports.page.front import front, summary
from interpose.reports.page.markup import Markup, element, lines
from interpose.reports.page.material import Material
from interpose.reports.page.profiles import calls, kinds
from interpose.reports.page.shares import shares
from interpose.reports.page.shell import asset, page
from interpose.reports.page.sources import sources
from interpose.reports.page.strip import strip
from interpose.reports.page.transactions import transactions
from interpose.reports.page.verdicts import verdicts

STYLES = ("uPlot.min.css", "page.css")
SCRIPTS = ("uPlot.iife.min.js", "grids.js", "timeline.js", "page.js")
LICENSE = "uPlot.LICENSE"


def write(material: Material, out: TextIO) -> None:
    """Write the page of `material` to `out`."""
    anchors = Anchors()
    listings = sources(material, anchors)
    sections = [
        summary(material),
        verdicts(material),
        kinds(material),
        strip(material, anchors),
        transactions(material),
        calls(material, anchors),
        listings,
        shares(material),
    ]
    foot = element("footer", [f"interpose {material.version}. ", _license()])
    title = f"{material.experiment.name} · interpose"
    body = [front(material), element("main", sections, id="report"), foot]
    out.write(page(title, body, [asset(name) for name in STYLES], [asset(name) for name in SCRIPTS]))


def _license() -> Markup:
    """The licence of what others made, which goes with every copy of it."""
    told = "The charts of activity are drawn by uPlot 1.6.32 (github.com/leeoniya/uPlot), whose licence is:"
    text = element("pre", Markup("\n".join(map(lines, asset(LICENSE).splitlines()))))
    return element("details", [element("summary", "licence of uPlot"), element("p", told), text])
