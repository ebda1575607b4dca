"""`interpose view` shows the figures of the reports, and leads from a row to what is behind it."""

import contextlib
import io
import queue
import re
import subprocess
import sys
import threading

import pytest
from tracing import environment

from interpose.analysis.calls.groupings import GROUPINGS
from interpose.cli.main import main
from interpose.errors import UsageError
from interpose.experiments.model.experiment import Experiment
from interpose.reports.tables.rows import SORTS
from interpose.reports.tables.transactions import SORTS as TRANSACTION_SORTS
from interpose.view.calls import CALLS, PAGES_KEPT, CallPages
from interpose.view.loader import GaveWay, Loader
from tests.build import SECOND, Build, event
from tests.view.walking import opened

pytest.importorskip("textual", reason="textual is not installed: pip install 'interpose[tui]'")
pytestmark = [pytest.mark.packages, pytest.mark.any_python]

PROGRAM = """
import os, sqlite3, threading, time
import interpose

def save(connection, number):
    with interpose.transaction("save"):
        connection.execute("insert into orders values (?)", (number,))
        connection.commit()

def load(connection):
    with interpose.transaction("load"):
        return connection.execute("select * from orders").fetchall()

def work():
    for _ in range(300):
        os.stat(".")

connection = sqlite3.connect(":memory:")
connection.execute("create table orders (number)")
thread = threading.Thread(target=work)
thread.start()
for number in range(200):
    save(connection, number)
    if number % 10 == 0:
        load(connection)
thread.join()
time.sleep(0.01)
"""


@pytest.fixture(scope="module")
def recorded(tmp_path_factory):
    """The path of an experiment of a program with two threads and two transactions."""
    directory = tmp_path_factory.mktemp("recorded")
    (directory / "app.py").write_text(PROGRAM)
    variables = environment(INTERPOSE="1", XDG_STATE_HOME=str(directory / "state"))
    subprocess.run([sys.executable, "app.py"], cwd=directory, env=variables, check=True)
    return directory / "test.1.er"


@pytest.fixture
def told(place, monkeypatch):
    """The lines that a command writes in a terminal of that width."""

    def run(width, *words):
        monkeypatch.setenv("COLUMNS", str(width))
        with contextlib.redirect_stdout(io.StringIO()) as out:  # Textual has its own
            assert main([str(word) for word in words]) == 0
        return out.getvalue().splitlines()

    return run


async def chosen_by(walk, by):
    await walk.press("b")
    await walk.hold("down", list(GROUPINGS).index(by))
    await walk.press("enter")


@pytest.mark.long
@pytest.mark.parametrize("width", [40, 80, 200])
async def test_every_table_of_rows_is_that_of_the_report(recorded, told, width):
    async with opened(recorded, size=(width, 30)) as walk:
        for by in GROUPINGS:
            await chosen_by(walk, by)
            assert walk.lines() == told(walk.listing().room.width, "report", recorded, "--by", by)


@pytest.mark.long
async def test_rows_are_sorted_as_the_report_sorts_them(recorded, told):
    async with opened(recorded, size=(160, 30)) as walk:
        await chosen_by(walk, "site")
        for sort in SORTS:
            await walk.press("s")
            assert walk.lines() == told(walk.listing().room.width, "report", recorded, "--by", "site", "--sort", sort)
        await walk.press("s")
        assert walk.lines() == told(walk.listing().room.width, "report", recorded, "--by", "site")


@pytest.mark.long
async def test_transactions_are_those_of_the_command(recorded, told):
    async with opened(recorded, size=(150, 30)) as walk:
        await walk.press("2")
        for options in [(), *(("--sort", sort) for sort in TRANSACTION_SORTS)]:
            assert walk.lines() == told(walk.listing().room.width, "transactions", recorded, *options)
            await walk.press("s")


def squeezed(lines):
    return [" ".join(line.split()) for line in lines]


async def test_pages_of_calls_are_together_those_of_the_command(recorded, told):
    async with opened(recorded, size=(400, 30)) as walk:
        await walk.press("3")
        found = walk.lines()
        while len(walk.listing().rows) == 500:
            walk.listing().go_to(499)
            await walk.press("pagedown")
            found += walk.lines()[1:]
        assert len(found) > 1000
        assert squeezed(found) == squeezed(told(400, "events", recorded))
        await walk.press("pageup")
        await walk.press("home", "up")
        assert squeezed(walk.lines()) == squeezed(told(400, "events", recorded, "--limit", "500"))
        await walk.press("end")
        latest = squeezed(told(400, "events", recorded, "--last", "500"))
        assert squeezed(walk.lines()) == latest
        assert walk.chosen() == latest[-1]


