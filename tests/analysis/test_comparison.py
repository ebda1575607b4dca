"""`interpose compare`: runs beside each other, conditions, what is unlike, what cannot be read."""

import csv
import io
import json
import math
import os
import random
import re
import statistics
import subprocess
import sys
import time
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from interpose.analysis.analysis import Analysis
from interpose.analysis.comparison.comparison import compare, named
from interpose.analysis.comparison.conditions import outcome, parse_condition
from interpose.analysis.comparison.differences import CHANGED, NOT_ENOUGH, UNCHANGED
from interpose.analysis.comparison.figures import ALL, GROUPED_BY, MEASURES, Figures, Name, Run, run_of
from interpose.cli.main import main
from interpose.errors import ExpressionError
from interpose.experiments.metadata.log import READS_UP_TO
from interpose.experiments.model.experiment import Experiment
from tests.build import SECOND, START_NS, Build, event
from tests.tracing import environment, write_program

MS = 1_000_000
FAILED = 4
TOP = Path(__file__).parents[2]


def shop(path, checkout=1.0, *, seed=0, cwd="/home/u/shop", extra=False, ends=True, **log):
    """A run of a shop: twenty checkouts of 10 ms and twenty payments of 5 ms, give or take a percent by the seed."""
    random_ = random.Random(seed)
    build = Build(Path(path), cwd=cwd, **log)
    query, sleep = build.intrinsic("sqlite3.Cursor.execute", "db"), build.intrinsic("time.sleep", "sleep")
    places = {
        query: build.stack(build.site(f"{cwd}/orders.py", 88, "checkout")),
        sleep: build.stack(build.site(f"{cwd}/orders.py", 99, "pay")),
    }
    statement, rows = build.string("select ?"), []
    for call in range(40):
        number, ms = (query, 10 * checkout) if call % 2 == 0 else (sleep, 5)
        wall_ns = round(ms * MS * (1 + random_.uniform(-0.01, 0.01)))
        more = {"detail": statement} if number == query else {}
        rows.append(event(20 * call * MS, wall_ns, MS, call=call + 1, intrinsic=number, stack=places[number], **more))
    if extra:
        rows.append(event(900 * MS, 30 * MS, MS, call=99, intrinsic=build.intrinsic("os.fsync", "file")))
    build.events(rows)
    end = {"end_ns": START_NS + SECOND, "end_cpu_ns": 300 * MS} if ends else {"seen_ns": START_NS + SECOND}
    build.thread(recorded=len(rows), main=1, tid=812 + seed, **end)
    if ends:
        build.ended(SECOND, 300 * MS)
    return str(build.write())


def lasted(path, wall_ns):
    """A run of a sleep of a second in a thread that ended before the process did."""
    build = Build(Path(path))
    build.events([event(0, SECOND, 0, intrinsic=build.intrinsic("time.sleep", "sleep"))])
    build.thread(recorded=1, main=1, tid=812, end_ns=START_NS + SECOND, end_cpu_ns=0)
    build.ended(wall_ns, 0)
    build.write()


@pytest.fixture
def sides(place):
    """Five runs a side; checkouts of the second take a fifth longer."""
    for seed in range(5):
        shop(f"a.{seed}.er", seed=seed)
        shop(f"b.{seed}.er", 1.2, seed=seed + 50)
    return [f"a.{seed}.er" for seed in range(5)], [f"b.{seed}.er" for seed in range(5)]


def rows_of(out):
    return {row["kind"] if row.get("intrinsic") is None else row["intrinsic"]: row for row in json.loads(out)}


def test_several_runs_a_side(sides, run_main):
    a, b = sides

    code, out, err = run_main("compare", *a, "--with", *b, "--format", "json")

    rows = rows_of(out)
    assert code == 0
    assert {name: row["verdict"] for name, row in rows.items()} == {
        "sqlite3.Cursor.execute": CHANGED,
        "time.sleep": UNCHANGED,
        "code": CHANGED,  # it has what the checkouts left
        "overhead": UNCHANGED,
        "all": CHANGED,
        "elapsed": UNCHANGED,
    }
    checkout = rows["sqlite3.Cursor.execute"]
    assert checkout["ratio_low"] < 1.2 < checkout["ratio_high"]
    assert (checkout["unit"], checkout["runs_a"], checkout["calls_b"]) == ("ns", 5, 20)
    assert err == "interpose: sources were not kept, whether they differ is not known: " + (
        "a.0.er, a.1.er, a.2.er and 7 more\n"
    )


