"""The examples: they do what they say, and do the same when they are recorded."""

import os
import sqlite3
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from interpose.experiments import names
from interpose.experiments.experiment import Experiment

EXAMPLES = Path(__file__).parents[1] / "examples"
INPUT = EXAMPLES / "orders.txt"

Run = Callable[..., subprocess.CompletedProcess[bytes]]


@pytest.fixture
def orders(tmp_path: Path, own_environment: dict[str, str]) -> Run:
    """A function that runs the order entry in an empty directory."""

    def run(*words: object, input: bytes = b"", **variables: str) -> subprocess.CompletedProcess[bytes]:
        return subprocess.run(
            [sys.executable, str(EXAMPLES / "orders.py"), *map(str, words)],
            cwd=tmp_path,
            env={**own_environment, **variables},
            input=input,
            capture_output=True,
            timeout=60,
        )

    return run


def expected_totals() -> tuple[int, int, int]:
    """Orders, their worth and what was paid in cents, worked out from the input alone."""
    due: list[int] = []
    worth = paid = 0
    for line in INPUT.read_text(encoding="utf-8").splitlines():
        match line.split("|"):
            case ["NEW", _, _, quantity, price] if int(quantity) > 0:
                due.append(int(quantity) * int(price))
                worth += due[-1]
            case ["PAY", number, amount] if int(number) <= len(due) and int(amount) <= due[int(number) - 1]:
                due[int(number) - 1] -= int(amount)
                paid += int(amount)
    return len(due), worth, paid


def test_the_totals_of_the_orders_are_right(orders):
    count, worth, paid = expected_totals()

    done = orders(INPUT)

    assert (done.returncode, done.stderr) == (0, b"")
    last = done.stdout.decode().splitlines()[-1]
    assert last == f"{count} orders, worth {worth / 100:,.2f}, paid {paid / 100:,.2f}"
    assert count == 300


def test_the_orders_stay_in_the_database(orders, tmp_path):
    done = orders("--database", "shop.db", INPUT)

    assert done.returncode == 0
    connection = sqlite3.connect(tmp_path / "shop.db")
    assert connection.execute("SELECT COUNT(*) FROM orders").fetchone() == (300,)
    connection.close()


def test_what_is_refused_is_said_and_the_rest_goes_on(orders):
    done = orders(input=b"NEW|Hill Farm|Rope|0|100\nPAY|7|1\nNEW|Hill Farm|Rope|2|100\nSELL|1\n")

    lines = done.stdout.decode().splitlines()
    assert [line.rpartition(": ")[2] for line in lines if line.startswith("refused")] == [
        "quantity and price must be above 0",
        "there is no order 7",
        "no such transaction",
    ]
    assert lines[-1] == "1 orders, worth 2.00, paid 0.00"


def test_recorded_or_not_the_orders_are_the_same(orders, tmp_path):
    plain = orders(INPUT)
    recorded = orders(INPUT, INTERPOSE="1")

    assert (recorded.returncode, recorded.stdout, recorded.stderr) == (plain.returncode, plain.stdout, b"")
    made = names.newest(os.fspath(tmp_path))
    assert made is not None
    experiment = Experiment(made)
    assert not experiment.damages.found
    assert sum(thread.record.recorded for thread in experiment.founder.threads) > 2_000
