"""Flame graphs: well-formed, as wide as the times are, escaped, and readable."""

import re
from html.parser import HTMLParser
from itertools import combinations
from xml.etree import ElementTree

import pytest

from interpose.analysis.analysis import Analysis
from interpose.analysis.calls.calltree import calls_of
from interpose.analysis.profile.flame import CPU, WALL, flame, folded
from interpose.cli.main import main
from interpose.experiments.model.experiment import Experiment
from interpose.reports.flame.colours import BY_CHANGE, BY_KIND, INK
from interpose.reports.flame.drawing import WIDTH
from tests.build import START_NS, Build, event
from tests.schedules import MS

SVG = "{http://www.w3.org/2000/svg}"
NASTY = '</text><script>alert(1)</script>]]>&lt;"\x1b[2J;\x00'


def shop(directory, parse=100, name="parse"):
    """A program that computes in two functions for 10 ms a sample, and queries for 500 ms from the first."""
    build = Build(directory, call_ns=0, inside_ns=0)
    query = build.intrinsic("sqlite3.Cursor.execute", "db")
    sites = [build.site("/home/u/shop/app.py", 3, name), build.site("/home/u/shop/app.py", 20, "<module>")]
    stack = build.stack(sites[0], build.stack(sites[1]))
    module = ("/home/u/shop/app.py", 20, "<module>")
    stacks = [build.sampled_stack(module, ("/home/u/shop/app.py", 3, name)),
              build.sampled_stack(module, ("/usr/lib/python3.12/json/decoder.py", 9, "decode"))]  # fmt: skip
    now = 0
    for number, times in enumerate((parse, 50)):
        for _ in range(times):
            now += 10 * MS
            build.thread_sample(START_NS + now, cpu_ns=now, stack=stacks[number])
    build.events([event(now, 500 * MS, 20 * MS, intrinsic=query, stack=stack)])
    build.thread(end_ns=START_NS + now + 500 * MS, end_cpu_ns=now + 20 * MS, tid=1, main=1, recorded=1, made=1)
    build.ended(now + 500 * MS, now + 20 * MS)
    return build.write()


def calls(path):
    return calls_of(Analysis(Experiment(str(path))))


def made(tmp_path, *words, name="parse"):
    """What the command writes for such a program."""
    shop(tmp_path / "t.1.er", name=name)
    out = tmp_path / "out"
    assert main(["flame", str(tmp_path / "t.1.er"), "-o", str(out), *words]) == 0
    return out.read_text()


def folded_cpu(tmp_path, name="parse"):
    """The lines of such a program's folded stacks."""
    shop(tmp_path / "t.1.er", name=name)
    assert main(["export", str(tmp_path / "t.1.er"), "--to", "folded-cpu", "-o", str(tmp_path / "out")]) == 0
    return (tmp_path / "out").read_text().splitlines()


def frames_of(svg):
    return [each for each in ElementTree.fromstring(svg).iter(f"{SVG}g") if "frame" in each.get("class", "")]


def early(directory, *callers):
    """A program that is in `save` below each of `callers`, and queries there; the query's stack ends with `save`."""
    build = Build(directory, call_ns=0, inside_ns=0)
    query = build.intrinsic("sqlite3.Cursor.execute", "db")
    stack = build.stack(build.site("app.py", 3, "save"))
    for place, caller in enumerate(callers, 1):
        sampled = build.sampled_stack(("app.py", 20, "<module>"), ("app.py", 9, caller), ("app.py", 3, "save"))
        build.thread_sample(START_NS + place * 10 * MS, cpu_ns=place * 10 * MS, stack=sampled)
    build.block([event(500 * MS, 100 * MS, intrinsic=query, stack=stack)])
    build.thread(end_ns=START_NS + 600 * MS, end_cpu_ns=400 * MS, tid=1, main=1, recorded=1, made=1)
    build.ended(600 * MS, 400 * MS)
    return build.write()


def test_a_call_whose_stack_ends_early_is_below_the_only_callers_that_samples_know(tmp_path):
    found = flame(calls(early(tmp_path / "t.1.er", "main")), WALL)

    names = {each.function.name: each.depth for each in found.frames}
    assert names == {"<Total>": 0, "<module>": 1, "main": 2, "save": 3, "sqlite3.Cursor.execute": 4, "<not-sampled>": 1}
    assert found.total_ns == 600 * MS == sum(each.own_ns for each in found.frames)


def test_a_call_that_several_callers_may_have_made_is_below_none_of_them(tmp_path):
    found = flame(calls(early(tmp_path / "t.1.er", "main", "other")), WALL)

    query = next(each for each in found.frames if each.kind == "db")
    above = [each for each in found.frames if each.depth == 1 and each.start_ns == query.start_ns]
    assert [each.function.name for each in above] == ["<Truncated-stack>"]
    assert found.total_ns == 600 * MS