@pytest.mark.parametrize(("b_ms", "verdict", "code"), [(1000, CHANGED, 0), (3020, UNCHANGED, 0), (4000, CHANGED, 4)])
def test_runs_that_last_longer_are_seen_even_if_their_threads_take_as_long(place, run_main, b_ms, verdict, code):
    for number in range(5):
        lasted(f"a.{number}.er", (3000 + 4 * number) * MS)
        lasted(f"b.{number}.er", (b_ms + 4 * number) * MS)
    a, b = ([f"{side}.{number}.er" for number in range(5)] for side in "ab")

    done, out, err = run_main("compare", *a, "--with", *b, "--format", "json", "--fail-if", "elapsed > +5%")

    row = rows_of(out)["elapsed"]
    assert (done, row["verdict"], row["measure"], row["unit"]) == (code, verdict, "elapsed", "ns")
    assert abs(row["ratio"] - b_ms / 3000) < 0.01
    assert ("--fail-if elapsed > +5%: holds: 3.01 s, then 4.01 s" in err) == (code == 4)


def test_people_see_the_sides_beside_each_other_the_difference_or_the_ratio(sides, run_main):
    a, b = sides

    def line(mode):
        out = run_main("compare", *a, "--with", *b, "--mode", mode, "--limit", "2")[1]
        heads, _, row, whole, _ = out.splitlines()
        return heads, row.split("  "), whole

    on, delta, ratio = map(line, ("on", "delta", "ratio"))
    assert on[0].split("  ")[0] == "verdict"
    assert "A, 5 runs  B, 5 runs" in on[0]
    assert {"changed", "200 ms", "240 ms"} < set(map(str.strip, on[1]))
    assert {"+40.1 ms", "+40.0 ms", "+39.9 ms"} & set(map(str.strip, delta[1]))
    assert {"x 1.199", "x 1.200", "x 1.201"} & set(map(str.strip, ratio[1]))
    assert all(each[2].startswith("changed in 2") for each in (on, delta, ratio))


def test_a_group_is_several_runs(sides, place, run_main):
    a, b = sides
    for name, paths in (("a.erg", a), ("b.erg", b)):
        Path(name).write_text("#interpose experiment group\n" + "".join(f"{path}\n" for path in paths))

    of_groups = run_main("compare", "a.erg", "b.erg", "--format", "json")

    assert of_groups == run_main("compare", *a, "--with", *b, "--format", "json")


def test_a_run_that_is_named_twice_is_one(sides, run_main):
    a, b = sides

    _, out, _ = run_main("compare", *a, *a, "--with", *b, "--format", "json")

    assert {row["runs_a"] for row in json.loads(out)} == {5}


@pytest.mark.parametrize("by", GROUPED_BY)
def test_by_every_grouping_rows_of_several_runs_meet(sides, run_main, by):
    a, b = sides

    code, out, _ = run_main("compare", *a, "--with", *b, "--by", by, "--format", "json")

    rows = json.loads(out)
    assert code == 0
    assert len(rows) <= 6
    no_ratio = ("sync", "all") if by == "transaction" else ("sync",)  # the shop has no transactions with a name
    assert all(row["ratio"] is not None for row in rows if row["kind"] not in no_ratio)  # on both sides


def test_sites_meet_wherever_the_program_lay(place, run_main):
    shop("a.1.er", cwd="/srv/1/shop")
    shop("b.1.er", cwd="/srv/2/shop")

    _, out, _ = run_main("compare", "a.1.er", "b.1.er", "--by", "site", "--format", "json")

    sites = [row["site"] for row in json.loads(out) if row["site"]]
    assert sorted(sites) == ["orders.py:88", "orders.py:99"]


