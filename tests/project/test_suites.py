"""CPython's own tests end as they do without the tracer, every single one; and a comparison that could fail."""

import sys
from collections.abc import Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import replace

import pytest
import suites
from suites import Comparison, Outcome, Side

pytestmark = pytest.mark.every_python


def side(**outcomes: str) -> Side:
    return Side({test: Outcome(kind, f"{test} {kind}") for test, kind in outcomes.items()}, 1.0)


def test_a_test_that_ends_differently_under_the_tracer_is_named_with_both_outcomes_and_the_message():
    comparison = Comparison("test_x", [side(a="passed", b="failed")], [side(a="failed", b="failed")])

    assert comparison.differences() == [suites.Difference("a", "passed", "failed", "a failed")]
    assert str(comparison.differences()[0]) == "a: off: passed, on: failed\na failed"
    assert comparison.unsteady() == []


def test_a_test_that_did_not_run_on_one_side_differs():
    fewer, more = side(a="passed"), side(a="passed", b="skipped")

    assert [each.on for each in Comparison("test_x", [more], [fewer]).differences()] == ["did not run"]
    assert [each.off for each in Comparison("test_x", [fewer], [more]).differences()] == ["did not run"]


def test_what_differs_by_itself_is_left_out_and_told():
    comparison = Comparison("test_x", [side(a="passed"), side(a="failed")], [side(a="failed"), side(a="failed")])

    assert comparison.differences() == []
    assert comparison.unsteady() == ["a"]


def test_a_test_that_fails_in_most_traced_runs_differs_and_in_one_of_three_is_told():
    steady, failing = side(a="passed"), side(a="failed")

    assert Comparison("test_x", [steady] * 3, [failing, steady, failing]).differences()
    assert not Comparison("test_x", [steady] * 3, [failing, steady, steady]).differences()
    assert Comparison("test_x", [steady] * 3, [failing, steady, steady]).unsteady() == ["a"]


def test_a_suite_that_runs_no_test_or_is_not_recorded_proves_nothing():
    hung, ran = side(test_x="ended with 1"), side(test_x="ended with 0", a="passed")

    assert Comparison("test_x", [hung], [hung]).why_not() == "no test was run: ended with 1\ntest_x ended with 1"
    assert Comparison("test_x", [ran], [ran]).why_not() == "nothing was recorded"
    assert Comparison("test_x", [ran], [replace(ran, events=1)]).why_not() == ""


def test_a_suite_that_needs_what_is_not_here_is_skipped_with_its_reason():
    said = Side({"test_x": Outcome("ended with 0", "[1/1] test_x\ntest_x skipped -- No module named 'x'\n")}, 1.0)

    assert Comparison("test_x", [said], [said]).skipped() == "test_x skipped -- No module named 'x'"
    assert Comparison("test_x", [side(test_x="ended with 1")], [said]).skipped() == ""


def test_outcomes_are_read_by_test(tmp_path):
    results = tmp_path / "results.xml"
    results.write_text(
        '<testsuites><testsuite><testcase name="a"/><testcase name="b"><system-out>x</system-out>'
        '<failure message="m">why</failure></testcase><testcase name="c"><skipped>not here</skipped></testcase>'
        '<testcase name="a"><error>twice</error></testcase><testcase/></testsuite></testsuites>'
    )

    assert suites.read_outcomes(results) == {
        "a": Outcome("error, passed", "twice"),
        "b": Outcome("failed", "why"),
        "c": Outcome("skipped", "not here"),
        "(a test with parts)": Outcome("failed in part"),
    }
    assert suites.read_outcomes(tmp_path / "absent") == {}


@pytest.mark.long
def test_a_suite_of_cpythons_is_run_and_recorded():
    skip_without("test_fileio")
    comparison = suites.compare(suites.cpythons(sys.executable, "test_fileio"))

    assert len(comparison.off[0].outcomes) > 50
    assert comparison.off[0].events == 0
    assert comparison.on[0].events > 0
    assert comparison.differences() == []


def test_a_suite_that_is_not_there_is_told():
    assert suites.why_not(sys.executable, "test_of_nothing") == f"{sys.executable} has no test.test_of_nothing"


def skip_without(suite: str) -> None:
    if reason := suites.why_not(sys.executable, suite):
        pytest.skip(reason)


@pytest.fixture(scope="session")
def comparisons(request) -> Iterator[dict[str, Future]]:
    """The comparisons of all suites that are asked for, a few of them at once."""
    wanted = [item.callspec.params["suite"] for item in request.session.items if item.get_closest_marker("suites")]
    with ThreadPoolExecutor(suites.AT_ONCE) as pool:
        yield {
            suite: pool.submit(suites.compare, suites.cpythons(sys.executable, suite))
            for suite in wanted
            if not suites.why_not(sys.executable, suite)
        }
        pool.shutdown(cancel_futures=True)


@pytest.mark.slow
@pytest.mark.suites
@pytest.mark.parametrize(
    "suite",
    [
        *(pytest.param(suite, marks=pytest.mark.suites_first) for suite in suites.FIRST),
        *suites.SUITES[len(suites.FIRST) :],
    ],
)
def test_every_test_of_cpythons_own_ends_as_without_the_tracer(suite, comparisons):
    skip_without(suite)
    comparison = comparisons[suite].result()
    print(comparison)
    if comparison.skipped():
        pytest.skip(comparison.skipped())

    assert not comparison.why_not()
    assert not comparison.differences(), "\n".join(map(str, comparison.differences()))
