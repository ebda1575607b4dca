"""The whole page: one file with its style, its script and its data, and a policy that lets nothing else in."""

from __future__ import annotations

import hashlib
from base64 import b64encode
from collections.abc import Sequence
from importlib.resources import files
from typing import TextIO

from interpose.reports.page.anchors import Anchors
from interpose.reports.page.front import front, summary
from interpose.reports.page.markup import Markup, element, joined, lines
from interpose.reports.page.material import Material
from interpose.reports.page.profiles import calls, kinds
from interpose.reports.page.shares import shares
from interpose.reports.page.sources import sources
from interpose.reports.page.strip import strip
from interpose.reports.page.transactions import transactions
from interpose.reports.page.verdicts import verdicts

STYLES = ("uPlot.min.css", "page.css")
SCRIPTS = ("uPlot.iife.min.js", "grids.js", "timeline.js", "page.js")
LICENSE = "uPlot.LICENSE"


def write(material: Material, out: TextIO) -> None:
    """Write the page of `material` to `out`."""
    styles = [asset(name) for name in STYLES]
    scripts = [asset(name) for name in SCRIPTS]
    head = [
        element("meta", charset="utf-8"),
        element("meta", http_equiv="Content-Security-Policy", content=policy(styles, scripts)),
        element("meta", name="viewport", content="width=device-width, initial-scale=1"),
        element("meta", name="color-scheme", content="light dark"),
        element("meta", name="referrer", content="no-referrer"),
        element("link", rel="icon", href="data:,"),
        element("title", f"{material.experiment.name} · interpose"),
        *(Markup(f"<style>{each}</style>") for each in styles),
    ]
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
    run = [Markup(f"<script>{each}</script>") for each in scripts]
    body = [front(material), element("main", sections, id="report"), foot, *run]
    out.write("<!DOCTYPE html>\n")
    out.write(element("html", [element("head", head), element("body", joined(body))], lang="en"))
    out.write("\n")


def policy(styles: Sequence[str], scripts: Sequence[str]) -> str:
    """What the page may do: run these scripts and use these styles, identified by their hashes, and nothing else."""
    return "; ".join(
        [
            "default-src 'none'",
            f"script-src {' '.join(map(_hash, scripts))}",
            f"style-src {' '.join(map(_hash, styles))}",
            "img-src data:",
            "base-uri 'none'",
            "form-action 'none'",
            "require-trusted-types-for 'script'",
        ]
    )


def _hash(text: str) -> str:
    return f"'sha256-{b64encode(hashlib.sha256(text.encode()).digest()).decode()}'"


def asset(name: str) -> str:
    """A file of this package, unchanged."""
    return (files("interpose.reports.page") / "assets" / name).read_text(encoding="utf-8")


def _license() -> Markup:
    """The licence of what others made, which goes with every copy of it."""
    told = "The charts of activity are drawn by uPlot 1.6.32 (github.com/leeoniya/uPlot), whose licence is:"
    text = element("pre", Markup("\n".join(map(lines, asset(LICENSE).splitlines()))))
    return element("details", [element("summary", "licence of uPlot"), element("p", told), text])