def test_of_a_run_a_side_it_is_said_what_can_be_said(place, run_main):
    shop("a.1.er")
    shop("b.1.er", 1.5)

    code, out, err = run_main("compare", "a.1.er", "b.1.er", "--format", "json")

    assert code == 0
    assert {row["verdict"] for row in json.loads(out)} == {NOT_ENOUGH}
    assert rows_of(out)["sqlite3.Cursor.execute"]["ratio"] == pytest.approx(1.5, rel=0.01)
    assert "one run a side cannot tell a change from chance" in err


def test_of_a_run_a_side_people_see_the_change_and_no_verdict(place, run_main):
    shop("a.1.er")
    shop("b.1.er", 1.5)

    _, out, _ = run_main("compare", "a.1.er", "b.1.er")

    head, *rows = out.splitlines()
    assert head.split()[:7] == ["A,", "1", "run", "B,", "1", "run", "change"]
    assert "verdict" not in head and "interval" not in head
    assert any("+50." in row or "+49." in row for row in rows)


def test_what_is_missing_on_a_side_counts_nothing(place, run_main):
    for seed in range(3):
        shop(f"a.{seed}.er", seed=seed)
        shop(f"b.{seed}.er", seed=seed + 9, extra=True)
    words = ("compare", *(f"a.{n}.er" for n in range(3)), "--with", *(f"b.{n}.er" for n in range(3)))

    row = rows_of(run_main(*words, "--format", "json")[1])["os.fsync"]

    assert (row["a"], row["ratio"], row["calls_a"], row["calls_b"]) == (0, None, 0, 1)
    assert row["verdict"] == CHANGED
    assert " new " in run_main(*words)[1]
    back = ("compare", *words[5:], "--with", *words[1:4])
    assert " gone " in run_main(*back)[1]


@pytest.mark.parametrize("format", ["text", "markdown", "csv", "json"])
def test_every_format_has_the_same_rows(sides, run_main, format):
    a, b = sides

    code, out, _ = run_main("compare", *a, "--with", *b, "--format", format)

    assert code == 0
    assert [out.count(name) for name in ("sqlite3.Cursor.execute", "time.sleep")] == [1, 1]
    if format == "csv":
        assert [row["verdict"] for row in csv.DictReader(io.StringIO(out))].count(UNCHANGED) == 3


def test_measures_of_a_run(place):
    experiment = Experiment(shop("a.1.er", extra=True))
    run = run_of(Analysis(experiment), "intrinsic", with_calls=True)
    walls = sorted(each.wall_ns for block in experiment.founder.events.blocks() for each in read(experiment, block))

    [found] = named([run], ALL)

    assert MEASURES["calls"].of(found) == len(walls) == 41
    assert MEASURES["total"].of(found) == SECOND - of_interpose(run)
    assert MEASURES["median"].of(found) == MEASURES["p50"].of(found) == pytest.approx(walls[20], rel=0.01)
    assert MEASURES["p90"].of(found) == pytest.approx(walls[math.ceil(0.9 * 41) - 1], rel=0.01)
    assert MEASURES["p99"].of(found) == pytest.approx(30 * MS, rel=0.01)
    assert MEASURES["max"].of(found) == walls[-1] == 30 * MS
    assert MEASURES["wall"].of(found) - MEASURES["wait"].of(found) >= 0
    [checkout] = named([run], "sqlite3.Cursor.execute")
    assert MEASURES["mean"].of(checkout) == pytest.approx(10 * MS, rel=0.01)
    assert MEASURES["cpu"].of(checkout) == 20 * MS
    assert MEASURES["wait"].of(checkout) == checkout.total_ns - 20 * MS


def read(experiment, block):
    return experiment.founder.events.events(block)


def of_interpose(run):
    return run.rows[Name("overhead")].total_ns


