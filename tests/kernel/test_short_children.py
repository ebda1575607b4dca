"""Many short processes: shared content is written once, and all commands read them, together and each alone."""

import shutil
from pathlib import Path

import pytest

from interpose.experiments.model.experiment import Experiment
from tests.kernel_watching import MARKS, calls_of, watched

pytestmark = MARKS

CHILDREN = 40
SCRIPT = f"for each in $(seq {CHILDREN}); do /bin/true; done"


@pytest.fixture
def experiment(tmp_path):
    return watched(tmp_path, "sh", "-c", SCRIPT)


def children_of(experiment: Experiment) -> list[Path]:
    return [Path(each.directory) for each in experiment.processes if Path(each.log.executable).name == "true"]


def test_each_is_there_with_its_calls_and_its_end(experiment):
    children = [each for each in experiment.processes if Path(each.log.executable).name == "true"]

    assert len(children) == CHILDREN
    assert all("syscall.execve" in dict(calls_of(each)) for each in children)
    assert [event.kind for each in children for event in each.log.events] == ["exit"] * CHILDREN
    assert not experiment.damages.found


def test_what_is_the_same_for_all_is_written_once(experiment):
    founder, children = Path(experiment.directory), children_of(experiment)

    assert {(each / "map.xml").stat().st_ino for each in children} == {(founder / "map.xml").stat().st_ino}
    for each in children:
        others = [file for file in each.iterdir() if file.name != "map.xml"]
        assert sum(file.stat().st_blocks for file in [each, *others]) * 512 <= 48 * 1024
        assert (each / "log.xml").stat().st_size < 12_000
        assert not list(each.glob("*.new"))


def test_the_meanings_of_fields_are_in_the_log_of_the_founder_only(experiment):
    founder = Path(experiment.directory)

    assert ' title="' in (founder / "log.xml").read_text()
    assert ' title="' not in (children_of(experiment)[0] / "log.xml").read_text()


@pytest.mark.long
@pytest.mark.parametrize(
    "words",
    [
        ("report",),
        ("report", "--by", "function"),
        ("report", "--format", "html"),
        ("processes",),
        ("events",),
        ("overview",),
        ("display", "statistics"),
        ("check",),
        ("export", "--to", "raw"),
        ("export", "--to", "chrome"),
        ("export", "--to", "speedscope"),
    ],
    ids=" ".join,
)
def test_commands_read_all_and_each_alone(experiment, interpose_here, words):
    child = children_of(experiment)[3]
    alone = Path(experiment.directory).parent / "alone.er"
    shutil.copytree(child, alone)

    for path in (experiment.directory, child, alone):
        done = interpose_here(*words, str(path))
        assert (done.returncode, done.stderr) == (0, "")
        assert done.stdout


@pytest.mark.long
def test_copies_and_packed_ones_say_the_same(experiment, interpose_here, tmp_path):
    place, packed, repaired = (str(tmp_path / f"{name}.er") for name in ("copy", "packed", "repaired"))
    packed += ".tar.zst"
    assert interpose_here("cp", experiment.directory, place).returncode == 0
    assert interpose_here("archive", "-o", packed, experiment.directory).returncode == 0
    assert interpose_here("check", "--repair", "-o", repaired, experiment.directory).returncode == 0

    expected = interpose_here("processes", "--format", "json", experiment.directory).stdout
    for path in (place, packed, repaired):
        assert interpose_here("check", path).returncode == 0
        assert interpose_here("processes", "--format", "json", path).stdout == expected
