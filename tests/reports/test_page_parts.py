"""What the page is made of, without a browser: markup, its policy, its size, the time-line's slices, the sheet."""

import base64
import csv
import hashlib
import html
import io
import json
import re
from html.parser import HTMLParser
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from interpose.analysis.analysis import Analysis
from interpose.analysis.calls.hot_lines import hot_files
from interpose.analysis.calls.profile import profile
from interpose.analysis.findings.survey import Survey
from interpose.analysis.time import timeline as timeline_module
from interpose.analysis.time.timeline import timeline
from interpose.cli.main import main
from interpose.experiments.model.experiment import Experiment
from interpose.legacy.programs import programs
from interpose.reports.formats.table import clean
from interpose.reports.page.drawings import pie
from interpose.reports.page.markup import Markup, data, element, escaped
from tests.build import SECOND, START_NS, Build, event

MS = 1_000_000
LARGEST_BYTES = 300_000  # of a page, besides what is of the experiment


class Seen(HTMLParser):
    """What a parser of HTML sees: elements with their attributes, and the text."""

    def __init__(self, text):
        super().__init__()
        self.elements, self.text = [], ""
        self.feed(text)
        self.close()

    def handle_starttag(self, tag, attributes):
        self.elements.append((tag, dict(attributes)))

    def handle_data(self, data):
        self.text += data


@given(st.text(), st.text())
def test_a_text_is_a_text_and_an_attribute_an_attribute(text, attribute):
    seen = Seen(element("td", text, title=attribute))

    assert seen.elements == [("td", {"title": clean(attribute)})]
    assert seen.text == clean(text)


@pytest.mark.long
@given(st.recursive(st.text() | st.integers(), lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner)))
def test_data_come_back_and_end_no_script(values):
    text = data("x", values)

    inner = text.removeprefix('<script type="application/json" id="x">').removesuffix("</script>")
    assert json.loads(inner) == values
    assert not set(inner) & set("<>&\u2028\u2029")


def test_markup_is_not_escaped_twice():
    assert escaped(escaped("a<b")) == "a&lt;b"
    assert element("p", [element("b", "<"), "<"], hidden=True, id=None) == "<p hidden><b>&lt;</b>&lt;</p>"
    assert element("rect", class_="a b", data_v=1) == '<rect class="a b" data-v="1"/>'
    assert isinstance(element("p"), Markup)