@pytest.mark.parametrize(
    ("condition", "code"),
    [
        ("total(sqlite3.Cursor.execute) > +10%", FAILED),
        ("total(sqlite3.Cursor.execute) > +30%", 0),
        ("p95( 'sqlite3.Cursor.execute' )>=+1ms", FAILED),
        ("p95(time.sleep) > +10%", 0),
        ("mean(time.sleep) > 4ms", FAILED),
        ("mean(time.sleep) > 6ms", 0),
        ("calls(time.sleep) > +0%", 0),
        ("calls(time.sleep) >= 20", FAILED),
        ("cpu(all) < -50%", 0),
        ("max(time.sleep) <= 5.1ms", FAILED),
        ("MEDIAN(sqlite3.Cursor.execute) < -1ms", 0),
    ],
)
def test_conditions_decide_the_exit_code(sides, run_main, condition, code):
    a, b = sides

    done = run_main("compare", *a, "--with", *b, "--fail-if", "calls(all) > +1%", "--fail-if", condition)

    assert done[0] == code
    assert f"--fail-if {condition}: {'holds' if code else 'does not hold'}: " in done[2]


def test_a_condition_is_of_sites_and_functions_too(sides, run_main):
    a, b = sides

    for by, name in (("site", "orders.py:88"), ("function", "checkout"), ("kind", "db"), ("detail", "select ?")):
        code, _, err = run_main("compare", *a, "--with", *b, "--by", by, "--fail-if", f"p95({name}) > +10%")
        assert code == FAILED, err


@pytest.mark.parametrize("seed", range(4))
def test_transactions_are_compared_by_their_response_times(place, run_main, seed):
    for number in range(4):
        served(f"a.{number}.er", 100, seed=10 * seed + number)
        served(f"b.{number}.er", 120, seed=10 * seed + number + 5)
    words = ("compare", *(f"a.{n}.er" for n in range(4)), "--with", *(f"b.{n}.er" for n in range(4)))

    code, out, _ = run_main(*words, "--by", "transaction", "--fail-if", "p95(GET /checkout) > +10%")

    lines = {line.split("  ")[-1]: line for line in out.splitlines()[1:]}
    assert code == FAILED
    assert lines["GET /checkout"].startswith("changed")
    assert lines["GET /basket"].startswith("unchanged")
    assert lines["all"].startswith("changed in 1")


def test_how_long_a_service_took_to_start_is_not_in_all_transactions(place, run_main):
    served("a.1.er", 50, seed=0)
    served("b.1.er", 50, seed=0, start_ms=600)
    words = ("compare", "a.1.er", "b.1.er", "--by", "transaction")

    code, out, _ = run_main(*words, "--fail-if", "mean(all) > +1%", "--fail-if", "calls(all) > 10")

    assert code == 0
    assert any(line.endswith("  .INIT") for line in out.splitlines())
    assert run_main(*words, "--fail-if", "mean(.INIT) > +10%")[0] == FAILED


def test_a_condition_for_all_transactions_needs_one(place, run_main):
    shop("a.1.er", seed=0)
    shop("b.1.er", seed=1)

    code, _, err = run_main("compare", "a.1.er", "b.1.er", "--by", "transaction", "--fail-if", "mean(all) > +10%")

    assert code == 2
    assert "there is nothing to judge: no row is of the program's work" in err


def served(path, checkout_ms, seed, start_ms=0):
    """A run of a server: five requests of each of two routes, after its start."""
    random_ = random.Random(seed)
    build = Build(Path(path), call_ns=0, inside_ns=0)
    serve = build.intrinsic("flask.Flask.wsgi_app", "logic", transaction="is")
    details, rows = {route: build.string(f"GET /{route}") for route in ("checkout", "basket")}, []
    for number in range(10):
        route = ("checkout", "basket")[number % 2]
        wall_ns = round({"checkout": checkout_ms, "basket": 50}[route] * MS * (1 + random_.uniform(-0.01, 0.01)))
        start_ns, detail = (start_ms + number * 200) * MS, details[route]
        rows.append(event(start_ns, wall_ns, MS, call=number + 1, intrinsic=serve, detail=detail))
    build.events(rows)
    build.thread(end_ns=START_NS + 2 * SECOND + start_ms * MS, end_cpu_ns=20 * MS, recorded=10, main=1, tid=9)
    build.ended(2 * SECOND + start_ms * MS, 20 * MS)
    build.write()


