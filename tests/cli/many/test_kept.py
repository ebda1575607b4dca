"""Kept partial results: a second report reads only what is new, and never believes what is wrong."""

import os
import shutil
import time
from pathlib import Path
from random import Random

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from interpose.analysis.partial.partial import Question
from interpose.cli.many import batches as batching
from interpose.cli.many import work
from interpose.cli.many.kept import FORMAT, Kept, _file
from tests.build import Build
from tests.cli.many.conftest import an_experiment

ASKED = ("report", "runs/*.er", "--by", "kind", "--jobs", "1")
QUESTION = Question("rows", "kind")


@pytest.fixture
def read(monkeypatch):
    """The names of the experiments that are opened, while a test goes on."""
    names = []
    opened = work.open_experiment

    def note(path, **how):
        names.append(os.path.basename(path))
        return opened(path, **how)

    monkeypatch.setattr(work, "open_experiment", note)
    return names


def kept_files(tmp_path):
    return sorted((tmp_path / "cache" / "interpose" / "partial").iterdir())


def test_a_second_report_reads_nothing_and_says_the_same(experiments, interpose, read):
    _, first = interpose(*ASKED)
    assert len(read) == len(experiments)
    read.clear()

    _, second = interpose(*ASKED)

    assert read == []
    assert second.stdout == first.stdout


def test_only_new_and_changed_experiments_are_read(experiments, place, interpose, read):
    interpose(*ASKED)
    read.clear()
    an_experiment(place / "shop.77.er", 77)
    an_experiment(experiments[2], 33)

    rows, _ = interpose(*ASKED)

    assert sorted(read) == ["shop.3.er", "shop.77.er"]
    assert sum(row["self_wall_ns"] for row in rows) == 50_000 * (len(experiments) + 1)


@pytest.mark.long
def test_what_processes_beside_have_read_is_kept_too(experiments, interpose, read):
    _, first = interpose(*ASKED[:-1], "2")

    _, second = interpose(*ASKED)

    assert read == []
    assert second.stdout == first.stdout


@pytest.fixture
def small_batches(monkeypatch):
    """Batches of three, so that the experiments are in several."""
    monkeypatch.setattr(batching, "LARGEST", 3)


@pytest.mark.parametrize("words", [(), ("--by", "kind"), ("--by", "experiment")])
def test_answers_merged_in_batches_say_the_same(experiments, interpose, read, small_batches, words):
    asked = ("report", "runs/*.er", "--jobs", "1", *words)
    _, uncached = interpose(*asked, "--no-cache")
    read.clear()

    told = [interpose(*asked)[1].stdout for _ in range(3)]

    assert sorted(read) == sorted(path.name for path in experiments)
    assert told == [uncached.stdout] * 3


def test_a_batch_whose_experiment_changed_or_went_is_not_believed(experiments, place, interpose, read, small_batches):
    interpose(*ASKED)
    an_experiment(experiments[4], 55)
    shutil.rmtree(experiments[0])

    _, uncached = interpose(*ASKED, "--no-cache")
    read.clear()
    _, found = interpose(*ASKED)

    assert read == ["shop.5.er"]
    assert found.stdout == uncached.stdout


@given(st.lists(st.text("ab/.0", max_size=3), max_size=300), st.integers(0, 299))
def test_batches_are_neighbours_and_a_new_experiment_changes_few(names, place):
    made = batching.batches(names)

    assert [each for batch in made for each in batch] == [*range(len(names))]
    assert all(0 < len(batch) <= batching.LARGEST for batch in made)
    more = [*names[:place], "new", *names[place:]]
    same = {tuple(names[each] for each in batch) for batch in made}
    others = {tuple(more[each] for each in batch) for batch in batching.batches(more)} - same
    assert len(others) <= 2 + len(names) // batching.LARGEST


def test_another_question_is_another_answer(experiments, interpose, read):
    interpose(*ASKED)
    read.clear()

    interpose("report", "runs/*.er", "--by", "intrinsic", "--jobs", "1")

    assert len(read) == len(experiments)


def test_without_the_cache_everything_is_read_and_nothing_kept(experiments, interpose, read, tmp_path):
    interpose(*ASKED, "--no-cache")
    interpose(*ASKED, "--no-cache")

    assert len(read) == 2 * len(experiments)
    assert not (tmp_path / "cache").exists()


def test_a_copy_that_kept_its_times_is_not_read_again(experiments, place, interpose, read):
    _, first = interpose(*ASKED)
    read.clear()
    for path in experiments:
        shutil.copytree(path, place.parent / "copies" / path.name)

    _, second = interpose("report", "copies/*.er", *ASKED[2:])

    assert read == []
    assert second.stdout == first.stdout


