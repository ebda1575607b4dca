"""The HTML report and the flame graph in a real browser: on narrow screens, for fingers and keyboards, for axe-core."""

import json
from importlib import resources, util

import pytest

from interpose.cli.main import main
from tests.browser import CHROMIUM, WHY_NOT
from tests.build import SECOND, START_NS, Build, event

pytestmark = pytest.mark.skipif(CHROMIUM is None, reason=WHY_NOT)

MS = 1_000_000
FORMS = {"report": ["report", "--format", "html"], "flame": ["flame"]}
AXE = "axe.run(document).then(found => JSON.stringify(found.violations.map(each => [each.id, each.nodes[0].html])))"


@pytest.fixture
def shown(tmp_path, browser, capsys):
    """A function that opens a page about a shop, in a window of a width and in a colour scheme."""

    def opened(form="report", width=1400, scheme="light"):
        browser.prefer(color_scheme=scheme, reduced_motion="reduce")
        size = {"width": width, "height": 900, "deviceScaleFactor": 1, "mobile": width < 500}
        browser.ask("Emulation.setDeviceMetricsOverride", **size)
        path = tmp_path / "page.html"
        command, *words = FORMS[form]
        assert main([command, str(shop(tmp_path)), *words, "-o", str(path)]) == 0, capsys.readouterr().err
        browser.open(path)
        return browser

    return opened


def shop(place):
    """Ten seconds of a shop that asks, sleeps, waits for a lock and computes, in two threads, with its source."""
    (place / "orders.py").write_text("".join(f"line_{number}()  # {'long ' * 30}\n" for number in range(1, 90)))
    build = Build(place / "test.1.er", cwd=str(place), arguments=["python", "orders.py", "--" + "x" * 200])
    query = build.intrinsic("sqlite3.Cursor.execute", "db")
    others = [build.intrinsic("time.sleep", "sleep"), build.intrinsic("threading.Lock.acquire", "sync")]
    stacks = [build.stack(build.site(str(place / "orders.py"), line, f"f{line}")) for line in (3, 80)]
    rows = []
    for number in range(40):
        at = number * 200 * MS
        detail = build.string(f"SELECT a{number} FROM {'orders_' * 20} WHERE b = ?")
        rows.append(event(at, 20 * MS, 5 * MS, call=2 * number + 1, intrinsic=query, stack=stacks[0], detail=detail))
        rows.append(event(at + 30 * MS, 9 * MS, call=2 * number + 2, intrinsic=others[number % 2], stack=stacks[0]))
    build.events(rows)
    build.events([event(2 * SECOND, 6 * SECOND, SECOND, thread=2, call=1, intrinsic=query, stack=stacks[1])])
    sampled = [build.sampled_stack((str(place / "orders.py"), line, f"f{line}")) for line in (3, 80)]
    for number in range(50):
        end_ns = START_NS + number * 150 * MS + 150 * MS
        build.thread_sample(end_ns, cpu_ns=number * 50 * MS, stack=sampled[number % 2], state=number % 3 + 1)
    ends = {"end_ns": START_NS + 10 * SECOND, "end_cpu_ns": 4 * SECOND}
    build.thread(**ends, recorded=80, main=1, tid=812)
    build.thread(**ends, recorded=1, tid=813)
    build.ended(10 * SECOND, 8 * SECOND)
    return build.write()


@pytest.mark.packages
@pytest.mark.skipif(util.find_spec("axe_core_python") is None, reason="axe-core-python is not installed")
@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("width", [400, 900, 1400])
@pytest.mark.parametrize("form", FORMS)
def test_axe_finds_no_violation(shown, form, width, scheme):
    browser = shown(form, width, scheme)
    browser.run((resources.files("axe_core_python") / "axe.min.js").read_text(encoding="utf-8") + ";0")

    assert json.loads(browser.run(AXE)) == []


@pytest.mark.parametrize("width", [320, 400, 900])
@pytest.mark.parametrize("form", FORMS)
def test_no_page_is_wider_than_the_window(shown, form, width):
    browser = shown(form, width)

    assert browser.run("document.documentElement.scrollWidth <= document.documentElement.clientWidth")
    assert browser.complaints == []


MENU = "[document.getElementById('sections').checkVisibility(), document.getElementById('menu').ariaExpanded]"


def test_a_narrow_window_has_a_menu_that_folds(shown):
    browser = shown(width=400)

    seen = [browser.run(MENU)]
    browser.run("document.getElementById('menu').click()")
    seen.append(browser.run(MENU))
    browser.run("document.querySelector('#sections a').focus()")
    browser.press("Escape")
    seen.append(browser.run(MENU))

    assert seen == [[False, "false"], [True, "true"], [False, "false"]]
    assert browser.run("document.activeElement.id") == "menu"


def test_a_wide_window_has_its_sections_and_no_menu(shown):
    browser = shown(width=1400)

    assert browser.run("document.getElementById('sections').checkVisibility()")
    assert not browser.run("document.getElementById('menu').checkVisibility()")


def test_the_first_link_skips_to_the_report(shown):
    browser = shown()

    first = browser.run("(link => [link.hash, !!document.querySelector(link.hash)])(document.querySelector('a'))")

    assert first == ["#report", True]


