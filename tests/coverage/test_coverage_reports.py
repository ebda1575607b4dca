"""Coverage read from records and told: modules, lines, contexts, branches, and the formats of other tools."""

from __future__ import annotations

import csv
import io
import json
import os
import re
import time
import xml.etree.ElementTree as ElementTree
import zipfile
from pathlib import Path

import pytest

from interpose.analysis.coverage.conditions import EXIT
from interpose.analysis.coverage.coverage import Asked, Coverage, coverage
from interpose.analysis.coverage.module import Module
from interpose.cli.commands.coverage import sources
from interpose.cli.main import main
from interpose.errors import InterposeError
from interpose.experiments.maintenance.archives import Archive
from interpose.experiments.model.collection import Collection
from interpose.experiments.model.experiment import Experiment
from interpose.reports.coverage.tables import shown_percent
from interpose.reports.coverage.xml import rate
from tests.build import Build

pytestmark = pytest.mark.any_python

SOURCE = """\
import os
def f(a):
    if a: b = 1; c = 2
    else: b = 2
    return b
def g():
    return 1
f(0)
"""
# The places of a run of it, as CPython 3.12 divides it.
MODULE_PLACES = [(1, 1, 1), (2, 1, 1), (6, 1, 1), (8, 1, 1)]
F_PLACES = [(3, 8, 1), (3, 15, 0), (3, 22, 0), (4, 15, 1), (5, 12, 1)]
F_BRANCHES = [(1, 2, 4, 0, 1)]


class Shop:
    """A directory with a program, and experiments of it."""

    def __init__(self, directory: Path) -> None:
        self.directory = directory
        self.program = directory / "app.py"
        self.write(SOURCE)

    def write(self, text: str, name: str = "app.py") -> Path:
        path = self.directory / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
        hour_ago = time.time() - 3600
        os.utime(path, (hour_ago, hour_ago))
        return path

    def build(self, number: int = 1, **log: object) -> Build:
        now = {"host": os.uname().nodename, "cwd": str(self.directory), "time_ns": time.time_ns() + number}
        build = Build(self.directory / f"test.{number}.er", **(now | log))
        build.thread(main=1)
        build.ended(1000, 10)
        build.log_events.append(f'<root path="{self.directory}"/>')
        return build

    def run(
        self, number: int = 1, *, f: list[tuple[int, int, int]] | None = None, context: str = "", went: int = 0
    ) -> Path:
        """An experiment in which the program ran; `f` are the places of its function, `went` whether a was true."""
        build = self.build(number)
        build.covered_code("app.py", "<module>", MODULE_PLACES, context=context)
        build.covered_code("app.py", "f", F_PLACES if f is None else f, [(1, 2, 4, went, 1)], context=context)
        return build.write()


@pytest.fixture
def shop(place):
    return Shop(place)


def read(*paths: Path, **asked: object) -> Coverage:
    opened = [Experiment(str(path)) for path in paths]
    experiment = opened[0] if len(opened) == 1 else Collection(opened)
    return coverage(experiment, Asked(place=str(paths[0].parent), **asked))


def module(found: Coverage, name: str = "app.py") -> Module:
    return next(each for each in found.modules if each.path.endswith(name))


def statuses(found: Module) -> dict[int, str]:
    return {number: line.status for number, line in found.lines.items()}


def test_each_line_is_covered_missed_or_partly(shop):
    found = module(read(shop.run()))

    assert statuses(found) == {
        1: "covered",
        2: "covered",
        3: "partly",
        4: "covered",
        5: "covered",
        6: "covered",
        7: "missed",
        8: "covered",
    }
    assert (found.own, found.missing) == ((7, 10), [(7, 7)])


def test_what_ran_in_any_experiment_ran(shop):
    other = [(line, column, 1) for line, column, _ in F_PLACES]

    found = module(read(shop.run(1), shop.run(2, f=other, went=1)))

    assert (found.own, statuses(found)[3]) == ((9, 10), "covered")


def test_a_code_object_recorded_twice_is_one(shop):
    build = shop.build()
    build.covered_code("app.py", "<module>", MODULE_PLACES)
    build.covered_code("app.py", "f", [(line, column, 0) for line, column, _ in F_PLACES])
    build.covered_code("app.py", "f", F_PLACES)

    assert module(read(build.write())).own == (7, 10)


