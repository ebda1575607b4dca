"""The HTML report in a real browser: it shows what the other formats say, and nothing that was recorded acts."""

import base64
import html
import json
import os
from pathlib import Path

import pytest

from interpose.cli.main import main
from interpose.experiments.maintenance.archives import SOURCE, Archive
from tests.browser import CHROMIUM, WHY_NOT
from tests.build import SECOND, START_NS, Build, event

pytestmark = pytest.mark.skipif(CHROMIUM is None, reason=WHY_NOT)

MS = 1_000_000
# What each text of the hostile experiment tries, in its own way; TITLE makes one differ from the others.
EVIL = (
    "</script><script>window.hacked=1</script>TITLE<img src=x onerror=window.hacked=1>"
    "\" onmouseover=\"window.hacked=1\" '><svg onload=window.hacked=1>]]>{{7*7}}<!--\u2028`${alert(1)}`"
)


@pytest.fixture
def page(place, browser, capsys):
    """A function that opens the HTML report of an experiment."""

    def opened(experiment):
        browser.ask("Emulation.setScriptExecutionDisabled", value=False)
        browser.prefer(color_scheme="light", reduced_motion="no-preference")
        path = Path("report.html").absolute()
        assert main(["report", str(experiment), "--format", "html", "-o", str(path)]) == 0, capsys.readouterr().err
        browser.open(path)
        return browser

    return opened


def shop(directory="test.1.er", statements=12):
    """Ten seconds of a shop: statements from several lines, writes and sleeps, in two threads."""
    build = Build(Path(directory), arguments=["python", "orders.py"])
    query, write = build.intrinsic("sqlite3.Cursor.execute", "db"), build.intrinsic("os.write", "file")
    sleep = build.intrinsic("time.sleep", "sleep")
    stacks = [build.stack(build.site("/home/u/shop/orders.py", line, f"f{line}")) for line in (3, 5, 8)]
    rows = []
    for number in range(200):
        at = number * 40 * MS
        detail = build.string(f"SELECT a{number % statements} FROM orders WHERE b = ?")
        rows.append(event(at, 20 * MS, 5 * MS, call=3 * number + 1, intrinsic=query, stack=stacks[0], detail=detail))
        rows.append(event(at + 20 * MS, 3 * MS, MS, call=3 * number + 2, intrinsic=write, stack=stacks[1], bytes=9))
        rows.append(event(at + 25 * MS, 9 * MS, 0, call=3 * number + 3, intrinsic=sleep, stack=stacks[2]))
    build.events(rows)
    build.events([event(SECOND, 3 * SECOND, SECOND, thread=2, call=1, intrinsic=query, stack=stacks[0])])
    ends = {"end_ns": START_NS + 10 * SECOND, "end_cpu_ns": 4 * SECOND}
    build.thread(**ends, recorded=600, main=1, tid=812, own_wall_ns=MS)
    build.thread(**ends, recorded=1, tid=813)
    build.ended(10 * SECOND, 5 * SECOND)
    return build.write()


def archived(experiment, path, text):
    """Have a source in the archive of an experiment."""
    copy = Path("copy.py")
    copy.write_text(text)
    descriptor = os.open(copy, os.O_RDONLY)
    with Archive(str(experiment)) as archive:
        archive.add(path, SOURCE, descriptor, False)
    os.close(descriptor)


def told(capsys, *words):
    """What the JSON report says."""
    main(["report", "test.1.er", "--format", "json", *words])
    return json.loads(capsys.readouterr().out)


CELLS = """[...document.querySelectorAll('#table-%s %s tr')].map(row => [...row.cells].map(
    cell => cell.dataset.v === undefined ? cell.textContent : Number(cell.dataset.v)))"""


def rows_of(browser, table, part="tbody"):
    return browser.run(CELLS % (table, part))


def test_the_page_says_nothing_in_the_console_and_asks_for_nothing(page):
    browser = page(shop())

    assert browser.complaints == []
    assert [url for url in browser.requests if not url.startswith(("file://", "data:,"))] == []
    assert len([url for url in browser.requests if url.startswith("file://")]) == 1


def test_its_figures_are_those_of_the_json_report(page, capsys):
    browser = page(shop())

    made = rows_of(browser, "intrinsic") + rows_of(browser, "intrinsic", "tfoot")
    said = told(capsys, "--by", "intrinsic")
    assert [[row[2], row[3], row[4], row[6]] for row in made] == [
        [row["calls"], row["self_wall_ns"], row["self_cpu_ns"], row["wall_ns"]] for row in said
    ]
    thread_time = browser.run("Number(document.querySelectorAll('.cards dd')[1].dataset.v)")
    assert thread_time == sum(row["self_wall_ns"] for row in said) == 20 * SECOND


