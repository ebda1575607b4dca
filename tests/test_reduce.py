"""The two reducers: the same sums from the same bytes, whatever the bytes are."""

import os
import random
import sys

import pytest
from hypothesis import given
from hypothesis import strategies as st

from interpose.analysis import reduce as reduce_module
from interpose.analysis.reduce import PlainReducer, reduce_events
from interpose.analysis.sums import KEYS_AT_MOST, LONGEST_NS, MOST, Sums
from interpose.experiments.experiment import Experiment
from interpose.experiments.layout import TYPES, Field, Layout
from tests.build import Build, event, fields, pack

compiled = pytest.importorskip("interpose.analysis.reducer")

KEYS = ["thread", "intrinsic", "stack", "detail", "error", "call"]


def event_layout():
    described, end = [], 0
    for name, kind in fields("EVENT"):
        described.append(Field(name, kind, end))
        end = described[-1].end
    return Layout(described, end)


def both(layout, by, pieces, group_of=None, **limits):
    """The sums of both reducers, and what each left out."""
    results = []
    for made in (reducer(layout, by, group_of, **limits) for reducer in (PlainReducer, compiled.CompiledReducer)):
        for piece in pieces:
            made.add(piece)
        results.append((made.sums(), made.impossible))
    return results


few = st.integers(0, 3)
times = st.one_of(st.integers(0, 1000), st.integers(0, 2**64 - 1))
events = st.lists(
    st.fixed_dictionaries(
        {name: times if kind == "u64" else few for name, kind in fields("EVENT")},
    ),
    max_size=40,
)
keys = st.lists(st.sampled_from(KEYS), unique=True, max_size=KEYS_AT_MOST).map(tuple)
groupings = st.sampled_from([None, lambda key: 0, lambda key: sum(key) % 2, lambda key: key[0] if key else 7])


@given(events, keys, groupings)
def test_both_give_the_same_sums(rows, by, group_of):
    records = b"".join(pack("EVENT", **row) for row in rows)

    plain, fast = both(event_layout(), by, [records[:88], records[88:]], group_of)

    assert plain == fast


@given(events, keys, groupings, st.integers(0, 3))
def test_both_give_up_what_waits_at_the_same_event(rows, by, group_of, most):
    records = b"".join(pack("EVENT", **row) for row in rows)

    plain, fast = both(event_layout(), by, [records], group_of, unsettled_at_most=most)

    assert plain == fast


@st.composite
def nested_calls(draw, number, begins_ns, depth):
    """Calls one after the other from `begins_ns` on, each with calls inside; in the order of their ends."""
    rows, now_ns = [], begins_ns
    for _ in range(draw(st.integers(0, 3 if depth else 1))):
        parent, mine = number[0], number[1]
        number[1] += 1
        inside = []
        if depth < 4:
            number[0] = mine
            inside, now_ns = draw(nested_calls(number, now_ns + draw(few), depth + 1))
            number[0] = parent
        begin_ns = min((row["start_ns"] for row in inside), default=now_ns)
        now_ns += draw(few)
        values = {"start_ns": begin_ns, "wall_ns": now_ns - begin_ns, "call": mine, "parent": parent}
        rows += [*inside, values | {"intrinsic": draw(st.integers(1, 4)), "thread": 1}]
    return rows, now_ns


@given(st.data())
def test_the_inclusive_time_of_a_group_is_that_in_which_one_of_its_calls_was_open(data):
    rows, _ = data.draw(nested_calls([0, 1], 100, 0))
    records = b"".join(pack("EVENT", **row) for row in rows)

    for sums, _ in both(event_layout(), ("intrinsic",), [records], lambda key: key[0] % 2):
        for group in (0, 1):
            of_group = [row for row in rows if row["intrinsic"] % 2 == group]
            instants = {
                ns for row in of_group for ns in range(row["start_ns"], row["start_ns"] + row["wall_ns"])
            }
            found = [Sums(*numbers).wall_ns for key, numbers in sums.items() if key[0] % 2 == group]
            assert sum(found) == len(instants)


@given(st.binary(max_size=4000), keys, st.data())
def test_both_give_the_same_sums_from_any_bytes_in_any_layout(noise, by, data):
    names = data.draw(st.lists(st.sampled_from([name for name, _ in fields("EVENT")]), unique=True))
    described, end = [], 0
    for name in names:
        described.append(Field(name, data.draw(st.sampled_from(sorted(TYPES))), end + data.draw(few)))
        end = described[-1].end
    layout = Layout(described, end + data.draw(st.integers(1, 9)))
    whole = len(noise) // layout.record_bytes * layout.record_bytes

    plain, fast = both(layout, by, [noise[:whole]])

    assert plain == fast


def test_both_hold_many_keys():
    numbers = random.Random(1).sample(range(2**32), 5000)
    records = b"".join(pack("EVENT", stack=number, wall_ns=number) for number in numbers)

    plain, fast = both(event_layout(), ("stack", "thread"), [records, records])

    assert plain == fast
    assert {key[0]: sums[0] for key, sums in fast[0].items()} == dict.fromkeys(numbers, 2)