def test_only_what_ran_in_a_context_that_is_asked_for_counts(shop):
    build = shop.build()
    build.covered_code("app.py", "<module>", MODULE_PLACES, context="start")
    build.covered_code("app.py", "f", F_PLACES, F_BRANCHES, context="GET /f")

    found = module(read(path := build.write(), context=re.compile("^GET")))

    assert found.own == (3, 10)
    assert module(read(path)).contexts[3] == ["GET /f"]


def test_places_without_columns_are_of_all_statements_on_their_line(shop):
    build = shop.build()
    build.covered_code("app.py", "f", [(3, 0, 1), (4, 0, 0), (5, 0, 1)], has_columns=0)

    found = read(build.write())

    assert statuses(module(found))[3] == "covered"
    assert any("without columns" in note for note in found.notes)


def test_a_statement_without_a_place_of_its_own_ran_with_the_one_before_it_but_not_with_its_definition(shop):
    shop.write("def f(): return 1\nfor i in f: print(i)\na = 1; b = 2\n")
    build = shop.build()
    build.covered_code("app.py", "<module>", [(1, 1, 1), (2, 10, 1), (3, 5, 1)])

    found = module(read(build.write()))

    assert {number: line.executed for number, line in found.lines.items()} == {1: 1, 2: 2, 3: 2}


def test_branches_within_one_statement_are_none(shop):
    shop.write("def f(a, b):\n    while a and b:\n        a = b\n")
    build = shop.build()
    places = [(2, 11, 1), (2, 17, 1), (3, 13, 1)]
    build.covered_code("app.py", "f", places, [(1, 2, 0, 1, 0), (2, 3, 0, 1, 1)])

    found = module(read(build.write()))

    assert found.branches == (2, 2)
    assert found.lines[2].branches == {3: True, EXIT: True}


def test_a_way_that_was_not_gone_makes_a_line_partly_covered(shop):
    found = module(read(shop.run()))

    assert found.branches == (1, 2)
    assert (found.lines[3].branches, found.lines[3].status) == ({3: False, 4: True}, "partly")


def test_code_made_at_run_time_counts_in_the_other_share_of_its_module(shop):
    build = shop.build()
    build.covered_code("app.py", "f", F_PLACES)
    build.covered_code("<string>", "__create_fn__.<locals>.__init__", [(2, 5, 1), (3, 5, 0)])
    build.covered_code("<string>", "made", [(1, 1, 1)], module="elsewhere")

    found = read(build.write())

    assert (module(found).own, module(found).with_generated) == ((3, 10), (4, 12))
    assert "elsewhere" in module(found, "<string>").why


def test_modules_that_never_ran_are_there_where_asked_and_what_cannot_be_covered_is_said_so(shop):
    shop.write("a = 1\nb = 2\n", "shop/never.py")
    shop.write("", "shop/__init__.py")
    shop.write("\x7fELF", "shop/fast.cpython-312-x86_64-linux-gnu.so")
    shop.write("x", "shop/old.pyc")
    shop.write("def f(:", "shop/broken.py")
    shop.write("a = 1", ".venv/x.py")

    found = read(shop.run(), directories=["."])

    told = {os.path.relpath(each.path, shop.directory): (each.own, each.why or each.note) for each in found.modules}
    assert told["shop/never.py"] == ((0, 2), "nothing of it ran")
    assert told["shop/__init__.py"][0] == (0, 0)
    assert "extension module" in told["shop/fast.cpython-312-x86_64-linux-gnu.so"][1]
    assert "without its source" in told["shop/old.pyc"][1]
    assert "not Python" in told["shop/broken.py"][1]
    assert len(told) == 6
    assert module(found, "never.py").name == "shop.never"


@pytest.mark.parametrize(
    ("chosen", "expected"),
    [
        ({"include": ["shop/*"]}, ["a.py", "b.py"]),
        ({"include": ["*/a.py"]}, ["a.py"]),
        ({"omit": ["shop/sub/**"]}, ["a.py", "app.py"]),
        ({"omit": ["*/[ab].py", "app.py"]}, []),
        ({"directories": ["shop"]}, ["a.py", "b.py"]),
        ({"include": ["shop/?.py"]}, ["a.py"]),
    ],
)
def test_files_are_chosen_by_directories_and_patterns(shop, chosen, expected):
    build = shop.build()
    for name in ("app.py", "shop/a.py", "shop/sub/b.py"):
        shop.write("a = 1\n", name)
        build.covered_code(name, "<module>", [(1, 5, 1)])

    found = read(build.write(), **chosen)

    assert sorted(os.path.basename(each.path) for each in found.modules) == expected


