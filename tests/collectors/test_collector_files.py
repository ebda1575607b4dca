"""Which files are data collectors, for which programs, and what reports say of them."""

import json
import os
import subprocess
import sys
import textwrap

import pytest
from collecting import PROGRAM, named

from interpose.analysis.analysis import Analysis
from interpose.analysis.transactions.response_times import transactions
from interpose.experiments.model.experiment import Experiment
from interpose.instrumentation.collectors import Collector, collector, matches
from interpose.reports.screen.sections import SECTIONS, profiled
from tests.tracing import environment, run_in

pytestmark = pytest.mark.any_python

BAD_FILES = {
    "nothing = 1": "it declares no data collector",
    "@interpose.collector\nasync def name(area): pass": (
        "TypeError: a data collector must be a plain function, not a generator or a coroutine function"
    ),
    "@interpose.collector\ndef name(area): yield": (
        "TypeError: a data collector must be a plain function, not a generator or a coroutine function"
    ),
    "interpose.collector(5)": "TypeError: a data collector must be a function, not int",
    "@interpose.collector(per='hour')\ndef name(area): pass": (
        "ValueError: per is 'hour', not one of event, transaction, site"
    ),
    "@interpose.collector(sections={str(n): 'p' for n in range(26)})\ndef name(area): pass": (
        "ValueError: 26 pseudo-sections are more than 25"
    ),
    "@interpose.collector(sections={'X' * 32: 'p'})\ndef name(area): pass": (
        f"ValueError: pseudo-section '{'X' * 32}' of 'p': a name has up to 31 letters, a prefix up to 63"
    ),
    "@interpose.collector(programs=[5])\ndef name(area): pass": "ValueError: programs are not texts",
    "@interpose.collector(": "SyntaxError: '(' was never closed",
    "raise SystemExit(3)": "SystemExit: 3",
}


@pytest.mark.parametrize("text", BAD_FILES)
def test_a_collector_that_is_none_is_told_in_one_line_and_the_program_runs(collected, text):
    done = collected(text, 'probe("/probe/1")\nprint("goes on")')

    (library,) = done.experiment.founder.libraries
    assert (done.returncode, done.stdout, done.stderr) == (0, "goes on\n", "")
    assert (library.name, library.why_not) == ("collector:group:program", BAD_FILES[text])
    assert library.place.partition(":")[0].endswith("interpose_program.py")


def test_one_that_others_may_write_to_is_not_run(collected, tmp_path):
    (tmp_path / "interpose.d").mkdir()
    path = tmp_path / "interpose.d" / "interpose_program.py"
    path.write_text("")
    path.chmod(0o666)

    done = collected("print('run')", 'print("goes on")')

    (library,) = done.experiment.founder.libraries
    assert done.stdout == "goes on\n"
    assert library.why_not == f"{path} is writable by others"


def test_what_is_named_and_is_not_there_is_told(traced):
    done = traced("print('goes on')", INTERPOSE_COLLECTORS="nobody,/no/such/file.py")

    found = {library.name: library.why_not for library in done.experiment.founder.libraries}
    assert done.stdout == "goes on\n"
    assert found == {
        "collector:named:nobody": "no such data collector",
        "collector:path:file": "/no: No such file or directory",
    }


def test_a_collector_by_its_path(collected, tmp_path):
    path = tmp_path / "elsewhere.py"
    path.write_text("import interpose\n@interpose.collector\ndef name(area):\n    area.module = 'PATH'\n")

    done = collected("", 'probe("/probe/1")', INTERPOSE_COLLECTORS=str(path))

    assert [module for _, module, *_ in named(done)] == ["PATH"]


def test_only_files_whose_prefix_the_programs_name_begins_with_are_run(collected):
    name = "@interpose.collector\ndef name(area):\n    area.module = 'X'\n"

    begins = collected(name, 'probe("/probe/1")', file="interpose_prog.py")
    other = collected(name, 'probe("/probe/1")', file="interpose_shop.py", INTERPOSE_COLLECTORS="shop")

    assert [each.name for each in begins.experiment.founder.collectors] == ["collector:group:prog"]
    assert [each.name for each in other.experiment.founder.collectors] == ["collector:group:shop"]
    assert not begins.experiment.founder.libraries


