"""The first screen of many experiments: what all took together, and the findings of all."""

from random import Random

import pytest

from interpose.analysis.analysis import Analysis
from interpose.analysis.calls.profile import profile
from interpose.analysis.findings.engine import findings
from interpose.analysis.partial.coding import packed, unpacked
from interpose.analysis.partial.partial import Head, Question, merged, reduced
from interpose.cli.many.reductions import REDUCTIONS, SCREEN
from interpose.experiments.model.collection import Collection
from interpose.experiments.model.experiment import Experiment
from tests.build import SECOND, START_NS, TIME_NS, Build, event


def repeating(path, number, times=50):
    """A shop in which one statement is repeated, each time for ten milliseconds."""
    build = Build(path, time_ns=TIME_NS + number * SECOND, pid=number)
    query = build.intrinsic("sqlite3.Connection.execute", "db")
    stack = build.stack(build.site("/home/u/shop/orders.py", 12, "load"))
    select = build.string("select * from items where id = ?")
    each_ns = SECOND // 100
    alike = {"intrinsic": query, "stack": stack, "detail": select}
    build.events([event(n * each_ns, each_ns - 9, 5, call=n + 1, **alike) for n in range(times)])
    build.thread(end_ns=START_NS + SECOND, end_cpu_ns=SECOND // 2, recorded=times, main=1, tid=812)
    build.ended(SECOND, SECOND // 2)
    return build.write()


@pytest.fixture
def shops(place):
    return [repeating(place / f"shop.{number}.er", number, 30 + number) for number in range(5)]


def test_the_screen_says_how_many_what_they_took_and_what_was_found(shops, place, interpose_here):
    done = interpose_here("report", "runs/*.er", cwd=place.parent)

    lines = done.stdout.splitlines()
    assert done.returncode == 0, done.stderr
    assert lines[0] == "5 experiments  shop.0.er, shop.1.er, shop.2.er, shop.3.er, shop.4.er"
    assert lines[1] == "complete"
    assert lines[2:4] == ["elapsed 5.000 s   thread time 5.000 s", "CPU 2.500 s   160 calls   5 processes   5 threads"]
    assert any("Slowest: " in line for line in lines), lines
    assert any(line.split()[:2] == ["db", "160"] for line in lines)


def test_its_rows_and_times_are_those_of_all_at_once(shops, interpose):
    whole, done = interpose("report", "runs/*.er")

    made = profile(Analysis(Collection([Experiment(str(path)) for path in shops])), "kind")
    assert done.returncode == 0
    assert whole["experiments"] == 5
    assert (whole["thread_ns"], whole["cpu_ns"]) == (made.total.wall_ns, made.total.cpu_ns)
    told = {row["kind"]: (row["calls"], row["self_wall_ns"], row["self_cpu_ns"]) for row in whole["rows"]}
    for row in made.rows:
        assert told[row.kind] == (row.sums.calls, row.sums.self_wall_ns, row.sums.self_cpu_ns)


def test_a_finding_of_several_experiments_is_one_with_the_evidence_of_all(shops, interpose):
    rows, _ = interpose("report", "runs/*.er", "--by", "finding")

    each = [found for path in shops for found in findings(Analysis(Experiment(str(path))))]
    assert len(rows) == len({found.rule for found in each})
    (row,) = [row for row in rows if row["finding"] == each[0].rule]
    alike = [found for found in each if found.rule == row["finding"]]
    assert len(alike) == len(shops)
    assert row["calls"] == sum(found.calls for found in alike)
    assert row["bound_ns"] == sum(found.bound_ns for found in alike)


def test_it_does_not_matter_what_is_merged_first(shops):
    reduction, random = REDUCTIONS[SCREEN], Random(3)
    answers = [reduced(Experiment(str(path)), Question(SCREEN), reduction) for path in shops]
    whole = merged(answers, reduction)

    for _ in range(5):
        first = random.randrange(1, 5)
        parts = [merged(answers[:first], reduction), merged(answers[first:], reduction)]
        assert repr(merged(parts, reduction)) == repr(whole)


def test_what_is_packed_is_read_as_it_was(shops):
    reduction = REDUCTIONS[SCREEN]
    kind = tuple[Head, reduction.kind]
    found = reduced(Experiment(str(shops[0])), Question(SCREEN), reduction)

    head, value = unpacked(packed((found.head, found.value), kind), kind)

    assert value.findings
    assert (head, repr(value)) == (found.head, repr(found.value))


def test_incomplete_experiments_are_counted_and_the_first_is_named(shops, place, interpose_here):
    (shops[1] / "events").write_bytes(b"")

    done = interpose_here("report", "runs/*.er", cwd=place.parent)

    assert done.returncode == 3
    assert done.stdout.splitlines()[1].startswith("incomplete: 1 of 5; shop.1.er: ")


def test_an_experiment_that_could_not_be_read_is_told_and_one_is_one(shops, place, interpose_here):
    (place / "all.erg").write_text(f"#interpose experiment group\n{shops[1].name}\nnone.er\n")

    done = interpose_here("report", "runs/all.erg", cwd=place.parent)

    first, second, *_ = done.stdout.splitlines()
    assert (first, second.split(";")[0]) == ("1 experiment  shop.1.er", "incomplete: 1 experiment not read")
    assert "none.er: no such experiment" in second