@pytest.mark.parametrize(("metric", "total_ns"), [(CPU, 1520 * MS), (WALL, 2000 * MS)])
def test_frames_are_as_wide_as_their_time_and_add_up(tmp_path, metric, total_ns):
    found = flame(calls(shop(tmp_path / "t.1.er")), metric)

    assert found.total_ns == total_ns == sum(each.own_ns for each in found.frames)
    for each in found.frames:
        end_ns = each.start_ns + each.width_ns
        below = [one for one in found.frames if one.depth == each.depth + 1 and each.start_ns <= one.start_ns < end_ns]
        assert each.width_ns == each.own_ns + sum(one.width_ns for one in below)


def test_calls_are_leaves_below_the_code_that_made_them(tmp_path):
    found = {each.function.name: each for each in flame(calls(shop(tmp_path / "t.1.er")), WALL).frames}

    assert (found["sqlite3.Cursor.execute"].kind, found["sqlite3.Cursor.execute"].width_ns) == ("db", 500 * MS)
    assert (found["parse"].width_ns, found["parse"].own_ns) == (1500 * MS, 1000 * MS)
    assert found["sqlite3.Cursor.execute"].depth == found["parse"].depth + 1


def test_the_drawing_is_well_formed_and_has_every_frame(tmp_path):
    frames = frames_of(made(tmp_path, "--format", "svg", "--wall"))

    assert frames[0].find(f"{SVG}rect").get("width") == str(float(WIDTH))
    assert sum(int(each.get("data-w")) for each in frames if each.get("data-d") == "1") == 2000 * MS
    assert [each.get("class") for each in frames if each.get("data-n") == "sqlite3.Cursor.execute"] == ["frame c-db"]
    title = next(each.find(f"{SVG}title").text for each in frames if each.get("data-n") == "parse")
    assert title == "parse (app.py) · 1.50 s, 75.0 % · 1.00 s by itself"


@pytest.mark.long
def test_what_cannot_be_shown_is_told(tmp_path):
    build = Build(tmp_path / "t.1.er", call_ns=0, inside_ns=0)
    stacks = [build.sampled_stack(("app.py", line, f"f{line}")) for line in range(1, 4202)]
    for place, stack in enumerate(stacks, 1):
        build.thread_sample(START_NS + place * 10 * MS, cpu_ns=place * 10 * MS, stack=stack)
    build.thread(end_ns=START_NS + 42010 * MS, end_cpu_ns=42010 * MS, tid=1, main=1)
    build.ended(42010 * MS, 42010 * MS)

    found = flame(calls(build.write()), CPU)

    assert found.left_out == 4201
    assert found.total_ns == 42010 * MS


def test_folded_stacks_add_up_to_the_total(tmp_path):
    lines = folded_cpu(tmp_path)

    stacks = dict(line.rsplit(" ", 1) for line in lines)
    assert sum(map(int, stacks.values())) == 1520 * MS
    assert stacks["<module>;parse"] == str(1000 * MS)
    assert stacks["<module>;parse;sqlite3.Cursor.execute"] == str(20 * MS)


@pytest.mark.parametrize("form", ["svg", "html"])
def test_names_are_data(tmp_path, form):
    text = made(tmp_path, "--format", form, name=NASTY)

    assert "<script>alert" not in text
    assert "\x1b" not in text
    assert "\x00" not in text
    assert "&lt;script&gt;alert(1)" in text
    if form == "svg":
        names = [each.get("data-n") for each in frames_of(text)]
        assert NASTY.replace("\x1b", "\\x1b").replace("\x00", "\\x00") in names


def test_names_cannot_end_a_folded_line(tmp_path):
    lines = folded_cpu(tmp_path, name="a;b\nc 5")

    assert "<module>;a:b\\x0ac 5 1000000000" in lines


class Page(HTMLParser):
    """What a page has that loads or runs something."""

    def __init__(self, text):
        super().__init__()
        self.policy, self.loads, self.open = "", [], []
        self.feed(text)

    def handle_starttag(self, tag, attributes):
        values = dict(attributes)
        if values.get("http-equiv") == "Content-Security-Policy":
            self.policy = values["content"]
        self.loads += [value for name, value in attributes if name in ("src", "href") and value != "data:,"]
        assert not [name for name, _ in attributes if name.startswith("on") or name == "style"]
        if tag not in ("meta", "link", "input", "rect"):
            self.open.append(tag)

    def handle_startendtag(self, tag, attributes):
        self.handle_starttag(tag, attributes)

    def handle_endtag(self, tag):
        assert self.open.pop() == tag


def test_the_page_is_well_formed_and_loads_nothing(tmp_path):
    page = Page(made(tmp_path))

    assert page.open == []
    assert page.loads == []
    assert page.policy.startswith("default-src 'none'; script-src 'sha256-")


