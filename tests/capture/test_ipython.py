"""`%%interpose` in a real kernel: a cell does what it does without, and the table of its calls is shown below it."""

import html
import json
import os
import re
import sys
from html.parser import HTMLParser
from pathlib import Path

import pytest
from tracing import environment

from interpose.cli.main import main

nbformat = pytest.importorskip("nbformat")
nbclient = pytest.importorskip("nbclient")
pytest.importorskip("ipykernel")
pytestmark = [pytest.mark.packages, pytest.mark.filterwarnings("ignore")]

FILE = re.compile(r"\d+\.py")  # of a cell: its name is made of its text
LOAD = "%load_ext interpose.ipython"
QUERIES = """\
import sqlite3, time
connection = sqlite3.connect(":memory:")
def load(number):
    return connection.execute("select ?", (number,)).fetchone()
for number in range(5):
    load(number)
time.sleep(0.05)
print("done")
6 * 7
"""


@pytest.fixture
def notebook(tmp_path, monkeypatch):
    """Runs cells in a kernel of this interpreter, in a directory of its own; gives the cells with their outputs."""
    for name in [name for name in os.environ if name.startswith("INTERPOSE")]:
        monkeypatch.delenv(name)
    kernels = tmp_path / "jupyter" / "kernels" / "here"
    kernels.mkdir(parents=True)
    words = [sys.executable, "-m", "ipykernel_launcher", "-f", "{connection_file}"]
    (kernels / "kernel.json").write_text(json.dumps({"argv": words, "display_name": "here", "language": "python"}))
    monkeypatch.setenv("JUPYTER_PATH", str(tmp_path / "jupyter"))
    monkeypatch.setenv("IPYTHONDIR", str(tmp_path / "ipython"))
    work = tmp_path / "work"
    work.mkdir()
    monkeypatch.chdir(work)

    def run(*sources, **variables):
        cells = [nbformat.v4.new_code_cell(source) for source in sources]
        made = nbformat.v4.new_notebook(cells=cells)
        client = nbclient.NotebookClient(
            made, timeout=120, kernel_name="here", allow_errors=True, resources={"metadata": {"path": str(work)}}
        )
        client.execute(env=environment(**variables))
        return made.cells

    return run


def outputs(cell):
    """What a cell gave, without the table: its streams, its value, its error."""
    kept = [each for each in cell.outputs if "text/html" not in each.get("data", {})]
    found = [[each.get(name) for name in ("output_type", "text", "ename", "evalue", "data")] for each in kept]
    return [tuple(FILE.sub("cell.py", each) if isinstance(each, str) else each for each in one) for one in found]


def shown(cell):
    """The table of a cell: its HTML and its text."""
    [data] = [each.data for each in cell.outputs if "text/html" in each.get("data", {})]
    return data["text/html"], data["text/plain"]


class Cells(HTMLParser):
    def __init__(self, text):
        super().__init__()
        self.rows, self.elements = [], set()
        self.feed(text)

    def handle_starttag(self, tag, attributes):
        self.elements.add(tag)
        if tag == "tr":
            self.rows.append([])
        elif tag in ("td", "th"):
            self.rows[-1].append("")

    def handle_data(self, data):
        if self.rows:
            self.rows[-1][-1] += data


def calls_in(page):
    """The calls of each intrinsic, as the table says."""
    head, *rows = Cells(page).rows
    return {row[head.index("intrinsic")]: int(row[head.index("calls")]) for row in rows if row[0] != "code"}


def test_the_calls_of_a_cell_are_shown_below_it(notebook):
    _, cell = notebook(LOAD, f"%%interpose\n{QUERIES}")

    page, text = shown(cell)
    assert calls_in(page) == {
        "time.sleep": 1,
        "sqlite3.connect": 1,
        "sqlite3.Connection.execute": 5,
        "sqlite3.Cursor.fetchone": 5,
    }
    assert "12 calls" in text and "notebook.1.er" in text
    assert all(name in text for name in ("time.sleep", "load"))
    table, _, _ = page.partition("<svg ")
    assert Cells(table).elements == {"div", "p", "table", "thead", "tbody", "tr", "th", "td"}


def frames(page):
    """The depth, the width in nanoseconds and the name of each frame of the flame graph below a table."""
    found = re.findall(r'data-w="(\d+)" data-d="(\d+)" data-n="([^"]*)"', page)
    return [(int(depth), int(width), html.unescape(name)) for width, depth, name in found]