@pytest.mark.long
async def test_calls_are_filtered_by_an_expression(recorded, told):
    async with opened(recorded, size=(400, 30)) as walk:
        await walk.press("3", "f")
        await walk.write("KIND == 'db'")
        wanted = told(400, "events", recorded, "--filter", "KIND == 'db'", "--limit", "500")
        assert squeezed(walk.lines()) == squeezed(wanted)
        await walk.press("escape")
        assert squeezed(walk.lines()) == squeezed(told(400, "events", recorded, "--limit", "500"))


async def test_an_expression_that_is_none_is_told_in_the_tab(recorded):
    async with opened(recorded) as walk:
        await walk.press("3", "f")
        await walk.write("KIND = 'db'")
        assert any("== compares" in line for line in walk.screen())


@pytest.mark.long
async def test_enter_leads_from_a_kind_to_the_line_in_its_source(recorded):
    async with opened(recorded) as walk:
        await walk.press("slash")
        await walk.write("db")
        await walk.press("enter", "slash")
        await walk.write("commit")
        assert walk.chosen().startswith("db sqlite3.Connection.commit 200 ")
        await walk.press("enter")
        assert "app.py:8 save 200 " in walk.chosen()
        await walk.press("enter")
        assert walk.app.pane.NAME == "source"
        assert walk.chosen().endswith(" 8 connection.commit()")
        assert int(walk.chosen().split()[0]) >= 200  # waits for the interpreter lock count, too
        await walk.press("1", "escape", "escape")
        assert walk.chosen().startswith("db ")


async def test_the_times_of_lines_add_up_to_the_rows_of_the_file(recorded, told):
    rows = [line.split() for line in told(200, "report", recorded, "--by", "site", "--format", "csv")]

    def sum_of(lines, name):
        heads, *cells = [" ".join(line).split(",") for line in lines]
        return sum(int(each[heads.index(name)]) for each in cells if "app.py:" in each[heads.index("site")])

    async with opened(recorded) as walk:
        await walk.press("5")
        there = [line.figures for line in walk.listing().rows if line.figures]
        assert len(walk.listing().rows) == len(PROGRAM.splitlines())
        assert sum(row.sums.calls for row in there if row.is_of_calls) == sum_of(rows, "calls")
        assert sum(row.sums.self_wall_ns for row in there) == sum_of(rows, "self_wall_ns")
        assert sum(row.sums.self_cpu_ns for row in there) == sum_of(rows, "self_cpu_ns")


TRACED = """
def add(numbers):
    total = 0
    for number in numbers:
        total += number
    return total
print(add(range(20_000)))
"""


async def test_a_traced_source_has_the_figures_of_line_trace(tmp_path, told):
    (tmp_path / "app.py").write_text(TRACED)
    variables = environment(INTERPOSE="lines", XDG_STATE_HOME=str(tmp_path / "state"))
    subprocess.run([sys.executable, "app.py"], cwd=tmp_path, env=variables, check=True)
    path = tmp_path / "test.1.er"
    shown = "\n".join(squeezed(told(120, "lines", path, "--annotate")))
    annotated = re.findall(r"^(?:## )?(.*[1-9].*) (\d+)\. (.*)$", shown, re.M)

    async with opened(path) as walk:
        await walk.press("5")
        assert len(annotated) == 6
        lines = squeezed(walk.listing().text_of(line) for line in walk.listing().rows if line.figures)
        assert lines == [f"{figures} {number} {text}" for figures, number, text in annotated]
        figures = [line.figures for line in walk.listing().rows if line.figures]
        assert walk.listing().row.figures.self_cpu_ns == max(each.self_cpu_ns for each in figures)


@pytest.mark.long
@pytest.mark.parametrize(("metric", "keys"), [("cpu", "4"), ("wall", "4c")])
async def test_frames_are_those_of_the_flame_graph(recorded, place, metric, keys):
    assert main(["flame", str(recorded), f"--{metric}", "--format", "svg", "-o", "flame.svg"]) == 0
    drawn = (place / "flame.svg").read_text()

    async with opened(recorded) as walk:
        await walk.press(*keys)
        graph = walk.listing()
        assert drawn.count('data-d="') == len(graph.flame.frames)
        for frame in graph.flame.frames:
            places = f'data-x="{frame.start_ns}" data-w="{frame.width_ns}" data-d="{frame.depth}"'
            assert places in drawn
        await walk.press("down", "down", "down")
        assert walk.app.pane.told.split(" \u00b7 ")[1] in drawn


