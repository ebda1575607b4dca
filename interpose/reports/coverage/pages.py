"""Coverage as pages for a browser: an index, and a page for each module with its lines green, yellow or red."""

from __future__ import annotations

import hashlib
import os
import re
from collections.abc import Iterator

from interpose.analysis.coverage.conditions import EXIT
from interpose.analysis.coverage.coverage import Coverage
from interpose.analysis.coverage.module import COVERED, MISSED, PARTLY, Line, Module
from interpose.reports.coverage.tables import NO_CONTEXT, ModuleRow, module_rows, shown_percent
from interpose.reports.page.markup import Markup, element, lines
from interpose.reports.page.still import still_page

INDEX = "index.html"
_CONTEXTS_SHOWN = 20
_STYLE = """
.all td { border-top: 1px solid; font-weight: bold }
.excluded { opacity: .6 }
.why { float: right; margin-left: 2em; font-style: italic; opacity: .75 }
"""
_COLOURS = {COVERED: "green", PARTLY: "yellow", MISSED: "red"}


def pages(coverage: Coverage, title: str, place: str, version: str, with_branches: bool) -> Iterator[tuple[str, str]]:
    """The name and the text of each page, the index first; paths as from the directory `place`."""
    names = {module.path_from(place): page_name(module) for module in coverage.modules if module.table}
    foot = element("footer", [element("p", f"interpose {version}", class_="said")])
    body = [_index(coverage, title, place, names, with_branches), foot]
    yield INDEX, still_page(f"{title} · coverage", body, _STYLE)
    for module in coverage.modules:
        if module.table:
            head = f"{module.path_from(place)} · coverage"
            yield page_name(module), still_page(head, [*_module(module, place), foot], _STYLE)


def page_name(module: Module) -> str:
    """The name of a module's page: of letters that any file system takes, and different for each path."""
    told = re.sub(r"[^A-Za-z0-9._-]", "_", os.path.basename(module.path))[-64:]
    return f"{told}_{hashlib.sha256(module.path.encode('utf-8', 'surrogatepass')).hexdigest()[:16]}.html"


def _index(coverage: Coverage, title: str, place: str, names: dict[str, str], with_branches: bool) -> Markup:
    *rows, total = module_rows(coverage, place)
    heads = ["module", "statements", "missed", "covered", "", "partly"]
    heads += ["branches", "not gone"] if with_branches else []
    numbers = [element("th", each, scope="col", class_="n" if each else None) for each in [*heads[1:], ""]]
    head = element("tr", [element("th", heads[0], scope="col"), *numbers])
    shown = [_index_row(row, names.get(row.file), with_branches) for row in rows]
    table = element(
        "table",
        [
            element("thead", head),
            element("tbody", shown),
            element("tfoot", [_index_row(total, None, with_branches)], class_="all"),
        ],
    )
    said = [element("p", note, class_="said") for note in coverage.notes]
    return element("main", [element("h1", f"Coverage of {title}"), *said, table])


def _index_row(row: ModuleRow, link: str | None, with_branches: bool) -> Markup:
    name = element("a", row.file, href=link) if link else row.file
    numbers = [f"{row.own.whole:,}", f"{row.missed:,}", shown_percent(row.percent)]
    cells = [element("td", [name]), *(element("td", each, class_="n") for each in numbers)]
    cells.append(element("td", [_bar(row.percent)]))
    cells.append(element("td", f"{row.lines[PARTLY]:,}", class_="n"))
    if with_branches:
        cells.append(element("td", f"{row.branches.whole:,}", class_="n"))
        cells.append(element("td", f"{row.branches.whole - row.branches.part:,}", class_="n"))
    return element("tr", [*cells, element("td", row.said, class_="said")])


def _bar(percent: float | None) -> str:
    """How much was covered, drawn; the policy lets no style of an element's own in, so the browser does."""
    if percent is None:
        return ""
    return element("meter", shown_percent(percent), min=0, max=100, value=f"{percent:.1f}")


def _module(module: Module, place: str) -> list[Markup]:
    told = f"{shown_percent(module.percent)} of {module.own.whole:,} statements"
    generated = module.generated
    if generated.whole:
        told += f"; with generated code {shown_percent(module.with_generated.percent)}"
    counts = ", ".join(f"{module.count(status):,} lines {status}" for status in _COLOURS)
    rows = [_line(module, number, text) for number, text in enumerate(module.table.text if module.table else (), 1)]
    return [
        element("p", [element("a", "all modules", href=INDEX)]),
        element("h1", module.path_from(place)),
        element("p", f"{told}: {counts}"),
        *([element("p", module.note, class_="said")] if module.note else []),
        element("table", [element("tbody", rows)], class_="source"),
    ]


def _line(module: Module, number: int, text: str) -> Markup:
    line = module.lines.get(number)
    is_excluded = module.table is not None and number in module.table.excluded
    status = line.status if line else "excluded" if is_excluded else None
    cells = [element("td", str(number), class_="n"), element("td", status or "")]
    why = [element("span", each, class_="why") for each in (_why(line) if line else "",) if each]
    contexts = module.contexts.get(number, ())
    hint = ", ".join(name or NO_CONTEXT for name in contexts[:_CONTEXTS_SHOWN]) if len(module.by_context) > 1 else None
    cells.append(element("td", [*why, element("code", lines(text))], title=hint))
    return element("tr", cells, class_=_COLOURS.get(status or "", status), id=f"L{number}")


def _why(line: Line) -> str:
    """The missing part of a line that ran."""
    if line.status != PARTLY:
        return ""
    ways = ["exit" if to == EXIT else str(to) for to, was_gone in line.branches.items() if not was_gone]
    told = [f"{line.executed} of {line.statements} statements"] if line.executed < line.statements else []
    return "; ".join([*told, *([f"never to {', '.join(ways)}"] if ways else [])])