def test_sums_stop_at_the_most_and_do_not_wrap():
    records = pack("EVENT", bytes=2**64 - 1) * 3

    plain, fast = both(event_layout(), (), [records])

    assert plain == fast
    assert Sums(*fast[0][()]).bytes == MOST


@pytest.mark.parametrize(
    "values",
    [{"wall_ns": LONGEST_NS + 1}, {"wall_ns": 5, "cpu_ns": 6}, {"start_ns": 2**62 + 1}],
)
def test_events_that_cannot_be_are_left_out_and_counted(values):
    records = pack("EVENT", **values) + pack("EVENT", wall_ns=7)

    for sums, impossible in both(event_layout(), (), [records]):
        assert impossible == 1
        assert Sums(*sums[()]).wall_ns == 7


def test_self_times_leave_out_what_was_inside():
    records = pack("EVENT", wall_ns=100, cpu_ns=50, inner_wall_ns=30, inner_cpu_ns=20, call=1)
    records += pack("EVENT", wall_ns=30, cpu_ns=20, parent=1, call=2)
    records += pack("EVENT", wall_ns=1, inner_wall_ns=9)

    for sums, _ in both(event_layout(), (), [records]):
        assert Sums(*sums[()]).self_wall_ns == 70 + 30
        assert Sums(*sums[()]).self_cpu_ns == 30 + 20
        assert Sums(*sums[()]).top_cpu_ns == 50


def test_a_call_inside_another_of_its_group_adds_nothing_to_the_inclusive_time():
    # 1 is around 2, 2 around 3, 3 around 4; the first and the third are of one intrinsic, the second is another.
    records = b"".join(
        pack("EVENT", call=call, parent=call - 1, intrinsic=intrinsic, wall_ns=wall_ns, cpu_ns=wall_ns // 10)
        for call, intrinsic, wall_ns in [(4, 9, 10), (3, 7, 20), (2, 8, 30), (1, 7, 40)]
    )

    for sums, _ in both(event_layout(), ("intrinsic",), [records[:176], records[176:]]):
        found = {key[0]: (Sums(*numbers).wall_ns, Sums(*numbers).cpu_ns) for key, numbers in sums.items()}
        assert found == {9: (10, 1), 8: (30, 3), 7: (40, 4)}


def test_calls_whose_outer_call_never_came_are_outermost():
    records = pack("EVENT", call=3, parent=2, wall_ns=5) + pack("EVENT", call=2, parent=1, wall_ns=9)
    records += pack("EVENT", call=5, parent=4, wall_ns=7) + pack("EVENT", call=6, parent=6, wall_ns=1)

    for sums, _ in both(event_layout(), (), [records]):
        assert Sums(*sums[()]).wall_ns == 9 + 7 + 1


def test_the_order_of_a_threads_blocks_is_that_of_writing(tmp_path):
    # As they lie in the file: the block being written, in which the outer call has ended, then the full ones.
    build = Build(tmp_path / "t.1.er")
    build.block([event(20, 5, call=4), event(0, 100, call=1)], sequence=4, state=1)
    build.block([event(1, 3, call=2, parent=1)], sequence=1)
    build.block([event(5, 3, call=1, thread=2)], sequence=2)
    build.block([event(6, 3, call=3, parent=1)], sequence=3)
    build.thread()
    process = Experiment(str(build.write())).founder

    for reducer in (PlainReducer, compiled.CompiledReducer):
        sums = reduce_events(process, ("thread",), reducer)
        assert (sums[(1,)].calls, sums[(1,)].wall_ns) == (4, 105)
        assert sums[(2,)].wall_ns == 3


def test_what_a_grouping_raises_comes_out():
    def group_of(key):
        raise ZeroDivisionError

    for reducer in (PlainReducer, compiled.CompiledReducer):
        with pytest.raises(ZeroDivisionError):
            reducer(event_layout(), ("thread",), group_of).add(pack("EVENT"))


def test_more_keys_than_there_is_room_for_are_refused():
    for reducer in (PlainReducer, compiled.CompiledReducer):
        with pytest.raises(ValueError, match="at most 4 keys"):
            reducer(event_layout(), tuple(KEYS[:5]))


def test_the_plain_reducer_is_taken_where_nothing_is_compiled(monkeypatch):
    monkeypatch.setitem(sys.modules, "interpose.analysis.reducer", None)

    assert reduce_module.fastest_reducer() is PlainReducer


def test_memory_is_bounded_by_the_keys_and_not_by_the_events(tmp_path):
    build = Build(tmp_path / "t.1.er")
    build.block([event(n, 5, call=n) for n in range(743)])
    path = build.write() / "events"
    block = path.read_bytes()
    with open(path, "ab") as file:
        for sequence in range(2, 502):
            file.write(block[:16] + sequence.to_bytes(8, "little") + block[24:])
    experiment = Experiment(str(tmp_path / "t.1.er"))

    before = resident_bytes()
    sums = reduce_events(experiment.founder, ("intrinsic",), compiled.CompiledReducer)

    assert sums[(1,)].calls == 501 * 743
    assert resident_bytes() - before < 4 << 20


def resident_bytes():
    with open("/proc/self/statm") as file:
        return int(file.read().split()[1]) * os.sysconf("SC_PAGE_SIZE")
