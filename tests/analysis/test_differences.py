"""The statistics of comparisons: functions against tables, the method against what is known beforehand."""

import math
import random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from interpose.analysis.comparison.differences import (
    CHANGED,
    NOT_ENOUGH,
    UNCHANGED,
    Difference,
    Side,
    differences,
    holm,
    leaning,
    typical,
)
from interpose.analysis.comparison.distributions import (
    digamma,
    incomplete_beta,
    student_beyond,
    student_bound,
    trigamma,
    trigamma_inverse,
)

EULER = 0.5772156649015329

# What tables of Student's distribution have: degrees of freedom, then the bounds for 10, 5 and 1 % on both sides.
STUDENT = [
    (1, 6.314, 12.706, 63.657),
    (2, 2.920, 4.303, 9.925),
    (4, 2.132, 2.776, 4.604),
    (9, 1.833, 2.262, 3.250),
    (18, 1.734, 2.101, 2.878),
    (30, 1.697, 2.042, 2.750),
    (120, 1.658, 1.980, 2.617),
    (1e6, 1.645, 1.960, 2.576),
]


@pytest.mark.parametrize(("freedom", "tenth", "twentieth", "hundredth"), STUDENT)
def test_student_s_distribution_is_that_of_the_tables(freedom, tenth, twentieth, hundredth):
    for beyond, bound in ((0.1, tenth), (0.05, twentieth), (0.01, hundredth)):
        assert student_bound(beyond, freedom) == pytest.approx(bound, abs=6e-4)
        assert student_beyond(bound, freedom) == pytest.approx(beyond, rel=2e-3)


@given(t=st.floats(0.01, 50), freedom=st.floats(0.5, 1e6))
def test_a_bound_has_beyond_it_what_was_asked_for(t, freedom):
    beyond = student_beyond(t, freedom)

    assert 0 <= beyond <= 1
    if 1e-9 < beyond < 0.999:
        assert student_bound(beyond, freedom) == pytest.approx(t, rel=1e-4)


@given(a=st.integers(1, 12), b=st.integers(1, 12), x=st.floats(0, 1))
def test_the_beta_function_of_whole_numbers_is_a_sum_of_binomials(a, b, x):
    n = a + b - 1
    expected = sum(math.comb(n, k) * x**k * (1 - x) ** (n - k) for k in range(a, n + 1))

    assert incomplete_beta(a, b, x) == pytest.approx(expected, abs=1e-12)


def test_digamma_and_trigamma_where_they_are_known():
    assert digamma(1) == pytest.approx(-EULER, abs=1e-12)
    assert digamma(0.5) == pytest.approx(-EULER - 2 * math.log(2), abs=1e-12)
    assert digamma(100) == pytest.approx(sum(1 / n for n in range(1, 100)) - EULER, abs=1e-12)
    assert trigamma(1) == pytest.approx(math.pi**2 / 6, rel=1e-12)
    assert trigamma(0.5) == pytest.approx(math.pi**2 / 2, rel=1e-12)
    assert [trigamma_inverse(trigamma(x)) for x in (0.01, 1, 50)] == pytest.approx([0.01, 1, 50], rel=1e-9)


def test_holm_s_correction():
    assert holm([0.01, 0.04, 0.03, 0.005]) == pytest.approx([0.03, 0.06, 0.06, 0.02])
    assert holm([0.6, 0.7]) == [1.0, 1.0]
    assert holm([]) == []


def test_welch_s_interval_of_a_single_row():
    a, b = [math.exp(x) for x in (1.0, 2.0, 3.0)], [math.exp(x) for x in (4.0, 6.0, 8.0, 10.0)]

    [found] = differences([a], [b])

    # Means 2 and 7, variances 1 and 20/3, of the means 1/3 and 5/3.
    freedom = 2**2 / ((1 / 3) ** 2 / 2 + (5 / 3) ** 2 / 3)
    reach = student_bound(0.05, freedom) * math.sqrt(2)
    assert freedom == pytest.approx(4.0755, abs=1e-3)
    assert math.log(found.ratio) == pytest.approx(5)
    assert [math.log(found.low), math.log(found.high)] == pytest.approx([5 - reach, 5 + reach])


