"""Pages that run nothing and load nothing: their style is in them, and a policy lets nothing else in."""

from __future__ import annotations

from collections.abc import Iterable

from interpose.reports.page.markup import Markup
from interpose.reports.page.shell import page

_STYLE = """
:root { color-scheme: light dark }
body { font: 15px/1.4 system-ui, sans-serif; margin: 1.5em auto; max-width: 80em; padding: 0 1em }
table { border-collapse: collapse; width: 100% }
th, td { text-align: left; padding: .15em .6em }
th { border-bottom: 1px solid }
td.n, th.n { text-align: right; font-variant-numeric: tabular-nums }
.source td { padding-top: 0; padding-bottom: 0; vertical-align: top }
code { font: 13px/1.4 ui-monospace, monospace; white-space: pre-wrap; overflow-wrap: anywhere; tab-size: 8 }
.said { opacity: .75 }
.green { background: light-dark(#d9f2dc, #17391d) }
.yellow { background: light-dark(#fff3bf, #4a3d08) }
.red { background: light-dark(#fbdcdc, #4d1c1c) }
"""


def still_page(title: str, body: Iterable[Markup], style: str = "") -> str:
    """The text of a page; `style` has its additional styles: rows and cells in `green`, `yellow` and `red`."""
    return page(title, body, [f"{_STYLE}{style}"])
