"""The pytest plug-in: tests are transactions, their calls have limits; without its options it is as if not there."""

from __future__ import annotations

import dis
import json
import os
import re
import sys
import textwrap
from collections.abc import Callable, Sequence
from pathlib import Path

import pytest
from tracing import Traced, run_in

from interpose.analysis.analysis import Analysis
from interpose.analysis.consolidation.sums import Sums
from interpose.analysis.coverage.coverage import Asked, coverage
from interpose.analysis.transactions.response_times import Share, Transaction, transactions
from interpose.pytest.limits import limits_of
from interpose.pytest.summary import wait_ns

Run = Callable[..., "Ran"]

DATABASE = """\
import sqlite3
import pytest

database = sqlite3.connect(":memory:")

def ask(times):
    for number in range(times):
        database.execute("select ?", (number,))

"""


def asking(source: str) -> str:
    """The source of a file of tests that can ask a database."""
    return DATABASE + textwrap.dedent(source)


class Ran(Traced):
    """A test session that ran."""

    def transactions(self) -> dict[str, int]:
        """How often each transaction that is a test was made."""
        rows = transactions(Analysis(self.experiment)).rows
        return {row.name: row.sums.calls for row in rows if "::" in row.name}

    @property
    def is_recorded(self) -> bool:
        return self._path is not None


