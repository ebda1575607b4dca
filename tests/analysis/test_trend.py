"""`interpose trend`: planted changes are found where they are, none where none is, and every format says the same."""

import csv
import io
import json
import math
import random
from html.parser import HTMLParser
from itertools import combinations, permutations
from pathlib import Path
from statistics import pvariance

import pytest

from interpose.analysis.comparison.change_points import RUNS_AT_LEAST_IN_ALL, change_points
from interpose.cli.main import main
from tests.analysis.test_comparison import shop
from tests.build import SECOND, TIME_NS

DAY_NS = 86_400 * SECOND
DEVIATION = 0.02


def figure(spread, seed):
    random_ = random.Random(seed)
    noise = random_.gauss(0, DEVIATION)
    return 100 * {
        "normal": math.exp(noise),
        "uniform": 1 + random_.uniform(-2 * DEVIATION, 2 * DEVIATION),
        "skewed": 1 + random_.expovariate(1 / (2 * DEVIATION)),
        "outliers": math.exp(noise) * (random_.uniform(1.2, 3) if random_.random() < 0.1 else 1),
    }[spread]


def figures(periods, spread="normal", seed=0):
    """Figures of runs; of each period how many runs it has, and how high it is."""
    heights = [height for number, height in periods for _ in range(number)]
    return [height * figure(spread, f"{spread} {seed} {place}") for place, height in enumerate(heights)]


def places(found):
    return [step.first for step in found]


@pytest.mark.parametrize(
    "periods",
    [
        [(10, 1), (10, 1.2)],
        [(10, 1), (10, 0.8)],
        [(7, 1), (3, 1.3)],
        [(3, 1), (7, 1.3)],
        [(15, 1), (15, 1.3), (15, 1)],
        [(12, 1), (12, 1.2), (12, 1.5), (12, 0.9)],
    ],
)
@pytest.mark.parametrize("seed", range(5))
def test_planted_changes_are_found_at_their_runs(periods, seed):
    found = change_points(figures(periods, seed=seed))

    ends = [sum(number for number, _ in periods[: place + 1]) for place in range(len(periods) - 1)]
    assert places(found) == ends
    assert all(0 < step.chance < 0.02 for step in found)


@pytest.mark.parametrize(
    "periods",
    [
        [(5, 101), (4, 201), (5, 101)],
        [(3, 1), (4, 1.5), (3, 1)],
        [(10, 1), (5, 0.8), (10, 1)],
        [(8, 1), (3, 1.4), (8, 1)],
        [(40, 1), (6, 1.3), (30, 1)],
        [(150, 1), (60, 1.2), (190, 1)],
        [(3, 1), (3, 2), (3, 1), (3, 2)],
    ],
)
def test_a_figure_that_changes_and_goes_back_is_found_at_its_runs(periods):
    heights = [height for number, height in periods for _ in range(number)]

    found = change_points([height * (1 + 0.002 * (place % 3)) for place, height in enumerate(heights)])

    assert places(found) == [sum(number for number, _ in periods[:place]) for place in range(1, len(periods))]
    assert all(0 < step.chance < 0.02 for step in found)


@pytest.mark.long
@pytest.mark.parametrize("spread", ["normal", "uniform"])
def test_a_period_of_noisy_figures_between_two_others_is_nearly_always_found(spread):
    found = [places(change_points(figures([(8, 1), (5, 1.2), (8, 1)], spread, seed))) for seed in range(30)]

    are_near = [all(any(abs(at - step) <= 1 for at in each) for step in (8, 13)) for each in found]
    assert sum(are_near) >= 27


@pytest.mark.long
@pytest.mark.parametrize("spread", ["normal", "uniform", "skewed", "outliers"])
def test_where_nothing_changed_hardly_ever_a_change_is_found(spread):
    alarms = sum(bool(change_points(figures([(12, 1)], spread, seed))) for seed in range(150))

    assert alarms <= 9  # three are to be expected, one in fifty