BOX = "(b => [b.left, b.top, b.width])(document.getElementById('lanes').getBoundingClientRect())"
SHOWN = "(row => row && [row.cells[0].textContent, row.getBoundingClientRect().top > 0])"
ROW = f"{SHOWN}(document.querySelector('.shown'))"


def point_at_the_long_call(browser):
    browser.run("document.getElementById('lanes').scrollIntoView({block: 'center'})")
    left, top, width = browser.run(BOX)
    return {"x": left + 190 + (width - 190) * 0.5, "y": top + 60}


def test_a_click_on_a_call_shows_its_line(shown):
    browser = shown()

    mouse = {**point_at_the_long_call(browser), "button": "left", "clickCount": 1}
    browser.ask("Input.dispatchMouseEvent", type="mousePressed", **mouse)
    browser.ask("Input.dispatchMouseEvent", type="mouseReleased", **mouse)

    assert browser.run(ROW) == ["80", True]
    assert browser.run("document.activeElement.className.includes('shown')")


def test_a_drag_shows_no_line(shown):
    browser = shown()
    browser.run("document.querySelector('[data-zoom=\"0.5\"]').click()")

    mouse = {**point_at_the_long_call(browser), "button": "left"}
    browser.ask("Input.dispatchMouseEvent", type="mousePressed", clickCount=1, **mouse)
    browser.ask("Input.dispatchMouseEvent", type="mouseMoved", **{**mouse, "x": mouse["x"] - 60, "buttons": 1})
    browser.ask("Input.dispatchMouseEvent", type="mouseReleased", **{**mouse, "x": mouse["x"] - 60})

    assert browser.run(ROW) is None
    assert not browser.run("document.getElementById('range').textContent").startswith("2.50 s to 7.50 s")


def test_a_tap_tells_the_call_and_links_to_its_line(shown):
    browser = shown()

    browser.ask("Input.dispatchTouchEvent", type="touchStart", touchPoints=[point_at_the_long_call(browser)])
    browser.ask("Input.dispatchTouchEvent", type="touchEnd", touchPoints=[])
    told = browser.run("document.getElementById('chosen').textContent")
    browser.run("document.querySelector('#chosen a').click()")

    assert told == "sqlite3.Cursor.execute · 6.00 s, CPU 1.00 s, at 2.00 s orders.py:80 f80"
    assert browser.run(ROW) == ["80", True]


def test_two_fingers_zoom_the_time_line(shown):
    browser = shown()
    middle = point_at_the_long_call(browser)

    for kind, apart in (("touchStart", 50), ("touchMove", 100), ("touchEnd", 0)):
        points = [{**middle, "x": middle["x"] + side * apart, "id": side + 1} for side in (-1, 1)] if apart else []
        browser.ask("Input.dispatchTouchEvent", type=kind, touchPoints=points)

    assert browser.run("document.getElementById('range').textContent") == "2.50 s to 7.50 s of 10.0 s"


def test_a_line_of_a_table_leads_to_its_source(shown):
    browser = shown()

    links = "[...document.querySelectorAll('#table-site a')]"
    browser.run(f"{links}.find(each => each.textContent.endsWith(':80')).click()")

    assert browser.run(ROW) == ["80", True]


def test_buttons_zoom_the_time_line(shown):
    browser = shown()
    seen = []

    for factor in ("0.5", "2", "0.5", "0"):
        browser.run(f"document.querySelector('[data-zoom=\"{factor}\"]').click()")
        seen.append(browser.run("document.getElementById('range').textContent"))

    assert seen == ["2.50 s to 7.50 s of 10.0 s", "0 ns to 10.0 s of 10.0 s"] * 2


FRAME = "[...document.querySelectorAll('.frame')].find(each => each.dataset.n === 'f80')"


@pytest.mark.parametrize("width", [400, 1400])
def test_the_flame_graph_is_as_wide_as_the_window_and_zooms_by_a_click(shown, width):
    browser = shown("flame", width)
    wide = "[document.querySelector('.flame').clientWidth, document.getElementById('graph').clientWidth]"
    boxed = f"Number({FRAME}.querySelector('rect').getAttribute('width'))"

    drawn, room = browser.run(wide)
    before = browser.run(boxed)
    browser.run(f"{FRAME}.dispatchEvent(new MouseEvent('click', {{bubbles: true}}))")

    assert drawn == room < width
    assert before < room == browser.run(boxed)
    assert browser.run("document.getElementById('told').textContent").startswith("f80 (orders.py)")


def test_the_flame_graph_is_searched(shown):
    browser = shown("flame")

    typed = "(box => { box.value = 'F80'; box.dispatchEvent(new Event('input')) })"
    browser.run(f"{typed}(document.getElementById('search'))")

    assert browser.run("[...document.querySelectorAll('.found')].map(each => each.dataset.n)") == ["f80"]
    assert browser.run("document.getElementById('told').textContent").startswith("1 frames")


@pytest.mark.long
def test_the_page_has_no_two_elements_of_one_name(shown):
    browser = shown()

    twice = "(names => names.filter((name, at) => names.indexOf(name) !== at))"
    assert browser.run(f"{twice}([...document.querySelectorAll('[id]')].map(each => each.id))") == []