def test_a_copy_with_another_content_is_read(experiments, place, interpose, read):
    interpose(*ASKED)
    read.clear()
    for path in experiments:
        shutil.copytree(path, place.parent / "copies" / path.name)
    events = place.parent / "copies" / "shop.4.er" / "events"
    found = os.stat(events)
    data = bytearray(events.read_bytes())
    data[100] ^= 1
    events.write_bytes(data)
    os.utime(events, ns=(found.st_atime_ns, found.st_mtime_ns))

    interpose("report", "copies/*.er", *ASKED[2:])

    assert read == ["shop.4.er"]


def test_only_the_user_can_read_what_is_kept_whatever_the_umask(experiments, interpose, tmp_path):
    before = os.umask(0)
    try:
        interpose(*ASKED)
    finally:
        os.umask(before)

    assert kept_files(tmp_path)
    assert {path.stat().st_mode & 0o777 for path in kept_files(tmp_path)} == {0o600}
    directory = tmp_path / "cache" / "interpose" / "partial"
    assert {path.stat().st_mode & 0o777 for path in (directory, directory.parent)} == {0o700}


def a_link(path):
    data = path.read_bytes()
    path.with_suffix(".elsewhere").write_bytes(data)
    path.unlink()
    path.symlink_to(path.with_suffix(".elsewhere"))


def as_text(text):
    return lambda path: path.write_bytes(_file(text))


@pytest.mark.parametrize(
    "spoil",
    [
        pytest.param(lambda path: path.write_bytes(b""), id="empty"),
        pytest.param(lambda path: path.write_bytes(path.read_bytes()[:-3]), id="cut short"),
        pytest.param(lambda path: path.write_bytes(path.read_bytes()[:-1] + b"!"), id="a byte differs"),
        pytest.param(lambda path: path.write_bytes(path.read_bytes().replace(b"result 1", b"result 2")), id="version"),
        pytest.param(lambda path: path.chmod(0o644), id="others can read it"),
        pytest.param(a_link, id="a link"),
        pytest.param(as_text(b"[1]"), id="other JSON"),
        pytest.param(as_text(b"[" * 50_000), id="deep JSON"),
        pytest.param(as_text(bytes(1 << 20)), id="zeros"),
        pytest.param(lambda path: os.truncate(path, 1 << 30), id="huge"),
    ],
)
def test_what_is_kept_and_wrong_is_not_believed_but_the_experiment_read(experiments, interpose, tmp_path, spoil):
    _, first = interpose(*ASKED)
    for path in kept_files(tmp_path):
        if path.exists():
            spoil(path)

    _, second = interpose(*ASKED)

    assert (second.returncode, second.stdout, second.stderr) == (0, first.stdout, "")


@settings(max_examples=60, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(data=st.binary(max_size=200), seed=st.integers())
def test_no_bytes_harm(tmp_path, data, seed):
    random, whole = Random(seed), bytearray(_file(b"[1,2,3]" * 50))
    whole[random.randrange(len(whole))] = random.randrange(256)
    kept = Kept(str(tmp_path))
    for name, content in (("a", data), ("b", FORMAT + data), ("c", bytes(whole))):
        path = tmp_path / name
        path.write_bytes(content)
        path.chmod(0o600)

    assert kept.find("a") is None
    assert kept.find("b") is None
    assert kept.find("c") in (None, b"[1,2,3]" * 50)


def test_the_oldest_results_give_way_when_there_is_no_room(experiments, interpose, tmp_path):
    interpose(*ASKED)
    files = kept_files(tmp_path)
    results = sorted({path.stat().st_ino for path in files})
    old = {path for path in files if path.stat().st_ino in results[:4]}
    for path in old:
        os.utime(path, (1, 1))
    whole = sum(path.stat().st_size // path.stat().st_nlink for path in files)

    Kept(str(files[0].parent)).tidy(whole - 1)

    left = set(kept_files(tmp_path))
    assert 0 < len(left) < len(files)
    assert set(files) - left <= old
    assert sum(path.stat().st_size // path.stat().st_nlink for path in left) <= whole


def test_a_result_is_not_kept_if_the_experiment_changed_meanwhile(experiments, tmp_path):
    kept = Kept(str(tmp_path))
    stamp = kept.stamp(str(experiments[0]), QUESTION)
    an_experiment(Path(experiments[0]), 5)

    kept.keep(str(experiments[0]), QUESTION, stamp, b"[]")

    assert kept.find(stamp) is None


def test_a_cache_that_cannot_be_used_is_done_without(experiments, interpose, tmp_path):
    (tmp_path / "cache").write_text("a file")

    rows, done = interpose(*ASKED)

    assert done.returncode == 0 and rows


def test_a_result_of_a_program_that_still_runs_is_not_kept(experiments, place, interpose, read):
    Build(place / "shop.77.er", pid=os.getpid(), host=os.uname().nodename, time_ns=time.time_ns()).write()
    interpose(*ASKED)
    read.clear()

    interpose(*ASKED)

    assert read == ["shop.77.er"]
