"""Records arranged for compression: what was arranged comes back, from both arrangements alike."""

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from interpose.experiments.format import columns
from interpose.experiments.format.columns import ArrangementError, Columns, PlainColumns, columns_of, most_bytes
from interpose.experiments.format.layout import Field, Layout
from tests.build import event, fields, pack, size_of

compiled = pytest.importorskip("interpose.experiments.format.compiled_columns")


def layout_of(described: list[tuple[str, str]], gap: int = 0) -> Layout:
    found, end = [], 0
    for name, kind in described:
        found.append(Field(name, kind, end))
        end = found[-1].end + gap
    return Layout(found, end)


EVENTS = layout_of(fields("EVENT"))
NAMES = ["wall_ns", "cpu_ns", "start_ns", "call", "parent", "thread", "inner_cpu_ns", "other", "one_more"]


@st.composite
def layouts(draw) -> Layout:
    names = draw(st.lists(st.sampled_from(NAMES), unique=True, min_size=1))
    kinds = draw(st.lists(st.sampled_from(["u32", "u64", "i32"]), min_size=len(names), max_size=len(names)))
    return layout_of(list(zip(names, kinds, strict=True)), draw(st.integers(0, 11)))


def both(layout: Layout) -> list[Columns]:
    return [PlainColumns(layout), compiled.CompiledColumns(layout)]


def restored(arrangement: Columns, arranged: bytes, count: int, layout: Layout) -> bytes:
    into = bytearray(count * layout.record_bytes)
    arrangement.restore(arranged, count, into)
    return bytes(into)


def arranged_and_back(layout: Layout, records: bytes) -> bytes:
    """The arrangement, which is the same from both; what comes back of it was compared."""
    plain, fast = both(layout)
    arranged = plain.arrange(records)
    assert fast.arrange(records) == arranged
    count = len(records) // layout.record_bytes
    assert restored(plain, arranged, count, layout) == records
    assert restored(fast, arranged, count, layout) == records
    assert len(arranged) <= most_bytes(layout.record_bytes, count)
    return arranged


@given(st.data(), layouts(), st.integers(1, 20))
def test_any_records_of_any_layout_come_back(data, layout, count):
    size = layout.record_bytes * count
    records = data.draw(st.binary(min_size=size, max_size=size))

    arranged_and_back(layout, records)


numbers = st.one_of(st.integers(0, 3), st.integers(2**32 - 2, 2**32 - 1), st.integers(0, 2**32 - 1))


@pytest.mark.long
@given(st.lists(st.fixed_dictionaries({name: numbers for name, _ in fields("EVENT")}), min_size=1, max_size=20))
def test_any_events_come_back(rows):
    arranged_and_back(EVENTS, b"".join(pack("EVENT", **row) for row in rows))


def test_what_is_alike_or_follows_takes_no_room():
    alike = {"stack": 3, "detail": 7, "bytes": 1}
    rows = [event(100 * n, 60, 60, call=n + 1, parent=n, start_cpu_ns=60 * n, **alike) for n in range(743)]

    arranged = arranged_and_back(EVENTS, b"".join(pack("EVENT", **row) for row in rows))

    planes_of_wall_and_parent = 2 * 742
    start_after_the_last_ended = 742
    mask_bytes = 11
    assert len(arranged) == 88 + mask_bytes + planes_of_wall_and_parent + start_after_the_last_ended


def test_cpu_time_that_goes_on_where_the_last_call_ended_is_told_by_how_far():
    rows = [event(100 * n, 60 + n % 3, 50 + n % 3, start_cpu_ns=80 * n) for n in range(3)]

    arranged = arranged_and_back(EVENTS, b"".join(pack("EVENT", **row) for row in rows))

    start_ns, start_cpu_ns, wall_ns, cpu_ns = b"\x50\x4e", b"\x3c\x3a", b"\x3d\x3e", b"\x0a\x0a"
    assert arranged[88 + 11 :].startswith(start_ns + start_cpu_ns + wall_ns + cpu_ns)


@given(st.binary(max_size=300), st.integers(0, 5))
def test_bytes_that_are_no_arrangement_are_refused_by_both_or_read_alike(noise, count):
    results = []
    for arrangement in both(EVENTS):
        try:
            results.append(restored(arrangement, noise, count, EVENTS))
        except ArrangementError as error:
            results.append(str(error))

    assert results[0] == results[1]


@given(st.integers(0, 2**32))
@example(3)
def test_no_count_makes_room_for_more_than_there_is(count):
    three = bytes(EVENTS.record_bytes * 3)
    arranged = PlainColumns(EVENTS).arrange(three)

    for arrangement in both(EVENTS):
        into = bytearray(three)
        if count == 3:
            arrangement.restore(arranged, 3, into)
            assert into == three
        else:
            with pytest.raises(ArrangementError):
                arrangement.restore(arranged, count, into)


def test_every_byte_of_a_record_is_in_one_column():
    layout = Layout([Field("cpu_ns", "u64", 3), Field("call", "u32", 30)], 45)

    held = sorted(
        byte
        for column in columns_of(layout)
        for byte in range(column.offset, column.offset + column.size_bytes)
    )

    assert held == list(range(45))


def test_without_the_compiled_arrangement_the_plain_one_is_used(monkeypatch):
    import sys

    monkeypatch.setitem(sys.modules, "interpose.experiments.format.compiled_columns", None)

    assert columns.fastest_columns() is PlainColumns
    assert size_of("EVENT") == EVENTS.record_bytes
