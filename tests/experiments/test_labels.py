"""Labels: named windows of time, marked by `interpose label`, and what of a report and of the events lies in them."""

import json
import re
from datetime import datetime

import pytest

from interpose.analysis.analysis import Analysis
from interpose.analysis.calls.profile import profile
from interpose.analysis.calls.selection import Within
from interpose.experiments.metadata.labels import FOR_EVER_NS, LABELS, Mark, Window, read_marks, windows, write_marks
from interpose.experiments.model.experiment import Experiment
from interpose.experiments.model.files import Damages
from tests.build import SECOND, START_NS, Build, event

pytestmark = pytest.mark.usefixtures("place")


@pytest.fixture
def experiment(tmp_path):
    """One call each second for ten seconds, over several blocks."""
    build = Build(tmp_path / "test.1.er")
    build.intrinsic("os.write", "file")
    for first in (1, 4, 8):
        build.block([event(n * SECOND, SECOND // 2, n, call=n) for n in range(first, {1: 4, 4: 8, 8: 11}[first])])
    build.thread(end_ns=START_NS + 12 * SECOND, end_cpu_ns=55, recorded=10, main=1)
    build.ended(12 * SECOND, 55)
    return build.write()


def marks(*each):
    return [Mark("x", "start" if time > 0 else "stop", abs(time)) for time in each]


@pytest.mark.parametrize(
    ("times", "found"),
    [
        ([], []),
        ([1, -5], [(1, 5)]),
        ([-5, 1], [(1, 5)]),
        ([1, -5, 7, -9], [(1, 5), (7, 9)]),
        ([1, 2, -5], [(1, 5)]),
        ([1, -5, -6], [(1, 5)]),
        ([-1, 2], [(2, FOR_EVER_NS)]),
        ([-3], []),
    ],
)
def test_marks_make_windows_in_the_order_of_their_times(times, found):
    assert windows([*marks(*times), Mark("y", "stop", 3)], "X") == [Window(*each) for each in found]


def test_a_label_is_put_and_listed(experiment, run_main):
    window = ("-t", "start=2s", "-t", "stop=4500ms")

    assert run_main("label", "-o", "test.1.er", "-n", "Load", *window, "-C", "a <b>")[0] == 0

    assert run_main("label", "-o", "test.1.er") == (0, "load  2.000000 s to 4.500000 s  a <b>\n", "")


LABEL_OF_NOW = ("label", "-n", "after", "-t")


@pytest.mark.parametrize("when", ["", "=@", "=+0s", "=-0s"])
def test_a_label_of_now_is_on_the_experiment_s_clock(traced, when):
    done = traced("from interpose.cli.main import main\nimport sys\nmain(sys.argv[1:])", *LABEL_OF_NOW, f"start{when}")

    [window] = windows(Experiment(done.path).marks, "after")
    log = done.experiment.founder.log
    assert log.start_ns < window.start_ns < log.start_ns + 60 * SECOND


def test_a_report_of_a_label_has_only_its_calls(experiment, run_main):
    run_main("label", "-o", "test.1.er", "-n", "load", "-t", "start=2s", "-t", "stop=9s")

    code, out, err = run_main("report", "--label", "LOAD", "--format", "json", "test.1.er")

    [row] = json.loads(out)
    assert (code, err) == (0, "")
    assert (row["intrinsic"], row["calls"], row["cpu_ns"]) == ("os.write", 7, 2 + 3 + 4 + 5 + 6 + 7 + 8)
    assert "100 %" in run_main("report", "--label", "load", "test.1.er")[1]


@pytest.mark.parametrize("words", [("--label", "load"), ("--sort", "calls"), ("--limit", "5")])
def test_json_of_chosen_rows_is_a_list_by_intrinsic_also_of_several_windows(experiment, run_main, words):
    run_main("label", "-o", "test.1.er", "-n", "load", "-t", "start=2s", "-t", "stop=5s", "-t", "start=9s")

    rows = json.loads(run_main("report", *words, "--format", "json", "test.1.er")[1])

    assert rows == json.loads(run_main("report", "--by", "intrinsic", *words, "--format", "json", "test.1.er")[1])
    calls = {row["intrinsic"]: row["calls"] for row in rows if row["intrinsic"]}
    assert calls == {"os.write": 5 if "--label" in words else 10}


def test_the_events_of_a_label(experiment, run_main):
    run_main("label", "-o", "test.1.er", "-n", "load", "-t", "start=2s", "-t", "stop=5s", "-t", "start=9s")

    def began(*words):
        found = json.loads(run_main("events", "--label", "load", "--format", "json", *words, "test.1.er")[1])
        return [row["since_ns"] // SECOND for row in found]

    assert began() == [2, 3, 4, 9, 10]
    assert began("--last", "2") == [9, 10]
    assert began("--since", "4s") == [4, 9, 10]


@pytest.fixture
def nested(tmp_path):
    """A transaction of ten seconds with a query of four inside, and a file that is read in it for two."""
    build = Build(tmp_path / "test.1.er", call_ns=0, inside_ns=0)
    for name, kind in (("interpose.transaction", "logic"), ("sqlite3.Cursor.execute", "db"), ("os.read", "file")):
        build.intrinsic(name, kind)
    second = SECOND
    build.block([event(4 * second, 2 * second, second, call=3, parent=2, intrinsic=3)])
    inner = {"inner_wall_ns": 2 * second, "inner_cpu_ns": second}
    build.block([event(3 * second, 4 * second, 2 * second, call=2, parent=1, intrinsic=2, **inner)])
    inner = {"inner_wall_ns": 4 * second, "inner_cpu_ns": 2 * second}
    build.block([event(second, 10 * second, 5 * second, call=1, intrinsic=1, **inner)])
    build.thread(end_ns=START_NS + 12 * SECOND, end_cpu_ns=6 * SECOND, recorded=3, main=1)
    build.ended(12 * SECOND, 6 * SECOND)
    return build.write()


@pytest.mark.parametrize(
    ("times", "self_s"),
    [
        (("start=2s", "stop=5s"), {"logic": 1, "db": 1, "file": 1}),
        (("start=5s", "stop=20s"), {"logic": 4, "db": 1, "file": 1}),
        (("start=0s", "stop=2s", "start=8s", "stop=9s"), {"logic": 2}),
        (("start=4500ms", "stop=5s"), {"logic": 0, "db": 0, "file": 0.5}),
    ],
)
def test_a_call_that_reaches_beyond_a_window_is_clipped(nested, run_main, times, self_s):
    run_main("label", "-o", "test.1.er", "-n", "load", *[word for time in times for word in ("-t", time)])

    _, report, said = run_main("report", "--label", "load", "--by", "kind", "--format", "json", "test.1.er")
    _, events, told = run_main("events", "--label", "load", "--format", "json", "test.1.er")
    assert {row["kind"]: row["self_wall_ns"] / SECOND for row in json.loads(report)} == self_s
    assert {row["kind"]: row["self_wall_ns"] / SECOND for row in json.loads(events)} == self_s
    assert all(row["self_cpu_ns"] <= row["self_wall_ns"] for row in json.loads(report))
    assert "calls reach beyond its windows" in said and "calls reach beyond its windows" in told


def test_a_clipped_call_that_computed_outside_of_the_window_has_no_more_cpu_time_than_wall_time(tmp_path, run_main):
    build = Build(tmp_path / "test.1.er", call_ns=0, inside_ns=0)
    for name, kind in (("interpose.transaction", "logic"), ("time.sleep", "sleep")):
        build.intrinsic(name, kind)
    build.block([event(3 * SECOND, 4 * SECOND, 0, call=2, parent=1, intrinsic=2)])
    build.block([event(SECOND, 10 * SECOND, 6 * SECOND, call=1, intrinsic=1, inner_wall_ns=4 * SECOND)])
    build.thread(end_ns=START_NS + 12 * SECOND, end_cpu_ns=6 * SECOND, recorded=2, main=1)
    build.ended(12 * SECOND, 6 * SECOND)
    build.write()
    run_main("label", "-o", "test.1.er", "-n", "load", "-t", "start=3s", "-t", "stop=7100ms")

    _, events, _ = run_main("events", "--label", "load", "--format", "json", "test.1.er")

    logic, sleep = json.loads(events)
    assert (logic["self_wall_ns"], sleep["self_wall_ns"]) == (SECOND // 10, 4 * SECOND)
    assert logic["self_cpu_ns"] <= logic["self_wall_ns"]


def test_both_consolidators_give_the_same_for_a_label(experiment):
    consolidator = pytest.importorskip("interpose.analysis.consolidation.consolidator").CompiledConsolidator
    from interpose.analysis.consolidation.plain_consolidator import PlainConsolidator

    label = [Window(START_NS + 3 * SECOND, START_NS + 9 * SECOND)]
    found = [
        [row.sums for row in profile(Analysis(Experiment(str(experiment)), Within(label), each), "intrinsic").rows]
        for each in (consolidator, PlainConsolidator)
    ]

    assert found[0] == found[1]
    assert found[0][0].calls == 6


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["-n", "a b", "-t", "start"], "-n a b: a label is a letter, then letters and digits, at most 64"),
        (["-n", "1a", "-t", "start"], "-n 1a: a label is"),
        (["-n", "", "-t", "start"], "-n : a label is"),
        (["-n", "Kind", "-t", "start"], "-n Kind: filters have that name for something else"),
        (["-n", "a", "-t", "begin"], "-t begin: must begin with start or stop"),
        (["-n", "a", "-t", "start=never"], "-t never: not a duration like 2.5s or a time such as 10:02"),
        (["-n", "a", "-t", "start=+soon"], "-t +soon: not a duration like 2.5s"),
        (["-n", "a", "-t", "start=-999999999999h"], "is too far away"),
        (["-n", "a"], "-t start or -t stop is missing"),
        (["-n", "a", "-t", "stop"], "-t stop: no window of a is open then; a start must come first"),
        (["-n", "a", "-t", "start=4s", "-t", "stop=2s"], "-t stop=2s: no window of a is open then"),
        (["-n", "a", "-t", "start=1s", "-t", "stop=2s", "-t", "stop=3s"], "-t stop=3s: no window of a is open then"),
        (["-n", "a", "-t", "start=12001ms"], "-t start=12001ms: is after the end of the recording (12.000000 s)"),
        (["-n", "a", "-t", "start=1s", "-t", "start=2s"], "-t start=2s: a window of a is open then; a stop must come"),
        (["-n", "a", "-t", "start=2s", "-t", "stop=2s"], "-t start=2s: the window would be empty"),
        (["-n", "a", "-t", "start"], "-t start: is after the end of the recording"),
    ],
)
def test_what_is_no_label_is_refused(experiment, run_main, words, said):
    code, _, err = run_main("label", "-o", "test.1.er", *words)

    assert code == 2
    assert err.startswith("interpose: ")
    assert said in err
    assert not (experiment / LABELS).exists()


def test_a_start_before_the_recording_is_refused(experiment, run_main):
    since_epoch_ns = Experiment(str(experiment)).founder.log.time_ns - 1
    earlier = datetime.fromtimestamp(since_epoch_ns // SECOND).isoformat()
    early = f"start={earlier}.{since_epoch_ns % SECOND:09}"

    said = f"interpose: -t {early}: is before the beginning of the recording\n"
    assert run_main("label", "-o", "test.1.er", "-n", "a", "-t", early) == (2, "", said)
    assert not (experiment / LABELS).exists()


@pytest.mark.parametrize(
    ("word", "said"),
    [
        ("stop=5s", "-t stop=5s: no window of a is open then; a start must come first"),
        ("start=3s", "-t start=3s: a window of a is open then; a stop must come first"),
        ("start=7s", ""),
        ("start=5s", ""),
        ("stop=3s", "-n a: the stop at 5.000000 s would belong to no window any more"),
        ("start=1s", "-n a: the start at 2.000000 s would belong to no window any more"),
        ("stop=2s", "-t stop=2s: the window would be empty"),
    ],
)
def test_a_mark_that_would_change_no_window_or_leave_another_without_one_is_refused(experiment, run_main, word, said):
    run_main("label", "-o", "test.1.er", "-n", "a", "-t", "start=2s", "-t", "stop=5s")
    written = (experiment / LABELS).read_text()

    refused = (2, "", f"interpose: {said}\n") if said else (0, "", "")
    assert run_main("label", "-o", "test.1.er", "-n", "a", "-t", word) == refused
    assert ((experiment / LABELS).read_text() == written) == bool(said)


def test_a_label_that_is_not_there_is_named_with_those_that_are(experiment, run_main):
    write_marks(str(experiment), [Mark("unopened", "stop", START_NS)])
    run_main("label", "-o", "test.1.er", "-n", "load", "-t", "start=0s")

    code, _, err = run_main("report", "--label", "lode", "test.1.er")

    assert (code, err) == (2, "interpose: --label lode: no such label; labels: load\n")


def test_a_label_without_a_window_is_listed_as_such(experiment, run_main):
    write_marks(str(experiment), [Mark("unopened", "stop", START_NS)])

    assert run_main("label", "-o", "test.1.er") == (0, "unopened  no window: no start before its stop\n", "")


def test_a_label_can_be_stopped_before_it_is_started_by_the_same_command(experiment, run_main):
    assert run_main("label", "-o", "test.1.er", "-n", "a", "-t", "stop=9s", "-t", "start=1s") == (0, "", "")


def test_labels_come_back_as_they_were_written(tmp_path):
    written = [Mark("a", "start", 5, 'x "<&>" \x1b é'), Mark("b", "stop", 2**63 - 1)]

    write_marks(str(tmp_path), written)
    damages = Damages()

    assert read_marks(str(tmp_path), "x", damages) == [written[0]._replace(comment='x "<&>"   é'), written[1]]
    assert damages.count == 0


@pytest.mark.parametrize(
    "text",
    [
        "",
        "<labels>",
        '<!DOCTYPE x [<!ENTITY a "b">]><labels>&a;</labels>',
        '<labels><mark name="a" action="start" time_ns="-1"/></labels>',
        '<labels><mark name="a" action="start" time_ns="99999999999999999999"/></labels>',
        '<labels><mark name="../a" action="start" time_ns="1"/></labels>',
        '<labels><mark name="a" action="run" time_ns="1"/></labels>',
        "<a>" * 100,
        '<labels><mark name="a" action="start" time_ns="1"/>' * 20_000,
    ],
    ids=["empty", "cut", "entity", "negative", "huge", "name", "action", "deep", "many"],
)
def test_labels_that_are_none_are_noted(experiment, run_main, text):
    (experiment / LABELS).write_text(text)

    code, out, err = run_main("label", "-o", "test.1.er")

    assert (code, out.count("\n") <= 1) == (3, True)
    assert re.fullmatch(r"interpose: test\.1\.er/labels\.xml: .*\n", err)