@pytest.mark.parametrize(
    ("pattern", "name", "is_one"),
    [
        ("orders*", "orders.py", True),
        ("orders", "orders", True),
        ("*", "", True),
        ("o*s", "orders", True),
        ("o*r*s", "orders", True),
        ("orders*", "my_orders", False),
        ("*_batch", "orders_batch", True),
        ("a*a", "a", False),
    ],
)
def test_patterns_stand_for_programs(pattern, name, is_one):
    assert matches(pattern, name) is is_one


def test_a_program_is_meant_with_its_suffix_or_without():
    declared = Collector(print, programs="orders")

    assert [declared.is_for(name) for name in ("orders.py", "orders", "order")] == [True, True, False]


def test_the_function_stays_what_it_is():
    def name(area):
        return 5

    assert collector(name) is name
    assert collector(per="site", sections={"A": ("b", "c")})(name)(None) == 5
    assert list(name.__interpose_collector__.pairs()) == [("A", "b"), ("A", "c")]


def test_reports_say_what_went_wrong(collected):
    done = collected(
        """
        @interpose.collector
        def name(area):
            raise KeyError("no such order")
        """,
        """
        for number in range(20):
            probe(f"/probe/{number}")
        """,
    )

    interpose = [sys.executable, "-m", "interpose"]
    shown = run_in(done.directory, [*interpose, "report", done.path], COLUMNS="200")
    table = run_in(done.directory, [*interpose, "profile", "--section", "session", "--format", "json", done.path])

    assert "collector:group:program: collector: switched off: it raised an error ten times" in shown.stdout
    assert "data collector" in {row["figure"] for row in json.loads(table.stdout)}
    assert os.path.isdir(done.path)


def test_packages_give_collectors_by_entry_point_once_a_command_has_looked(traced, tmp_path):
    packages = tmp_path / "lib" / "site-packages"
    (packages / "shopping").mkdir(parents=True)
    (packages / "shopping" / "__init__.py").write_text("raise SystemExit('it was imported')")
    (packages / "shopping" / "tracing.py").write_text(
        "import interpose\n"
        "@interpose.collector\ndef other(area):\n    area.module = 'OTHER'\n"
        "@interpose.collector(programs=['program'])\ndef name(area):\n    area.module = 'PACKAGE'\n"
    )
    (packages / "shopping-1.0.dist-info").mkdir()
    (packages / "shopping-1.0.dist-info" / "entry_points.txt").write_text(
        "[interpose.collectors]\nshopping = shopping.tracing:name\n"
    )
    source = textwrap.dedent(PROGRAM) + 'probe("/probe/1")'
    variables = {"PYTHONPATH": str(packages), "XDG_STATE_HOME": str(tmp_path / "state")}

    before = traced(source, **variables)
    subprocess.run([sys.executable, "-m", "interpose", "list"], env=environment(**variables), capture_output=True)
    after = traced(source, **variables)

    assert named(before) == []
    assert [module for _, module, *_ in named(after)] == ["PACKAGE"]
    assert [each.name for each in after.experiment.founder.collectors] == ["collector:package:shopping"]
    assert not after.experiment.founder.libraries


def test_what_was_identified_is_in_a_merged_experiment_too(collected, tmp_path):
    done = collected(
        """
        @interpose.collector
        def name(area):
            if area.function == "probe":
                area.module, area.section, area.statement, area.transaction = "ORDERS", "SAVE", 120, "pay"
        """,
        'probe("/probe/1")',
    )
    merged = str(tmp_path / "merged.er")

    made = run_in(tmp_path, [sys.executable, "-m", "interpose", "consolidate", done.path, "-o", merged])

    table = SECTIONS["identified"](profiled(Analysis(Experiment(merged)))).table
    found = [table.values(row) for row in table.rows]
    assert made.returncode == 0
    assert [(row["module"], row["section"], row["statement"]) for row in found if row["collector"]] == [
        ("ORDERS", "SAVE", 120)
    ]
    assert {row.name for row in transactions(Analysis(Experiment(merged))).rows} >= {"pay", ".INIT"}
