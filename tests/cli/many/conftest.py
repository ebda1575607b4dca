"""Experiments of a shop, many of them, and what commands say of them."""

import json
from random import Random

import pytest

from tests.build import START_NS, TIME_NS, Build, event

MANY = 9


def an_experiment(path, number):
    """One in which a database and a file were used, for a time that depends on its number."""
    random, build = Random(number), Build(path, pid=100 + number, time_ns=TIME_NS + number)
    query, write = build.intrinsic("sqlite3.Cursor.execute", "db"), build.intrinsic("os.write", "file")
    save = build.stack(build.site("/home/u/shop/orders.py", 88, "save"))
    log = build.stack(build.site("/home/u/shop/orders.py", 90 + number % 3, "note"))
    rows = [
        event(each * 1000, random.randrange(1, 900), 0, call=each + 1, intrinsic=intrinsic, stack=stack)
        for each in range(40)
        for intrinsic, stack in [random.choice([(query, save), (write, log)])]
    ]
    build.events(rows)
    build.thread(end_ns=START_NS + 50_000, end_cpu_ns=20_000, recorded=len(rows), main=1, tid=812)
    build.ended(50_000, 20_000)
    return build.write()


@pytest.fixture
def place(tmp_path, interpose_here):
    """The directory where the experiments are."""
    (tmp_path / "work" / "runs").mkdir()
    return tmp_path / "work" / "runs"


@pytest.fixture
def experiments(place):
    """Nine experiments."""
    return [an_experiment(place / f"shop.{number}.er", number) for number in range(1, MANY + 1)]


@pytest.fixture
def interpose(place, interpose_here):
    """`interpose WORDS`, in the directory above the experiments; the rows of the table as JSON, with what it said."""

    def run(*words, variables=None):
        done = interpose_here(*words, "--format", "json", variables=variables, cwd=place.parent)
        return (json.loads(done.stdout) if done.stdout else None), done

    return run
