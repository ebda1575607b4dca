"""The event trace: every event once, in the order of beginnings, whatever block it lies in."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from interpose.analysis.calls import trace as trace_module
from interpose.analysis.calls.trace import last, trace
from interpose.experiments.format.blocks import EventFile
from interpose.experiments.model.experiment import Experiment
from tests.build import START_NS, Build, event

pytestmark = pytest.mark.any_python

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