def test_the_flame_graph_of_a_cell_has_its_calls_and_nothing_of_the_kernel(notebook, capsys):
    load = "import time\ndef load():\n    time.sleep(0.001)"
    _, _, cell = notebook(LOAD, load, "%%interpose\nload()\ntime.sleep(0.05)")

    found = frames(shown(cell)[0])
    names = [name for _, _, name in found]
    assert names.count("time.sleep") == 2
    assert set(names) <= {"<Total>", "<Truncated-stack>", "<module>", "load", "time.sleep"}
    assert main(["report", "notebook.1.er", "--by", "intrinsic", "--format", "json"]) == 0
    sleeps = [row for row in json.loads(capsys.readouterr().out) if row["intrinsic"] == "time.sleep"]
    assert found[0] == (0, sleeps[0]["self_wall_ns"], "<Total>")
    assert sum(width for _, width, name in found if name == "time.sleep") == found[0][1]


def test_a_cell_without_calls_has_no_flame_graph(notebook):
    _, cell = notebook(LOAD, "%%interpose\n1 + 1")

    assert "<svg" not in shown(cell)[0]


def seconds(text):
    """A time as the table shows it."""
    number, unit = text.lstrip("~").split()
    return float(number) * {"s": 1, "ms": 1e-3, "us": 1e-6, "ns": 1e-9}[unit]


@pytest.mark.parametrize("by", ["", " function", " detail", " file"])
def test_the_code_of_a_cell_has_the_time_that_it_measured_without_its_calls(notebook, by):
    source = (
        "import time\nwall, cpu = time.perf_counter(), time.thread_time()\n"
        "while time.thread_time() - cpu < 0.5: pass\n"
        "before = time.perf_counter()\ntime.sleep(0.2)\nslept = time.perf_counter() - before\n"
        "print(time.perf_counter() - wall - slept, time.thread_time() - cpu, slept)"
    )

    _, cell = notebook(LOAD, f"%%interpose{by}\n{source}")

    wall_s, cpu_s, slept_s = map(float, cell.outputs[0].text.split())
    page, text = shown(cell)
    head, *rows = Cells(page.partition("<svg ")[0]).rows
    (code,) = [dict(zip(head, row, strict=True)) for row in rows if row[0] == "code"]
    assert seconds(code["self CPU"]) == pytest.approx(cpu_s, rel=0.02)
    assert 0.99 * wall_s < seconds(code["self wall"]) < 1.01 * (seconds(text.partition(",")[0]) - slept_s)
    assert "INTERPOSE=calls,profile" in text and "INTERPOSE=calls,profile" in page


def test_a_cell_that_waits_has_no_hint_to_see_its_functions(notebook):
    _, cell = notebook(LOAD, "%%interpose\nimport time\ntime.sleep(0.3)")

    assert "INTERPOSE=calls,profile" not in shown(cell)[1]


def test_a_cell_gives_prints_and_raises_what_it_does_without(notebook):
    sources = [QUERIES, "_ + 1", "number", "x = 1", "1 / 0", "def f(:", "print('a'); raise KeyError('b')", "2;", "x"]

    plain = notebook("import interpose", *sources)
    traced = notebook(LOAD, *(f"%%interpose\n{source}" for source in sources))

    for one, other in zip(plain[1:], traced[1:], strict=True):
        assert outputs(one) == outputs(other)


def traceback_of(cell):
    """The entries of the traceback as text, without colours and numbers of cells."""
    [error] = [each for each in cell.outputs if each.output_type == "error"]
    return re.sub(r"\x1b\[[0-9;]*m|In\[\d+\]|In *\[\d+\]", "", "\n".join(error.traceback)).split("\n\n")


def test_the_traceback_of_a_cell_has_no_frame_of_ours(notebook):
    sources = ["def f():\n    1 / 0\nf()", "x = 1\nopen('nowhere')\ny = 2"]

    _, *cells = notebook(LOAD, *sources, *(f"%%interpose\n{source}" for source in sources))

    for plain, traced in zip(cells[:2], cells[2:], strict=True):
        assert "ipython.py" not in "".join(traceback_of(traced))
        assert traceback_of(traced)[-len(traceback_of(plain)) + 1 :] == traceback_of(plain)[1:]