@pytest.fixture
def shop(tmp_path):
    """Two threads of a second: one in calls of a millisecond, half of it in what they had inside, one in a long one."""
    build = Build(tmp_path / "test.1.er", arguments=["orders.py"])
    outer, inner = build.intrinsic("shop.get", "db"), build.intrinsic("socket.socket.recv", "net")
    stack = build.stack(build.site("/home/u/shop/orders.py", 3, "get"))
    rows = []
    for number in range(1000):
        at = number * MS
        call = {"intrinsic": outer, "call": 2 * number + 1, "inner_wall_ns": MS // 2, "stack": stack}
        inside = {"intrinsic": inner, "call": 2 * number + 2, "parent": 2 * number + 1, "stack": stack}
        rows.append(event(at + MS // 4, MS // 2, 1000, **inside))
        rows.append(event(at, MS, 5000, inner_cpu_ns=1000, **call))
    build.events(rows)
    build.events([event(0, SECOND, MS, thread=2, call=1, intrinsic=outer, stack=stack)])
    for _ in range(2):
        build.thread(end_ns=START_NS + SECOND, end_cpu_ns=20 * MS, tid=8)
    build.ended(SECOND, 40 * MS)
    return Experiment(str(build.write()))


def written(experiment, *words):
    out = Path(experiment.directory).parent / "out"
    assert main(["report", experiment.directory, "-o", str(out), *words]) in (0, 3)
    return out.read_text(encoding="utf-8")


def test_the_policy_names_what_the_styles_and_scripts_hash_to_and_nothing_else(shop):
    page = written(shop, "--format", "html")

    policy = html.unescape(re.search(r'http-equiv="Content-Security-Policy" content="([^"]*)"', page)[1])
    found = re.findall(r"<(script|style)>(.*?)</\1>", page, re.S)
    hashes = [f"'sha256-{base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()}'" for _, text in found]
    rules = dict(rule.split(" ", 1) for rule in policy.split("; "))
    assert rules["default-src"] == "'none'"
    assert (rules["style-src"] + " " + rules["script-src"]).split() == hashes
    assert "unsafe" not in policy and "http" not in policy


def test_a_page_is_small_besides_its_data(shop):
    page = written(shop, "--format", "html")

    own = re.sub(r"<tbody>.*?</tbody>|<script type=.*?</script>", "", page, flags=re.S)
    assert len(own.encode()) < LARGEST_BYTES


def test_a_page_has_the_licence_of_what_others_made(shop):
    assert "Copyright (c) 2022 Leon Sorokin" in written(shop, "--format", "html")


def slices(made, lane, kind):
    return made.lanes[lane].kinds[kind]


def test_each_slice_has_what_was_in_it_without_what_was_called_inside(shop):
    made = timeline(Analysis(shop), slices=100)

    assert made.slice_ns == SECOND // 100
    assert slices(made, 0, "db") == slices(made, 0, "net") == [5 * MS] * 100
    assert slices(made, 1, "db") == [10 * MS] * 100
    assert not made.is_estimated
    assert [call.wall_ns for call in made.calls[:2]] == [SECOND, MS]


def test_blocks_that_are_shorter_than_a_slice_are_put_together(tmp_path, monkeypatch):
    build = Build(tmp_path / "test.1.er")
    build.intrinsic("os.stat", "file")
    build.events([event(number * MS, MS // 2, call=number + 1) for number in range(4000)])
    build.thread(end_ns=START_NS + 4 * SECOND)
    build.ended(4 * SECOND, 0)
    experiment = Experiment(str(build.write()))

    monkeypatch.setattr(timeline_module._Laying, "_one_by_one", lambda *_: pytest.fail("one by one"))
    made = timeline(Analysis(experiment), slices=4)

    assert slices(made, 0, "file") == pytest.approx([SECOND // 2] * 4, rel=0.001)
    assert not made.is_estimated


def test_what_is_too_much_is_spread_and_said_to_be_estimated(shop, monkeypatch):
    monkeypatch.setattr(timeline_module, "ONE_BY_ONE_AT_MOST", 0)
    made = timeline(Analysis(shop), slices=100)

    assert made.is_estimated
    assert sum(slices(made, 0, "db")) == pytest.approx(SECOND / 2, rel=0.001)
    assert "Estimated" in written(shop, "--format", "html")


def test_threads_beyond_a_number_have_no_lane_and_that_is_said(shop, monkeypatch):
    monkeypatch.setattr(timeline_module, "LANES_AT_MOST", 1)
    made = timeline(Analysis(shop))

    assert (len(made.lanes), made.left_out) == (1, 1)
    assert "1 more thread" in written(shop, "--format", "html")


def test_impossible_events_are_in_no_slice(tmp_path):
    build = Build(tmp_path / "test.1.er")
    build.intrinsic("os.stat", "file")
    build.block([event(0, 2**63, call=1), event(-(2**40), 5, call=2), event(10, 20, call=3)])
    build.thread(end_ns=START_NS + 1000)
    build.ended(1000, 0)
    experiment = Experiment(str(build.write()))

    made = timeline(Analysis(experiment), slices=10)

    assert sum(slices(made, 0, "file")) == 20


def test_programs_add_up_to_the_thread_time_and_its_cpu_time(shop):
    survey = Survey(Analysis(shop))
    rows = programs(survey)

    assert sum(row.wall_ns for row in rows) == survey.analysis.total.wall_ns
    assert sum(row.cpu_ns for row in rows) == survey.analysis.total.cpu_ns
    assert {(row.name, row.part) for row in rows} >= {
        ("/home/u/shop/orders.py", part) for part in ("", "between calls")
    }


def test_the_sheet_has_milliseconds_and_per_cent(shop):
    rows = list(csv.DictReader(io.StringIO(written(shop, "--format", "mashzone"))))

    assert sum(float(row["cpu_percent"]) for row in rows) == pytest.approx(100, abs=0.001)
    assert sum(float(row["elapsed_ms"]) for row in rows) == pytest.approx(2000, abs=0.001)
    source = next(row for row in rows if row["program"] == "/home/u/shop/orders.py")
    assert (float(source["cpu_ms"]), source["hits"]) == (6.0, "2001")


def test_lines_have_what_their_calls_took(shop):
    (file,) = hot_files(profile(Analysis(shop), "site").rows, shop)

    assert file.site.file == "/home/u/shop/orders.py"
    sums = {number: line.sums for number, line in file.lines.items()}
    assert {number: (each.calls, each.self_wall_ns, each.self_cpu_ns) for number, each in sums.items()} == {
        3: (2001, 2 * SECOND, 6 * MS)
    }


class Cells(HTMLParser):
    """The texts of the cells of each row of the tables inside the element with an id."""

    def __init__(self, text, inside):
        super().__init__()
        self.rows = []
        self.feed(re.search(rf'<(section|div)[^>]* id="{inside}".*?</table></div>', text, re.S)[0])

    def handle_starttag(self, tag, attributes):
        if tag == "tr":
            self.rows.append([])
        if tag in ("td", "th"):
            self.rows[-1].append("")

    def handle_data(self, data):
        if self.rows and self.rows[-1]:
            self.rows[-1][-1] += data


def test_a_line_has_as_many_calls_in_the_sources_as_in_the_table_by_line(tmp_path):
    build = Build(tmp_path / "test.1.er", arguments=["serve.py"])
    outer, inner, accept = (
        build.intrinsic(*each)
        for each in (("socket.connect", "net"), ("socket.poll", "net"), ("socket.socket.accept", "idle"))
    )
    stacks = [build.stack(build.site("/home/u/serve.py", line, "serve")) for line in (3, 5)]
    build.events(
        [
            event(MS, MS, intrinsic=inner, call=2, parent=1, stack=stacks[0]),
            event(0, 3 * MS, intrinsic=outer, call=1, inner_wall_ns=MS, stack=stacks[0]),
            event(4 * MS, 40 * MS, intrinsic=accept, call=3, stack=stacks[0]),
            event(50 * MS, 90 * MS, intrinsic=accept, call=4, stack=stacks[1]),
        ]
    )
    build.thread(end_ns=START_NS + SECOND, end_cpu_ns=MS)
    build.ended(SECOND, MS)

    page = written(Experiment(str(build.write())), "--format", "html")

    by_line = [row for row in Cells(page, "by-site").rows if row[2:3] == ["serve.py:3"]]
    heads, *sources = Cells(page, "sources").rows
    third = next(row for row in sources if row[0] == "3")
    assert sorted(row[4] for row in by_line) == ["1", "1", "1"]
    assert third[heads.index("calls")] == "3"
    assert third[heads.index("self wall")] == "43.0 ms"
    assert re.search(r'class="hot hottest" id="line-\d+-3"|id="line-\d+-3" class="hot hottest"', page)


@pytest.mark.parametrize("words", [["--by", "kind"], ["--sort", "calls"], ["--limit", "3"], ["--label", "x"]])
@pytest.mark.parametrize("format", ["html", "mashzone"])
def test_the_whole_report_takes_no_options_of_a_table(shop, capsys, format, words):
    assert main(["report", shop.directory, "--format", format, *words]) == 2
    assert f"--format {format} excludes --by, --label, --sort and --limit" in capsys.readouterr().err


def test_a_pie_has_a_slice_for_each_share_and_one_for_the_rest():
    drawn = Seen(pie([(f"p{number}", 10) for number in range(10)]))
    whole = Seen(pie([("only", 5), ("none", 0)]))

    assert len([tag for tag, _ in drawn.elements if tag == "path"]) == 9
    assert "the rest 20 %" in drawn.elements[0][1]["aria-label"]
    assert [tag for tag, _ in whole.elements] == ["svg", "g", "circle", "title"]


def test_lanes_show_what_code_did_as_sampled(tmp_path):
    build = Build(tmp_path / "t.1.er", call_ns=0, inside_ns=0)
    query = build.intrinsic("sqlite3.Cursor.execute", "db")
    build.block([event(0, 200, intrinsic=query)])
    stack = build.sampled_stack(("app.py", 3, "work"))
    build.thread_sample(START_NS + 200, cpu_ns=0, stack=stack, state=1, call=1, intrinsic=query)
    for end, state, cpu_ns in ((300, 1, 300), (500, 3, 400), (700, 2, 400), (1000, 1, 700)):
        build.thread_sample(START_NS + end, cpu_ns=cpu_ns, stack=stack, state=state)
    build.thread(end_ns=START_NS + 1000, end_cpu_ns=700, tid=1, main=1, recorded=1, made=1)
    build.ended(1000, 700)

    (lane,) = timeline(Analysis(Experiment(str(build.write()))), slices=10).lanes

    assert lane.kinds["db"] == [100, 100, 0, 0, 0, 0, 0, 0, 0, 0]
    assert lane.kinds["running"] == [0, 0, 100, 100, 0, 0, 0, 100, 100, 100]
    assert lane.kinds["processor"] == [0, 0, 0, 0, 100, 0, 0, 0, 0, 0]
    assert lane.kinds["unexplained"] == [0, 0, 0, 0, 0, 100, 100, 0, 0, 0]


def test_lanes_are_in_the_order_in_which_processes_began(tmp_path):
    founder = Build(tmp_path / "t.1.er", call_ns=0, inside_ns=0)
    founder.thread(end_ns=START_NS + 1000, tid=1, main=1)
    founder.write()
    for number, start_ns in ((2, 300), (10, 600), (3, 900)):
        child = Build(tmp_path / "t.1.er" / f"_f{number}.er", pid=900 + number)
        child.thread(start_ns=START_NS + start_ns, end_ns=START_NS + 1000, tid=900 + number, main=1)
        child.write()

    made = timeline(Analysis(Experiment(str(tmp_path / "t.1.er"))), slices=10)

    assert [lane.process.log.pid - 900 for lane in made.lanes[1:]] == [2, 10, 3]


def test_what_is_awaited_does_not_hide_what_its_thread_did_meanwhile(tmp_path):
    build = Build(tmp_path / "t.1.er", call_ns=0, inside_ns=0)
    asleep, query = build.intrinsic("asyncio.sleep", "sleep"), build.intrinsic("sqlite3.Cursor.execute", "db")
    awaited = event(0, 1000, intrinsic=asleep, task=1, inner_wall_ns=1000)
    build.block([awaited, event(100, 200, call=2, intrinsic=query, task=2)])
    build.thread(end_ns=START_NS + 1000, tid=1, main=1, recorded=2, made=2)
    build.ended(1000, 800)

    made = timeline(Analysis(Experiment(str(build.write()))), slices=10)

    assert [call.wall_ns for call in made.calls] == [200]


def test_code_within_a_request_has_the_request_s_slices(tmp_path):
    build = Build(tmp_path / "t.1.er", call_ns=0, inside_ns=0)
    request = build.intrinsic("flask.Flask.wsgi_app", "logic")
    build.block([event(0, 1000, 1000, intrinsic=request)])
    stack = build.sampled_stack(("app.py", 3, "view"))
    for end in range(0, 1001, 100):
        build.thread_sample(START_NS + end, cpu_ns=end, stack=stack, call=1, intrinsic=request)
    build.thread(end_ns=START_NS + 1000, end_cpu_ns=1000, tid=1, main=1, recorded=1, made=1)
    build.ended(1000, 1000)

    (lane,) = timeline(Analysis(Experiment(str(build.write()))), slices=10).lanes

    assert lane.kinds["running"] == [100] * 10
    assert lane.kinds["logic"] == [0] * 10


def test_the_page_s_tables_have_sampled_functions(tmp_path):
    build = Build(tmp_path / "t.1.er", call_ns=0, inside_ns=0)
    stack = build.sampled_stack(("app.py", 3, "<b>work</b>"))
    for end in range(10, 1000, 10):
        build.thread_sample(START_NS + end, cpu_ns=end, stack=stack)
    build.thread(end_ns=START_NS + 1000, end_cpu_ns=1000, tid=1, main=1)
    build.ended(1000, 1000)

    assert main(["report", str(build.write()), "--format", "html", "-o", str(tmp_path / "out.html")]) == 0
    text = (tmp_path / "out.html").read_text()

    assert "&lt;b&gt;work&lt;/b&gt;" in text
    assert "<b>work" not in text