def test_its_findings_are_those_of_the_json_report(page, capsys):
    browser = page(shop(statements=1))

    bounds = browser.run("[...document.querySelectorAll('.findings .bound b')].map(each => Number(each.dataset.v))")
    assert bounds == [row["bound_ns"] for row in told(capsys, "--by", "finding")] != []


@pytest.mark.parametrize(
    ("table", "words"), [("site", 4), ("detail", 3), ("function", 4), ("thread", 3)], ids=lambda value: str(value)
)
def test_every_table_adds_up_to_the_thread_time(page, table, words):
    browser = page(shop(statements=150))

    made = rows_of(browser, table) + rows_of(browser, table, "tfoot")

    assert sum(row[words + 1] for row in made) == 20 * SECOND


def test_rows_that_are_left_out_are_said_and_are_one_row(page):
    build = Build(Path("test.1.er"))
    build.intrinsic("os.stat", "file")
    build.events([event(n * MS, MS, call=n + 1, detail=build.string(f"/data/{n}")) for n in range(1000)])
    build.thread(end_ns=START_NS + SECOND, recorded=1000, main=1)
    build.ended(SECOND, 0)
    browser = page(build.write())

    shown, (rest, *_) = rows_of(browser, "detail"), rows_of(browser, "detail", "tfoot")

    assert (len(shown), rest[1], rest[3]) == (300, "700 more rows", 700)
    caption = browser.run("document.querySelector('#table-detail caption').textContent")
    assert "the first 300 of 1,000 rows" in caption and "interpose report --by detail" in caption


def test_a_click_on_a_head_sorts_and_says_so(page):
    browser = page(shop())
    calls = "document.querySelectorAll('#table-intrinsic th')[2]"

    browser.run(f"{calls}.querySelector('button').click()")
    first = [row[2] for row in rows_of(browser, "intrinsic")], browser.run(f"{calls}.ariaSort")
    browser.run(f"{calls}.querySelector('button').click()")
    second = [row[2] for row in rows_of(browser, "intrinsic")], browser.run(f"{calls}.ariaSort")

    assert first == ([201, 200, 200], "descending")
    assert second == ([200, 200, 201], "ascending")


KINDS, INTRINSICS = ["db", "file", "sleep"], ["os.write", "sqlite3.Cursor.execute", "time.sleep"]


@pytest.mark.parametrize(("column", "names"), [(0, KINDS), (1, INTRINSICS)])
def test_names_are_sorted_as_names(page, column, names):
    browser = page(shop())
    heads = "document.querySelectorAll('#table-intrinsic th')"

    browser.run(f"{heads}[{1 - column}].querySelector('button').click()")
    browser.run(f"{heads}[{column}].querySelector('button').click()")

    assert [row[column] for row in rows_of(browser, "intrinsic")] == names


def test_the_search_leaves_the_rows_with_all_words(page):
    browser = page(shop())
    shown = "[...document.querySelectorAll('#table-detail tbody tr')].filter(row => !row.hidden).length"
    search = "document.querySelector('#by-detail input[type=search]')"

    before = browser.run(shown)
    browser.run(f"{search}.value = 'EXECUTE a3'; {search}.dispatchEvent(new Event('input'))")

    assert (before, browser.run(shown)) == (15, 1)
    assert browser.run("document.querySelector('#by-detail output').textContent") == "1 of 15 rows"


def test_tabs_are_chosen_by_keys(page):
    browser = page(shop())
    shown = "[...document.querySelectorAll('.panel')].filter(each => !each.hidden).map(each => each.id)"

    first = browser.run(shown)
    browser.run("document.querySelector('[role=tab][aria-selected=true]').focus()")
    browser.press("ArrowRight")

    assert (first, browser.run(shown)) == (["by-intrinsic"], ["by-site"])
    assert browser.run("document.activeElement.getAttribute('aria-selected')") == "true"


def test_the_time_line_is_drawn_and_zoomed_by_keys(page):
    browser = page(shop())
    drawn = """(canvas => new Set(canvas.getContext('2d').getImageData(0, 0, canvas.width, canvas.height).data).size)"""
    seen = "document.getElementById('range').textContent"

    colours = browser.run(f"{drawn}(document.getElementById('lanes'))")
    whole = browser.run(seen)
    browser.run("document.getElementById('lanes').focus()")
    browser.press("+")
    near = browser.run(seen)
    browser.press("0")

    assert colours > 10
    assert whole == browser.run(seen) == "0 ns to 10.0 s of 10.0 s"
    assert near == "1.50 s to 8.50 s of 10.0 s"
    assert browser.run("document.querySelectorAll('#activity canvas').length") == 1
    assert browser.complaints == []


