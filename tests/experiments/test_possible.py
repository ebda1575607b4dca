"""Impossible events: both judges find the same ones, and every reader of single events leaves them out."""

import csv
import io
import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from interpose.cli.main import main
from interpose.experiments.format.layout import Field, Layout
from interpose.experiments.format.possible import JUDGED, LATEST_NS, LONGEST_NS, MOST_BYTES, MOST_THREADS, PlainJudge
from interpose.experiments.model.experiment import Experiment
from tests.build import START_NS, Build, event, fields, pack

compiled = pytest.importorskip("interpose.experiments.format.compiled_judge")

IMPOSSIBLE = [
    {"wall_ns": LONGEST_NS + 1},
    {"wall_ns": 5, "cpu_ns": 6},
    {"start_ns": LATEST_NS + 1},
    {"thread": MOST_THREADS + 1},
    {"bytes": MOST_BYTES + 1},
]
limits = st.sampled_from([LONGEST_NS, LATEST_NS, MOST_THREADS, MOST_BYTES])
near = limits.flatmap(lambda most: st.integers(most - 1, most + 1))
numbers = st.one_of(st.integers(0, 3), near, st.integers(0, 2**64 - 1))
times = ("start_ns", "wall_ns", "cpu_ns")
rows = st.lists(st.fixed_dictionaries(dict.fromkeys((*times, "bytes"), numbers)), max_size=20)


def event_layout(without=()):
    described, end = [], 0
    for name, kind in fields("EVENT"):
        described.append(Field(name, kind, end))
        end = described[-1].end
    return Layout([field for field in described if field.name not in without], end)


@pytest.mark.parametrize("judge", [PlainJudge, compiled.CompiledJudge])
@pytest.mark.parametrize("values", IMPOSSIBLE)
def test_an_impossible_event_is_found(judge, values):
    records = pack("EVENT", wall_ns=7, thread=1) + pack("EVENT", **values) + pack("EVENT")

    assert judge(event_layout()).impossible(records) == [1]


@given(rows, st.sets(st.sampled_from(JUDGED)))
def test_both_judges_find_the_same_whatever_the_layout_has(made, without):
    records = b"".join(pack("EVENT", **row, thread=row["cpu_ns"] % 2**32) for row in made)
    layout = event_layout(without)

    assert compiled.CompiledJudge(layout).impossible(records) == PlainJudge(layout).impossible(records)


@pytest.fixture
def damaged(tmp_path):
    """An experiment with three possible events of 20 ns each and impossible ones between them."""
    build = Build(tmp_path / "test.1.er")
    build.intrinsic("os.stat", "file")
    good = [event(10 * number, 20, call=number) for number in (1, 3, 5)]
    bad = [event(0, 2**63, call=2), event(20, 5, 6, call=4), event(30, 20, call=6, thread=2**32 - 2)]
    build.block([event for pair in zip(good, bad, strict=True) for event in pair])
    build.thread(end_ns=START_NS + 1000, made=6, recorded=6)
    build.ended(1000, 0)
    return str(build.write())


def written(capfd, *words):
    assert main(list(words)) == 3
    out, err = capfd.readouterr()
    assert "3 impossible events, left out" in out + err
    return out


@pytest.mark.parametrize(
    ("words", "found"),
    [
        (("report", "--by", "intrinsic", "--format", "json"), lambda out: json.loads(out)[0]["calls"]),
        (("events", "--format", "csv"), lambda out: len(list(csv.DictReader(io.StringIO(out))))),
    ],
)
def test_tables_leave_impossible_events_out_and_say_so(damaged, capfd, words, found):
    assert found(written(capfd, *words, damaged)) == 3


def test_sql_leaves_impossible_events_out_and_says_so(damaged, capfd):
    pytest.importorskip("duckdb")
    query = "select count(*) as calls, sum(wall_ns)::bigint as wall_ns from calls"

    out = written(capfd, "sql", query, damaged, "--format", "json")

    assert json.loads(out) == [{"calls": 3, "wall_ns": 60}]


def test_chrome_leaves_impossible_events_out_and_says_so(damaged, capfd, tmp_path):
    written(capfd, "export", "--to", "chrome", damaged, "-o", str(tmp_path / "out.json"))

    found = json.loads((tmp_path / "out.json").read_text())["traceEvents"]
    assert [each["dur"] for each in found if each["name"] == "os.stat"] == [0.02] * 3


def test_perfetto_leaves_impossible_events_out_and_says_so(damaged, capfd, tmp_path):
    written(capfd, "export", "--to", "perfetto", damaged, "-o", str(tmp_path / "out.pftrace"))


def test_a_single_impossible_event_is_one(tmp_path):
    build = Build(tmp_path / "test.1.er")
    build.intrinsic("os.stat", "file")
    build.block([event(0, 2**63, call=1), event(0, 20, call=2)])
    process = Experiment(str(build.write())).founder

    assert sum(len(list(process.events.events(block))) for block in process.events.blocks()) == 1
    assert "test.1.er/events: 1 impossible event, left out" in map(str, process.damages.found)


def test_of_a_block_that_is_read_in_parts_and_again_each_impossible_event_is_counted_once(tmp_path):
    build = Build(tmp_path / "test.1.er")
    build.intrinsic("os.stat", "file")
    events = [event(number, 2**63 if number in (0, 3, 4) else 20, call=number) for number in range(6)]
    build.block(events[:2], sequence=1, state=1)  # as a writer that was killed while it copied this block left it
    build.block(events, sequence=1)
    experiment = Experiment(str(build.write()))
    process = experiment.founder

    for _ in range(2):
        assert sum(len(list(process.events.events(block))) for block in process.events.blocks()) == 3
        for place, _ in process.events.heads():
            process.events.block(place)

    assert [damage.what for damage in experiment.damages.found] == ["3 impossible events, left out"]


def test_sums_that_are_larger_than_a_column_have_room_for_are_the_largest_there(tmp_path, capfd):
    pytest.importorskip("duckdb")
    build = Build(tmp_path / "test.1.er")
    build.intrinsic("os.read", "file")
    for thread in (1, 2):
        build.block([event(number, 1, call=number + 1, thread=thread, bytes=MOST_BYTES) for number in range(3)])
        build.thread(end_ns=START_NS + 1000, made=3, recorded=3)
    build.ended(1000, 0)
    path = str(build.write())

    assert main(["sql", "select max(bytes) as most from report", path, "--format", "json"]) == 0

    assert json.loads(capfd.readouterr().out) == [{"most": MOST_BYTES}]


def test_a_raw_export_has_impossible_events(damaged, capfd):
    assert main(["export", "--to", "raw", damaged]) in (0, 3)

    assert capfd.readouterr().out.count("wall_ns=") >= 6