def test_of_ten_runs_one_at_either_end_is_left_out():
    calm = [100, 101, 99, 100, 102, 98, 100, 101, 99, 100]

    [found] = differences([calm], [[*calm[1:], 1000]])

    assert found.verdict == UNCHANGED
    assert found.ratio == pytest.approx(1, abs=0.01)


def test_variances_lean_on_each_other_as_much_as_they_are_alike():
    alike = [Side(0.0, variance, 9.0, 10) for variance in (0.9, 1.0, 1.1, 1.0)]
    unlike = [Side(0.0, variance, 9.0, 10) for variance in (1e-6, 1e-3, 1.0, 1e3)]

    of_alike, of_unlike = leaning(alike), leaning(unlike)

    assert max(side.variance for side in of_alike) / min(side.variance for side in of_alike) < 1.01
    assert all(side.freedom > 1000 for side in of_alike)
    assert [side.variance for side in of_unlike] == pytest.approx([side.variance for side in unlike], rel=0.5)
    assert all(9 < side.freedom < 10 for side in of_unlike)
    assert leaning(alike[:2]) == alike[:2]


@pytest.mark.parametrize(
    ("a", "b", "verdict", "ratio"),
    [
        ([100, 101, 99], [200, 202, 198], CHANGED, 2),
        ([100, 101, 99], [100, 99, 101], UNCHANGED, 1),
        ([100, 200, 50], [100, 70, 180], NOT_ENOUGH, None),
        ([5, 5, 5], [5, 5, 5], UNCHANGED, 1),
        ([5, 5, 5], [6, 6, 6], CHANGED, 1.2),
        ([1000, 1000, 1000], [1005, 1005, 1005], UNCHANGED, 1.005),
        ([0, 0, 0], [0, 0, 0], UNCHANGED, None),
        ([0, 0, 0], [100, 101, 99], CHANGED, None),
        ([100, 101, 99], [0, 0, 0], CHANGED, 0),
        ([0, 0, 100], [0, 100, 0], NOT_ENOUGH, None),
        ([100, 101], [200, 202], NOT_ENOUGH, 2),
        ([100], [200, 200, 200], NOT_ENOUGH, 2),
    ],
)
def test_verdicts(a, b, verdict, ratio):
    [found] = differences([a], [b])

    assert found.verdict == verdict
    if ratio is not None:
        assert found.ratio == pytest.approx(ratio, rel=0.01)


def test_of_one_run_a_side_there_is_no_interval():
    assert differences([[100]], [[150]]) == [Difference(100, 150)]


def test_what_is_unchanged_depends_on_the_tolerance():
    a, b = [100, 101, 99, 100], [101, 102, 100, 101]

    assert [differences([a], [b], tolerance)[0].verdict for tolerance in (0.01, 0.05)] == [NOT_ENOUGH, UNCHANGED]


@pytest.mark.parametrize(
    ("a", "b", "verdict"),
    [
        ([1000] * 10, [1015] * 10, UNCHANGED),  # a bucket further: by how little nobody knows
        ([1000] * 10, [1030] * 10, CHANGED),
        ([1000, 1015] * 5, [1015, 1031] * 5, UNCHANGED),
        ([1000, 1015] * 5, [1060, 1075] * 5, CHANGED),
        ([0, 1000, 1000], [1000, 0, 1000], NOT_ENOUGH),
    ],
)
def test_what_is_within_the_grain_is_no_change(a, b, verdict):
    assert differences([a], [b], grain=1 / 64)[0].verdict == verdict


figures = st.lists(st.one_of(st.just(0.0), st.floats(1e-3, 1e15)), min_size=1, max_size=12)


@given(rows=st.lists(st.tuples(figures, figures), max_size=8))
def test_whatever_the_figures_are_there_is_an_answer(rows):
    runs = (min((len(a) for a, _ in rows), default=0), min((len(b) for _, b in rows), default=0))

    found = differences([a[: runs[0]] for a, _ in rows], [b[: runs[1]] for _, b in rows])

    assert len(found) == len(rows)
    for each in found:
        assert each.verdict in (CHANGED, UNCHANGED, NOT_ENOUGH)
        assert each.low is None or each.low <= each.high
        assert each.verdict == NOT_ENOUGH or min(runs) >= 3


