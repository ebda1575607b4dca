"""Names of experiments: numbered one for each process, however many ask at once; listed; lineages."""

import os
import subprocess
import sys
import time
from pathlib import Path

import pytest

from interpose.errors import ExperimentError
from interpose.experiments.metadata import names


def record(directory: Path, name: str, written_s: int) -> Path:
    path = directory / name
    path.mkdir()
    (path / names.LOG).touch()
    os.utime(path / names.LOG, (written_s, written_s))
    return path


def test_a_stem_gets_the_number_after_the_highest(tmp_path):
    for name in ("test.1.er", "test.7.er", "test.x.er", "test.er", "other.9.er", "test.²8.er", "test.10.txt"):
        (tmp_path / name).mkdir()

    assert names.create(str(tmp_path), "test") == str(tmp_path / "test.8.er")
    assert names.create(str(tmp_path), "a.b") == str(tmp_path / "a.b.1.er")


def test_a_name_with_the_ending_is_taken_as_it_is(tmp_path):
    assert names.create(str(tmp_path), "mine.er") == str(tmp_path / "mine.er")

    with pytest.raises(FileExistsError):
        names.create(str(tmp_path), "mine.er")


def test_an_experiment_is_private_and_not_committed(tmp_path):
    umask = os.umask(0)
    try:
        path = Path(names.create(str(tmp_path), "test"))
    finally:
        os.umask(umask)

    assert path.stat().st_mode & 0o777 == 0o700
    assert (path / ".gitignore").stat().st_mode & 0o777 == 0o600
    assert (path / ".gitignore").read_text() == "*\n"


def test_a_directory_is_made_but_not_its_parents(tmp_path):
    assert names.create(str(tmp_path / "new"), "test") == str(tmp_path / "new" / "test.1.er")

    with pytest.raises(FileNotFoundError):
        names.create(str(tmp_path / "no" / "where"), "test")


def test_a_directory_that_is_none_is_an_error_of_the_system(tmp_path):
    (tmp_path / "file").touch()

    with pytest.raises(OSError):
        names.create(str(tmp_path / "file"), "test")


@pytest.mark.parametrize("name", ["", ".er", "a/b", "../a", "a\0b", "a\nb", "\x1b[2J", "\udcff"])
def test_a_name_that_cannot_be_is_refused(tmp_path, name):
    with pytest.raises(ExperimentError) as raised:
        names.create(str(tmp_path), name)

    assert str(raised.value).isprintable()
    assert list(tmp_path.iterdir()) == []


@pytest.mark.long
def test_a_hundred_processes_at_once_get_a_hundred_experiments(tmp_path):
    program = (
        "import sys; from interpose.experiments.metadata import names\n"
        "sys.stdin.read(); print(names.create(sys.argv[1], 'test'))"
    )
    start, gate = os.pipe()
    processes = [
        subprocess.Popen(
            [sys.executable, "-c", program, str(tmp_path)], stdin=start, stdout=subprocess.PIPE, text=True
        )
        for _ in range(100)
    ]
    os.close(start)
    os.close(gate)  # now all of them go

    made = {process.communicate(timeout=60)[0].strip() for process in processes}

    assert made == {str(tmp_path / f"test.{number}.er") for number in range(1, 101)}


def test_experiments_are_listed_oldest_first(tmp_path):
    newest = record(tmp_path, "b.1.er", 300)
    tenth = record(tmp_path, "test.10.er", 200)
    ninth = record(tmp_path, "test.9.er", 200)
    oldest = record(tmp_path, "z.er", 100)
    record(tmp_path, "directory", 400)
    (tmp_path / "empty.er").mkdir()
    (tmp_path / "file.er").touch()

    assert names.list_experiments(str(tmp_path)) == [str(path) for path in (oldest, ninth, tenth, newest)]
    assert names.newest(str(tmp_path)) == str(newest)


def test_a_copy_is_as_old_as_what_was_copied_and_comes_before_it(tmp_path):
    before = record(tmp_path, "before.1.er", 100)
    source = record(tmp_path, "a.1.er", 200)
    copy = record(tmp_path, "z.1.er", 300)

    time.sleep(0.05)  # some kernels' files have no finer times than their ticks
    names.age_as_copy(str(copy), str(source))

    assert names.list_experiments(str(tmp_path)) == [str(before), str(copy), str(source)]
    assert os.stat(copy / "log.xml").st_mtime_ns == os.stat(source / "log.xml").st_mtime_ns


def test_where_nothing_was_recorded_there_is_no_newest(tmp_path):
    assert names.newest(str(tmp_path)) is None
    assert names.newest(str(tmp_path / "nowhere")) is None


def test_only_an_experiment_in_which_nothing_was_recorded_is_removed(tmp_path):
    empty, taken, used, strange = (Path(names.create(str(tmp_path), "test")) for _ in range(4))
    (taken / names.LOG).touch()
    (used / names.LOG).write_text("<experiment")
    (strange / "thesis.txt").touch()

    assert names.remove_empty(str(empty))
    assert names.remove_empty(str(taken))
    assert not names.remove_empty(str(used))
    assert not names.remove_empty(str(strange))
    assert sorted(tmp_path.iterdir()) == [used, strange]
    assert sorted(path.name for path in used.iterdir()) == [".gitignore", names.LOG]


def test_descendants_lie_flat_in_the_founder():
    assert names.lineage_path("/e/test.1.er", "") == "/e/test.1.er"
    assert names.lineage_path("/e/test.1.er", "_f1") == "/e/test.1.er/_f1.er"
    assert names.lineage_path("/e/test.1.er", "_f12_x1_c3") == "/e/test.1.er/_f12_x1_c3.er"


@pytest.mark.parametrize("lineage", ["f1", "_", "_f", "_q1", "_f1/../..", "_f1_", "..", "_f²", "_1"])
def test_what_is_not_a_lineage_is_refused(lineage):
    with pytest.raises(ExperimentError):
        names.lineage_path("/e/test.1.er", lineage)
