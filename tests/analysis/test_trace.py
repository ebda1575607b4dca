"""The event trace: every event once, in the order of beginnings, whatever block it lies in."""

import json
from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from interpose.analysis.analysis import Analysis
from interpose.analysis.calls import trace as trace_module
from interpose.analysis.calls.input_output import NAMELESS, input_output
from interpose.analysis.calls.profile import profile
from interpose.analysis.calls.rows import START_UP
from interpose.analysis.calls.trace import last, trace, with_one_start
from interpose.analysis.time.concurrency import solo_times
from interpose.experiments.format.blocks import EventFile
from interpose.experiments.model.experiment import Experiment
from interpose.reports.screen.sections import profiled, resource
from tests.build import START_NS, Build, event

spans = st.tuples(st.integers(0, 50), st.integers(0, 30))
blocks = st.lists(st.lists(spans, min_size=1, max_size=6), max_size=6)


def recorded(directory, blocks_of_spans):
    build = Build(directory / "t.1.er")
    call = 0
    for spans_of_block in blocks_of_spans:
        rows = []
        for start, wall in sorted(spans_of_block, key=sum):
            call += 1
            rows.append(event(start, wall, call=call))
        build.block(rows)
    return Experiment(str(build.write()))


def begun(rows):
    return [(row.event.start_ns - START_NS, row.event.call) for row in rows]


@pytest.mark.long
@given(blocks=blocks, number=st.integers(1, 8), since=st.integers(0, 60))
def test_events_come_in_the_order_of_their_beginnings(tmp_path_factory, blocks, number, since):
    experiment = recorded(tmp_path_factory.mktemp("trace"), blocks)
    calls = [wall for each in blocks for wall in sorted(each, key=sum)]
    expected = sorted((start, call) for call, (start, _) in enumerate(calls, 1))
    after = [each for each in expected if each[0] >= since]

    assert begun(trace(experiment)) == expected
    assert begun(last(experiment, number)) == expected[-number:]
    assert begun(trace(experiment, START_NS + since)) == after
    assert begun(last(experiment, number, START_NS + since)) == after[-number:]


@pytest.mark.long
@given(seed=st.integers(0, 1000), wanted=st.sets(st.integers(1, 60), max_size=3), room=st.integers(1, 5))
def test_events_that_are_wanted_have_the_depth_that_they_have_among_all(tmp_path_factory, seed, wanted, room):
    experiment = nested(tmp_path_factory.mktemp("trace"), seed, room)
    asked = []

    def has_wanted(process, events):
        asked.append(len(events))
        return any(each.call in wanted for each in events)

    found = list(trace(experiment, has_wanted=has_wanted))

    expected = [(row.event, row.depth) for row in trace(experiment) if row.event.call in wanted]
    assert [(row.event, row.depth) for row in found if row.event.call in wanted] == expected
    assert sum(asked) == 60


def test_of_blocks_without_a_wanted_event_only_what_may_be_around_others_is_read(tmp_path):
    build = Build(tmp_path / "t.1.er")
    for block in range(20):
        build.block([event(100 * block + 5 * n, 4, call=10 * block + n + 1) for n in range(10)])
    experiment = Experiment(str(build.write()))

    assert len(list(trace(experiment, has_wanted=lambda process, events: False))) == 20
    assert len(list(trace(experiment, has_wanted=lambda process, events: events[0].call == 1))) == 29


def nested(directory, seed, room):
    """60 calls of two threads, each inside some of the others of its thread, in blocks of so many."""
    chance, build, number = Random(seed), Build(directory / "t.1.er"), 0
    ended, now = {1: [], 2: []}, 0
    around = {1: [], 2: []}
    while number < 60 or around[1] or around[2]:
        thread = chance.choice((1, 2))
        now += 1
        if number < 60 and (not around[thread] or chance.random() < 0.5):
            number += 1
            around[thread].append((now, number))
        elif around[thread]:
            start, call = around[thread].pop()
            parent = around[thread][-1][1] if around[thread] else 0
            ended[thread].append(event(start, now - start, call=call, parent=parent, thread=thread))
    for rows in ended.values():
        for place in range(0, len(rows), room):
            build.block(rows[place : place + room])
    return Experiment(str(build.write()))


@pytest.fixture
def blocks_read(monkeypatch):
    """The sequences of the blocks read."""
    sequences = []
    read = EventFile.block

    def noting(self, place):
        sequences.append(place.sequence)
        return read(self, place)

    monkeypatch.setattr(EventFile, "block", noting)
    return sequences


def test_the_last_events_are_found_without_reading_the_first_blocks(tmp_path, blocks_read):
    experiment = recorded(tmp_path, [[(10 * place + n, 1) for n in range(5)] for place in range(20)])

    assert begun(last(experiment, 7)) == begun(trace(experiment))[-7:]
    assert blocks_read[:2] == [20, 19]
    assert blocks_read[2] == 1