def test_a_source_that_changed_is_told_by_its_checksum_and_the_archived_one_is_used(shop):
    path = shop.run()
    with Archive(str(path)) as archive, open(shop.program, "rb") as file:
        archive.add(str(shop.program), "source", file.fileno(), False)
    shop.program.write_text("# other\n" * 40)

    found = module(read(path))

    assert found.own == (7, 10)
    assert "changed since the run; its archived source" in found.note


def test_a_source_that_changed_and_was_not_archived_gives_no_share_but_what_ran(shop, capsys):
    path = shop.run()
    shop.program.write_text("a = 1\n")
    os.utime(shop.program, (time.time() + 99, time.time() + 99))

    assert main(["coverage", "report", str(path)]) == 0

    found = module(read(path))
    assert (found.own.percent, sorted(found.lines_seen)) == (None, [1, 2, 3, 4, 5, 6, 8])
    assert "changed since the run, and its source was not archived; ran: 1, 2, 3" in capsys.readouterr().out


def test_a_source_that_is_missing_is_said_so(shop):
    path = shop.run()
    shop.program.unlink()

    assert module(read(path)).why == "its source cannot be read: No such file or directory"


def test_of_two_texts_the_later_one_counts(shop):
    first = shop.run(1)
    with Archive(str(first)) as archive, open(shop.program, "rb") as file:
        archive.add(str(shop.program), "source", file.fileno(), False)
    shop.write("a = 1\n")
    build = shop.build(2)
    build.covered_code("app.py", "<module>", [(1, 5, 1)])

    found = read(first, build.write())

    assert module(found).own == (1, 1)
    assert any("another text in test.1.er" in note for note in found.notes)


def test_columns_of_sources_in_other_encodings_are_those_of_the_compiler(shop):
    (shop.directory / "old.py").write_bytes(b"# coding: latin-1\na = '\xe4\xf6\xfc'; b = 1\n")
    os.utime(shop.directory / "old.py", (1, 1))
    build = shop.build()
    build.covered_code("old.py", "<module>", [(2, 5, 1), (2, 18, 0)])

    assert module(read(build.write()), "old.py").own == (1, 2)


def table(capsys, *words: str) -> list[dict[str, str]]:
    assert main(["coverage", "report", *words, "--format", "csv"]) == 0
    return list(csv.DictReader(io.StringIO(capsys.readouterr().out)))


def test_the_report_has_a_row_for_each_module_and_one_for_all(shop, capsys):
    rows = table(capsys, str(shop.run()))

    assert [row["module"] for row in rows] == ["__main__", "TOTAL"]
    assert {name: rows[0][name] for name in ("file", "statements", "missed", "lines_partly", "missing")} == {
        "file": "app.py",
        "statements": "10",
        "missed": "3",
        "lines_partly": "1",
        "missing": "7",
    }


def test_the_report_by_line_tells_where_a_condition_never_led(shop, capsys):
    rows = table(capsys, str(shop.run()), "--by", "line")

    assert [(row["line"], row["status"], row["leads_not_to"]) for row in rows[2:4]] == [
        ("3", "partly", "3"),
        ("4", "covered", ""),
    ]


def test_the_report_by_context_tells_what_ran_in_no_other(shop, capsys):
    build = shop.build()
    build.covered_code("app.py", "<module>", MODULE_PLACES, context="a")
    build.covered_code("app.py", "<module>", MODULE_PLACES[:1], context="b")

    rows = table(capsys, str(build.write()), "--by", "context")

    assert [(row["context"], row["statements"], row["alone"]) for row in rows] == [("a", "4", "3"), ("b", "1", "0")]


def test_what_ran_in_no_context_is_shown_so(shop, capsys):
    paths = [str(shop.run(1)), str(shop.run(2, context="a"))]

    assert main(["coverage", "report", *paths, "--by", "line"]) == 0

    assert "(none), a" in capsys.readouterr().out


@pytest.mark.parametrize(("least", "code"), [("70", 0), ("70.1", 2), ("100", 2)])
def test_a_share_that_is_too_small_is_an_exit_code(shop, capsys, least, code):
    assert main(["coverage", "report", str(shop.run()), "--fail-under", least]) == code

    assert ("70.0 % of statements covered, less than" in capsys.readouterr().err) == bool(code)


