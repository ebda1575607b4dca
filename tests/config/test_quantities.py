"""Durations and sizes: one list of units wherever they are written."""

import pytest

from interpose import quantities
from interpose.analysis.comparison.conditions import parse_condition
from interpose.analysis.expressions import scanner
from interpose.cli.times import duration_ns
from interpose.config import filters, values


@pytest.mark.parametrize(("unit", "unit_ns"), quantities.TIMES_NS.items())
def test_every_unit_of_time_is_known_wherever_a_duration_is_written(unit, unit_ns):
    text = f"90{unit}"

    assert quantities.duration_ns(text) == 90 * unit_ns
    assert values.parse_duration_ns(text) == 90 * unit_ns
    assert filters.parse(f"from={text}").rules == [("from", False, (90 * unit_ns,))]
    assert [*scanner.scan(f"WALL > {text}")][2].value == 90 * unit_ns
    assert parse_condition(f"max(all) > {text}").limit == 90 * unit_ns
    assert duration_ns(text) == 90 * unit_ns


def test_a_product_is_exact_where_it_is_whole():
    assert quantities.duration_ns("123456789.123456789s") == 123456789123456789
    assert quantities.size_bytes("1.5GiB") == 3 << 29


@pytest.mark.parametrize("text", ["", "1", "s", "1 s", "-1s", "1e3s", "1_0s", "1.2.3s", "٣s", "1S", "1min"])
def test_what_is_no_duration_is_refused_with_the_units(text):
    with pytest.raises(ValueError, match=r"^not a duration like 2.5s \(ns, us, ms, s, m, h\)$"):
        quantities.duration_ns(text)


def test_the_recorder_is_given_no_more_than_it_can_count():
    assert quantities.duration_ns("9999999h") == 9999999 * 3600 * 10**9

    with pytest.raises(ValueError, match="longer than any program runs"):
        quantities.recorded_ns("9999999h")
