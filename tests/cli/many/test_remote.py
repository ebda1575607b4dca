"""Experiments named by URLs: the same report as of those here, and nothing is left on disk."""

import os
import subprocess
import sys
import tempfile
import time
import urllib.request

import pytest

from interpose.cli.many import remote, work
from interpose.errors import ExperimentError, UsageError

fsspec = pytest.importorskip("fsspec", reason="fsspec is not installed")


@pytest.fixture
def in_memory(experiments):
    """The experiments in fsspec's memory, where only this process sees them."""
    system = fsspec.filesystem("memory")
    for path in experiments:
        system.put(str(path), f"/runs/{path.name}", recursive=True)
    yield system
    system.rm("/runs", recursive=True)


@pytest.fixture
def nothing_left(tmp_path, monkeypatch):
    """That private directories for what was fetched are gone."""
    (tmp_path / "tmp").mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path / "tmp"))
    yield
    assert os.listdir(tmp_path / "tmp") == []


@pytest.mark.parametrize("by", ["kind", "experiment"])
def test_experiments_in_memory_report_as_those_on_disk(in_memory, interpose, nothing_left, by):
    here, _ = interpose("report", "runs/*.er", "--by", by)

    there, done = interpose("report", "memory://runs/*.er", "--by", by)

    assert done.returncode == 0, done.stderr
    assert there == here


def test_experiments_of_file_urls_are_read_by_several_processes(experiments, place, interpose, nothing_left):
    here, _ = interpose("report", "runs/*.er", "--by", "site")

    there, done = interpose("report", f"file://{place}/*.er", "--by", "site", "--jobs", "2")

    assert done.returncode == 0, done.stderr
    assert there == here


def test_what_was_fetched_is_not_fetched_again_until_it_changes(experiments, place, interpose, monkeypatch):
    asked = ("report", f"file://{place}/*.er", "--by", "kind", "--jobs", "1")
    first, _ = interpose(*asked)
    fetched = []
    fetch = remote.fetch
    monkeypatch.setattr(remote, "fetch", lambda url, directory: fetched.append(url) or fetch(url, directory))
    assert interpose(*asked)[0] == first
    assert fetched == []
    os.utime(experiments[0] / "events", (1, 1))

    interpose(*asked)

    assert [url.rpartition("/")[2] for url in fetched] == ["shop.1.er"]


def test_a_single_url_is_an_experiment_for_every_command(in_memory, interpose, interpose_here):
    done = interpose_here("report", "memory://runs/shop.1.er")

    assert done.returncode == 0, done.stderr
    assert "shop.1.er" in done.stdout


@pytest.fixture
def served(place, experiments):
    """The experiments behind a server that is another process."""
    pytest.importorskip("aiohttp", reason="aiohttp, which fsspec reads http with, is not installed")
    with subprocess.Popen(
        [sys.executable, "-u", "-m", "http.server", "0", "--bind", "127.0.0.1", "--directory", str(place)],
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
    ) as server:
        port = server.stdout.readline().split("port ")[1].split()[0]
        for _ in range(100):
            try:
                urllib.request.urlopen(f"http://127.0.0.1:{port}/").close()
                break
            except OSError:
                time.sleep(0.1)
        yield f"http://127.0.0.1:{port}"
        server.kill()


def test_experiments_behind_a_server_are_read(served, experiments, interpose, nothing_left):
    here, _ = interpose("report", *(f"runs/shop.{number}.er" for number in range(1, 5)), "--by", "kind")

    urls = [f"{served}/shop.{number}.er" for number in range(1, 5)]
    there, done = interpose("report", *urls, "--by", "kind", "--jobs", "2")

    assert done.returncode == 0, done.stderr
    assert there == here


def test_what_is_not_there_is_one_line(in_memory, interpose):
    rows, done = interpose("report", "memory://runs/shop.1.er", "memory://runs/no.1.er", "--by", "kind")

    assert done.returncode == 3
    assert done.stderr == "interpose: memory://runs/no.1.er: no such experiment\n"
    assert rows


@pytest.mark.parametrize(
    ("url", "message"),
    [
        ("memory://runs/none*.er", "memory://runs/none*.er: no experiment matches"),
        ("nonsense://a/b.er", "nonsense://a/b.er"),
        ("memory://runs/shop.txt", "memory://runs/shop.txt: not an experiment: its name does not end with .er"),
    ],
)
def test_urls_that_are_wrong_are_named(interpose_here, url, message):
    done = interpose_here("report", url)

    assert done.returncode in (1, 2)
    assert done.stdout == ""
    assert done.stderr.startswith(f"interpose: {message}")
    assert done.stderr.count("\n") == 1


def test_users_and_passwords_in_urls_are_not_shown(interpose_here):
    done = interpose_here("report", "ftp://anna:secret@127.0.0.1:1/b.er", "--by", "kind")

    assert done.returncode == 1
    assert "secret" not in done.stderr and "anna" not in done.stderr
    assert "ftp://127.0.0.1:1/b.er" in done.stderr


@pytest.mark.parametrize("name", ["../evil", "events/../../evil", "Evil", "a/b", "..", "_f1.er/../../x"])
def test_files_that_no_experiment_has_are_not_fetched(tmp_path, name):
    class Elsewhere:
        def find(self, place, detail):
            return {"/x.er/log.xml": {"size": 3}, f"/x.er/{name}": {"size": 3}}

        def open(self, place, mode):
            return open(os.devnull, mode)

    found = remote._files(Elsewhere(), "/x.er", "elsewhere:///x.er")

    assert [each.name for each in found] == ["log.xml"]


def test_more_than_an_experiment_may_have_is_not_fetched(tmp_path, in_memory, monkeypatch):
    monkeypatch.setattr(remote, "LARGEST_UNPACKED_BYTES", 1000)

    with pytest.raises(ExperimentError, match="larger than"):
        remote.fetch("memory://runs/shop.1.er", str(tmp_path))

    found = [path.stat().st_size for path in (tmp_path / "shop.1.er").rglob("*") if path.is_file()]
    assert sum(found) <= 1000


def test_a_missing_package_is_named(monkeypatch, tmp_path):
    monkeypatch.setitem(sys.modules, "fsspec.core", None)

    with pytest.raises(UsageError, match=r"pip install 'interpose\[remote\]'"):
        remote.fetch("memory://runs/shop.1.er", str(tmp_path))


def test_a_reader_whose_answer_is_a_failure_says_so_in_bytes():
    answer = work.answered(work.task("memory://runs/shop.0.er", work.Question("rows", "kind"), None))

    assert answer == b'F[1, "memory://runs/shop.0.er: no such experiment"]'