@pytest.fixture
def tests(tmp_path: Path) -> Run:
    """Run pytest on a file `test_it.py` of that source, with options; without Hypothesis, which takes long to import,
    unless the test is `beside_hypothesis`."""
    state = tmp_path / "state"

    def run(
        source: str, *options: str, beside_hypothesis: bool = False, command: Sequence[str] = (), **variables: str
    ) -> Ran:
        directory = tmp_path / "work"
        directory.mkdir(exist_ok=True)
        (directory / "test_it.py").write_text(textwrap.dedent(source))
        settings = {"XDG_STATE_HOME": str(state), "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "", **variables}
        left_out = ["cacheprovider"] if beside_hypothesis else ["cacheprovider", "hypothesispytest"]
        without = [word for name in left_out for word in ("-p", f"no:{name}")]
        done = run_in(
            directory,
            [*(command or [sys.executable, "-m", "pytest"]), *without, *options],
            **{name: text for name, text in settings.items() if text},
        )
        return Ran(directory, done)

    return run


@pytest.mark.parametrize("beside_hypothesis", [True, False])
def test_each_test_is_a_transaction_by_its_node(tests, beside_hypothesis):
    ran = tests(
        asking("""
        @pytest.mark.parametrize("times", [1, 2])
        def test_asks(times):
            ask(times)

        class TestMore:
            def test_asks(self):
                ask(3)
        """),
        "--interpose",
        beside_hypothesis=beside_hypothesis,
    )

    assert ran.returncode == 0, ran.stdout
    assert ran.transactions() == {
        "test_it.py::test_asks[1]": 1,
        "test_it.py::test_asks[2]": 1,
        "test_it.py::TestMore::test_asks": 1,
    }


@pytest.mark.any_python
def test_what_fixtures_call_is_of_the_test(tests):
    ran = tests(
        asking("""
        @pytest.fixture
        def asked():
            ask(2)
            yield
            ask(3)

        def test_asks(asked):
            ask(4)
        """),
        "--interpose",
    )

    (row,) = [row for row in transactions(Analysis(ran.experiment)).rows if "::" in row.name]
    (marked,) = ran.events("interpose.transaction")
    inside = [event for event in ran.events("sqlite3.Connection.execute") if event.parent == marked.call]
    assert row.sums.calls == 1
    assert len(inside) == 9


@pytest.mark.any_python
def test_nothing_is_recorded_without_the_option(tests):
    ran = tests(asking("    def test_asks(): ask(1)\n"))

    assert ran.returncode == 0, ran.stdout
    assert not ran.is_recorded
    assert "interpose:" not in ran.stdout


@pytest.mark.any_python
def test_without_the_option_no_more_than_the_options_is_imported(tests):
    ran = tests(
        """
        import sys

        def test_modules():
            ours = {name for name in sys.modules if name.startswith("interpose")}
            assert ours == {"interpose", "interpose.pytest", "interpose.pytest.options"}
        """
    )

    assert ran.returncode == 0, ran.stdout


@pytest.mark.any_python
def test_a_recorded_pytest_says_nothing_of_us(tests):
    ran = tests("def test_it(): pass\n", "-W", "error", INTERPOSE="1")

    assert ran.returncode == 0, ran.stdout
    assert ran.is_recorded
    assert "interpose:" not in ran.stdout


def test_a_test_with_more_calls_than_it_may_make_fails_and_the_lines_are_told(tests):
    ran = tests(
        asking("""
        @pytest.mark.max_calls(db=5)
        def test_asks():
            ask(6)
            database.execute("select 'other'")
        """),
        "--interpose",
    )

    assert ran.returncode == 1
    assert "max_calls: 7 calls of kind db, 5 allowed:\n  6 x sqlite3.Connection.execute  test_it.py:8 ask" in ran.stdout
    assert "  1 x sqlite3.Connection.execute  test_it.py:14 test_asks" in ran.stdout
    assert "Traceback" not in ran.stdout


@pytest.mark.any_python
def test_a_test_with_as_many_calls_as_it_may_make_passes(tests):
    ran = tests(asking("    @pytest.mark.max_calls(db=6, net=0)\n    def test_asks(): ask(6)\n"), "--interpose")

    assert ran.returncode == 0, ran.stdout


@pytest.mark.any_python
def test_fixtures_and_other_tests_do_not_count(tests):
    ran = tests(
        asking("""
        @pytest.fixture
        def asked():
            ask(5)

        def test_before():
            ask(5)

        @pytest.mark.max_calls(db=2)
        def test_asks(asked):
            ask(2)
        """),
        "--interpose",
    )

    assert ran.returncode == 0, ran.stdout


@pytest.mark.any_python
def test_calls_of_all_threads_count(tests):
    ran = tests(
        asking("""
        @pytest.mark.max_calls(sleep=1)
        def test_sleeps():
            import threading, time
            threads = [threading.Thread(target=time.sleep, args=(0.01,)) for _ in range(2)]
            for thread in threads: thread.start()
            for thread in threads: thread.join()
        """),
        "--interpose",
    )

    assert "max_calls: 2 calls of kind sleep, 1 allowed" in ran.stdout


@pytest.mark.any_python
def test_limits_are_of_what_matches_the_patterns(tests):
    limits = {
        "execute": ("3, intrinsic='sqlite3.*.execute'", True),
        "commit": ("3, intrinsic='sqlite3.*.commit'", False),
        "select": ("3, detail='select ?*', kind='db'", True),
        "insert": ("3, detail='insert*'", False),
        "net": ("3, kind='net'", False),
    }
    source = "".join(
        f"    @pytest.mark.max_calls({limit})\n    def test_{name}(): ask(4)\n" for name, (limit, _) in limits.items()
    )
    ran = tests(asking(source), "--interpose")

    exceeded = {name for name, (_, is_exceeded) in limits.items() if is_exceeded}
    assert set(re.findall(r"^_+ test_(\w+) _+\nmax_calls: 4 calls", ran.stdout, re.M)) == exceeded


@pytest.mark.any_python
def test_several_marks_are_several_limits(tests):
    source = "    @pytest.mark.max_calls(db=1)\n    @pytest.mark.max_calls(2, kind='db')\n    def test_asks(): ask(3)\n"
    ran = tests(asking(source), "--interpose")

    assert "3 calls of kind db, 1 allowed" in ran.stdout
    assert "3 calls of kind db, 2 allowed" in ran.stdout


@pytest.mark.any_python
def test_calls_that_are_only_counted_count(tests):
    source = "    @pytest.mark.max_calls(db=1)\n    def test_asks(): ask(3)\n"
    ran = tests(asking(source), "--interpose", INTERPOSE_KINDS="db=count,logic")

    assert "max_calls: 3 calls of kind db, 1 allowed" in ran.stdout
    assert "(counted, not timed)" in ran.stdout


UNITTESTS = """
    import traceback
    import unittest

    class Shop(unittest.TestCase):
        def setUp(self):
            ask(5)
            self.addCleanup(ask, 5)

        def tearDown(self):
            ask(5)

        @pytest.mark.max_calls(db=2)
        def test_asks(self):
            ask(2)
            assert not any("interpose/pytest/unittests.py" in frame.filename for frame in traceback.extract_stack())

        @pytest.mark.max_calls(db=1)
        def test_asks_too_often(self):
            ask(2)

    class AsyncShop(unittest.IsolatedAsyncioTestCase):
        async def asyncSetUp(self):
            ask(5)

        async def asyncTearDown(self):
            ask(5)

        @pytest.mark.max_calls(db=2)
        async def test_asks(self):
            ask(2)

        @pytest.mark.max_calls(db=1)
        async def test_asks_too_often(self):
            ask(2)

    class Refused(unittest.TestCase):
        def setUp(self):
            ask(5)
            raise RuntimeError("no shop")

        @pytest.mark.max_calls(db=0)
        def test_asks(self):
            ask(1)

    def test_nothing_is_left():
        assert not any(name in vars(Shop("test_asks")) for name in ("_callSetUp", "_callTearDown"))
    """


@pytest.mark.any_python
def test_set_up_and_tear_down_of_unittest_classes_do_not_count(tests):
    ran = tests(asking(UNITTESTS), "--interpose")

    assert ran.stdout.count("max_calls: 2 calls of kind db, 1 allowed:") == 2
    assert "RuntimeError: no shop" in ran.stdout
    assert "3 failed, 3 passed" in ran.stdout


@pytest.mark.any_python
def test_a_test_that_failed_fails_as_it_did(tests):
    source = "    @pytest.mark.max_calls(db=1)\n    def test_asks():\n        ask(3)\n        assert not database\n"
    ran = tests(asking(source), "--interpose")

    assert "assert not database" in ran.stdout
    assert "max_calls: " not in ran.stdout


@pytest.mark.any_python
def test_a_limit_that_is_none_is_told_in_a_line(tests):
    ran = tests(asking("    @pytest.mark.max_calls(dbs=5)\n    def test_asks(): ask(1)\n"), "--interpose")

    assert ran.returncode == pytest.ExitCode.USAGE_ERROR
    assert "ERROR: test_it.py::test_asks: max_calls: 'dbs' is not one of db, screen" in ran.stderr
    assert "Traceback" not in ran.stdout + ran.stderr


FORM = "must be of the form db=5, or 5, intrinsic='sqlite3.*'"


@pytest.mark.any_python
@pytest.mark.parametrize(
    ("arguments", "words", "why"),
    [
        ((), {"db": -1}, "-1 is not a number of 0 or more"),
        ((), {"db": "5"}, "'5' is not a number of 0 or more"),
        ((), {"db": True}, "True is not a number of 0 or more"),
        ((), {}, FORM),
        ((), {"intrinsic": "a"}, FORM),
        ((1, 2), {}, FORM),
        ((1,), {"kind": "x"}, "'x' is not one of db"),
        ((1,), {"detail": 7}, "detail must be a pattern, not 7"),
    ],
)
def test_why_a_limit_is_none(arguments, words, why):
    with pytest.raises(ValueError, match=f"^{re.escape(why)}"):
        list(limits_of(arguments, words))


@pytest.mark.long
@pytest.mark.any_python
def test_limits_that_are_not_looked_at_are_told(tests):
    source = asking("    @pytest.mark.max_calls(db=1)\n    def test_asks(): ask(3)\n")
    without = tests(source, "--strict-markers")
    with_other_kinds = tests(source, "--interpose", INTERPOSE_KINDS="net")

    assert without.returncode == with_other_kinds.returncode == 0
    assert "PytestWarning: 1 test has max_calls, which was not checked: add --interpose" in without.stdout
    assert "interpose: 1 limit not checked: INTERPOSE_KINDS=net" in with_other_kinds.stdout


@pytest.mark.any_python
def test_limits_need_recorded_calls_beside_coverage(tests):
    source = "    @pytest.mark.max_calls(db=1, net=1)\n    def test_asks(): ask(3)\n"

    ran = tests(asking(source + source.replace("test_asks", "test_more")), "--interpose-coverage")

    assert ran.returncode == 0
    said = "interpose: limits of 2 tests not checked: max_calls needs --interpose besides --interpose-coverage\n"
    assert said in ran.stdout
    assert "INTERPOSE_KINDS" not in ran.stdout


@pytest.mark.long
@pytest.mark.any_python
@pytest.mark.parametrize("options", [["-q"], ["-W", "error"], ["-n", "2"]], ids=["quiet", "errors", "workers"])
def test_limits_that_are_not_checked_are_one_warning(tests, options):
    source = "    @pytest.mark.max_calls(db=1)\n    def test_asks(): ask(3)\n"

    ran = tests(asking(source + source.replace("test_asks", "test_more")), *options)

    assert ran.stdout.count("2 tests have max_calls, which was not checked: add --interpose") == 1
    assert "2 passed, 1 warning" in ran.stdout


@pytest.mark.long
def test_limits_of_imports_are_looked_at_where_imports_are_recorded(tests):
    source = "    @pytest.mark.max_calls(0, kind='import')\n    def test_imports(): import colorsys\n"
    without, having = (tests(asking(source), "--interpose", INTERPOSE_KINDS=kinds) for kinds in ("all", "all,import"))
    of_any_kind = tests(asking(source.replace("kind=", "intrinsic=")), "--interpose", INTERPOSE_KINDS="all,db")

    assert "interpose: 1 limit not checked: INTERPOSE_KINDS=all" in without.stdout
    assert "max_calls: 1 call of kind import, 0 allowed" in having.stdout
    assert "not checked" not in of_any_kind.stdout


@pytest.mark.any_python
@pytest.mark.parametrize("sampled", [{"INTERPOSE_TRANSACTIONS": "1/5"}, {"INTERPOSE_INTERVAL": "100us"}])
def test_limits_are_not_looked_at_where_calls_are_sampled(tests, sampled):
    ran = tests(asking("    @pytest.mark.max_calls(db=1)\n    def test_asks(): ask(3)\n"), "--interpose", **sampled)
    ((name, text),) = sampled.items()

    assert ran.returncode == 0
    assert f"interpose: 1 limit not checked: {name}={text}" in ran.stdout


# Notes what each test function took of CPU time, and pytest's call of it, with the check of limits.
CLOCKS = """\
import json, time
import pytest

@pytest.hookimpl(wrapper=True, tryfirst=True)
def pytest_pyfunc_call(pyfuncitem):
    begun = time.thread_time_ns()
    try:
        return (yield)
    finally:
        pyfuncitem.took_ns = time.thread_time_ns() - begun

@pytest.hookimpl(wrapper=True, tryfirst=True)
def pytest_runtest_call(item):
    begun = time.thread_time_ns()
    try:
        return (yield)
    finally:
        with open("clocks", "a") as file:
            json.dump([item.name, item.took_ns, time.thread_time_ns() - begun], file)
            file.write("\\n")
"""


def cpu_of(ran: Ran, kind: str) -> dict[str, int]:
    """CPU time of a kind, by the names of tests."""
    rows = transactions(Analysis(ran.experiment)).rows
    return {row.name.partition("::")[2]: row.split[kind].cpu_ns for row in rows if "::" in row.name}


@pytest.mark.any_python
def test_the_check_of_a_limit_is_overhead_of_its_test(tests, tmp_path):
    (tmp_path / "work").mkdir()
    (tmp_path / "work/conftest.py").write_text(CLOCKS)
    ran = tests(asking("    @pytest.mark.max_calls(db=9)\n    def test_asks(): ask(3)\n"), "--interpose")
    [(name, of_function_ns, of_call_ns)] = map(json.loads, (tmp_path / "work/clocks").read_text().splitlines())
    check_ns = of_call_ns - of_function_ns

    assert 0.6 * check_ns < cpu_of(ran, "overhead")[name] < 1.4 * check_ns
    assert cpu_of(ran, "logic")[name] < 0.5 * check_ns
    assert all("suspended" not in row.split for row in transactions(Analysis(ran.experiment)).rows if "::" in row.name)


def test_the_checks_of_limits_are_no_overhead_of_tests_without(tests, tmp_path):
    ran = tests(
        """
        import os, time
        import pytest

        @pytest.mark.parametrize("number", range(8))
        @pytest.mark.max_calls(db=5)
        def test_limited(number):
            pass

        def test_without():
            computed_ns = 0
            for _ in range(100):
                begun_ns = time.thread_time_ns()
                sum(range(2_000))
                computed_ns += time.thread_time_ns() - begun_ns
                os.stat(".")
            with open("computed", "w") as file:
                file.write(str(computed_ns))
        """,
        "--interpose",
    )
    computed_ns = int((tmp_path / "work/computed").read_text())

    assert computed_ns < sum(cpu_of(ran, "overhead").values())  # so that these could hide it
    assert cpu_of(ran, "logic")["test_without"] > 0.7 * computed_ns


@pytest.mark.any_python
def test_where_nothing_can_be_recorded_the_tests_run_and_a_line_says_why(tests):
    source = asking("    @pytest.mark.max_calls(db=1)\n    def test_asks(): ask(3)\n")
    ran = tests(source, "--interpose", INTERPOSE_ROWS="many")

    assert ran.returncode == 0
    assert "interpose: nothing is recorded: INTERPOSE_ROWS=many: not one of each, cursor, auto" in ran.stdout
    assert "1 limit not checked: nothing is recorded" in ran.stdout


@pytest.mark.any_python
def test_the_summary_says_how_many_tests_were_recorded(tests):
    ran = tests("def test_one(): pass\ndef test_other(): pass\n", "--interpose", INTERPOSE_KINDS="db")

    assert "interpose: test.1.er: 0 of 2 tests recorded\nnext: interpose report test.1.er\n" in ran.stdout


@pytest.mark.any_python
def test_the_summary_names_the_tests_that_waited_longest(tests):
    ran = tests(
        """
        import time

        def test_short(): time.sleep(0.02)
        def test_long(): time.sleep(0.06)
        def test_none(): pass
        """,
        "--interpose",
    )

    summary = ran.stdout[ran.stdout.index("interpose: test.1.er: 3 tests; waited longest (wait of total time):") :]
    assert re.findall(r" of .*::(\w+)", summary)[:2] == ["test_long", "test_short"]
    assert "next: interpose transactions test.1.er" in summary


@pytest.mark.long
def test_what_the_check_of_a_limit_waits_for_is_no_wait_of_the_test(tests, tmp_path):
    (tmp_path / "work").mkdir()
    (tmp_path / "work/conftest.py").write_text("""\
import time
from interpose.pytest import plugin

counted = plugin.calls_between

def slowly_counted(*arguments):
    time.sleep(0.4)
    return counted(*arguments)

plugin.calls_between = slowly_counted
""")
    ran = tests(
        """
        import time
        import pytest

        @pytest.mark.max_calls(db=5)
        def test_limited(): pass
        def test_waits(): time.sleep(0.1)
        """,
        "--interpose",
    )

    assert re.findall(r" of .*::(\w+)", ran.stdout)[:1] == ["test_waits"]


def test_the_wait_of_a_test_is_of_its_parts_without_overhead():
    parts = {"sleep": Share(50, 1), "logic": Share(10, 12), "suspended": Share(4), "overhead": Share(300, 30)}
    row = Transaction("test_it.py::test", Sums(calls=1, wall_ns=364, cpu_ns=43), parts)
    parts_of_threads = {"sleep": Share(500), "overhead": Share(9)}
    row_of_threads = Transaction("test_it.py::test", Sums(calls=1, wall_ns=60), parts_of_threads)

    assert wait_ns(row) == 49 + 4
    assert wait_ns(row_of_threads) == 60 - 9


@pytest.mark.long
def test_workers_of_xdist_are_descendants_and_have_limits(tests):
    source = """
        @pytest.mark.parametrize("number", range(4))
        def test_plain(number):
            ask(1)

        @pytest.mark.max_calls(db=1)
        def test_asks():
            ask(2)
    """
    ran = tests(asking(source), "--interpose", "-n", "2")

    assert "1 failed, 4 passed" in ran.stdout
    assert "max_calls: 2 calls of kind db, 1 allowed" in ran.stdout
    assert len(ran.transactions()) == 5
    assert {process.lineage for process in ran.experiment.processes} >= {"", "_c1", "_c2"}
    assert "interpose: test.1.er: 5 tests" in ran.stdout


def test_what_tests_start_is_recorded(tests):
    ran = tests(
        """
        import subprocess, sys

        def test_child():
            subprocess.run([sys.executable, "-c", "pass"], check=True)
        """,
        "--interpose",
    )

    assert [process.lineage for process in ran.experiment.processes] == ["", "_c1"]


@pytest.mark.any_python
def test_what_the_plugin_reads_is_not_recorded(tests):
    source = asking("    @pytest.mark.max_calls(file=0)\n    def test_asks(): ask(3)\n")
    ran = tests(source, "--interpose")

    details = set(ran.details())
    assert ran.returncode == 0, ran.stdout
    assert not [detail for detail in details if detail.endswith((".er/log.xml", ".er/events", ".er/strings"))]


@pytest.mark.long
@pytest.mark.any_python
def test_rows_are_fetched_in_one_call_unless_somebody_says_otherwise(tests):
    source = """
        @pytest.mark.max_calls(3, intrinsic="sqlite3.*")
        def test_rows():
            cursor = database.execute("select 1 union select 2 union select 3")
            while cursor.fetchone(): pass
    """
    ran = tests(asking(source), "--interpose")
    each = tests(asking(source), "--interpose", INTERPOSE_ROWS="each")

    assert ran.returncode == 0, ran.stdout
    assert "max_calls: 5 calls of intrinsic sqlite3.*, 3 allowed" in each.stdout


@pytest.mark.long
@pytest.mark.parametrize("loop", ["while cursor.fetchone(): pass", "for row in cursor: pass"])
def test_fetches_of_a_line_are_as_many_calls_as_python_has_compiled_of_it(tests, loop):
    source = f"""
        @pytest.mark.max_calls(0, intrinsic="sqlite3.Cursor.*")
        def test_rows():
            cursor = database.execute("select 1 union select 2 union select 3")
            {loop}
    """
    compiled = max(str(list(dis.get_instructions(loop))).count("argval='fetchone'"), 1)

    ran = tests(asking(source), "--interpose")

    calls = "1 call" if compiled == 1 else f"{compiled} calls"
    assert f"max_calls: {calls} of intrinsic sqlite3.Cursor.*, 0 allowed" in ran.stdout


@pytest.mark.long
@pytest.mark.any_python
def test_options_by_which_no_test_runs_begin_no_recording(tests):
    for option in ("--collect-only", "--help", "--markers", "--fixtures"):
        ran = tests("def test_it(): pass\n", "--interpose", option)

        assert ran.returncode == 0
        assert not ran.is_recorded


@pytest.mark.parametrize("how", ["option", "variable"])
def test_coverage_is_of_the_project_s_files_and_not_of_pytest_s_script(tests, tmp_path, interpose_here, how):
    files = {
        "conftest.py": "",
        "shop/__init__.py": "def price(n):\n    if n > 3:\n        return n * 2\n    return n\n",
        "tests/test_price.py": "from shop import price\n\ndef test_price():\n    assert price(2) == 2\n",
    }
    for name, text in files.items():
        path = tmp_path / "work" / name
        path.parent.mkdir(exist_ok=True, parents=True)
        path.write_text(text)
    option, variables = (["--interpose-coverage"], {}) if how == "option" else ([], {"INTERPOSE": "coverage"})

    ran = tests("", *option, command=[os.path.join(os.path.dirname(sys.executable), "pytest")], **variables)

    assert ran.returncode == 0, ran.stdout
    rows = json.loads(interpose_here("coverage", "report", "--format", "json").stdout)
    assert {row["file"]: row["missed"] for row in rows} == {
        "shop/__init__.py": 1,
        "tests/test_price.py": 0,
        None: 1,
    }


@pytest.mark.long
def test_coverage_has_nothing_of_what_hypothesis_compiles(tests):
    pytest.importorskip("hypothesis")
    source = """
        from hypothesis import given, strategies

        @given(strategies.builds(complex, strategies.integers(0, 9)))
        def test_it(number):
            assert number == eval("number")
    """
    ran = tests(source, "--interpose-coverage", beside_hypothesis=True)

    found = coverage(ran.experiment, Asked(place=str(ran.directory)))
    told = {module.name: module.made.executed for module in found.modules}
    assert ran.returncode == 0, ran.stdout
    assert list(told) == ["test_it"] and told["test_it"]


def test_coverage_is_recorded_by_test_and_calls_are_not(tests):
    ran = tests(asking("    def test_asks(): ask(3)\n"), "--interpose-coverage")

    settings = ran.experiment.founder.log.settings
    assert (settings["INTERPOSE"], settings["INTERPOSE_CONTEXTS"]) == ("calls,coverage", "1")
    assert list(ran.transactions()) == ["test_it.py::test_asks"]
    assert not ran.events("sqlite3.Connection.execute")


def test_a_session_that_records_already_is_used(tests):
    ran = tests(asking("    def test_asks(): ask(3)\n"), "--interpose", "--interpose-coverage", INTERPOSE="1")

    assert [path.name for path in Path(ran.path).parent.glob("*.er")] == ["test.1.er"]
    assert list(ran.transactions()) == ["test_it.py::test_asks"]
    assert "interpose: coverage is not recorded, because the recording began with INTERPOSE=1" in ran.stdout


@pytest.mark.long
def test_sessions_in_one_process_are_recorded_together(tests, tmp_path):
    inner = tmp_path / "work" / "inner.py"
    source = f"""
        import pytest

        def test_outer():
            assert pytest.main(["-q", "--interpose", "-p", "no:cacheprovider", {str(inner)!r}]) == 0
    """
    (tmp_path / "work").mkdir()
    inner.write_text("def test_inner(): pass\n")
    ran = tests(source, "--interpose")

    assert ran.returncode == 0, ran.stdout
    outer, inner = ran.events("interpose.transaction")
    assert inner.parent == outer.call
    assert ran.transactions() == {"test_it.py::test_outer": 1}


def test_the_environment_of_the_tests_says_that_it_is_recorded_and_modules_are_as_they_were(tests):
    ran = tests(
        """
        import os, sys

        def test_it():
            assert os.environ["INTERPOSE"] == "calls"
            assert "interpose.capture.session" not in sys.modules
        """,
        "--interpose",
    )

    assert ran.returncode == 0, ran.stdout
    assert os.path.isdir(ran.path)
