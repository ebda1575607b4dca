"""What is written for GitHub, read by the parser that GitHub uses (cmark-gfm): names stay names, figures figures."""

import io
import json
import re
from html.parser import HTMLParser
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from interpose.cli.main import main
from interpose.reports.formats import github, markdown
from interpose.reports.formats.table import Column, Table, clean
from tests.build import SECOND, START_NS, Build, event

cmarkgfm = pytest.importorskip("cmarkgfm")
pytestmark = pytest.mark.packages
MS = 1_000_000
LAST = ["all", "elapsed"]
HOSTILE = (
    "a|b <img src=x onerror=alert(1)> `x` ``y @octocat #1 [l](http://x.test) "
    "**b** a\\|b</details>\n| x | :tada: $x$ GH-1"
)
# What GitHub makes something of outside of code: names, numbers, addresses, pictures, formulas, commits.
TAKEN = re.compile(r"[@#]\w|://|www\.|:[\w+-]+:|\$|\b[0-9a-f]{7,40}\b|GH-\d")
OURS = {"table", "thead", "tbody", "tr", "th", "td", "code", "pre", "h3", "details", "summary", "p"}


class Page(HTMLParser):
    """A page as GitHub would make it: the cells of its tables by row, its blocks, its elements, its other text."""

    def __init__(self, markdown):
        super().__init__()
        self.tables, self.blocks, self.elements, self.others = [], [], set(), []
        self.links = []
        self._open = []
        options = cmarkgfm.cmark.Options.CMARK_OPT_UNSAFE  # raw HTML passes, as far as there is any
        self.feed(cmarkgfm.github_flavored_markdown_to_html(markdown, options))

    def handle_starttag(self, tag, attributes):
        self.elements.add(tag)
        self._open.append(tag)
        if tag == "table":
            self.tables.append([])
        elif tag == "tr":
            self.tables[-1].append([])
        elif tag in ("td", "th"):
            self.tables[-1][-1].append("")
        elif tag == "pre":
            self.blocks.append("")

    def handle_endtag(self, tag):
        while self._open and self._open.pop() != tag:
            pass

    def handle_data(self, data):
        if "td" in self._open or "th" in self._open:
            self.tables[-1][-1][-1] += data
        elif "pre" in self._open:
            self.blocks[-1] += data
        else:
            self.others.append(data)
        if "code" not in self._open and TAKEN.search(data):
            self.links.append(data)


def shop(name, ms=10, *, intrinsic="sqlite3.Cursor.execute", function="checkout", seed=0, **log):
    build = Build(Path(name), **log)
    number = build.intrinsic(intrinsic, "db")
    sleep = build.intrinsic("time.sleep", "sleep")
    stack = build.stack(build.site("/home/u/shop/orders.py", 88, function))
    starts = [50 * MS * call for call in range(10)]
    rows = [
        event(start, (ms * MS if call % 2 else 5 * MS) + 1000 * seed * call, MS, call=call + 1,
              intrinsic=number if call % 2 else sleep, stack=stack)
        for call, start in enumerate(starts)
    ]  # fmt: skip
    build.events(rows)
    build.thread(recorded=10, main=1, end_ns=START_NS + SECOND, end_cpu_ns=300 * MS)
    build.ended(SECOND, 300 * MS)
    return str(build.write())


def shown(capsys, *words, code=0):
    assert main(words) == code
    return Page(capsys.readouterr().out)


names = st.text(st.one_of(st.characters(), st.sampled_from("`|\\<>&*_@#[]()!~:/ $")), max_size=11) | st.sampled_from(
    [":tada:", "$x$", "$`x`$", "see 1a2b3c4d5e", "GH-1", "http://x.test", "www.x.test", "a: b", "@octocat", "o/r#1"]
)


@pytest.mark.parametrize("form", [github, markdown], ids=["github", "markdown"])
@given(st.lists(names, min_size=1, max_size=4))
def test_any_text_in_a_table_is_shown_as_it_is(form, texts):
    out = io.StringIO()
    columns = [Column("name", lambda row: clean(row), right=False), Column("n", lambda row: "~1,000")]
    columns.append(Column("$x$ :tada:", lambda row: ""))

    form.write(Table((), dict, columns, texts), out, 200)

    page = Page(out.getvalue())
    [table] = page.tables
    assert table == [["name", "n", "$x$ :tada:"], *([clean(text).strip(), "~1,000", ""] for text in texts)]
    assert page.elements <= OURS
    assert page.links == []


@given(names)
def test_a_sentence_with_any_words_is_shown_as_it_is(text):
    page = Page(f"not traced: {markdown.sentence(text)}.")

    assert "".join(page.others).split() == f"not traced: {clean(text)}.".split()
    assert page.elements <= {"p", "code"}
    assert page.links == []


@given(st.lists(st.text(st.one_of(st.characters(), st.sampled_from("`~<\n "))), min_size=1, max_size=4))
def test_any_text_in_a_block_is_shown_as_it_is(lines):
    page = Page("\n".join(github.fenced(lines)))

    assert page.blocks == ["".join(f"{clean(line)}\n" for line in lines)]
    assert page.elements == {"pre", "code"}