def test_blocks_are_read_when_their_turn_comes(tmp_path, blocks_read):
    experiment = recorded(tmp_path, [[(10 * place + n, 1) for n in range(5)] for place in range(20)])

    rows = trace(experiment)
    next(rows)

    assert blocks_read == [1]


def test_events_of_several_processes_are_merged(tmp_path):
    founder, child = Build(tmp_path / "t.1.er"), Build(tmp_path / "t.1.er" / "_f1.er")
    founder.block([event(0, 1, call=1), event(20, 1, call=2)])
    child.block([event(10, 1, call=3)])
    founder.write(), child.write()

    rows = list(trace(Experiment(str(tmp_path / "t.1.er"))))

    assert [(row.process.lineage, row.event.call) for row in rows] == [("", 1), ("_f1", 3), ("", 2)]


def test_calls_made_inside_others_lie_deeper(tmp_path):
    build = Build(tmp_path / "t.1.er")
    build.block(
        [
            event(2, 1, call=3, parent=2),
            event(1, 3, call=2, parent=1),
            event(5, 1, call=4, parent=1),
            event(0, 9, call=1),
            event(20, 1, call=5),
            event(30, 1, call=9, parent=8),
            event(1, 1, call=1, thread=2),
        ]
    )

    rows = trace(Experiment(str(build.write())))

    assert {(row.event.thread, row.event.call): row.depth for row in rows} == {
        (1, 1): 0,
        (1, 2): 1,
        (1, 3): 2,
        (1, 4): 1,
        (1, 5): 0,
        (1, 9): 1,
        (2, 1): 0,
    }


def test_calls_in_progress_stand_where_they_began(tmp_path):
    build = Build(tmp_path / "t.1.er")
    build.thread(open_calls=[{"start_ns": START_NS + 5, "call": 2}, {"start_ns": START_NS + 6, "call": 3}])
    build.block([event(0, 1, call=1), event(7, 1, call=4, parent=3)])

    rows = list(trace(Experiment(str(build.write()))))

    assert [(row.event.call, row.depth, row.state) for row in rows] == [
        (1, 0, trace_module.ENDED),
        (2, 0, "unseen"),
        (3, 1, "unseen"),
        (4, 2, trace_module.ENDED),
    ]


@pytest.fixture
def started(tmp_path):
    """A program whose interpreter read a .pth file and looked for the program; one call is inside of another."""
    build = Build(tmp_path / "t.1.er", call_ns=0, inside_ns=0)
    build.intrinsic("io.FileIO", "file")
    module = build.stack(build.site("<frozen site>", 5, "main", own=0))
    pth = build.stack(build.site("/lib/extra.py", 9, "load", own=0), module)
    path = build.stack(build.site("<frozen zipimport>", 8, "__init__", own=0))
    own = build.stack(build.site("/home/u/orders.py", 2, "save"), module)
    name = build.string("extra.pth")
    build.events(
        [
            event(10, 5, call=2, parent=1, stack=module, detail=name),
            event(5, 20, call=1, stack=module, detail=name, inner_wall_ns=5),
            event(30, 7, call=3, stack=pth, detail=name),
            event(40, 3, call=4, stack=path, detail=name),
            event(50, 9, call=5, stack=own, detail=name),
            event(60, 9, call=6),
        ]
    )
    build.thread(end_ns=START_NS + 100, recorded=6, main=1)
    build.ended(100, 0)
    return Experiment(str(build.write()))


def test_the_interpreters_start_is_one_event_where_people_read(started, interpose_here):
    rows = list(with_one_start(trace(started)))

    assert [(row.event.call, row.starting, row.event.wall_ns) for row in rows] == [(1, 4, 30), (5, 0, 9), (6, 0, 9)]
    path = started.founder.directory
    assert interpose_here("events", path).stdout.splitlines()[1].split("startup")[1].split()[:2] == ["4", "calls"]
    assert len(interpose_here("events", "--startup", path).stdout.splitlines()) == 7
    assert len(json.loads(interpose_here("events", "--format", "json", path).stdout)) == 6


@pytest.mark.parametrize("by", ["kind", "site", "function", "detail", "file"])
def test_the_interpreters_start_is_one_row_of_tables_of_kinds_files_and_places(started, by):
    rows = [row for row in profile(Analysis(started), by).rows if row.is_of_calls]
    starting = [row for row in rows if START_UP in (row.kind, row.intrinsic, row.labels.get(by))]

    assert [(row.sums.calls, row.sums.self_wall_ns) for row in starting] == [(4, 30)]
    assert sum(row.sums.calls for row in rows) == 6
    assert input_output(Analysis(started)).by_file().keys() == {START_UP, "extra.pth", NAMELESS}


def test_the_interpreters_start_is_one_resource_of_a_profile(started):
    table = resource(profiled(Analysis(started))).table
    rows = {row["resource"]: row for row in map(table.values, table.rows) if row["kind"] == "file"}

    assert (rows[START_UP]["calls"], rows[START_UP]["total_ns"]) == (4, 30)
    assert rows["extra.pth"]["calls"] == 1
    assert solo_times(started)["file", START_UP] == 30
