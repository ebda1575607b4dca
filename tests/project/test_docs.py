"""The pages of docs/: short, linked, and with examples that run."""

import ast
import re
import sys
from functools import cache
from html import unescape
from pathlib import Path

import pytest

from interpose.analysis.calls.groupings import GROUPINGS
from interpose.analysis.calls.rows import CODE, OVERHEAD, START_UP
from interpose.config import schema
from interpose.kinds import EVERY
from interpose.reports.sentences.advice import EVERY_ADVICE
from tests.project.test_readme import blocks, commands_in, shell, variables_in, wrong_options

__all__ = ["shell"]  # the fixture

DOCS = Path(__file__).parents[2] / "docs"
sys.path.insert(0, str(DOCS))

import outputs  # noqa: E402

PAGES = sorted(page for page in DOCS.rglob("*.md") if page.parent.parts[len(DOCS.parts) :][:1] != ("made",))
RUN = [page for page in PAGES if blocks("sh", page.read_text(encoding="utf-8"))]
LONGEST = 300
LARGEST_PICTURE_BYTES = 100_000
SHOWING = {
    *("getting-started.md", "reports.md", "view.md", "findings.md", "profile.md", "heap.md", "native.md"),
    *("transactions.md", "coverage.md", "comparing.md", "trend.md", "many-experiments.md", "exports.md", "traces.md"),
    *("display.md", "python-api.md", "filters.md", "how-to/ci.md", "how-to/slow-batch.md", "how-to/slow-start.md"),
    *("how-to/slow-tests.md", "how-to/slow-web-app.md", "how-to/production.md"),
}


def name_of(page: Path) -> str:
    return page.relative_to(DOCS).as_posix()


@pytest.mark.parametrize("page", PAGES, ids=name_of)
def test_a_page_is_short_enough_to_be_read(page):
    assert len(page.read_text(encoding="utf-8").splitlines()) <= LONGEST


@pytest.mark.parametrize("page", PAGES, ids=name_of)
def test_what_a_page_points_to_is_there(page):
    links = re.findall(r"\]\(([^)#:]+)(?:#[^)]*)?\)", page.read_text(encoding="utf-8"))
    made = [link for link in links if link.startswith("made/")]

    assert [link for link in set(links) - set(made) if not (page.parent / link).is_file()] == []


def pictures():
    """The pages that pictures are made for, by the name of each (docs/pictures.py)."""
    (made,) = re.findall(r"^PICTURES = \{\n.*?^\}", (DOCS / "pictures.py").read_text(encoding="utf-8"), re.M | re.S)
    return dict(re.findall(r'"([\w-]+\.svg)": (?:Picture|lesson)\(\s*"([^"]+)"', made))


def test_each_picture_of_a_page_is_made_by_the_command_and_is_small_and_loads_nothing():
    shown = {}
    for page in PAGES:
        for name in re.findall(r"!\[[^]]+\]\((?:\.\./)*pictures/([\w-]+\.svg)\)", page.read_text(encoding="utf-8")):
            shown.setdefault(name, name_of(page))
    files = {each.name: each.read_text(encoding="utf-8") for each in (DOCS / "pictures").iterdir()}

    assert shown == pictures()
    assert shown.keys() == files.keys()
    assert [name for name, text in files.items() if len(text.encode()) > LARGEST_PICTURE_BYTES] == []
    assert [name for name, text in files.items() if re.search(r"<script|@font-face|url\((?!#)|href=", text)] == []


def test_each_page_about_what_a_command_shows_has_a_picture():
    assert {*pictures().values()} >= SHOWING


def test_every_page_is_in_the_table_of_contents():
    toctrees = re.findall(r"```\{toctree\}\n(.*?)```", (DOCS / "index.md").read_text(encoding="utf-8"), re.S)
    entries = [line for toctree in toctrees for line in toctree.splitlines() if line and not line.startswith(":")]
    found = {name_of(page) for entry in entries for page in DOCS.glob(f"{entry}.md")}

    assert {name_of(page) for page in PAGES} - found == {"index.md"}


