"""`interpose events` and `interpose list`."""

import json
import os
import time

import pytest
from shop_orders import ended, orders

from tests.build import SECOND


def test_events_are_listed_in_order_with_what_they_were_about(run_main):
    ended(orders()).write()

    code, out, err = run_main("events", "--limit", "2")

    assert (code, err) == (0, "")
    assert [line.split()[:2] for line in out.splitlines()] == [
        ["since", "start"],
        ["0.100000", "s"],
        ["0.160000", "s"],
    ]
    assert "sqlite3.Cursor" in out and "orders.py:88" in out and "select * " in out


@pytest.mark.parametrize(
    ("arguments", "calls"),
    [
        (["--last", "2"], [100, 200]),
        (["--since", "9.95s"], [199, 100, 200]),
        (["--since", "9900ms", "--limit", "1"], [99]),
        (["--since", "9.9s"], [99, 199, 100, 200]),
    ],
)
def test_events_are_chosen(run_main, arguments, calls):
    ended(orders()).write()

    _, out, _ = run_main("events", "--format", "json", *arguments)

    assert [row["call"] for row in json.loads(out)] == calls


def test_events_since_a_time_of_day(run_main):
    build = ended(orders())
    build.write()
    began_s = build.log["time_ns"] / SECOND
    soon = time.strftime("%Y-%m-%dT%H:%M:%S", time.localtime(began_s + 9))

    _, by_date, _ = run_main("events", "--format", "json", "--since", soon)
    _, by_clock, _ = run_main("events", "--format", "json", "--since", soon[11:])

    assert 10 < len(json.loads(by_date)) < 50
    assert by_clock == by_date


def test_experiments_are_listed_with_their_state(run_main):
    ended(orders("test.1.er"), status=3).write()
    orders("test.2.er", version=9).write()
    os.utime("test.1.er/log.xml", (1, 1))

    code, out, err = run_main("list")

    assert (code, err) == (0, "")
    listed = " ".join(out.splitlines()[1].split())
    assert listed == "test.1.er 2 minutes ago 20.00 s 200 exit 3 python orders.py"
    assert "test.2.er" in out and "cannot be read" in out
    assert [row["calls"] for row in json.loads(run_main("list", "--format", "json")[1])] == [200, None]


def test_an_empty_list_is_said(run_main, work):
    assert run_main("list", ".") == (
        0,
        "",
        "interpose: no experiments in .\n",
    )
    assert run_main("list", ".", "--format", "json")[1] == "[]\n"