def test_the_page_has_a_button_and_a_search_with_names(tmp_path):
    text = made(tmp_path)

    assert 'aria-label="Search functions"' in text
    assert ">Show all</button>" in text
    assert "require-trusted-types-for" in text
    assert "innerHTML" not in text


def luminance(colour):
    parts = [int(colour[place : place + 2], 16) / 255 for place in (1, 3, 5)]
    red, green, blue = (part / 12.92 if part <= 0.04045 else ((part + 0.055) / 1.055) ** 2.4 for part in parts)
    return 0.2126 * red + 0.7152 * green + 0.0722 * blue


@pytest.mark.parametrize("name", BY_KIND | BY_CHANGE)
def test_text_on_every_colour_has_enough_contrast(name):
    light = luminance((BY_KIND | BY_CHANGE)[name])

    assert (light + 0.05) / (luminance(INK) + 0.05) >= 7  # AAA of WCAG 2.2


def test_no_two_kinds_have_the_same_colour():
    assert all(BY_KIND[one] != BY_KIND[other] for one, other in combinations(BY_KIND, 2))


def test_a_difference_is_coloured_and_told(tmp_path):
    before, after = shop(tmp_path / "a.1.er", parse=50), shop(tmp_path / "b.1.er", parse=200, name="parse")

    found = {each.function.name: each for each in flame(calls(after), CPU, calls(before)).frames}
    out = tmp_path / "out.svg"
    assert main(["flame", str(before), str(after), "--format", "svg", "-o", str(out)]) == 0
    drawn = {each.get("data-n"): each for each in frames_of(out.read_text())}

    assert (found["parse"].width_ns, found["parse"].before_ns) == (2020 * MS, 520 * MS)
    assert drawn["parse"].get("class") == "frame c-more3"
    assert drawn["decode"].get("class") == "frame c-alike"
    assert "was 520 ms, +1.50 s" in drawn["parse"].find(f"{SVG}title").text


def test_time_of_functions_that_are_gone_is_told(tmp_path):
    before, after = shop(tmp_path / "a.1.er", name="old"), shop(tmp_path / "b.1.er", name="new")

    found = flame(calls(after), CPU, calls(before))

    assert found.gone_ns == 1020 * MS
    assert next(each.before_ns for each in found.frames if each.function.name == "new") == 0


@pytest.mark.parametrize(
    ("words", "told"),
    [
        (["t.1.er", "t.1.er", "t.1.er"], "one experiment, or two"),
        (["t.1.er", "--format", "svg", "--open"], "--open: opens the HTML page"),
    ],
)
def test_what_does_not_go_together_is_refused_in_a_line(tmp_path, monkeypatch, capsys, words, told):
    monkeypatch.chdir(tmp_path)
    shop(tmp_path / "t.1.er")

    code = main(["flame", *words])

    assert code == 2
    err = capsys.readouterr().err
    assert told in err
    assert re.fullmatch(r"interpose: .*\n", err)


def test_calls_without_samples_have_a_flame_graph_too(tmp_path):
    build = Build(tmp_path / "t.1.er", call_ns=0, inside_ns=0)
    query = build.intrinsic("sqlite3.Cursor.execute", "db")
    build.block([event(0, 100 * MS, intrinsic=query)])
    build.thread(end_ns=START_NS + 300 * MS, recorded=1, made=1)
    build.ended(300 * MS, 0)

    found = {each.function.name: each.width_ns for each in flame(calls(build.write()), WALL).frames}

    assert found["<code>"] == 200 * MS
    assert found["sqlite3.Cursor.execute"] == 100 * MS


def test_what_a_task_ran_stands_below_its_name_where_that_is_asked_for(tmp_path):
    build = Build(tmp_path / "t.1.er", call_ns=0, inside_ns=0)
    stack = build.sampled_stack(("/home/u/shop/app.py", 3, "work"))
    for number in range(1, 31):
        task = build.sampled_string("alpha") if number > 20 else 0
        build.thread_sample(START_NS + number * 10 * MS, cpu_ns=number * 10 * MS, stack=stack, task=task)
    build.thread(end_ns=START_NS + 300 * MS, end_cpu_ns=300 * MS, tid=1, main=1)
    build.ended(300 * MS, 300 * MS)
    path = build.write()

    tree, plain = calls_of(Analysis(Experiment(str(path))), with_tasks=True), calls(path)

    assert {";".join(each.name for each in stack): ns for stack, ns in folded(tree, CPU)} == {
        "task alpha;work": 100 * MS, "work": 200 * MS
    }  # fmt: skip
    assert [([each.name for each in stack], ns) for stack, ns in folded(plain, CPU)] == [(["work"], 300 * MS)]
    assert main(["flame", str(path), "--tasks", "--format", "svg", "-o", str(tmp_path / "out")]) == 0
    assert "task alpha" in (tmp_path / "out").read_text()
