"""The table of processes: how long each lasted, and what children wrote, which is estimated where interpose's own files
are a part of it."""

import pytest

from interpose.analysis.recording.ending import OVERVIEW_END
from interpose.analysis.recording.lineage import tree, walk
from interpose.experiments.format.children import FORK
from interpose.experiments.model.experiment import Experiment
from interpose.reports.tables.processes import processes_table
from tests.build import SECOND, START_NS, Build


def started(directory, is_recorded, out_blocks):
    """A founder that forked a child, which wrote so many blocks of 512 bytes."""
    build = Build(directory / "t.1.er", pid=70)
    build.child(how=FORK, pid=77, number=1, end_ns=START_NS + SECOND, usage=1, cpu_ns=SECOND, out_blocks=out_blocks)
    build.ended(2 * SECOND, 0)
    path = build.write()
    if is_recorded:
        Build(path / "_f1.er", pid=77, start_ns=START_NS).write()
    return str(path)


@pytest.mark.parametrize(
    ("is_recorded", "out_blocks", "told"), [(True, 8, "~4.00 KiB"), (True, 0, "0 B"), (False, 8, "4.00 KiB")]
)
def test_what_a_recorded_child_wrote_is_marked_as_estimated(is_recorded, out_blocks, told, tmp_path):
    experiment = Experiment(started(tmp_path, is_recorded, out_blocks))

    table = processes_table(walk(tree(experiment)), experiment.founder)
    (_, child), (written,) = table.rows, [each for each in table.columns if each.title == "written"]

    assert written.show(child) == told
    assert table.values(child)["written_bytes"] == 512 * out_blocks


@pytest.mark.parametrize(
    ("starter", "began_ns", "lasted_ns", "told"),
    [({"how": FORK, "number": 1}, SECOND, 4 * SECOND, "4.000 s"), (None, 2 * SECOND, 2 * SECOND, "~2.000 s")],
)
def test_a_recorded_child_lasts_as_long_as_its_parent_saw_it(starter, began_ns, lasted_ns, told, tmp_path):
    build = Build(tmp_path / "t.1.er", pid=70)
    if starter:
        build.child(pid=77, start_ns=START_NS + SECOND, end_ns=START_NS + 5 * SECOND, **starter)
    build.ended(6 * SECOND, 0)
    path = build.write()
    child = Build(path / "_f1.er", pid=77, start_ns=START_NS + 2 * SECOND)
    child.sample(time_ns=START_NS + 4 * SECOND, kind=OVERVIEW_END)
    child.write()
    experiment = Experiment(str(path))

    table = processes_table(walk(tree(experiment)), experiment.founder)
    (_, row), (shown,) = table.rows, [each for each in table.columns if each.title == "duration"]

    assert shown.show(row) == told
    assert (table.values(row)["start_ns"] - START_NS, table.values(row)["duration_ns"]) == (began_ns, lasted_ns)