@pytest.mark.long
@pytest.mark.parametrize("spread", ["normal", "uniform", "skewed"])
def test_a_change_of_a_fifth_is_nearly_always_found(spread):
    found = [places(change_points(figures([(10, 1), (10, 1.2)], spread, seed))) for seed in range(40)]

    assert sum(10 in each for each in found) >= 36


def test_single_runs_that_are_far_off_are_no_change():
    values = figures([(20, 1)])
    values[8] *= 4
    values[15] *= 3

    assert change_points(values) == []


def test_the_step_is_where_two_figures_leave_the_least_squares():
    values = figures([(9, 1), (14, 1.05)], seed=3)
    logs = [math.log(each) for each in values]

    def left(place):
        return place * pvariance(logs[:place]) + (len(logs) - place) * pvariance(logs[place:])

    assert places(change_points(values)) == [min(range(3, len(logs) - 2), key=left)]


def test_the_chance_is_that_of_all_orders():
    values = [101.0, 100.0, 102.0, 99.0, 100.5, 111.0, 112.0, 110.0, 113.0]
    [step] = change_points(values)

    def squares(logs):  # around their mean; pvariance, which is exact, takes twenty times as long
        mean = sum(logs) / len(logs)
        return sum((each - mean) ** 2 for each in logs)

    def fit(order):
        logs = [math.log(each) for each in order]
        once = max(squares(logs) - squares(logs[:n]) - squares(logs[n:]) for n in range(3, 7))
        and_back = squares(logs) - squares(logs[:3] + logs[6:]) - squares(logs[3:6])
        return max(once, 0.9 * and_back)

    size, orders = fit(values), []
    for first in combinations(range(9), 3):
        rest = [place for place in range(9) if place not in first]
        for middle in permutations(rest, 3):
            last = [place for place in rest if place not in middle]
            orders.append([values[place] for place in (*first, *middle, *last)])
    exact = sum(fit(order) >= size - 1e-12 for order in orders) / len(orders)
    assert step == (5, pytest.approx(exact, abs=4 * math.sqrt(exact / 4999)))


@pytest.mark.parametrize("values", [[], [1.0], [0.0] * 30, [5.0] * 30, [1.0, 2.0] * 15])
def test_runs_without_any_order_have_no_change(values):
    assert change_points(values) == []


def test_fewer_runs_than_an_order_could_be_rare_in_have_no_change():
    assert change_points([1.0] * 4 + [9.0] * (RUNS_AT_LEAST_IN_ALL - 5)) == []


def test_counts_of_nought_can_begin():
    assert places(change_points([0.0] * 8 + [3.0] * 8)) == [8]


@pytest.fixture
def nights(place):
    """Runs of twenty nights; from the fifteenth on a checkout takes a fifth longer. Names are not in that order."""
    for night in range(20):
        shop(f"shop.{20 - night}.er", 1.2 if night >= 14 else 1.0, seed=night, time_ns=TIME_NS + night * DAY_NS)
    return place


def told(capsys, *words, code=0):
    assert main(words) == code
    return capsys.readouterr()


CHECKOUT = ("--name", "sqlite3.Cursor.execute")


def test_runs_are_in_the_order_of_their_time(nights, capsys):
    rows = json.loads(told(capsys, "trend", "shop.*.er", *CHECKOUT, "--format", "json").out)

    assert [row["experiment"] for row in rows] == [f"shop.{20 - night}.er" for night in range(20)]
    assert [row["time_ns"] for row in rows] == [TIME_NS + night * DAY_NS for night in range(20)]
    assert [row["run"] for row in rows if row["is_change"]] == [15]
    assert [row["period"] for row in rows] == [1] * 14 + [2] * 6
    assert rows[14]["ratio"] == pytest.approx(1.2, rel=0.01)
    assert rows[14]["ratio_low"] < 1.2 < rows[14]["ratio_high"]


