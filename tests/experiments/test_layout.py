"""Layouts: any record comes back as it was packed, and a description that cannot be is refused."""

import struct
from xml.etree import ElementTree

import pytest
from hypothesis import given
from hypothesis import strategies as st

from interpose.experiments.format.layout import TYPES, DataType, Field, Layout, LayoutError, Unpacker
from interpose.experiments.format.records import OpenCall, StackRecord
from interpose.timing import shims

gaps = st.integers(0, 9)
described = st.lists(st.tuples(gaps, st.sampled_from(sorted(TYPES))), min_size=1, max_size=12)


def layout_of(parts, tail):
    fields, end = [], 0
    for number, (gap, kind) in enumerate(parts):
        fields.append(Field(f"f{number}", kind, end + gap))
        end = fields[-1].end
    return Layout(fields, end + tail)


def random_values(data, layout):
    def one(field):
        size = 8 * field.size_bytes
        low, high = (-(2 ** (size - 1)), 2 ** (size - 1) - 1) if field.type.startswith("i") else (0, 2**size - 1)
        return data.draw(st.integers(low, high))

    return {name: one(field) for name, field in layout.fields.items()}


def packed(layout, values):
    record = bytearray(layout.record_bytes)
    for name, field in layout.fields.items():
        struct.pack_into("<" + TYPES[field.type].code, record, field.offset, values[name])
    return bytes(record)


@pytest.mark.long
@given(described, gaps, st.data())
def test_any_record_comes_back_in_any_order_of_its_fields(parts, tail, data):
    layout = layout_of(parts, tail)
    rows = [random_values(data, layout) for _ in range(3)]
    names = data.draw(st.permutations(sorted(layout.fields)))
    picker = layout.picker(names)

    records = b"".join(packed(layout, row) for row in rows)

    assert list(picker.many(records)) == [tuple(row[name] for name in names) for row in rows]
    assert picker.one(records, layout.record_bytes) == tuple(rows[1][name] for name in names)


def test_a_field_that_an_experiment_does_not_have_is_0_and_one_not_known_is_passed_over():
    layout = Layout([Field("later", "u64", 0), Field("outer", "u32", 8)], 12)

    record = Unpacker(layout, StackRecord).one(struct.pack("<QI", 7, 9))

    assert record == StackRecord(site=0, outer=9)


def test_a_layout_without_any_known_field_gives_nothing_but_0():
    layout = Layout([Field("later", "u64", 0)], 8)

    assert list(Unpacker(layout, OpenCall).many(b"\1" * 16)) == [OpenCall(*[0] * 8)] * 2
    assert list(layout.picker(["missing"]).many(b"\1" * 8)) == [(0,)]


@pytest.mark.parametrize(
    ("fields", "record_bytes"),
    [
        ([Field("a", "u64", 0), Field("b", "u32", 4)], 16),
        ([Field("a", "u64", 4)], 8),
        ([Field("a", "u32", -4)], 8),
        ([], 0),
        ([], -1),
        ([], 1 << 30),
    ],
)
def test_a_layout_that_no_record_can_have_is_refused(fields, record_bytes):
    with pytest.raises(LayoutError):
        Layout(fields, record_bytes)


@pytest.mark.parametrize(
    ("head_bytes", "block_bytes", "table"),
    [
        (0, 0, (0, 0)),
        (64, 64, (0, 0)),
        (0, 1 << 40, (0, 0)),
        (0, 64, (0, 0)),
        (0, 4096, (90, 2)),
        (0, 4096, (0, 99)),
    ],
)
def test_a_type_of_data_whose_parts_do_not_fit_is_refused(head_bytes, block_bytes, table):
    record, entry = Layout([], 100), Layout([], 16)

    with pytest.raises(LayoutError):
        DataType("threads", record, head_bytes, block_bytes, entry, *table)


@given(st.integers(1, 200), st.integers(0, 255), st.integers(0, 5000))
def test_no_record_crosses_a_window_and_none_overlap(record_bytes, head_bytes, index):
    data = DataType("sites", Layout([], record_bytes), head_bytes, 256)

    offset = data.offset_of(index)

    assert offset // 256 == (offset + record_bytes - 1) // 256
    assert data.offset_of(index + 1) >= offset + record_bytes
    assert offset >= head_bytes


def test_what_is_said_of_the_fields_is_xml_and_says_all_of_each():
    fields = ElementTree.fromstring(f"<experiment>{shims.layout()}</experiment>").findall(".//field")

    assert len(fields) > 100
    assert {tuple(field.attrib) for field in fields} == {("name", "type", "offset", "title")}
    assert {field.get("type") for field in fields} <= {*TYPES}
    assert [field.get("name") for field in fields if not field.get("title")] == []
