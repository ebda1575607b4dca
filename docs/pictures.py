"""Makes the pictures of the pages in docs/pictures: `python docs/pictures.py`, or only those named after it.

The extras `tui`, `sql` and `test` are needed, and ipykernel. Each picture is what a command shows: text of a terminal
as it was written there, the view as Textual draws it, a flame graph as it is, a trace drawn from the exported spans.
"""

from __future__ import annotations

import asyncio
import io
import os
import re
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

from rich.console import Console
from rich.markdown import Markdown
from rich.terminal_theme import MONOKAI
from rich.text import Text

sys.path.insert(0, str(Path(__file__).parent))

from picture_programs import CELLS, RUN_CELLS
from recorded_examples import COLUMNS, ROWS, TOP, Workplace
from trace_drawing import drawn_trace

DOCS = TOP / "docs"
PLACE = DOCS / "pictures"
FONTS = re.compile(r"@font-face \{.*?\}\s*", re.S)  # a picture loads nothing
NUMBERED = re.compile(r"terminal-\w+")


class Picture(NamedTuple):
    """A picture: the page that has it, and how it is made."""

    page: str
    make: Callable[[Workplace], str]


def terminal(name: str, command: str, rows: int = 40, columns: int = COLUMNS) -> Callable[[Workplace], str]:
    """The picture of a command for one of the workplace's experiments, `{}` in it; at most so many rows."""

    def make(place: Workplace) -> str:
        told = command.format(getattr(place, name))
        return _of_command(told, place.shown(told, columns), rows)

    return make


def lesson(page: str, record: str, command: str, columns: int = COLUMNS) -> Picture:
    """The picture of a command after another one, both with the programs of the page."""

    def make(place: Workplace) -> str:
        place = place.of_page(page)
        place.run(record)
        return _of_command(command, place.shown(command, columns))

    return Picture(page, make)


def _of_command(command: str, text: str, rows: int = 40) -> str:
    lines = text.split("\n")
    return _of_text("\n".join([f"$ {command}", *lines[:rows], *(["…"] if len(lines) > rows else [])]))


def comment(name: str, command: str) -> Callable[[Workplace], str]:
    """The picture of Markdown."""

    def make(place: Workplace) -> str:
        text = place.shown(f"{command.format(getattr(place, name))} 2>/dev/null")
        return _of_console(lambda console: console.print(Markdown(re.sub(r"<details>.*", "", text, flags=re.S))))

    return make


def _of_text(text: str) -> str:
    """The picture of text with the colours of a terminal, as wide as its longest line."""
    shown = Text.from_ansi(text)
    width = max(len(line) for line in shown.split("\n"))
    return _of_console(lambda console: console.print(shown), max(width, 60))


def _of_console(show: Callable[[Console], None], width: int = COLUMNS) -> str:
    console = Console(record=True, width=width, file=io.StringIO(), force_terminal=True, color_system="truecolor")
    show(console)
    return console.export_svg(title="", theme=MONOKAI)


def notebook(place: Workplace) -> str:
    """What a cell shows in IPython."""
    (place.directory / "cells.py").write_text(f"{CELLS!r}")
    text = place.shown(f"{sys.executable} -c 'import sys; {RUN_CELLS}' cells.py")
    told = "\n\n".join(f"In [{number}]: {cell}" for number, cell in enumerate(CELLS, 1))
    return _of_text(f"{told}\n{text}")


def view(*keys: str) -> Callable[[Workplace], str]:
    """The picture of `interpose view` after these keys."""
    from interpose.experiments.model.experiment import Experiment
    from interpose.view.app import View

    async def drawn(path: str) -> str:
        app = View(Experiment(path))
        async with app.run_test(size=(COLUMNS, ROWS)) as pilot:
            for key in [[], *([key] for key in keys)]:
                await pilot.press(*key)
                while not app.is_settled:
                    await pilot.pause(0.05)
                await pilot.pause()
            return app.export_screenshot(title="interpose view")

    def make(place: Workplace) -> str:
        path = str(place.directory / place.orders)
        before = os.getcwd()
        os.chdir(place.directory)
        try:
            return asyncio.run(drawn(path))
        finally:
            os.chdir(before)

    return make


def flame(place: Workplace) -> str:
    """The flame graph of the example."""
    place.run(f"interpose flame --wall --format svg -o flame.svg {place.orders}")
    return (place.directory / "flame.svg").read_text()