def test_what_may_be_chance_does_not_fail(place, run_main):
    for number, (one, other) in enumerate([(1, 1.9), (1.8, 1.2), (1.1, 1.6), (1.4, 1.5)]):
        shop(f"a.{number}.er", one)
        shop(f"b.{number}.er", other)
    words = ("compare", *(f"a.{n}.er" for n in range(4)), "--with", *(f"b.{n}.er" for n in range(4)))

    code, _, err = run_main(*words, "--fail-if", "total(sqlite3.Cursor.execute) > +10%")

    assert code == 0
    assert "may be chance: 259 ms, then 307 ms, +18.5 %" in err


def test_of_a_run_a_side_the_figures_decide(place, run_main):
    shop("a.1.er")
    shop("b.1.er", 1.5)

    assert run_main("compare", "a.1.er", "b.1.er", "--fail-if", "total(all) > +10s")[0] == 0
    assert run_main("compare", "a.1.er", "b.1.er", "--fail-if", "p95(sqlite3.Cursor.execute) > +10%")[0] == FAILED


@pytest.mark.parametrize(
    ("text", "place", "what"),
    [
        ("", 0, "a measure was expected; there are total, wall"),
        ("totl(x) > +1%", 0, "totl is not a measure; did you mean total?"),
        ("p95 x > +1%", 4, "( was expected: p95(checkout)"),
        ("p95(x > +1%", 3, "the parenthesis is not closed"),
        ("p95() > +1%", 4, "a name was expected"),
        ("p95('x) > +1%", 4, "the text that begins with ' does not end"),
        ("p95(x) = +1%", 7, "one of > >= < <= was expected"),
        ("p95(x) > much", 9, "a limit was expected"),
        ("p95(x) > +1", 11, "a time has one of the units ns us ms s m"),
        ("p95(x) > 10%", 9, "a part is a change"),
        ("p95(x) > +1% && 1", 13, "the end was expected"),
        ("calls(x) > 5ms", 12, "a number of calls has no unit"),
        ("p95(" + "x" * 1000, 1000, "at most 1,000 characters"),
    ],
)
def test_what_is_wrong_with_a_condition_is_told_with_its_place(text, place, what):
    with pytest.raises(ExpressionError) as told:
        parse_condition(text)

    assert what in str(told.value)
    assert told.value.place == place


def test_names_of_conditions():
    assert parse_condition("p95(app.f(x)) > +1%").name == "app.f(x)"
    assert parse_condition("p95(')') > +1%").name == ")"
    assert parse_condition(" p95 ( GET /orders/<id> ) > -2.5ms ").name == "GET /orders/<id>"
    assert parse_condition("p95(x) < -2.5ms").limit == -2.5 * MS


def test_conditions_that_are_shown_can_be_read():
    pages = [(TOP / page).read_text(encoding="utf-8") for page in ("docs/commands.md", "docs/comparing.md")]

    shown = [condition for page in pages for condition in re.findall(r"--fail-if '(.+?)'", page)]

    assert len(shown) > 2
    assert all(parse_condition(text).limit for text in shown)


def test_a_name_that_nothing_has_is_told_before_anything_is_written(sides, run_main):
    a, b = sides

    code, out, err = run_main("compare", *a, "--with", *b, "--fail-if", "p95(time.slep) > +10%")

    assert (code, out) == (2, "")
    assert err.splitlines()[-3:] == [
        "interpose: no row is called time.slep; did you mean time.sleep?",
        "  p95(time.slep) > +10%",
        "      ^",
    ]


@given(text=st.text(alphabet="p95mean(total)'>=<+-10%msx ", max_size=30))
def test_whatever_is_given_is_a_condition_or_is_told_with_a_place_in_it(text):
    try:
        parse_condition(text)
    except ExpressionError as error:
        assert 0 <= error.place <= len(text)


