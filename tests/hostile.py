"""Hostile input as a user meets it: a file of an experiment that anybody may have written, given to the commands."""

from __future__ import annotations

import contextlib
import io
import os
import resource
import shutil
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import zstandard

from interpose.analysis.analysis import Analysis
from interpose.analysis.calls.profile import profile
from interpose.analysis.calls.trace import last, trace
from interpose.analysis.recording.lineage import tree, walk
from interpose.analysis.recording.soundness import read_all
from interpose.cli.experiment_choice import open_experiments
from interpose.cli.main import main
from interpose.errors import InterposeError
from interpose.exports.formats import FORMATS
from interpose.exports.raw import raw
from interpose.reports.formats import text as table
from interpose.reports.formats.colour import Paint
from interpose.reports.formats.table import Table, lines
from interpose.reports.screen.screen import Screen
from interpose.reports.screen.summary import summary
from interpose.reports.tables.processes import processes_table
from interpose.view.bars import Bars
from interpose.view.calls import CallPages
from interpose.view.drilling import Step
from interpose.view.reading import Reading
from interpose.view.source import source_view
from tests.build import START_NS, Build, compressed, event, size_of

CORPUS = Path(__file__).parent / "corpus"
NAME = "t.1.er"
REFUSED = (0, 1, 2, 3)  # what a command may end with
NEVER_TOLD = ("root:x:0:", "--help)", "Traceback")  # the second: then it was not read
FILES = {
    "events": "events",
    "events.zst": "events.zst",
    "strings": "strings",
    "sites": "sites",
    "stacks": "stacks",
    "threads": "threads",
    "overview": "overview",
    "children": "children",
    "log": "log.xml",
    "map": "map.xml",
    "labels": "labels.xml",
    "notes": "notes",
    "index": "archives/index.jsonl",
    "dyntext": "dyntext",
    "dialogue": "dialogue",
    "objects": "objects",
}
ITSELF = "EXPERIMENT"  # stands for the path, which also follows every command
# Every command that reads; each kind of input needs some of them only, but for the long test all.
COMMANDS = (
    ("check",),
    ("report",),
    ("report", "--by", "site", "--format", "json"),
    ("events",),
    ("events", "--last", "3"),
    ("events", "--filter", "FNAME('(a|.*)*x') SOME IN STACK || DETAIL =~ 'q' && THREAD > SELF_WALL / WAIT"),
    ("compare", ITSELF, "--by", "site", "--measure", "p95", "--fail-if", "max(all) > +10s", "--with"),
    ("overview",),
    ("processes",),
    ("display", "statistics"),
    ("display", "-limit", "5", "-functions", "-callers-callees", "-calltree", "-lines", "-threads", "-iostat"),
    ("display", "-api", "library", "-filters", "WALL > 0", "-fsummary", "-samples", "-iodetail", "-source", "main"),
    ("profile",),
    ("label", "-o"),
    ("notes",),
    ("dialogue",),
    ("dialogue", "--format", "asciicast"),
    ("dialogue", "--replay", "--speed", "1000"),
    ("export",),
    ("export", "--to", "firefox"),
    ("export", "--to", "otlp"),
    ("export", "--to", "otlp-profiles"),
    ("report", "--format", "github"),
    ("trend", "--measure", "p95"),
    ("coverage", "lcov"),
)

def skeleton(directory: Path) -> None:
    """A small experiment that has a bit of everything, for one of its files to be replaced."""
    build = Build(directory, whole_files=False)
    build.intrinsic("os.write", "file")
    build.intrinsic("sqlite3.Cursor.execute", "db", "net")
    outer = build.stack(build.site("/home/u/shop/app.py", 3, "main"))
    inner = build.stack(build.site("<string>", 9, "emit", own=0), outer)
    text = build.string("select ?")
    rows = [
        event(10, 500, 20, call=2, parent=1, stack=inner, bytes=4),
        event(0, 1000, 50, call=1, stack=outer, intrinsic=2, detail=text, inner_wall_ns=500, inner_cpu_ns=20),
        event(2000, 10, 10, call=1, thread=2, stack=inner, error=text),
    ]
    build.block(rows[:2])
    build.block(rows[2:], state=1)
    opened = [{"start_ns": START_NS + 3000, "call": 3, "intrinsic": 1, "stack": inner}]
    build.thread(end_cpu_ns=70, seen_ns=START_NS + 4000, recorded=2, main=1, tid=812, open_calls=opened)
    build.thread(start_ns=START_NS + 1500, end_ns=START_NS + 2500, end_cpu_ns=20, recorded=1, tid=813)
    build.child(how=3, pid=7, command=text, end_ns=START_NS + 9, status=9)
    build.sample(time_ns=START_NS, kind=1)
    build.sample(time_ns=START_NS + 9, kind=2, cpu_ns=9)
    build.write()
    place = directory / "events"
    os.truncate(place, place.stat().st_size - 64 * 1024 + size_of("BLOCK") + size_of("EVENT"))
    (directory / "labels.xml").write_text('<labels><mark name="a" action="start" time_ns="1"/></labels>\n')
    (directory / "notes").write_text("kept\n")


