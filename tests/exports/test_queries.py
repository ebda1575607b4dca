"""`interpose sql` and the Parquet tables have the rows of `report --by line`, with the names of their JSON."""

import json

import pytest

from interpose.cli.main import main
from tests.analysis.test_counts import build_in
from tests.build import SECOND, START_NS, Build, event
from tests.exports.test_exports import hostile

pytestmark = pytest.mark.packages


def shop(directory):
    """Samples of code with counters, in a recorded call and beside it."""
    return str(build_in(directory / "shop.1.er").write())


def tasks(directory):
    """Samples of code in a task, and of code in none."""
    build = Build(directory / "tasks.1.er")
    build.thread(tid=1, main=1, end_ns=START_NS + 4 * SECOND, end_cpu_ns=4 * SECOND)
    load, save = (build.sampled_stack(("/home/u/tasks.py", line, name)) for line, name in ((3, "load"), (9, "save")))
    fetching = build.sampled_string("fetching")
    for number, more in enumerate(({"stack": load, "task": fetching}, {"stack": load}, {"stack": save}, {}), 1):
        build.thread_sample(START_NS + number * SECOND, cpu_ns=number * SECOND, **more)
    build.ended(4 * SECOND, 4 * SECOND)
    return str(build.write())


def without_profile(directory):
    """A recorded call, and no samples."""
    build = Build(directory / "plain.1.er")
    build.events([event(0, SECOND, SECOND, intrinsic=build.intrinsic("io.FileIO.write", "file"), call=1)])
    build.thread(tid=1, main=1, end_ns=START_NS + 2 * SECOND, end_cpu_ns=2 * SECOND, recorded=1, made=1)
    build.ended(2 * SECOND, 2 * SECOND)
    return str(build.write())


MADE = [shop, tasks, without_profile, hostile]


def told(capsys, *words):
    capsys.readouterr()
    assert main(words) in (0, 3)
    return json.loads(capsys.readouterr().out)


def report(path, capsys):
    return told(capsys, "report", "--by", "line", path, "--format", "json")


@pytest.mark.parametrize("make", MADE)
def test_sql_has_each_row_of_the_report_by_line(make, tmp_path, capsys):
    pytest.importorskip("duckdb")
    path = make(tmp_path)

    rows = told(capsys, "sql", "select * exclude (experiment) from report", path, "--format", "json")

    assert rows == report(path, capsys)


@pytest.mark.parametrize("make", MADE)
def test_parquet_has_each_row_of_the_report_by_line(make, tmp_path, capsys):
    parquet = pytest.importorskip("pyarrow.parquet")
    path, directory = make(tmp_path), tmp_path / "tables"

    assert main(["export", "--to", "parquet", "-o", str(directory), path]) in (0, 3)

    rows = parquet.read_table(directory / "report.parquet").to_pylist()
    named = [row | {"tasks": None if row["tasks"] is None else dict(row["tasks"])} for row in rows]
    assert named == report(path, capsys)


def test_sql_has_sampled_code_of_each_experiment_also_beside_one_without_a_profile(tmp_path, capsys):
    pytest.importorskip("duckdb")
    paths = [make(tmp_path) for make in (without_profile, tasks, shop)]

    rows = told(capsys, "sql", "select * from report", *paths, "--format", "json")

    for path in paths:
        mine = [row for row in rows if path.endswith(row["experiment"])]
        expected = report(path, capsys)
        assert [{name: row[name] for name in expected[0]} for row in mine] == expected
    (load,) = [row for row in rows if row["experiment"] == "tasks.1.er" and row["function"] == "load"]
    assert load["samples"] == 2
    assert load["tasks"] == {"fetching": SECOND}
