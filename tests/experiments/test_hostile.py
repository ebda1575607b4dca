"""Damaged experiments: cut or flipped anywhere, they are read as far as they go, by both consolidators alike."""

import os
from io import StringIO

import pytest
from hypothesis import given
from hypothesis import strategies as st

from interpose.analysis.analysis import Analysis
from interpose.analysis.calls.profile import profile
from interpose.analysis.calls.trace import last, trace
from interpose.analysis.consolidation.consolidate import consolidated
from interpose.analysis.consolidation.plain_consolidator import PlainConsolidator
from interpose.analysis.recording.lineage import tree, unfollowed, walk
from interpose.errors import ExperimentError
from interpose.experiments.format import blocks
from interpose.experiments.model.experiment import Experiment
from interpose.reports.formats import text as table
from interpose.reports.formats.colour import Paint
from interpose.reports.screen.screen import Screen
from interpose.reports.screen.summary import summary
from interpose.reports.tables.processes import processes_table
from tests.build import SECOND, START_NS, Build, event, size_of

compiled = pytest.importorskip("interpose.analysis.consolidation.consolidator")

EVENTS_END = 400  # beyond it there is nothing in the block but room
FILES = ["log.xml", "map.xml", "strings", "sites", "stacks", "threads", "overview", "children", "events"]


def small(directory, whole_files=False):
    """An experiment with two blocks, two threads, a stack of two sites and a call in progress."""
    build = Build(directory, whole_files=whole_files)
    build.intrinsic("os.write", "file")
    build.intrinsic("sqlite3.Cursor.execute", "db")
    outer = build.stack(build.site("/home/u/shop/app.py", 3, "main"))
    inner = build.stack(build.site("/usr/lib/logging.py", 9, "emit", own=0), outer)
    text = build.string("select ?")
    build.events(
        [
            event(10, 500, 20, call=2, parent=1, stack=inner, bytes=4),
            event(
                0,
                1000,
                50,
                call=1,
                stack=outer,
                intrinsic=2,
                detail=text,
                inner_wall_ns=500,
                inner_cpu_ns=20,
            ),
            event(2000, 10, 10, call=1, thread=2, stack=inner, error=text),
        ]
    )
    opened = [{"start_ns": START_NS + 3000, "call": 3, "intrinsic": 1, "stack": inner}]
    build.thread(end_cpu_ns=70, seen_ns=START_NS + 4000, recorded=2, main=1, tid=812, open_calls=opened)
    build.thread(start_ns=START_NS + 1500, end_ns=START_NS + 2500, end_cpu_ns=20, recorded=1, tid=813)
    build.child(how=3, pid=7, command=text, end_ns=START_NS + 9, status=9)
    build.child(how=2, pid=2**22 + 1, start_ns=START_NS + 5000)
    build.sample(time_ns=START_NS, kind=1)
    build.sample(time_ns=START_NS + 9, kind=2, cpu_ns=9)
    return build


def read_all(path):
    """The calls in an experiment, and the experiment; all of it was shown, and what must hold was checked."""
    try:
        experiment = Experiment(str(path))
    except ExperimentError as refused:
        assert str(refused).count("\n") == 0
        return None
    keys = ("thread", "intrinsic", "stack", "detail")
    plain = consolidated(experiment.founder, keys, PlainConsolidator).sums()
    assert plain == consolidated(experiment.founder, keys, compiled.CompiledConsolidator).sums()
    made = profile(Analysis(experiment, consolidator=PlainConsolidator), "site")
    assert sum(row.sums.self_wall_ns for row in made.rows) == made.total.wall_ns
    screen = list(summary(Screen(made, 2e9, 80, Paint(False))))
    assert all(line.isprintable() for line in screen)
    traced = list(trace(experiment))
    assert all(isinstance(row.process.string(row.event.detail), str) for row in traced)
    assert len(list(last(experiment, 2))) == min(len(traced), 2)
    rows = list(walk(tree(experiment)))
    assert len(rows) == len(experiment.processes) + len(unfollowed(experiment))
    table.write(processes_table(rows, experiment.founder), StringIO(), 80)
    return sum(sums.calls for sums in plain.values()), experiment


LONG_FILES = ("log.xml", "threads")  # at any byte a minute each
LONG_STEPS = (37, pytest.param(5, marks=pytest.mark.slow), pytest.param(1, marks=[pytest.mark.slow, pytest.mark.reach]))


@pytest.mark.parametrize("step", [7, pytest.param(1, marks=pytest.mark.slow)])
@pytest.mark.parametrize("name", [name for name in FILES if name not in LONG_FILES])
def test_a_file_cut_at_any_byte_is_read_as_far_as_it_goes(tmp_path, name, step, monkeypatch):
    monkeypatch.setattr(blocks, "WRITTEN_WITHIN_S", ())
    cut_and_read(tmp_path, name, step)