@given(a=st.lists(st.floats(1, 1e6), min_size=3, max_size=10), b=st.lists(st.floats(1, 1e6), min_size=3, max_size=10))
def test_the_other_way_round_it_is_the_inverse(a, b):
    [there], [back] = differences([a], [b]), differences([b], [a])

    assert there.ratio * back.ratio == pytest.approx(1)
    assert there.low * back.high == pytest.approx(1) or there.high > 1e290 or back.high > 1e290
    assert there.chance == pytest.approx(back.chance, abs=1e-9)


def normal(random_, spread):
    return random_.gauss(0, spread)


def even(random_, spread):
    return random_.uniform(-1, 1) * spread * math.sqrt(3)


def skewed(random_, spread):
    return spread * (random_.lognormvariate(0, 1) - math.exp(0.5)) / 2.161


def now_and_then_busy(random_, spread):
    return random_.gauss(0, spread) + (random_.random() < 0.1) * random_.expovariate(1 / (5 * spread))


def trial(random_, noise, spreads, runs):
    """A row for each of the `spreads`, of which each run differs by `noise`."""
    return [[100 * max(1 + noise(random_, spread), 0.01) for _ in range(runs)] for spread in spreads]


@pytest.mark.slow
@pytest.mark.parametrize("runs", [3, 5, 10, 20])
@pytest.mark.parametrize("noise", [normal, even, skewed, now_and_then_busy])
def test_the_interval_has_the_ratio_in_it_as_often_as_it_says(noise, runs):
    random_ = random.Random(f"{noise.__name__} {runs}")
    covered = trials = seen = 0
    for _ in range(150):
        spreads = [math.exp(random_.uniform(math.log(0.005), math.log(0.05))) for _ in range(20)]
        found = differences(trial(random_, noise, spreads, runs), trial(random_, noise, spreads, runs))
        covered += sum(each.low <= 1 <= each.high for each in found)
        trials += len(found)
        seen += any(each.verdict == CHANGED for each in found)

    print(f"{noise.__name__}, {runs} runs: {covered / trials:.3f}, changes seen {seen / 150:.3f}")
    assert covered / trials > 0.93
    assert seen / 150 < 0.1


# Runs that lie within 2 % of the middle, and, harder, runs whose standard deviation is 2 %: every third lies outside.
SPREADS = [
    pytest.param(even, 0.02 / math.sqrt(3), 95, id="within 2 %"),
    pytest.param(normal, 0.02, 90, id="deviation of 2 %"),
]


@pytest.mark.long
@pytest.mark.parametrize(("noise", "spread", "least"), SPREADS)
def test_the_same_is_unchanged_and_five_per_cent_in_one_of_twenty_are_found(noise, spread, least):
    random_ = random.Random(f"{noise.__name__} of twenty")
    same = found = 0
    for _ in range(100):
        a, b = (trial(random_, noise, [spread] * 20, 10) for _ in range(2))
        same += all(each.verdict == UNCHANGED for each in differences(a, b))
        slower = [[1.05 * figure for figure in b[0]], *b[1:]]
        found += differences(a, slower)[0].verdict == CHANGED

    assert same >= 95
    assert found >= least


def test_a_row_that_one_side_lacks_is_shown_as_the_typical_figure_of_the_other():
    took = [79.5, 81.3, 77.8, 78.6, 1079.0, 1252.0]  # their geometric mean is 194.05
    (gone,) = differences([took], [[0.0] * 6])
    (new,) = differences([[0.0] * 6], [took])

    assert gone.a == new.b == typical(took) == pytest.approx(194.05, abs=0.01)
    assert (gone.b, new.a) == (0.0, 0.0)


def test_a_period_and_the_change_that_ends_it_have_the_same_figure():
    figures = [61.0, 62.0, 60.5, 64.0, 59.0] + [0.0] * 5
    (change,) = differences([figures[:5]], [figures[5:]])

    assert change.a == typical(figures[:5])
