"""Tests of which one sleeps, and each of the others makes its database anew."""

import sqlite3
import time

import pytest


@pytest.fixture
def database():
    made = sqlite3.connect(":memory:")
    made.execute("create table item (id integer primary key, name text)")
    made.executemany("insert into item values (?, ?)", [(n, f"item {n}") for n in range(5000)])
    return made


@pytest.mark.parametrize("number", range(40))
def test_item(database, number):
    assert database.execute("select name from item where id = ?", (number,)).fetchone() == (f"item {number}",)


def test_retry():
    for _ in range(3):
        time.sleep(0.2)