def test_the_time_line_has_the_time_of_each_kind(page):
    browser = page(shop())
    data = browser.run("JSON.parse(document.getElementById('timeline-data').textContent)")

    def seconds(lane, kind):
        return sum(base64.b64decode(data["lanes"][lane]["kinds"][kind])) / 255 * data["slice"] / SECOND

    assert seconds(0, "db") == pytest.approx(4, rel=0.02)
    assert seconds(0, "sleep") == pytest.approx(1.8, rel=0.02)
    assert seconds(1, "db") == pytest.approx(3, rel=0.02)
    assert max(call[2] for call in data["calls"]) == 3 * SECOND


def test_what_is_under_the_pointer_is_told(page):
    browser = page(shop())
    browser.run("document.getElementById('lanes').scrollIntoView({behavior: 'instant', block: 'center'})")
    box = browser.run("(b => [b.left, b.top, b.width])(document.getElementById('lanes').getBoundingClientRect())")
    browser.ask("Input.dispatchMouseEvent", type="mouseMoved", x=box[0] + 190 + (box[2] - 190) * 0.2, y=box[1] + 60)

    tip = browser.run("document.getElementById('tip').innerText").splitlines()
    assert tip == ["sqlite3.Cursor.execute · 3.00 s, CPU 1.00 s, at 1.00 s", "orders.py:3 f3"]


COLOURS = "getComputedStyle(document.body).backgroundColor"


def test_the_theme_follows_the_system_and_the_switch(page):
    browser = page(shop())
    light = browser.run(COLOURS)
    browser.prefer(color_scheme="dark")
    dark = browser.run(COLOURS)
    chosen = []
    for _ in range(3):
        browser.run("document.getElementById('theme').click()")
        chosen.append((browser.run(COLOURS), browser.run("document.getElementById('theme').textContent")))

    assert light != dark
    assert chosen == [(light, "Theme: light"), (dark, "Theme: dark"), (dark, "Theme: system")]


CONTRAST = """(() => {
  const light = (colour) => {
    const [r, g, b] = colour.match(/[\\d.]+/g).map(Number).map(part => part / 255)
      .map(part => part <= .03928 ? part / 12.92 : ((part + .055) / 1.055) ** 2.4);
    return .2126 * r + .7152 * g + .0722 * b;
  };
  const behind = (element) => {
    for (let at = element; at; at = at.parentElement) {
      const colour = getComputedStyle(at).backgroundColor;
      if (!colour.endsWith(', 0)')) return colour;
    }
  };
  let least = 99;
  for (const element of document.querySelectorAll('h1, h2, h3, p, a, td, th, dt, dd, button, summary, li, b, span')) {
    if (!element.textContent.trim()) continue;
    const [a, b] = [light(getComputedStyle(element).color), light(behind(element))].sort((x, y) => y - x);
    least = Math.min(least, (a + .05) / (b + .05));
  }
  return least;
})()"""


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_texts_stand_out_from_what_is_behind_them(page, scheme):
    browser = page(shop(statements=1))
    browser.prefer(color_scheme=scheme)

    assert browser.run(CONTRAST) >= 4.5


def test_tables_and_regions_have_names(page):
    browser = page(shop())

    nameless = browser.run(
        """[...document.querySelectorAll('table[data-grid]')].filter(each => !each.caption || !each.tHead).length
        + [...document.querySelectorAll('[role=region], [role=img], section, nav')].filter(
            each => !each.ariaLabel && !each.getAttribute('aria-labelledby')).length
        + [...document.querySelectorAll('th')].filter(each => each.scope !== 'col').length
        + [...document.querySelectorAll('input')].filter(each => !each.labels.length).length"""
    )

    assert nameless == 0


def test_nothing_moves_where_that_is_preferred(page):
    browser = page(shop())
    browser.prefer(reduced_motion="reduce")

    assert browser.run("getComputedStyle(document.documentElement).scrollBehavior") == "auto"
    assert browser.run("document.getAnimations().length") == 0


def test_without_scripts_the_tables_are_there(page, browser):
    page(shop())
    browser.ask("Emulation.setScriptExecutionDisabled", value=True)
    browser.open(Path("report.html").absolute())

    root = browser.ask("DOM.getDocument", depth=1)["root"]["nodeId"]
    found = browser.ask("DOM.querySelectorAll", nodeId=root, selector="#table-site tbody tr")

    assert len(found["nodeIds"]) == 3