@pytest.mark.long
async def test_bars_are_as_wide_as_their_time_and_enter_zooms(recorded):
    async with opened(recorded) as walk:
        await walk.press("4", "c", "slash")
        await walk.write("commit")
        graph = walk.listing()
        assert graph.frame.function.name == "sqlite3.Connection.commit"
        share = graph.frame.width_ns / graph.flame.total_ns
        bar = next(line for line in graph.lines() if "sqlite3.Conn" in line or share < 0.1)
        assert len(bar) == graph.room.width
        await walk.press("enter")
        assert any(line.startswith("\u258fsqlite3.Connection.commit\u2500") for line in graph.lines())
        depth = graph.frame.depth
        for _ in range(depth):
            await walk.press("escape")
        assert graph.zoomed == 0


@pytest.mark.long
async def test_a_transaction_has_all_of_its_figures_behind_it(recorded, told):
    async with opened(recorded, size=(120, 50)) as walk:
        await walk.press("2", "slash")
        await walk.write("save")
        await walk.press("enter")
        shown = squeezed(each.strip(" \u2502\u2581\u2586") for each in walk.screen())
        assert any(line.endswith("count 200") or "count 200" in line for line in shown)
        assert any("p99 " in line for line in shown)
        await walk.press("escape")
        assert walk.app.pane.NAME == "transactions"


async def test_a_click_chooses_a_row_and_two_open_it(recorded):
    async with opened(recorded) as walk:
        await walk.click("#shown-rows", (3, 2))
        assert walk.listing().cursor == 1
        second = walk.listing().row.kind
        await walk.click("#shown-rows", (3, 2), times=2)
        assert {row.kind for row in walk.listing().rows} == {second}
        place = walk.lines()[0].index("calls")
        await walk.click("#shown-rows", (place + 1, 0))
        counts = [row.sums.calls for row in walk.listing().rows]
        assert counts == sorted(counts, reverse=True)


async def test_search_goes_on_from_page_to_page(tmp_path):
    built = Build(tmp_path / "test.1.er")
    built.intrinsic("os.stat", "file")
    built.thread()
    needle, hay = built.string("/needle"), built.string("/hay")
    built.events([event(n * 10, 5, detail=needle if n == 1300 else hay, call=n + 1) for n in range(1700)])
    built.ended(SECOND, 0)
    path = built.write()

    async with opened(path) as walk:
        await walk.press("3", "slash")
        await walk.write("needle")
        assert walk.chosen().endswith("os.stat /needle")
        assert any("calls 1,001 to 1,500" in line for line in walk.screen())
        await walk.press("pageup")


async def test_keys_are_explained(recorded):
    async with opened(recorded) as walk:
        await walk.press("question_mark")
        shown = "\n".join(walk.screen())
        assert "double click" in shown
        assert "flame: CPU time or wall time" in shown
        await walk.press("escape", "q")
        assert walk.app.return_code == 0


def test_few_pages_of_calls_are_kept(tmp_path):
    built = Build(tmp_path / "test.1.er")
    built.intrinsic("os.stat", "file")
    built.thread()
    built.events([event(n * 10, 5, call=n + 1) for n in range((PAGES_KEPT + 5) * CALLS)])
    pages = CallPages(Experiment(str(built.write())))

    found = [pages.page(number) for number in range(PAGES_KEPT + 6)]

    assert [each.first for each in found] == [number * CALLS for number in range(PAGES_KEPT + 6)]
    assert not found[-1].rows
    assert len(pages._kept) == PAGES_KEPT
    assert [row.event.call for row in pages.page(0).rows] == [row.event.call for row in found[0].rows]


def test_reading_calls_gives_way_and_can_be_taken_up_again(recorded):
    waits = []
    pages = CallPages(Experiment(str(recorded)), gives_way=lambda: bool(waits))
    first = pages.page(0)

    waits.append("something else")
    with pytest.raises(GaveWay):
        pages.page(1)
    waits.clear()

    assert pages.page(0) == first
    assert pages.page(1).rows[0].event.start_ns >= first.rows[-1].event.start_ns


def test_of_several_jobs_the_latest_is_done_and_an_error_is_a_result():
    told, goes_on = queue.Queue(), threading.Event()
    loader = Loader(lambda found, took_s: told.put(found))
    is_busy = threading.Event()

    def first():
        is_busy.set()
        goes_on.wait()
        if loader.has_newer:
            raise GaveWay

    def failing():
        raise UsageError("no")

    loader.ask(first)
    is_busy.wait()
    loader.ask(lambda: "never done")
    loader.ask(failing)
    goes_on.set()

    assert str(told.get(timeout=60)) == "no"
    loader.ask(lambda: "done")
    assert told.get(timeout=60) == "done"
    assert told.empty()