def annotated(place: Workplace) -> str:
    """What callgrind_annotate, of Valgrind, says of the example."""
    place.run(f"interpose export --to callgrind -o callgrind.out {place.orders}")
    command = "callgrind_annotate --auto=no --threshold=95 --show=wall,wait,calls callgrind.out"
    return _of_command(command, place.shown(command))


def trace(name: str, begin: float, end: float) -> Callable[[Workplace], str]:
    """The part of a trace between two shares of its time, drawn from the spans that a collector gets."""

    def make(place: Workplace) -> str:
        place.run(f"interpose export --to otlp -o spans.jsonl {getattr(place, name)}")
        return drawn_trace(place.directory / "spans.jsonl", begin, end)

    return make


SIDES = "nightly.[1-6].er --with nightly.[7-9].er nightly.1?.er"
PICTURES = {
    "report.svg": Picture("getting-started.md", terminal("orders", "interpose report {}")),
    "lines.svg": Picture("reports.md", terminal("orders", "interpose report --by line --limit 12 {}")),
    "finding.svg": Picture("findings.md", terminal("orders", "interpose report --by finding {}", 24)),
    "view-source.svg": Picture("view.md", view("5")),
    "view-flame.svg": Picture("view.md", view("4", "c", "down", "down", "down")),
    "flame.svg": Picture("profile.md", flame),
    "heap.svg": Picture("heap.md", terminal("peak", "interpose heap {}")),
    "transactions.svg": Picture("transactions.md", terminal("orders", "interpose transactions {}", columns=130)),
    "native.svg": Picture("native.md", terminal("natives", "interpose report {} --by intrinsic --limit 12")),
    "coverage.svg": Picture("coverage.md", terminal("covered", "interpose coverage report --show-missing {}")),
    "compare.svg": Picture("comparing.md", terminal("nightly", f"interpose compare {SIDES} ")),
    "comment.svg": Picture(
        "how-to/ci.md",
        comment(
            "nightly",
            f"interpose compare --format github {SIDES} --fail-if 'total(all) > +10%'",
        ),
    ),
    "trend.svg": Picture("trend.md", terminal("nightly", "interpose trend '{}'")),
    "many-profile.svg": Picture(
        "many-experiments.md", terminal("nightly", "interpose profile '{}' --section activity --slices 6")
    ),
    "display.svg": Picture("display.md", terminal("orders", "interpose display -limit 12 -functions {}")),
    "trace.svg": Picture("exports.md", trace("orders", 0.2, 0.22)),
    "callgrind.svg": Picture("exports.md", annotated),
    "sql.svg": Picture(
        "exports.md",
        terminal(
            "orders", "interpose sql 'select kind, count(*), max(wall_ns) from calls group by kind order by 2 desc' {}"
        ),
    ),
    "services.svg": Picture("traces.md", trace("services", 0.55, 1.0)),
    "notebook.svg": Picture("python-api.md", notebook),
    "filter.svg": Picture(
        "filters.md", terminal("orders", "interpose events --filter \"KIND == 'db' && WALL > 1ms\" --limit 8 {}")
    ),
    "batch.svg": lesson("how-to/slow-batch.md", "interpose run batch.py", "interpose report"),
    "web.svg": lesson(
        "how-to/slow-web-app.md", "interpose run shop.py", "interpose transactions --sort p95", columns=170
    ),
    "tests.svg": lesson(
        "how-to/slow-tests.md",
        f"{sys.executable} -m pytest -q --interpose -p no:cacheprovider test_shop.py",
        "interpose transactions",
        columns=160,
    ),
    "start.svg": lesson(
        "how-to/slow-start.md", "interpose run --kinds import tool.py", "interpose report --by structure --limit 16"
    ),
    "trigger.svg": lesson(
        "how-to/production.md",
        "interpose run --ring 64MiB --trigger 'call > 5ms' --saves 1 service.py",
        "interpose list",
    ),
}


def plain(picture: str) -> str:
    """The picture without fonts to load, without names that differ each time, and without spaces at ends of lines."""
    text = NUMBERED.sub("terminal", FONTS.sub("", picture))
    return "\n".join(line.rstrip() for line in text.splitlines()) + "\n"


def main(chosen: list[str]) -> None:
    """Record the examples, and draw those that are chosen, or all."""
    with tempfile.TemporaryDirectory() as directory:
        place = Workplace(directory)
        for name in chosen or PICTURES:
            (PLACE / name).write_text(plain(PICTURES[name].make(place)))


if __name__ == "__main__":
    main(sys.argv[1:])