def test_the_policy_lets_no_other_script_run_and_nothing_be_fetched(page):
    browser = page(shop())

    tried = browser.run(
        """(async () => {
          const said = [];
          try {
            const script = document.createElement('script');
            script.textContent = 'window.hacked = 1';
            document.body.append(script);
          } catch (error) { said.push('script'); }
          try { document.body.insertAdjacentHTML('beforeend', '<b>x</b>'); } catch (error) { said.push('markup'); }
          try { eval('window.hacked = 1'); } catch (error) { said.push('eval'); }
          await fetch('https://example.invalid/').catch(() => said.push('fetch'));
          return [said, window.hacked === undefined];
        })()"""
    )

    assert tried == [["script", "markup", "eval", "fetch"], True]
    assert any("Content Security Policy" in each for each in browser.complaints)


def hostile():
    """An experiment whose every text tries to be more than a text."""
    file = f"/home/u/shop/{EVIL.replace('/', '_')}.py"
    build = Build(Path("test.1.er"), arguments=["python", EVIL], host=html.escape(EVIL), cwd="/home/u/shop")
    calls = [build.intrinsic(f"{EVIL}{kind}", f"{EVIL}{kind}"[:200]) for kind in ("a", "b")]
    calls.append(build.intrinsic("sqlite3.Cursor.execute", "db"))
    stack = build.stack(build.site(file, 2, EVIL))
    rows = []
    for number in range(300):
        detail = build.string(EVIL.replace("TITLE", str(number % 7)))
        more = {"intrinsic": calls[number % 3], "stack": stack, "detail": detail, "error": detail}
        rows.append(event(number * MS, MS, 1000, call=number + 1, **more))
    build.events(rows)
    build.thread(end_ns=START_NS + SECOND, recorded=300, main=1, tid=812)
    build.ended(SECOND, MS)
    written = build.write()
    archived(written, file, f"import os\n{EVIL}\n")
    (written / "notes").write_text(EVIL)
    return written


def test_nothing_of_a_hostile_experiment_acts(page):
    browser = page(hostile())

    assert browser.run("window.hacked === undefined")
    assert browser.complaints == []
    assert browser.run("document.querySelectorAll('img, iframe, object, embed, form').length") == 0
    scripts = browser.run("[...document.scripts].map(each => each.type)")
    assert scripts == ["application/json", "", "", "", ""]
    handlers = "[...document.querySelectorAll('*')].filter(e => [...e.attributes].some(a => a.name.startsWith('on')))"
    assert browser.run(f"{handlers}.length") == 0
    assert [url for url in browser.requests if not url.startswith(("file://", "data:,"))] == []


def test_the_texts_of_a_hostile_experiment_are_shown_as_they_are(page):
    browser = page(hostile())
    evil = EVIL.replace("\u2028", "\\u2028")

    assert evil.replace("TITLE", "3") in [row[2] for row in rows_of(browser, "detail")]
    source = browser.run("document.querySelector('.source .hot code').textContent")
    assert source == evil
    assert browser.run("document.querySelector('#summary .note').textContent") == EVIL.partition("\u2028")[0]


def test_the_source_has_its_times_beside_its_lines(page):
    experiment = shop()
    archived(experiment, "/home/u/shop/orders.py", "".join(f"line_{number}()\n" for number in range(1, 40)))
    browser = page(experiment)

    lines = browser.run(
        "[...document.querySelectorAll('.source tbody tr')].map(row => [...row.cells].map(cell => cell.textContent))"
    )

    assert lines[2] == ["3", "201", "7.00 s", "2.00 s", "", "line_3()"]
    assert lines[3] == ["4", "", "", "", "", "line_4()"]
    assert [line[0] for line in lines] == [str(number) for number in range(1, 15)]


def test_an_empty_experiment_has_a_page(page):
    build = Build(Path("test.1.er"))
    build.write()

    browser = page(build.directory)

    assert browser.complaints == []


@pytest.mark.long
def test_several_experiments_have_one_page(page, browser, capsys):
    for name in ("a.1.er", "b.1.er"):
        shop(name)
    path = Path("both.html").absolute()

    assert main(["report", "a.1.er", "b.1.er", "--format", "html", "-o", str(path)]) == 0, capsys.readouterr().err
    browser.open(path)

    assert browser.complaints == []
    assert browser.run("document.querySelector('h1').textContent") == "2 experiments"
    assert browser.run("JSON.parse(document.getElementById('timeline-data').textContent).lanes.length") == 4