@pytest.mark.parametrize("what", ["report", "lcov", "xml", "json"])
@pytest.mark.parametrize(
    ("words", "told"), [([], "70.0 % of statements"), (["--branch"], "66.7 % of statements and branches")]
)
def test_the_same_share_is_compared_in_every_format(shop, capsys, what, words, told):
    command = ["coverage", what, str(shop.run()), *words]

    codes = [main([*command, "--fail-under", least]) for least in ("66", "69", "71")]

    assert codes == ([0, 2, 2] if words else [0, 0, 2])
    assert f"{told} covered, less than 71 %" in capsys.readouterr().err


def test_a_share_is_rounded_as_coverage_py_does():
    results = pytest.importorskip("coverage.results")

    for whole in (*range(1, 130), 3000):
        for part in range(whole + 1):
            numbers = results.Numbers(precision=1, n_statements=whole, n_missing=whole - part)
            assert shown_percent(100 * part / whole) == f"{numbers.pc_covered_str} %", (part, whole)


def test_a_share_below_the_least_is_not_said_to_be_the_least(shop, capsys):
    shop.write("import os\n" * 21 + "if os.name == 'x':\n    os.abort()\n")
    build = shop.build()
    build.covered_code("app.py", "<module>", [(line, 1, 1) for line in range(1, 23)])

    assert main(["coverage", "report", str(build.write()), "--fail-under", "95.7"]) == 2

    assert "95.652" in (told := capsys.readouterr()).err and "95.7 %" in told.out


def test_of_a_program_without_statements_nothing_is_missing(shop, capsys):
    shop.write('"""Nothing."""\n')
    build = shop.build()
    build.covered_code("app.py", "<module>", [(1, 1, 1)])

    assert main(["coverage", "report", str(build.write()), "--fail-under", "100"]) == 0


def test_a_source_that_cannot_be_had_is_not_enough(shop):
    path = shop.run()
    shop.program.unlink()

    assert main(["coverage", "report", str(path), "--fail-under", "0"]) == 2


def test_annotated_sources_mark_each_line_with_code(shop, capsys):
    assert main(["coverage", "annotate", str(shop.run())]) == 0

    shown = capsys.readouterr().out.splitlines()
    assert shown[0] == "app.py: 70.0 % of 10 statements"
    assert [line[:1] for line in shown[1:]] == [">", ">", "~", ">", ">", ">", "!", ">"]
    assert shown[3] == "~     3      if a: b = 1; c = 2"


def test_annotations_for_github_are_one_a_run_of_missed_lines(shop, capsys):
    assert main(["coverage", "report", str(shop.run()), "--format", "github"]) == 0

    assert capsys.readouterr().out.splitlines() == [
        "::warning file=app.py,line=7,endLine=7,title=Coverage::line 7 was not executed",
        "::notice file=app.py,line=3,endLine=3,title=Coverage::2 of 3 statements not executed, never went to line 3",
    ]


def test_lcov_has_lines_and_branches(shop, capsys):
    assert main(["coverage", "lcov", str(shop.run())]) == 0

    shown = (tracefile := capsys.readouterr().out).splitlines()
    assert shown[:5] == ["TN:", "SF:app.py", "DA:1,1", "DA:2,1", "DA:3,1"]
    assert shown[-8:] == ["DA:8,1", "LF:8", "LH:7", "BRDA:3,0,0,0", "BRDA:3,0,1,1", "BRF:2", "BRH:1", "end_of_record"]
    for words, code in (([], 0), (["--branch"], 2)):
        assert main(["coverage", "lcov", "test.1.er", "--fail-under", "67", *words]) == code
        assert capsys.readouterr().out == tracefile


def test_json_is_as_coverage_py_has_it(shop, capsys):
    assert main(["coverage", "json", str(shop.run(context="t")), "--branch", "--show-contexts"]) == 0

    found = json.loads(capsys.readouterr().out)
    told = found["files"]["app.py"]
    assert (told["executed_lines"], told["missing_lines"]) == ([1, 2, 3, 4, 5, 6, 8], [7])
    assert (told["missing_branches"], told["contexts"]["1"]) == ([[3, 3]], ["t"])
    assert found["totals"]["percent_covered"] == 80.0


def test_cobertura_tells_lines_and_conditions(shop, capsys):
    assert main(["coverage", "xml", str(shop.run())]) == 0

    found = ElementTree.fromstring(capsys.readouterr().out)
    line = found.find(".//class[@filename='app.py']/lines/line[@number='3']")
    assert line is not None
    assert (line.get("hits"), line.get("condition-coverage"), found.get("lines-covered")) == ("1", "50% (1/2)", "7")