def test_what_is_unlike_is_said(place, run_main):
    shop("a.1.er", host="h1", settings={"INTERPOSE_SYNC": "auto", "INTERPOSE_DIR": "x"})
    shop("b.1.er", host="h2", settings={"INTERPOSE_SYNC": "all", "INTERPOSE_DIR": "y"}, arguments=["orders.py", "-x"])
    for name, letter in (("a.1.er", "a"), ("b.1.er", "b")):
        (Path(name) / "archives").mkdir()
        entries = [
            {"path": f"/home/u/shop/{file}", "content": f"{file}_{of * 32}", "kind": "source"}
            for file, of in (("orders.py", letter), ("same.py", "c"))
        ]
        lines = [json.dumps(each | {"bytes": 1, "mtime_ns": 1, "changed": False}) for each in entries]
        (Path(name) / "archives" / "index.jsonl").write_text("\n".join(lines) + "\n")

    _, _, err = run_main("compare", "a.1.er", "b.1.er")

    assert err.splitlines() == [
        "interpose: host differs: h1, then h2",
        "interpose: command differs: orders.py, then orders.py -x",
        "interpose: INTERPOSE_SYNC differs: auto, then all",
        "interpose: sources differ, lines may have moved: orders.py",
        "interpose: one run a side cannot tell a change from chance; compare 3 or more: A1 A2 A3 --with B1 B2 B3",
    ]


def test_what_makes_figures_doubtful_is_said(place, run_main):
    build = Build(Path("a.1.er"))
    build.intrinsic("os.write", "file")
    build.thread(dropped=7, made=7)
    build.write()
    shop("b.1.er", ends=False)

    code, _, err = run_main("compare", "a.1.er", "b.1.er")

    assert code == 0
    assert "interpose: a.1.er: 7 calls were dropped\n" in err
    assert "interpose: a.1.er: no call was recorded\n" in err


def test_a_run_that_still_runs_is_compared_as_it_is_now(place, run_main):
    start_ns = time.clock_gettime_ns(time.CLOCK_MONOTONIC) - SECOND
    log = {"start_ns": start_ns, "time_ns": time.time_ns(), "pid": os.getpid(), "host": os.uname().nodename}
    build = Build(Path("a.1.er"), **log)
    build.intrinsic("time.sleep", "sleep")
    build.thread(start_ns=start_ns, recorded=1)
    build.block([event(0, MS) | {"start_ns": start_ns + MS}], state=1)
    build.write()
    shop("b.1.er")

    code, out, err = run_main("compare", "a.1.er", "b.1.er", "--format", "json")

    assert code == 0
    assert rows_of(out)["time.sleep"]["calls_a"] == 1
    assert "interpose: a.1.er: still runs; its figures are of now\n" in err


def test_what_cannot_be_read_is_left_out_and_said(sides, run_main):
    a, b = sides
    Path("empty.er").mkdir()
    later = Path(shop("later.er")) / "log.xml"
    later.write_text(re.sub(r'experiment version="\d+"', 'experiment version="9"', later.read_text()))

    code, out, err = run_main("compare", *a, "empty.er", "nowhere.er", "later.er", "--with", *b, "--format", "json")

    assert code == 3
    assert {row["runs_a"] for row in json.loads(out)} == {5}
    assert err.splitlines()[:3] == [
        "interpose: empty.er: not an experiment: log.xml is missing; left out",
        "interpose: nowhere.er: no such experiment; left out",
        f"interpose: later.er/log.xml: format 9; this version reads up to {READS_UP_TO}; left out",
    ]


def test_where_a_side_has_nothing_that_can_be_read_it_is_an_error(sides, run_main):
    a, _ = sides

    assert run_main("compare", a[0], "nowhere.er") == (1, "", "interpose: nowhere.er: no such experiment\n")


def test_a_damaged_run_is_read_as_far_as_it_goes(sides, run_main):
    a, b = sides
    with open(f"{a[0]}/events", "r+b") as events:
        events.truncate(3000)

    code, out, err = run_main("compare", *a, "--with", *b, "--format", "json")

    assert code == 3
    assert {row["runs_a"] for row in json.loads(out)} == {5}
    assert "interpose: a.0.er/events: cut short at byte 3000, in block 0" in err


@pytest.mark.parametrize(
    "words",
    [
        ("a.1.er",),
        ("a.1.er", "b.1.er", "c.1.er"),
        ("a.1.er", "b.1.er", "--tolerance", "none"),
        ("a.1.er", "b.1.er", "--by", "experiment"),
        ("a.1.er", "b.1.er", "--measure", "p42"),
        ("a.1.er", "b.1.er", "--fail-if", "p95"),
    ],
)
def test_wrong_usage(place, run_main, words):
    assert run_main("compare", *words)[0] == 2