@pytest.mark.parametrize("page", PAGES, ids=name_of)
def test_every_command_and_setting_of_a_page_is_one(page, capsys):
    text = page.read_text(encoding="utf-8")
    shown = [line for language in ("sh", "console") for block in blocks(language, text) for line in block.splitlines()]
    steps = re.findall(r"^(?:- run:|\s+)\s*(INTERPOSE\S*|interpose .*)$", "\n".join(blocks("yaml", text)), re.M)
    prose = re.sub(r"^```.*?^```$", "", text, flags=re.M | re.S)
    inline = re.findall(r"`(interpose [^`\n<…]+|INTERPOSE\w*=[^`\n]*)`", prose)
    commands = commands_in(re.sub(r" > [\w./]+$", "", line) for line in [*shown, *steps, *inline])

    assert variables_in([*shown, *steps, *inline]) <= {each.variable for each in schema.SETTINGS}
    assert [wrong for command in commands for wrong in wrong_options(command, capsys)] == []


# Not settings: what descendants inherit, the build, and the name in C of data collectors.
OTHER_WORDS = {*schema.OTHER_VARIABLES, "INTERPOSE_COLLECTOR"}


@pytest.mark.parametrize("page", PAGES, ids=name_of)
def test_every_variable_that_a_page_names_is_a_setting(page):
    named = set(re.findall(r"\bINTERPOSE(?:_[A-Z]+)+", page.read_text(encoding="utf-8")))

    assert named - {each.variable for each in schema.SETTINGS} - OTHER_WORDS == set()


SCREENS = blocks("text", (DOCS / "first-screens.md").read_text(encoding="utf-8"))


FINDING = re.compile(r"^ *(?:Slowest|Also): .*(?:\n +(?!Also: )\S.*)*", re.M)


def findings_of(text: str) -> list[str]:
    """The findings of first screens that a text shows, each as one line."""
    return [" ".join(sentence.split()) for sentence in FINDING.findall(text)]


@pytest.mark.parametrize("page", [*PAGES, DOCS.parent / "README.md"], ids=lambda page: page.name)
def test_the_findings_that_a_page_shows_give_the_advice_of_today(page):
    told = findings_of(page.read_text(encoding="utf-8"))

    assert [each for each in told if not each.endswith(tuple(EVERY_ADVICE))] == []


def test_each_of_the_first_screens_has_its_findings():
    assert [screen for screen in SCREENS if not findings_of(screen)] == []


def test_each_program_of_the_first_screens_is_there_and_each_that_is_there_is_shown():
    shown = re.findall(r"^<!-- (\w+\.py)", (DOCS / "first-screens.md").read_text(encoding="utf-8"), re.M)

    assert sorted(shown) == sorted(each.name for each in (DOCS.parent / "examples" / "slow").glob("*.py"))
    assert len(SCREENS) == len(shown) == 10


def test_the_first_screen_that_is_shown_has_the_rows_of_today():
    (table,) = [part for part in SCREENS[0].split("\n\n") if "self wall" in part]
    rows = re.findall(r"^ (\w+) .* %", table, re.M)

    assert len(rows) > 8
    assert [row for row in rows if row not in (*EVERY, START_UP, CODE, OVERHEAD)] == []


@cache
def titles():
    """The texts of the modules that make tables, titles of columns among them."""
    tables = (DOCS.parent / "interpose" / "reports").rglob("*.py")
    trees = [ast.parse(each.read_text(encoding="utf-8")) for each in tables]
    nodes = [node for tree in trees for node in ast.walk(tree) if isinstance(node, ast.Constant)]
    return {node.value for node in nodes} | set(GROUPINGS) | set(EVERY)


def lines_of(picture):
    """The lines of a terminal that a picture shows."""
    found = {}
    texts = re.findall(r'<text [^>]*?x="([\d.]+)" y="([\d.]+)"[^>]*>(.*?)</text>', picture)
    for _, y, text in sorted(texts, key=lambda each: float(each[0])):
        found[float(y)] = found.get(float(y), "") + unescape(text).replace("\xa0", " ")
    return [found[y] for y in sorted(found)]