@pytest.mark.long
def test_a_rate_of_cobertura_is_1_of_all_alone(shop, capsys):
    shop.write("a = 1\n" * 20_001)
    build = shop.build()
    build.covered_code("app.py", "<module>", [(number, 1, number > 1) for number in range(1, 20_002)])

    assert main(["coverage", "xml", str(build.write())]) == 0

    assert ElementTree.fromstring(capsys.readouterr().out).get("line-rate") == "0.9999"


def test_rates_of_cobertura_are_those_of_coverage_py():
    coverage = pytest.importorskip("coverage.xmlreport")
    pairs = [(part, whole) for whole in (0, 1, 3, 7, 242, 1000) for part in range(whole + 1)]

    assert [rate(*pair) for pair in pairs] == [coverage.rate(*pair) for pair in pairs]
    assert rate(216, 242) == "0.8926"


def test_pages_colour_lines_and_hold_nothing_that_runs(shop, capsys):
    assert main(["coverage", "html", str(shop.run()), "-o", "pages", "--branch"]) == 0

    page = next(each for each in (shop.directory / "pages").iterdir() if each.name.startswith("app.py"))
    shown = page.read_text()
    assert 'class="yellow" id="L3"' in shown and 'class="red" id="L7"' in shown
    assert f'href="{page.name}"' in (shop.directory / "pages" / "index.html").read_text()
    assert "<script" not in shown and "default-src &#x27;none&#x27;" in shown


@pytest.mark.parametrize("before", [[], ["mine.txt"]])
def test_pages_that_do_not_all_fit_on_the_disk_leave_none(shop, capsys, monkeypatch, before):
    written = sources.opened_output

    def full(path):
        if path.endswith("index.html"):
            raise InterposeError(f"{path}: No space left on device")
        return written(path)

    monkeypatch.setattr(sources, "opened_output", full)
    for name in before:
        (shop.directory / "pages").mkdir()
        (shop.directory / "pages" / name).touch()

    assert main(["coverage", "html", str(shop.run()), "-o", "pages"]) == 1
    assert capsys.readouterr().err.endswith("index.html: No space left on device\n")
    assert (shop.directory / "pages").exists() == bool(before)
    assert [path.name for path in shop.directory.glob("pages/*")] == before


HOSTILE = "<script>alert(1)</script>\x1b[31m\n::error::%,.py"


@pytest.mark.parametrize("words", ["report", "report --format github", "annotate", "lcov", "xml", "json"])
def test_names_that_are_hostile_reach_no_terminal_and_no_reader(shop, capsys, words):
    shop.write("a = 1; b = 2\n", HOSTILE)
    build = shop.build()
    build.covered_code(HOSTILE, "<module>", [(1, 5, 1), (1, 12, 0)])
    path = build.write()

    assert main(["coverage", *words.split(), str(path)]) == 0
    assert main(["coverage", "html", str(path), "-o", "pages"]) == 0

    shown = capsys.readouterr().out
    assert "\x1b" not in shown and "\n::error" not in shown
    pages = "".join(each.read_text() for each in (shop.directory / "pages").iterdir())
    assert "<script" not in pages and "&lt;script&gt;" in pages


@pytest.mark.parametrize(
    ("words", "told"),
    [
        (["--exclude", "("], "--exclude (: invalid regular expression"),
        (["--context", "["], "--context [: invalid regular expression"),
        (["--source", "nowhere"], "--source nowhere: no such directory"),
        (["--include", "no/such/*"], "the options leave out everything that was recorded"),
    ],
)
def test_what_means_nothing_is_said_in_one_line(shop, capsys, words, told):
    assert main(["coverage", "report", str(shop.run()), *words]) in (1, 2)

    shown = capsys.readouterr().err
    assert told in shown and shown.count("\n") == 1


def test_an_experiment_without_coverage_is_said_so(shop, capsys):
    assert main(["coverage", "report", str(shop.build().write())]) == 1

    told = "no coverage was recorded: use interpose run --coverage own, or INTERPOSE=coverage"
    assert told in capsys.readouterr().err


