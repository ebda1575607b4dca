"""What children wrote is told with the note that interpose's own files of them are a part of it."""

import json

import pytest

from interpose.analysis.recording.lineage import tree, walk
from interpose.experiments.format.children import FORK
from interpose.experiments.model.experiment import Experiment
from interpose.reports.tables.processes import WITH_OURS, processes_table
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
    ("is_recorded", "out_blocks", "notes"), [(True, 8, [WITH_OURS]), (True, 0, []), (False, 8, [])]
)
def test_it_is_noted_where_a_recorded_child_wrote(is_recorded, out_blocks, notes, tmp_path):
    experiment = Experiment(started(tmp_path, is_recorded, out_blocks))

    table = processes_table(walk(tree(experiment)), experiment.founder)

    assert list(table.notes) == notes
    assert [table.values(row)["written_bytes"] for row in table.rows] == [None, 512 * out_blocks]


def test_the_note_is_for_people(interpose_here, tmp_path):
    path = started(tmp_path, True, 8)

    text = interpose_here("processes", path)
    machine = interpose_here("processes", path, "--format", "json")

    assert text.stderr == f"interpose: {WITH_OURS}\n"
    assert machine.stderr == ""
    assert json.loads(machine.stdout)[1]["written_bytes"] == 4096
