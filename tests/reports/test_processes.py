"""What children wrote is marked as estimated if interpose's own files of them are a part of it."""

import pytest

from interpose.analysis.recording.lineage import tree, walk
from interpose.experiments.format.children import FORK
from interpose.experiments.model.experiment import Experiment
from interpose.reports.tables.processes import processes_table
from tests.build import SECOND, START_NS, Build

pytestmark = pytest.mark.any_python


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