class Place:
    """An experiment in `top`, and what may be done to it; what the commands print goes nowhere."""

    def __init__(self, top: Path) -> None:
        self.top = top
        self.experiment = top / NAME
        skeleton(self.experiment)
        self._whole = {path.name: path.read_bytes() for path in self.experiment.iterdir() if path.is_file()}

    def read(self, kind: str, data: bytes) -> None:
        """Let the commands read `data` as an input of that kind. Raises whatever is not told in a line."""
        with self.placed(kind, data) as path:
            for words in COMMANDS:
                code, told = run([str(path) if word == ITSELF else word for word in (*words, ITSELF)])
                assert code in REFUSED, (words, code, told)
                assert not any(text in told for text in NEVER_TOLD), (words, told)
            view(str(path))
            if path == self.experiment:
                code, told = run(["check", "--repair", "--in-place", str(path)])
                assert code in REFUSED, (code, told)

    @contextlib.contextmanager
    def placed(self, kind: str, data: bytes) -> Iterator[Path]:
        name, made = FILES.get(kind), MADE.get(kind)
        if name is None and made is None:
            path = self.top / ("g.erg" if kind == "group" else "p.er.tar.zst")
            path.write_bytes(zstandard.ZstdCompressor(level=1).compress(data) if kind == TAR else data)
            yield path
            path.unlink()
            return
        if made is not None:
            name, data = made(data)
        assert name is not None
        shutil.rmtree(self.experiment / "archives", ignore_errors=True)
        for each in {path.name for path in self.experiment.iterdir()} - set(self._whole):
            (self.experiment / each).unlink()
        for each, whole in self._whole.items():
            (self.experiment / each).write_bytes(whole)
        (self.experiment / name).parent.mkdir(exist_ok=True)
        (self.experiment / name).write_bytes(data)
        yield self.experiment


def read_all_of(path: str) -> None:
    """Read what the commands read of the experiment at `path`, for what reads it a million times."""
    with contextlib.suppress(InterposeError):
        opened = open_experiments([path])
        read_all(opened)
        made = profile(Analysis(opened), "site")
        for line in summary(Screen(made, 2e9, 80, Paint(False))):
            assert line.isprintable()
        for row in [*last(opened, 3), *trace(opened)]:
            row.process.string(row.event.detail)
        table.write(processes_table(list(walk(tree(opened))), opened.founder), io.StringIO(), 80)
        for line in raw(opened):
            assert line.isprintable()
        for each in FORMATS.values():
            if each.function:
                each.writer()(Analysis(opened), io.BytesIO())


def view(path: str) -> None:
    """Read what `interpose view` shows of the experiment at `path`, without a terminal."""
    with contextlib.suppress(InterposeError):
        reading = Reading(open_experiments([path]))
        pages = CallPages(reading.experiment)
        assert all(line.isprintable() for line in reading.heading(80).splitlines())
        asked: list[Callable[[], Table | None]] = [
            lambda: reading.rows(Step("site"), "calls"),
            lambda: reading.transactions("name"),
            lambda: pages.table(pages.page(0)),
            lambda: pages.table(pages.latest()),
            lambda: (found := source_view(reading, None)) and found.table,
        ]
        for ask in asked:
            with contextlib.suppress(InterposeError):
                if made := ask():
                    assert all(line.isprintable() for line in lines(made.columns, made.rows, 80))
        assert Bars(reading.flame("wall")).laid(0, 80)


def run(words: list[str]) -> tuple[int, str]:
    """The exit code of a command line, and all that it printed."""
    out = io.StringIO()
    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(out):
        try:
            code = main(words)
        except SystemExit as error:  # argparse's
            code = int(error.code or 0)
    return code, out.getvalue()


# --- inputs that the checks in front of a reader would keep from it: these are put right


def arranged(data: bytes) -> tuple[str, bytes]:
    """`data` as what a compressed block holds, all around it right; the first byte says how many records."""
    used = data[0] if data else 0
    frame = zstandard.ZstdCompressor().compress(data[1:])
    head = {"used": used, "thread": 1, "sequence": 9, "first_ns": 0, "last_ns": 9}
    return "events.zst", compressed(head, [], frame, raw_bytes=used * size_of("EVENT"), transform=1)


MADE: dict[str, Callable[[bytes], tuple[str, bytes]]] = {"arranged": arranged}


TAR = "tar"  # a packed experiment, packed again by who reads it


def readers() -> list[str]:
    """The kinds of input."""
    return [*FILES, *MADE, "packed", "group"]


MOST_BYTES = 1 << 30  # of address space: what is read is small, and says that it is large


def read_known(kind: str, top: str) -> None:
    """Read all inputs of the kind that are kept, in a process of its own."""
    resource.setrlimit(resource.RLIMIT_AS, (MOST_BYTES, MOST_BYTES))
    place = Place(Path(top))
    for path in sorted((CORPUS / kind).iterdir()):
        print(path.name, flush=True)
        place.read(kind, path.read_bytes())


if __name__ == "__main__":
    read_known(*sys.argv[1:])