def test_where_nothing_ran_of_what_was_to_be_covered_that_is_said(shop, capsys):
    build = shop.build(settings={"INTERPOSE": "calls,coverage"})

    assert main(["coverage", "report", str(build.write())]) == 1
    assert "no code that ran matches INTERPOSE_COVERAGE=" in capsys.readouterr().err


@pytest.mark.parametrize("script", ["app.py", "./app.py"])
@pytest.mark.parametrize("packages", ["site-packages", "dist-packages"])
def test_where_the_script_is_among_packages_a_remedy_is_named(shop, capsys, packages, script):
    log = {"cwd": str(shop.directory / packages), "arguments": [script]}
    build = shop.build(settings={"INTERPOSE": "calls,coverage"}, **log)

    assert main(["coverage", "report", str(build.write())]) == 1
    told = f"the script is in {packages}, so its code counts as a library's; use INTERPOSE_COVERAGE=__main__ or name"
    assert told in capsys.readouterr().err


def zipped(shop, data: bytes) -> Coverage:
    """The coverage of a module in an archive of that content."""
    (shop.directory / "dep.zip").write_bytes(data)
    hour_ago = time.time() - 3600
    os.utime(shop.directory / "dep.zip", (hour_ago, hour_ago))
    build = shop.build()
    build.log_events.append(f'<root path="{shop.directory}/dep.zip"/>')
    build.covered_code("dep.zip/shop/app.py", "<module>", MODULE_PLACES)
    return read(build.write())


def archive_of(name: str, text: str, method: int = zipfile.ZIP_DEFLATED) -> bytes:
    data = io.BytesIO()
    with zipfile.ZipFile(data, "w", method) as archive:
        archive.writestr(name, text)
    return data.getvalue()


def test_a_source_in_an_archive_is_read(shop):
    found = module(zipped(shop, archive_of("shop/app.py", SOURCE)))

    assert (found.own, found.note) == ((4, 10), "")


@pytest.mark.parametrize(
    ("data", "why"),
    [
        (archive_of("other.py", ""), "its source cannot be read: No such file or directory"),
        (archive_of("shop/app.py", SOURCE)[:-1], "its source cannot be read: not readable in its archive"),
        (archive_of("shop/app.py", SOURCE, zipfile.ZIP_LZMA), "its source cannot be read: not readable in its archive"),
        (b"a = 1\n", "its source cannot be read: not readable in its archive"),
        (archive_of("shop/app.py", "#" * (9 << 20)), "its source is too long"),
    ],
    ids=["elsewhere", "cut", "LZMA", "no archive", "too long"],
)
def test_of_a_source_that_is_not_readable_in_its_archive_it_is_said_why(shop, data, why):
    found = module(zipped(shop, data))

    assert (found.table, found.why) == (None, why)


def test_where_no_branches_were_recorded_none_are_shown_and_that_is_said(shop, capsys):
    build = shop.build()
    build.covered_code("app.py", "<module>", MODULE_PLACES)

    assert main(["coverage", "report", "--branch", str(build.write())]) == 0
    out, err = capsys.readouterr()
    assert "branches" not in out
    assert err.count("no branches were recorded: use INTERPOSE_BRANCHES=1") == 1


@pytest.mark.parametrize("name", ["covered", "places", "branches", "strings"])
def test_files_cut_short_anywhere_are_read_as_far_as_they_go(shop, name):
    path = shop.run()
    whole = (path / name).read_bytes()
    for length in [*range(0, 64, 5), *range(64, 200, 3), len(whole) - 1]:
        (path / name).write_bytes(whole[:length])

        found = read(path)

        assert all(module.own.part <= 7 for module in found.modules)


def test_check_reads_coverage_and_export_shows_it(shop, capsys):
    path = shop.run()

    assert main(["export", str(path)]) == 0
    shown = capsys.readouterr().out
    assert "[test.1.er/places]" in shown and "went_other=1" in shown
    (path / "places").write_bytes((path / "places").read_bytes()[:100])
    assert main(["check", str(path)]) == 3


def test_records_that_cannot_be_are_left_out(shop):
    build = shop.build()
    build.covered_code("app.py", "f", [(2**32 - 1, 2**32 - 1, 1), (3, 2**32 - 1, 1), (0, 0, 1)], [(9, 8, 7, 1, 1)])
    build.covered["places"].append(b"\xff" * 16)
    build.covered_code("app\0.py", "f", [(1, 1, 1)])

    found = read(build.write())

    assert {number for number, line in module(found).lines.items() if line.executed} == {3}
    assert module(found, "app\0.py").table is None
