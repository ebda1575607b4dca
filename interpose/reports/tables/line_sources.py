"""Sources with what line trace counted to the left of each line, the hot ones marked; as text, or as a page."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import NamedTuple, TextIO

from interpose.analysis.lines.code_lines import code_lines
from interpose.analysis.lines.line_rows import Figures
from interpose.analysis.lines.line_sources import LineFile
from interpose.reports.formats.short_paths import Places
from interpose.reports.formats.table import Table
from interpose.reports.formats.units import duration
from interpose.reports.page.markup import Markup, element, lines
from interpose.reports.page.still import still_page
from interpose.reports.screen.source_view import annotated_table, source_lines


class LineFigure(NamedTuple):
    """A column: the lines of its head, its figure, and how that is shown."""

    head: tuple[str, ...]
    value: Callable[[Figures], int]
    shown: Callable[[int], str]


def _count(number: int) -> str:
    return f"{number:,}"


def _time(ns: int) -> str:
    return duration(ns) if ns > 0 else "0."


FIGURES = (
    LineFigure(("Executed",), lambda figures: figures.executed, _count),
    LineFigure(("Entered",), lambda figures: figures.entered, _count),
    LineFigure(("Self", "CPU"), lambda figures: figures.self_cpu_ns, _time),
    LineFigure(("Self", "wall"), lambda figures: figures.self_wall_ns, _time),
    LineFigure(("Incl.", "wall"), lambda figures: max(figures.wall_ns, figures.self_wall_ns), _time),
)


def source_tables(files: Sequence[LineFile], cwd: str, hot_percent: int, is_estimated: bool = False) -> list[Table]:
    """A table for each file. A line is hot where a time is at least `hot_percent` of the largest of its file; estimated
    times are marked."""
    places = Places([file.file for file in files], cwd)
    return [_table(file, places.file(file.file), hot_percent, is_estimated) for file in files]


def _table(file: LineFile, name: str, hot_percent: int, is_estimated: bool) -> Table:
    source, why, note = file.sought
    title = f"Source file: {name}{f' ({why or note})' if why or note else ''}"
    text = source.text if source else ""
    figures = {number: _shown(each, is_estimated) for number, each in file.lines.items()}
    hot = hot_lines(file, hot_percent)
    code = code_lines(text)
    return annotated_table(title, text, code, [each.head for each in FIGURES], figures, hot.__contains__)


def hot_lines(file: LineFile, hot_percent: int) -> set[int]:
    """The lines of which a time is at least so much of the largest of its kind in the file."""
    found: set[int] = set()
    for figure in FIGURES:
        if figure.shown is not _time:
            continue
        values = {number: figure.value(each) for number, each in file.lines.items()}
        most = max(values.values(), default=0)
        found |= {number for number, value in values.items() if value > 0 and 100 * value >= hot_percent * most}
    return found


def _shown(figures: Figures, is_estimated: bool) -> list[str]:
    return [_mark(is_estimated and each.shown is _time) + each.shown(each.value(figures)) for each in FIGURES]


def _mark(is_estimated: bool) -> str:
    return "~" if is_estimated else ""


def write_page(
    files: Sequence[LineFile], title: str, cwd: str, hot_percent: int, out: TextIO, is_estimated: bool = False
) -> None:
    """Write a page of all files to `out`: lines that ran green, hot ones red; estimated times are marked. It runs
    nothing and loads nothing."""
    places = Places([file.file for file in files], cwd)
    body = [element("h1", f"Lines of {title}")]
    for number, file in enumerate(files):
        body.append(_section(file, places.file(file.file), hot_percent, is_estimated, is_open=number == 0))
    out.write(still_page(f"{title} · lines", body))


def _section(file: LineFile, name: str, hot_percent: int, is_estimated: bool, is_open: bool) -> Markup:
    source, why, note = file.sought
    text = source_lines(source.text) if source else []
    hot = hot_lines(file, hot_percent)
    numbers = [*range(1, len(text) + 1), *(each for each in sorted(file.lines) if each > len(text))]
    heads = ["", *(" ".join(each.head) for each in FIGURES), "Source"]
    rows = []
    for number in numbers:
        figures = file.lines.get(number)
        shown = _shown(figures, is_estimated) if figures else [""] * len(FIGURES)
        rows.append(_row(number, text, shown, _class(figures, number in hot)))
    table = element(
        "table",
        [
            element("thead", element("tr", [element("th", each, scope="col") for each in heads])),
            element("tbody", rows),
        ],
        class_="source",
    )
    said = [element("p", why or note, class_="said")] if why or note else []
    summary = element("summary", f"{name}: {_mark(is_estimated)}{duration(max(file.self_cpu_ns, 0))} CPU")
    return element("details", [summary, *said, table], open=is_open)


def _class(figures: Figures | None, is_hot: bool) -> str | None:
    if is_hot:
        return "red"
    return "green" if figures and figures.executed else None


def _row(number: int, text: Sequence[str], shown: Sequence[str], class_: str | None) -> Markup:
    cells = [element("td", str(number), class_="n"), *(element("td", each, class_="n") for each in shown)]
    line = text[number - 1] if number <= len(text) else "(not in this source)"
    cells.append(element("td", [element("code", lines(line))]))
    return element("tr", cells, class_=class_)
