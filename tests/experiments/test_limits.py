"""Which records are impossible: those with a field above its limit, wherever they are among possible ones."""

import pytest

from interpose.experiments.format.layout import Field, Layout
from interpose.experiments.format.limits import LIMITS, Limits

KINDS = sorted(LIMITS, key=lambda record: record.__name__)


def layout_of(record, bits):
    return Layout([Field(name, f"u{bits}", place * bits // 8) for place, name in enumerate(record._fields)], 1024)


def packed(values, bits):
    return b"".join(value.to_bytes(bits // 8, "little") for value in values).ljust(1024, b"\0")


@pytest.mark.parametrize("bits", [32, 64])
@pytest.mark.parametrize("record", KINDS, ids=lambda record: record.__name__)
def test_a_field_may_be_at_its_limit_and_not_above(record, bits):
    largest, limits = 2**bits - 1, Limits(layout_of(record, bits), record)
    at_most = {name: min(LIMITS[record].get(name, largest), largest) for name in record._fields}
    whole = packed(at_most.values(), bits)
    none = bytes(len(whole))

    assert limits.impossible(none + whole) == []
    for name, most in LIMITS[record].items():
        for wrong in {most + 1, most | 1 << bits // 2, largest} - {most}:
            if most < wrong <= largest:
                exceeding = packed((at_most | {name: wrong}).values(), bits)
                assert limits.impossible(none + whole + exceeding + none) == [2]


@pytest.mark.parametrize("record", KINDS, ids=lambda record: record.__name__)
def test_limits_are_those_of_fields(record):
    assert set(LIMITS[record]) <= set(record._fields)
