"""The page's sources: the lines that made calls, with what the calls took beside each line."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from itertools import pairwise

from interpose.analysis.calls.hot_lines import HotFile, Line
from interpose.analysis.consolidation.sums import total
from interpose.experiments.model.sources import Sources
from interpose.reports.formats.short_paths import Places
from interpose.reports.formats.units import count, duration
from interpose.reports.page.anchors import Anchors
from interpose.reports.page.drawings import bar
from interpose.reports.page.grid import note, section
from interpose.reports.page.markup import Markup, element, lines
from interpose.reports.page.material import Material

FILES_AT_MOST = 12
LINES_AT_MOST = 400  # of a file
AROUND = 6  # lines before and behind one that made calls
LETTERS_AT_MOST = 240
_INTRINSICS = 3
_END_OF_LINE = re.compile(r"\r\n|\r|\n")  # what Python counts, and nothing else
HOT = 0.1  # of what the hottest line took
_EXPLAINED = "A line has the sums of its rows in the table by line. Lines that only waited for work are not coloured."


def sources(material: Material, anchors: Anchors) -> Markup:
    """The section of the sources; their lines are added to `anchors`."""
    files = material.files
    if not files:
        return section("sources", "Sources", note("No recorded call came from your lines."))
    archived = Sources(material.experiment)
    places = Places([file.site.file for file in files], material.experiment.founder.log.cwd)
    shown = [
        _file(each, archived, places, anchors, is_first=not place) for place, each in enumerate(files[:FILES_AT_MOST])
    ]
    if len(files) > FILES_AT_MOST:
        left = count(len(files) - FILES_AT_MOST, "more file")
        shown.append(note(f"{left} with less time: interpose report --by line"))
    return section("sources", "Sources", *shown, note(_EXPLAINED))


def _file(file: HotFile, archived: Sources, places: Places, anchors: Anchors, is_first: bool) -> Markup:
    sums = total(line.sums for line in file.lines.values())
    head = [
        element("span", places.file(file.site.file), class_="file"),
        f" {duration(sums.self_wall_ns)} in {count(sums.calls, 'call')} from {count(len(file.lines), 'line')}",
    ]
    source = archived.source_of(file.process, file.site)
    if source is None:
        body = [note("The source is not archived, or has changed."), _listing({}, file, anchors)]
    else:
        said = [note("The file was changed after the program ended.")] if source.changed else []
        text = dict(enumerate(_END_OF_LINE.split(source.text), 1))
        body = [*said, _listing(text, file, anchors)]
    return element("details", [element("summary", head), *body], open=is_first)


def _listing(text: Mapping[int, str], file: HotFile, anchors: Anchors) -> Markup:
    """The lines of a file that made calls, and those around them."""
    most_ns = max(line.busy_ns for line in file.lines.values())
    wanted = sorted(_wanted(text, file))
    rows = []
    for before, number in pairwise([0, *wanted[:LINES_AT_MOST]]):
        if number > before + 1:
            rows.append(element("tr", [element("td", "⋮", colspan="6")], class_="gap"))
        line = file.lines.get(number)
        name = anchors.put(file.site.file, number) if line else None
        rows.append(_row(number, text.get(number, ""), line, most_ns, name))
    if len(wanted) > LINES_AT_MOST:
        rows.append(element("tr", [element("td", f"and {len(wanted) - LINES_AT_MOST:,} more lines", colspan="6")]))
    titles = ("line", "calls", "self wall", "self CPU", "CPU and wait", "source")
    head = element("tr", [element("th", title, scope="col") for title in titles])
    table = element("table", [element("thead", head), element("tbody", rows)], class_="source")
    named = f"source of {file.site.file}"
    return element("div", [table], class_="grid listing", tabindex="0", role="region", aria_label=named)


def _wanted(text: Mapping[int, str], file: HotFile) -> Iterator[int]:
    """The numbers of the lines that are shown, each once."""
    near = {number + step for number in file.lines for step in range(-AROUND, AROUND + 1)}
    yield from (number for number in near if number in text or number in file.lines)


def _row(number: int, text: str, line: Line | None, most_ns: int, name: str | None) -> Markup:
    cells = [element("td", str(number), class_="n")]
    if line:
        what = ", ".join(f"{calls:,} x {name}" for name, calls in line.intrinsics.most_common(_INTRINSICS))
        wall_ns, cpu_ns = line.sums.self_wall_ns, line.sums.self_cpu_ns
        cells += [
            element("td", f"{line.sums.calls:,}", class_="n", title=what),
            element("td", duration(wall_ns), class_="n", data_v=wall_ns),
            element("td", duration(cpu_ns), class_="n", data_v=cpu_ns),
            element("td", [bar(wall_ns, cpu_ns, most_ns)], class_="bar"),
        ]
    else:
        cells += [element("td")] * 4
    cells.append(element("td", [element("code", lines(text[:LETTERS_AT_MOST]))]))
    share = line.busy_ns / most_ns if line and most_ns else 0
    heat = "hot hottest" if share == 1 else "hot" if share >= HOT else None
    return element("tr", cells, id=name, class_=heat, tabindex="-1" if name else None)