def run(number, random_, spread, slower=()):
    """A run of twenty transactions, which take from a millisecond to a second."""
    rows = {}
    for each in range(20):
        ms = 10 ** (each / 6.5) * (1 + random_.uniform(-spread, spread)) * (1.05 if each in slower else 1)
        total_ns = round(ms * MS)
        rows[Name(labels=(("transaction", f"t{each}"),))] = Figures(100, total_ns, total_ns, total_ns // 3)
    return Run(f"{number}", rows)


@pytest.mark.long
def test_the_same_program_is_unchanged_and_one_slower_transaction_is_found():
    random_ = random.Random("the same program")
    same = found = 0
    for trial in range(100):
        a, b, slower = (
            [run(number, random_, 0.02, slower) for number in range(10)] for slower in ((), (), (trial % 20,))
        )
        same += compare(a, b).whole.verdict == UNCHANGED
        rows = {dict(row.name.labels)["transaction"]: row for row in compare(a, slower).rows}
        found += rows[f"t{trial % 20}"].verdict == CHANGED

    assert same >= 95
    assert found >= 95


def test_any_rows_with_a_name_can_be_compared():
    random_ = random.Random("any rows")
    a, b = ([run(number, random_, 0.02, slower) for number in range(10)] for slower in ((), (19,)))

    found = outcome(parse_condition("mean(t19) > +3%"), a, b)
    compared = compare(a, b)

    assert found.holds
    assert compared.whole.verdict == CHANGED
    assert [dict(row.name.labels)["transaction"] for row in compared.rows if row.verdict == CHANGED] == ["t19"]


SHOP = """
    import sys, time

    slower = float(sys.argv[1])

    def transaction(number):
        exec(f"def t{number}(ms): time.sleep(ms / 1000)", globals())
        return globals()[f"t{number}"]

    transactions = [transaction(number) for number in range(20)]
    for _ in range(10):
        for number, carry_out in enumerate(transactions):
            carry_out(8 * (slower if number == 7 else 1))
"""


@pytest.mark.slow
@pytest.mark.alone
def test_real_runs_of_the_same_program_and_of_one_with_a_slower_transaction(tmp_path):
    """Twenty functions that wait; ten runs a side, one of each side at a time: what else the machine does meets all
    three. One waits for a twentieth longer in the third set."""
    program, chance = write_program(tmp_path, SHOP), random.Random("real runs")
    for _ in range(10):
        runs = []
        for name, slower in chance.sample([("a", "1"), ("b", "1"), ("c", "1.05")], 3):
            variables = environment(INTERPOSE="1", INTERPOSE_NAME=name)
            runs.append(subprocess.Popen([sys.executable, str(program), slower], cwd=tmp_path, env=variables))
        assert [run.wait() for run in runs] == [0, 0, 0]
    runs = {name: [run_by_function(path) for path in sorted(tmp_path.glob(f"{name}.*.er"))] for name in "abc"}

    same, slower = (compare(runs["a"], runs[other], "median").rows for other in "bc")

    assert CHANGED not in verdicts(same).values()
    assert {name for name, verdict in verdicts(slower).items() if verdict == CHANGED} <= {"t7"}
    if (spread := max(spread_of(row.name, runs["a"]) for row in same)) > 0.02:
        pytest.skip(f"runs spread by {spread:.1%} on this machine now")
    assert set(verdicts(same).values()) == {UNCHANGED}
    assert verdicts(slower)["t7"] == CHANGED


def run_by_function(path):
    experiment = Experiment(str(path))
    made = run_of(Analysis(experiment), "function", with_calls=True)
    return Run(made.name, {name: found for name, found in made.rows.items() if name.intrinsic == "time.sleep"})


def verdicts(rows):
    return {dict(row.name.labels)["function"]: row.verdict for row in rows}


def spread_of(name, runs):
    medians = [each.rows[name].percentile_ns(50) for each in runs]
    return statistics.stdev(medians) / statistics.fmean(medians)


def sampled_run(directory, parse):
    """A run in which `parse` computes for so many times 10 ms and `save` for 300 ms."""
    build = Build(directory, call_ns=0, inside_ns=0)
    stacks = [build.sampled_stack(("/home/u/shop/app.py", line, name)) for line, name in ((3, "parse"), (9, "save"))]
    for place in range(1, parse + 31):
        stack = stacks[0] if place <= parse else stacks[1]
        build.thread_sample(START_NS + place * 10 * MS, cpu_ns=place * 10 * MS, stack=stack)
    end_ns = (parse + 30) * 10 * MS
    build.thread(end_ns=START_NS + end_ns, end_cpu_ns=end_ns, tid=1, main=1)
    build.ended(end_ns, end_ns)
    return str(build.write())


def test_functions_that_were_sampled_are_compared(tmp_path):
    runs = [run_of(Analysis(Experiment(sampled_run(tmp_path / f"t{n}.1.er", n))), "function") for n in (40, 80)]

    figures = [{name.parts[0]: each.cpu_ns for name, each in run.rows.items() if name.kind == "code"} for run in runs]

    assert figures == [{"parse": 400 * MS, "save": 300 * MS}, {"parse": 800 * MS, "save": 300 * MS}]
    assert [run.total_ns for run in runs] == [700 * MS, 1100 * MS]


@pytest.mark.parametrize(("limit", "code"), [("+50%", 4), ("+150%", 0)])
def test_a_condition_may_name_a_function(tmp_path, limit, code):
    before, after = sampled_run(tmp_path / "a.1.er", 40), sampled_run(tmp_path / "b.1.er", 80)

    assert main(["compare", before, after, "--by", "function", "--fail-if", f"cpu(parse) > {limit}"]) == code


def rows_with(counts, name, calls=5):
    """Runs that all have the row `code`, and `name` with as many ms as said; None: they do not have it."""
    found = []
    for number, ms in enumerate(counts):
        more = {} if ms is None else {Name(intrinsic=name): Figures(calls, round(ms * MS), round(ms * MS))}
        found.append(Run(f"r{number}", {Name("code"): Figures(1, 300 * MS, 300 * MS)} | more))
    return found


@pytest.mark.parametrize(
    ("of_a", "of_b", "verdict"),
    [
        ([None] * 5, [64, 104, 103, 44, 29], CHANGED),
        ([64, 104, 103, 44, 29], [None] * 5, CHANGED),
        ([None] * 5, [64, 104, 103, 44, None], NOT_ENOUGH),
        ([None] * 2, [64, 104], NOT_ENOUGH),
        ([None] * 3, [0.001, 0.002, 0.0015], CHANGED),
    ],
)
def test_a_row_that_all_runs_of_one_side_have_and_none_of_the_other_has_changed(of_a, of_b, verdict):
    found = compare(rows_with(of_a, "select 2"), rows_with(of_b, "select 2"))

    assert next(row for row in found.rows if row.name.intrinsic == "select 2").verdict == verdict


def test_a_word_of_a_command_that_was_not_recorded_may_be_any(place, run_main):
    shop("a.1.er", arguments=["app.py", "?"])
    shop("b.1.er", arguments=["app.py", "t.json"])
    shop("c.1.er", arguments=["app.py", "u.json", "?"])

    assert "command differs" not in run_main("compare", "a.1.er", "b.1.er")[2]
    assert "command differs" in run_main("compare", "a.1.er", "c.1.er")[2]
    assert "command differs" in run_main("compare", "b.1.er", "c.1.er")[2]


def test_code_that_samples_found_on_one_side_only_may_be_chance():
    found = compare(rows_with([None] * 3, "f39", calls=0), rows_with([15, 9, 30], "f39", calls=0))

    assert {row.verdict for row in found.rows if row.name.intrinsic == "f39"} == {NOT_ENOUGH}


def test_a_condition_on_a_row_of_one_side_is_as_sure_as_the_table():
    runs = rows_with([None] * 4, "time.sleep"), rows_with([64, 104, 103, 2], "time.sleep")
    holds = outcome(parse_condition("total(time.sleep) > +5ms"), *runs)
    gone = outcome(parse_condition("total(time.sleep) < -50%"), *reversed(runs))

    assert (holds.holds, gone.holds) == (True, True)