@pytest.mark.parametrize(
    ("name", "first"),
    [
        *(("heap", "at peak"), ("native", "kind"), ("transactions", "transaction"), ("compare", "verdict")),
        *(("trend", "run"), ("notebook", "intrinsic")),
    ],
)
def test_a_table_in_a_picture_has_the_columns_of_today(name, first):
    lines = lines_of((DOCS / "pictures" / f"{name}.svg").read_text(encoding="utf-8"))

    (head,) = [line.strip() for line in lines if line.strip().startswith(f"{first}  ")]
    shown = [title for title in re.split("  +", head) if not title.startswith("total(")]
    assert len(shown) > 5
    assert [title for title in shown if re.sub(r", \d+ runs$", "", title) not in titles()] == []


def test_what_pages_show_of_commands_is_made_by_the_command_that_does_that():
    shown = {(name_of(page), command) for page in PAGES for command in outputs.blocks(name_of(page))}

    assert shown == outputs.OUTPUTS.keys()


# What pages show of a command that no example makes: a part of it, and the page.
SAID = {
    "nothing was recorded: ": "native.md",
    "linked statically": "native.md",
    "the process that read it was ": "many-experiments.md",
    " blocked the event loop ": "findings.md",
    "processors busy": "profile.md",
    "no known cause": "profile.md",
    "between calls": "profile.md",
}


@pytest.mark.parametrize("words", SAID)
def test_what_a_page_says_that_a_command_says_is_what_it_says(words):
    files = [*(DOCS.parent / "interpose").rglob("*.py"), *(DOCS.parent / "cext").rglob("*.h")]
    sources = [path.read_text(encoding="utf-8") for path in files]

    assert words in (DOCS / SAID[words]).read_text(encoding="utf-8")
    assert any(words in source for source in sources)


def heads(text: str) -> set[str]:
    """The words of the lines that are not about something recorded: heads of tables, and explanations."""
    lines = [re.sub(r"\b(?:p95|95 %)", "", line) for line in FINDING.sub("", text).splitlines()]
    return {word for line in lines if not re.search(r"[\d/…]", line) for word in line.split() if word.isalpha()}


@pytest.fixture(scope="module")
def place(tmp_path_factory):
    return outputs.Workplace(str(tmp_path_factory.mktemp("pages")))


@pytest.mark.slow
@pytest.mark.parametrize(("page", "command"), outputs.OUTPUTS)
def test_what_a_page_shows_of_a_command_has_the_words_that_it_prints_now(place, page, command):
    shown, made = outputs.blocks(page)[command], outputs.printed(place, page, command)

    assert heads(shown)
    assert heads(shown) - heads(made) == set()


@pytest.mark.slow
@pytest.mark.parametrize("name", ["heap", "trend", "notebook", "native", "coverage"])
def test_a_picture_of_a_terminal_has_the_heads_that_are_printed_now(place, name):
    pytest.importorskip("rich")
    if name == "notebook":
        pytest.importorskip("IPython")
    from pictures import PICTURES

    kept = (DOCS / "pictures" / f"{name}.svg").read_text(encoding="utf-8")
    shown, made = ("\n".join(lines_of(each)) for each in (kept, PICTURES[f"{name}.svg"].make(place)))

    assert len(heads(shown)) > 4
    assert heads(shown) - heads(made) <= {"share", "bytes"}  # there if a line has room for them


@pytest.mark.slow
@pytest.mark.parametrize("page", RUN, ids=name_of)
def test_the_examples_of_a_page_run_as_they_stand_there(page, shell):
    text = page.read_text(encoding="utf-8")
    files = re.findall(r"^```python\n(# (\w+\.py)\n.*?)^```", text, re.M | re.S)
    written = "".join(f"cat > {name} <<'END'\n{source}END\n" for source, name in files)

    done = shell(written + "".join(blocks("sh", text)))

    assert done.returncode == 0
    assert [line for line in done.stderr.splitlines() if not line.startswith("interpose: ")] == []
    shown = [line for block in blocks("text", text) for line in block.splitlines()]
    told = " ".join(done.stdout.split())
    assert [line for line in shown if line not in told] == []
