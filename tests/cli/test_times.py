"""Instants as people say them, on the clock of a process."""

import time

import pytest

from interpose.cli.times import monotonic_ns
from interpose.errors import UsageError
from interpose.experiments.model.experiment import Experiment
from tests.build import START_NS, Build

SECOND = 1_000_000_000
BEGAN_NS = 1_700_006_399 * SECOND + 900_000_000  # 2023-11-14 23:59:59.9, UTC


@pytest.fixture
def process(tmp_path, monkeypatch):
    """A process that began a tenth of a second before midnight, where that is UTC."""
    monkeypatch.setenv("TZ", "UTC")
    time.tzset()
    yield Experiment(str(Build(tmp_path / "t.1.er", time_ns=BEGAN_NS).write())).founder
    monkeypatch.undo()
    time.tzset()


@pytest.mark.parametrize(
    ("when", "after_ns"),
    [
        ("1500us", 1_500_000),
        ("23:59:59.95", 50_000_000),
        ("23:59:59,95", 50_000_000),
        ("23:59:59.900000001", 1),
        ("23:59:59.9000000019", 1),
        ("23:59:59", -900_000_000),
        ("0:00:00.000000001", 100_000_001),
        ("00:00", 100_000_000),
        ("23:58:58.8", 86_400 * SECOND - 61_100_000_000),
        ("2023-11-14T23:59:59.999999999", 99_999_999),
        ("2023-11-14 23:59:59.900000001Z", 1),
        ("2023-11-15T01:30:00.25+01:30", 350_000_000),
        ("20231115T000000.123456789", 223_456_789),
        ("2023-11-15", 100_000_000),
    ],
)
def test_an_instant_is_exact_to_the_nanosecond(process, when, after_ns):
    assert monotonic_ns(when, process) - START_NS == after_ns


@pytest.mark.parametrize("when", ["23:59:59.", "23:59.5", "24:00:00.5", "20231115.5", "12:00:00.5.5", "1.5", ""])
def test_what_is_no_instant_is_refused(process, when):
    with pytest.raises(UsageError, match="--since"):
        monotonic_ns(when, process)