def test_a_report_has_the_rows_of_the_report(place, capsys):
    path = shop("test.1.er", 20)
    assert main(["report", path, "--format", "json"]) == 0
    rows = json.loads(capsys.readouterr().out)["rows"]

    page = shown(capsys, "report", path, "--format", "github")

    kinds, lines = page.tables
    assert [row[0] for row in kinds[1:]] == [row["kind"] for row in rows]
    assert [row[1] for row in kinds[1:] if row[1]] == [f"{row['calls']:,}" for row in rows if row["calls"]]
    assert ["db", "5"] in [row[:2] for row in kinds]
    assert any("orders.py:88" in cell for row in lines for cell in row)
    assert "test.1.er" in page.blocks[0]
    assert "elapsed 1.000 s" in page.blocks[0]
    assert "5 calls of sqlite3.Cursor.execute from orders.py:88 checkout" in page.blocks[0]
    assert page.elements == OURS - {"p"}


@pytest.mark.parametrize("by", ["kind", "intrinsic", "site", "function", "detail", "thread", "finding", "structure"])
def test_a_table_of_each_grouping_has_the_names_of_the_experiment(place, capsys, by):
    path = shop("test.1.er", 20, intrinsic=HOSTILE, function=HOSTILE)

    page = shown(capsys, "report", path, "--by", by, "--format", "github")

    [table] = page.tables
    assert len({len(row) for row in table}) == 1
    assert page.elements <= OURS - {"details"}
    assert page.links == []
    if by in ("intrinsic", "site", "detail"):
        assert clean(HOSTILE) in [cell for row in table for cell in row]


def test_nothing_of_an_experiment_is_taken_for_markdown_html_or_a_link(place, capsys):
    paths = [
        shop(f"{side}.{run}.er", 10 if side == "a" else 20, intrinsic=HOSTILE, function=HOSTILE, seed=run)
        for side in "ab"
        for run in range(3)
    ]

    report = shown(capsys, "report", paths[0], "--format", "github")
    comparison = shown(
        capsys, "compare", *paths[:3], "--with", *paths[3:], "--by", "function", "--format", "github",
        "--fail-if", "total(code) < -1%", code=4,
    )  # fmt: skip

    for page in (report, comparison):
        assert page.elements <= OURS
        assert page.links == []
        assert clean(HOSTILE) in [cell for table in page.tables for row in table for cell in row]


def test_a_comparison_has_conditions_then_changes_then_the_rest(place, capsys):
    a = [shop(f"a.{run}.er", seed=run) for run in range(3)]
    b = [shop(f"b.{run}.er", 20, seed=run) for run in range(3)]
    words = ("compare", *a, "--with", *b)
    assert main([*words, "--format", "json"]) == 0
    rows = {row["intrinsic"] or row["kind"]: row["verdict"] for row in json.loads(capsys.readouterr().out)}

    page = shown(capsys, *words, "--format", "github", "--fail-if", "total(all) > +1000%", "--fail-if",
                 "mean(sqlite3.Cursor.execute) > +50%", code=4)  # fmt: skip

    conditions, changed, others = page.tables
    assert "interpose compare: changed in " in "".join(page.others)
    assert [row[:2] for row in conditions[1:]] == [
        ["total(all) > +1000%", "does not hold"],
        ["mean(sqlite3.Cursor.execute) > +50%", "holds"],
    ]
    assert [row[2:5] for row in conditions[2:]] == [["10.0 ms", "20.0 ms", "+100.0 %"]]
    last = changed[0].index("intrinsic")
    assert {row[last] or row[last - 1]: row[0] for row in changed[1:-2]} == {
        name: verdict for name, verdict in rows.items() if verdict == "changed" and name not in LAST
    }
    assert [row[last - 1] for row in changed[-2:]] == LAST
    assert {row[last] or row[last - 1] for row in others[1:]} == {
        name for name, verdict in rows.items() if verdict != "changed" and name not in LAST
    }


def test_one_run_a_side_shows_what_matters_first(place, capsys):
    a, b = shop("a.er"), shop("b.er", 20)

    page = shown(capsys, "compare", a, b, "--format", "github")

    names = [row[-1] or row[-2] for row in page.tables[0][1:]]
    assert names == ["code", "sqlite3.Cursor.execute", "time.sleep", *LAST]
    assert "not enough data" in "".join(page.others)


def test_a_comment_stays_short_however_many_rows_there_are(place, capsys):
    def many(name):
        build = Build(Path(name))
        numbers = [build.intrinsic(f"module.{'n' * 200}.function_{number}", "db") for number in range(400)]
        build.events([event(2 * n * MS, MS, intrinsic=number, call=n + 1) for n, number in enumerate(numbers)])
        build.thread(recorded=400, main=1, end_ns=START_NS + SECOND, end_cpu_ns=300 * MS)
        build.ended(SECOND, 300 * MS)
        return str(build.write())

    words = ["compare", many("a.er"), many("b.er"), "--format", "github"]

    assert main(words) == 0
    out = capsys.readouterr().out
    assert len(out) < 65_536
    assert "50 shown" in out
    assert len(shown(capsys, *words, "--limit", "3").tables[0]) < 7