def test_each_cell_has_its_own_calls_and_what_is_between_is_not_recorded(notebook, capsys):
    _, first, _, second = notebook(
        LOAD, "%%interpose intrinsic\nimport time\ntime.sleep(0.01)", "time.sleep(0.02)", "%interpose time.sleep(0.03)"
    )

    assert [calls_in(shown(cell)[0]) for cell in (first, second)] == [{"time.sleep": 1}, {"time.sleep": 1}]
    assert main(["transactions", "notebook.1.er", "--format", "json"]) == 0
    named = {row["transaction"]: row for row in json.loads(capsys.readouterr().out)}
    assert {name for name in named if name.startswith("In[")} == {"In[2]", "In[4]"}
    assert [first.execution_count, second.execution_count] == [2, 4]
    assert named["In[2]"]["sleep_wall_ns"] >= 10_000_000 and named["In[4]"]["sleep_wall_ns"] >= 30_000_000
    assert main(["report", "notebook.1.er", "--by", "intrinsic", "--format", "json"]) == 0
    calls = {row["intrinsic"]: row["calls"] for row in json.loads(capsys.readouterr().out)}
    assert calls["time.sleep"] == 2


def test_threads_that_a_cell_starts_or_gives_work_to_are_seen_too(notebook):
    work = "import time\nfrom concurrent.futures import ThreadPoolExecutor\ndef work(_): time.sleep(0.01)"
    begin = f"{work}\npool = ThreadPoolExecutor(3)\nlist(pool.map(work, range(6)))"

    library = "%%interpose\nwith ThreadPoolExecutor(3) as new: list(new.map(time.sleep, [0.01] * 4))"

    _, _, cell, new = notebook(LOAD, begin, "%interpose list(pool.map(work, range(5)))", library)

    assert calls_in(shown(cell)[0])["time.sleep"] == 5
    assert calls_in(shown(new)[0])["time.sleep"] == 4


def test_a_kernel_that_is_recorded_already_stays_so(notebook, capsys):
    _, cell, _ = notebook(LOAD, "%%interpose\nimport time\ntime.sleep(0.01)", "time.sleep(0.02)", INTERPOSE="1")

    assert calls_in(shown(cell)[0])["time.sleep"] == 1
    assert "test.1.er" in shown(cell)[1]
    assert main(["report", "test.1.er", "--by", "site", "--format", "json"]) == 0
    rows = json.loads(capsys.readouterr().out)
    sleeps = [row for row in rows if row["intrinsic"] == "time.sleep" and FILE.search(row["site"] or "")]
    assert [row["calls"] for row in sleeps] == [1, 1]


def test_unloading_ends_the_recording_and_takes_the_magics_away(notebook, capsys):
    sleep, unload = "import time; time.sleep(0.01)", "%unload_ext interpose.ipython"
    cells = notebook(LOAD, f"%interpose {sleep}", unload, sleep, "%interpose 1", LOAD, "%interpose 1")

    assert "not found" in cells[4].outputs[0].get("text", "")
    assert "notebook.2.er" in shown(cells[6])[1]
    assert main(["report", "notebook.1.er"]) == 0
    assert "detached, and ran on" in capsys.readouterr().out
    assert main(["report", "notebook.1.er", "--by", "intrinsic", "--format", "json"]) == 0
    calls = {row["intrinsic"]: row["calls"] for row in json.loads(capsys.readouterr().out)}
    assert calls["time.sleep"] == 1


def test_names_of_an_experiment_are_text_in_the_table(notebook):
    name = "<img src=x onerror=alert(1)>"

    _, cell = notebook(LOAD, f"%%interpose detail\nimport os.path\nos.path.lexists('{name}')")

    page, _ = shown(cell)
    assert "img" not in Cells(page).elements
    assert re.search(r"&lt;img src=x onerror=alert\(1\)&gt;", page)


@pytest.mark.parametrize(
    ("cell", "told"),
    [
        ("%%interpose bogus\n1", "UsageError: %%interpose bogus: one of site, intrinsic"),
        ("%%interpose\nimport asyncio\nawait asyncio.sleep(0)", 'UsageError: %%interpose cannot run a cell with await'),
        ("%%interpose\nimport asyncio\nx = 1\nawait asyncio.sleep(0)\nx", 'use with interpose.transaction("..."):'),
        ("%%interpose\nreturn 1", "SyntaxError"),
    ],
)
def test_what_cannot_be_run_is_said(notebook, cell, told):
    _, done, after = notebook(LOAD, cell, "1 + 1")

    said = "".join(each.get("text", "") + each.get("ename", "") for each in done.outputs)
    assert told in said
    assert after.outputs[0].data["text/plain"] == "2"


def test_where_nothing_may_be_recorded_a_line_says_why(notebook):
    Path("blocked").touch()

    _, cell = notebook(LOAD, "%interpose 1", INTERPOSE_DIR=str(Path("blocked").absolute()))

    assert [each.get("text", "") for each in cell.outputs if "not recorded" in each.get("text", "")] or shown(cell)