@pytest.mark.long
@pytest.mark.parametrize("step", LONG_STEPS)
@pytest.mark.parametrize("name", LONG_FILES)
def test_a_long_file_cut_here_and_there_is_read_as_far_as_it_goes(tmp_path, name, step, monkeypatch):
    monkeypatch.setattr(blocks, "WRITTEN_WITHIN_S", ())
    cut_and_read(tmp_path, name, step)


def cut_and_read(tmp_path, name, step):
    path = small(tmp_path / "t.1.er").write() / name
    whole = path.stat().st_size
    assert read_all(path.parent)[1].damages.found == []

    end = min(whole - 1, EVENTS_END if name == "events" else whole)
    for size in [*range(whole - 1, end, -997), *range(end, -1, -step)]:
        os.truncate(path, size)
        result = read_all(path.parent)
        if result is None:
            assert name == "log.xml"
        elif name != "log.xml":
            calls, experiment = result
            whole_events = max(size - size_of("BLOCK"), 0) // size_of("EVENT")
            assert calls == (min(whole_events, 3) if name == "events" else 3)
            assert experiment.damages.found or nobody_can_know(name, size, whole)


def nobody_can_know(name, size, whole):
    """Whether no more was cut than the end of a last line, or whole records that nothing else speaks of."""
    if name in ("overview", "children"):
        return size % size_of({"overview": "OVERVIEW", "children": "CHILD"}[name]) == 0 and size > 0
    return name.endswith(".xml") and size == whole - 1


@pytest.mark.parametrize("size", [0, 1, 63, 64, 65, 151, 152, 153, 239, 240, 65535, 65536, 65537, 131071])
def test_a_file_that_has_room_left_is_read_as_far_as_it_goes(tmp_path, size):
    build = small(tmp_path / "t.1.er", whole_files=True)
    build.block([event(5000, 1, call=9)])
    build.threads[0][0]["recorded"] = 3
    path = build.write() / "events"
    os.truncate(path, size)

    calls, experiment = read_all(path.parent)

    head = size_of("BLOCK")
    assert calls == min(max(size - head, 0) // 88, 3) + (size >= 65536 + head + 88)
    assert experiment.damages.found


@pytest.mark.long
@given(
    name=st.sampled_from(FILES), place=st.floats(0, 1), value=st.integers(0, 255), more=st.binary(max_size=12)
)
def test_any_bytes_may_be_others(tmp_path_factory, name, place, value, more):
    path = small(tmp_path_factory.mktemp("flipped") / "t.1.er").write() / name
    data = bytearray(path.read_bytes())
    where = int(place * (len(data) - 1))
    data[where] = value
    data[where + 1 : where + 1 + len(more)] = more[: len(data) - where - 1]
    path.write_bytes(data)

    read_all(path.parent)


@pytest.mark.long
@given(name=st.sampled_from(FILES[1:]), noise=st.binary(max_size=4000))
def test_any_file_may_be_noise(tmp_path_factory, name, noise):
    path = small(tmp_path_factory.mktemp("noise") / "t.1.er").write() / name
    path.write_bytes(noise)

    read_all(path.parent)


@pytest.mark.long
@given(name=st.sampled_from(FILES[2:]), data=st.data())
def test_any_number_of_a_record_may_be_any_number(tmp_path_factory, name, data):
    path = small(tmp_path_factory.mktemp("numbers") / "t.1.er").write() / name
    content = bytearray(path.read_bytes())
    for _ in range(data.draw(st.integers(1, 4))):
        place = data.draw(st.integers(0, len(content) // 4 - 1)) * 4
        content[place : place + 4] = data.draw(st.sampled_from([0, 1, 2, 2**31, 2**32 - 1])).to_bytes(
            4, "little"
        )
    path.write_bytes(content)

    read_all(path.parent)


def test_a_huge_file_of_holes_is_read_at_once(tmp_path):
    path = small(tmp_path / "t.1.er", whole_files=True).write()
    for name in ("events", "threads", "sites", "overview", "strings", "stacks"):
        os.truncate(path / name, 1 << 42)

    calls, _ = read_all(path)

    assert calls == 3


def test_devices_and_links_in_the_place_of_files_are_not_read(tmp_path):
    path = small(tmp_path / "t.1.er").write()
    for name in FILES[1:]:
        (path / name).unlink()
    (path / "events").symlink_to("/dev/zero")
    os.mkfifo(path / "threads")
    (path / "overview").mkdir()

    calls, experiment = read_all(path)

    assert calls == 0
    assert {str(each) for each in experiment.damages.found} >= {
        "t.1.er/events: a link, not followed",
        "t.1.er/threads: not a plain file",
        "t.1.er/overview: not a plain file",
    }


def test_a_live_experiment_that_grows_while_it_is_read_is_not_damaged(tmp_path):
    build = small(tmp_path / "t.1.er", whole_files=True)
    experiment = Experiment(str(build.write()))
    assert experiment.founder.string(1)
    build.block([event(5000, SECOND, call=4, stack=build.stack(build.site("late.py", 1, "late")))])
    build.write()

    made = profile(Analysis(experiment), "site")

    assert sum(row.sums.calls for row in made.rows) == 4
    assert experiment.damages.found == []
