"""Makes the pictures of the pages in docs/pictures: `python docs/pictures.py`, or only those named after it.

The extras `tui`, `sql` and `test` are needed, and ipykernel. Each picture is what a command shows: text of a terminal as it was
written there, the view as Textual draws it, a flame graph as it is, and a trace drawn from the exported file.
"""

from __future__ import annotations

import asyncio
import fcntl
import io
import os
import re
import shutil
import struct
import subprocess
import sys
import tempfile
import termios
from collections.abc import Callable
from functools import cached_property, partial
from pathlib import Path
from typing import NamedTuple

from rich.console import Console
from rich.markdown import Markdown
from rich.terminal_theme import MONOKAI
from rich.text import Text

sys.path.insert(0, str(Path(__file__).parent))

from picture_programs import CELLS, JOB, PEAK, RUN_CELLS, SERVED
from trace_drawing import drawn_trace

TOP = Path(__file__).parents[1]
DOCS = TOP / "docs"
PLACE = DOCS / "pictures"
COLUMNS, ROWS = 100, 24
RUNS = (20, 20, 20, 20, 20, 20, 60, 60, 60, 60, 60, 60)  # how often the job sleeps in each
FONTS = re.compile(r"@font-face \{.*?\}\s*", re.S)  # a picture loads nothing
NUMBERED = re.compile(r"terminal-\w+")


class Workplace:
    """A directory where the examples are recorded, each once and when it is needed."""

    def __init__(self, directory: str) -> None:
        self.directory = Path(directory)

    @cached_property
    def orders(self) -> str:
        """The example of the README."""
        for name in ("orders.py", "orders.txt"):
            shutil.copy(TOP / "examples" / name, self.directory)
        self.run("interpose run --name orders orders.py orders.txt")
        return "orders.1.er"

    @cached_property
    def natives(self) -> str:
        """The same with native calls."""
        assert self.orders
        self.run("interpose run --name native --record calls,native orders.py orders.txt")
        return "native.1.er"

    @cached_property
    def covered(self) -> str:
        """The same with coverage."""
        assert self.orders
        self.run("interpose run --name covered --coverage own orders.py orders.txt")
        return "covered.1.er"

    @cached_property
    def nightly(self) -> str:
        """Twelve runs of a job, the last six of which wait longer."""
        (self.directory / "job.py").write_text(JOB)
        for sleeps in RUNS:
            self.run(f"interpose run --name nightly job.py {sleeps}")
        return "nightly.*.er"

    @cached_property
    def peak(self) -> str:
        """A program that takes memory."""
        (self.directory / "peak.py").write_text(PEAK)
        self.run("interpose run --name peak --record calls,heap peak.py")
        return "peak.1.er"

    @cached_property
    def services(self) -> str:
        """A program that asks a service of another process."""
        (self.directory / "shop.py").write_text(SERVED)
        self.run("env INTERPOSE_PROPAGATE=1 interpose run --name shop shop.py")
        return "shop.1.er"

    def of_page(self, page: str) -> Workplace:
        """A directory of its own, with the programs of a page."""
        directory = self.directory / Path(page).stem
        directory.mkdir()
        for source, name in re.findall(r"^```python\n(# (\w+\.py)\n.*?)^```", (DOCS / page).read_text(), re.M | re.S):
            (directory / name).write_text(source)
        return Workplace(str(directory))

    def run(self, command: str) -> None:
        """Run a command, which need not succeed."""
        words = self._words(command)
        subprocess.run(words, cwd=self.directory, env=self._variables(), capture_output=True)

    def shown(self, command: str, columns: int = COLUMNS) -> str:
        """What a command writes to a terminal that is so wide, with its colours. Raises ValueError if that is nothing.
        """
        ours, its = os.openpty()
        fcntl.ioctl(its, termios.TIOCSWINSZ, struct.pack("HHHH", ROWS, columns, 0, 0))
        words = self._words(command)
        with subprocess.Popen(words, cwd=self.directory, env=self._variables(), stdin=its, stdout=its, stderr=its):
            os.close(its)
            text = b"".join(iter(partial(_read, ours), b"")).decode()
        os.close(ours)
        if not text.strip():
            raise ValueError(f"{command}: shows nothing")
        return text.replace("\r\n", "\n").rstrip("\n")

    def _words(self, command: str) -> list[str]:
        return ["/bin/sh", "-c", re.sub(r"\binterpose (?=\w)", f"{sys.executable} -m interpose ", command)]

    def _variables(self) -> dict[str, str]:
        kept = {name: os.environ[name] for name in ("PATH", "LANG") if name in os.environ}
        return {**kept, "HOME": str(self.directory), "TERM": "xterm-256color", "LC_ALL": "C.UTF-8"}


def _read(descriptor: int) -> bytes:
    try:
        return os.read(descriptor, 1 << 16)
    except OSError:  # the other end of the terminal is closed
        return b""


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


def lesson(page: str, record: str, command: str, rows: int = 40, columns: int = COLUMNS) -> Picture:
    """The picture of a command after another one, both with the programs of the page."""

    def make(place: Workplace) -> str:
        place = place.of_page(page)
        place.run(record)
        return _of_command(command, place.shown(command, columns), rows)

    return Picture(page, make)


def _of_command(command: str, text: str, rows: int) -> str:
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