def test_figures_are_those_of_the_reports(nights, capsys):
    rows = json.loads(told(capsys, "trend", "shop.*.er", *CHECKOUT, "--format", "json").out)
    reports = [json.loads(told(capsys, "report", row["experiment"], "--by", "intrinsic", "--format", "json").out)
               for row in rows]  # fmt: skip

    calls = [next(each for each in report if each["intrinsic"] == "sqlite3.Cursor.execute") for report in reports]
    assert [(row["figure"], row["calls"]) for row in rows] == [(each["self_wall_ns"], each["calls"]) for each in calls]


def test_every_format_has_the_same_runs_and_the_same_change(nights, capsys):
    text = told(capsys, "trend", "shop.*.er", *CHECKOUT)
    rows = list(csv.DictReader(io.StringIO(told(capsys, "trend", "shop.*.er", *CHECKOUT, "--format", "csv").out)))
    page = told(capsys, "trend", "shop.*.er", *CHECKOUT, "--format", "html").out

    assert [line.split()[-1] for line in text.out.splitlines()[1:]] == [row["experiment"] for row in rows]
    [changed] = [line for line in text.out.splitlines() if "%  " in line]
    assert changed.split()[0] == "15" and "+20.0 %" in changed
    assert "changed since run 15, shop.6.er: 200 ms, then 240 ms, +20.0 %" in text.err
    assert "changed since run 15, shop.6.er: 200 ms, then 240 ms, +20.0 %" in page
    assert page.count("<circle") == 20 and page.count('class="change"') == 1


def test_rows_that_did_not_change_have_one_period(nights, capsys):
    found = told(capsys, "trend", "shop.*.er", "--name", "time.sleep", "--measure", "median")

    assert "no change found in 20 runs" in found.err


def test_a_figure_of_the_whole_run_is_of_no_row(nights, capsys):
    head = told(capsys, "trend", "shop.*.er", "--measure", "elapsed").out.splitlines()[0]

    assert "  elapsed  " in head


def test_a_group_is_as_good_as_its_runs(nights, capsys):
    Path("all.erg").write_text("#interpose experiment group\n" + "".join(f"shop.{n}.er\n" for n in range(1, 21)))

    assert told(capsys, "trend", "all.erg").out == told(capsys, "trend", "shop.*.er").out


def test_a_run_that_cannot_be_read_is_left_out(nights, capsys):
    Path("shop.3.er/log.xml").write_text("<")

    found = told(capsys, "trend", "shop.*.er", code=3)

    assert len(found.out.splitlines()) == 20
    assert "shop.3.er" in found.err and "left out" in found.err


@pytest.mark.parametrize(
    ("words", "code", "said"),
    [
        (("nothing.*.er",), 1, "nothing.*.er: no experiment matches"),
        (("shop.1.er", "--name", "sqlite3.Cursor.executed"), 2, "Did you mean sqlite3.Cursor.execute?"),
        (("shop.1.er", *CHECKOUT, "--measure", "elapsed"), 2, "--measure elapsed measures the whole run"),
        (("shop.1.er", "shop.2.er"), 0, "2 runs: a change shows in 9 or more"),
    ],
)
def test_what_cannot_be_told_is_said_in_a_line(nights, capsys, words, code, said):
    assert said in told(capsys, "trend", *words, code=code).err.splitlines()[-1 if code else 0]


def test_a_pattern_is_as_good_as_its_runs_for_reports(nights, capsys):
    assert "20 experiments" in told(capsys, "report", "shop.*.er").out.splitlines()[0]


class Elements(HTMLParser):
    def __init__(self, text):
        super().__init__()
        self.found = set()
        self.feed(text)

    def handle_starttag(self, tag, attributes):
        self.found.add(tag)


def test_names_are_text_in_the_page_and_on_the_terminal(place, capsys):
    name = "<img src=x onerror=alert(1)>\x1b[31m.er"
    shop(name, extra=True)

    page = told(capsys, "trend", name, "--format", "html").out
    text = told(capsys, "trend", name)

    assert not Elements(page).found & {"img", "script"}
    assert "&lt;img src=x onerror=alert(1)&gt;" in page and "default-src &#x27;none&#x27;" in page
    assert "\x1b" not in text.out + text.err + page
