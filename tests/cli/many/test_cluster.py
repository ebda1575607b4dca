"""Reading on a Dask cluster whose workers are processes: the same report, and lines for what they cannot read."""

import os
import sys

import pytest

from interpose.cli.many import cluster, work
from interpose.errors import InterposeError, UsageError

pytestmark = pytest.mark.filterwarnings("ignore")  # distributed and what it needs warn

distributed = pytest.importorskip("distributed", reason="distributed is not installed")


@pytest.fixture(scope="module")
def address():
    """The scheduler of a cluster of two processes."""
    with distributed.LocalCluster(
        n_workers=2, threads_per_worker=1, processes=True, dashboard_address=None, host="127.0.0.1"
    ) as made:
        yield made.scheduler_address


@pytest.mark.parametrize("command", ["report --by site", "transactions", "profile --section resource"])
def test_a_cluster_reports_what_is_reported_here(experiments, interpose, address, command):
    here, _ = interpose(*command.split(), "runs/*.er", "--no-cache")

    there, done = interpose(*command.split(), "runs/*.er", "--no-cache", "--dask", address)

    assert done.returncode == 0, done.stderr
    assert there == here


def test_what_a_cluster_has_read_is_kept_here(experiments, interpose, address, monkeypatch):
    asked = ("report", "runs/*.er", "--by", "kind")
    first, _ = interpose(*asked, "--dask", address)
    monkeypatch.setattr(cluster, "answers", None)

    second, done = interpose(*asked, "--dask", address)

    assert done.returncode == 0
    assert second == first


def test_damaged_experiments_are_left_out_with_a_line(experiments, interpose, address):
    (experiments[1] / "log.xml").write_text("<nothing/>")

    rows, done = interpose("report", "runs/*.er", "--by", "experiment", "--dask", address)

    assert done.returncode == 3
    assert done.stderr == "interpose: shop.2.er/log.xml: not the log of an experiment\n"
    assert len({row["experiment"] for row in rows}) == len(experiments) - 1


def deadly(tasks):
    """Kill the worker for one experiment; read the others."""
    if any(b"shop.3.er" in task for task in tasks):
        os.kill(os.getpid(), 9)
    return [work.answered(task) for task in tasks]


@pytest.mark.long
def test_a_worker_that_is_killed_costs_one_experiment(experiments, interpose, monkeypatch):
    monkeypatch.setattr(cluster, "_answered", deadly)
    monkeypatch.setattr(cluster, "_SHARES", 1)  # all in one batch
    sys.modules[__name__].deadly.__module__ = "__main__"  # sent by value: workers do not have this file
    with distributed.LocalCluster(
        n_workers=1, threads_per_worker=1, processes=True, dashboard_address=None, host="127.0.0.1"
    ) as made:
        rows, done = interpose("report", "runs/*.er", "--by", "experiment", "--dask", made.scheduler_address)

    assert done.returncode == 3
    assert done.stderr.startswith("interpose: shop.3.er: the worker that read it failed: KilledWorker")
    assert len({row["experiment"] for row in rows}) == len(experiments) - 1


@pytest.mark.parametrize(("count", "threads"), [(0, 1), (1, 2), (9, 0), (200, 2), (1000, 2), (1000, 64)])
def test_each_experiment_is_in_one_batch_and_batches_become_smaller(count, threads):
    made = cluster.batches(count, threads)
    sizes = [len(each) for each in made]

    assert [place for each in made for place in each] == list(range(count))
    assert sizes == sorted(sizes, reverse=True)
    assert all(size <= max(count // (4 * max(threads, 1)), 1) for size in sizes)


def test_an_address_without_a_cluster_is_one_line(experiments, interpose, monkeypatch):
    monkeypatch.setattr(cluster, "_CONNECTED_WITHIN_S", 1)

    _, done = interpose("report", "runs/*.er", "--by", "kind", "--dask", "tcp://127.0.0.1:1")

    assert done.returncode == InterposeError.exit_code
    assert done.stderr.startswith("interpose: --dask tcp://127.0.0.1:1: no cluster answers")
    assert done.stderr.count("\n") == 1


def test_a_missing_package_is_named(monkeypatch):
    monkeypatch.setitem(sys.modules, "distributed", None)

    with pytest.raises(UsageError, match=r"pip install 'interpose\[dask\]'"):
        next(cluster.answers([("a", b"")], "tcp://127.0.0.1:1"))
