"""Where results go: all of them, or a line that says why not, and no part of a file."""

from __future__ import annotations

import os
import resource
import stat
import subprocess
import sys
from pathlib import Path

import pytest

from interpose.cli.main import main
from tests.build import Build, event

COMMANDS = (
    *("report", "report --by line", "report --format html", "report --format json", "report --format csv"),
    *("report --format markdown", "events", "events --format csv", "export", "list", "processes", "profile", "doctor"),
)


@pytest.fixture
def experiment(place) -> Path:
    build = Build(place / "test.1.er")
    number = build.intrinsic("os.stat", "file")
    build.events([event(10 * each, 5, intrinsic=number, call=each + 1) for each in range(2_000)])
    build.thread(recorded=2_000, made=2_000)
    build.ended(30_000, 10)
    build.write()
    return place


def run(directory: Path, *words: str, **options) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "interpose", *words], cwd=directory, stderr=subprocess.PIPE, text=True, **options
    )


@pytest.mark.parametrize("unbuffered", ["", pytest.param("1", marks=pytest.mark.long)])
@pytest.mark.parametrize("command", COMMANDS)
def test_a_full_standard_output_is_told_in_one_line(experiment, command, unbuffered):
    with open("/dev/full", "w") as full:
        done = run(experiment, *command.split(), stdout=full, env={**os.environ, "PYTHONUNBUFFERED": unbuffered})

    assert (done.returncode, done.stderr) == (1, "interpose: standard output: No space left on device\n")


@pytest.mark.parametrize("command", ["--help", "--version", "report --help"])
def test_help_that_could_not_be_written_is_told(experiment, command):
    with open("/dev/full", "w") as full:
        done = run(experiment, *command.split(), stdout=full)

    assert (done.returncode, done.stderr) == (1, "interpose: standard output: No space left on device\n")


@pytest.mark.parametrize("command", [*COMMANDS, "report --help", "--version"])
def test_a_closed_standard_output_is_told_in_one_line(experiment, command):
    done = subprocess.run(
        ["sh", "-c", 'exec "$@" >&-', "sh", sys.executable, "-m", "interpose", *command.split()],
        cwd=experiment,
        stderr=subprocess.PIPE,
        text=True,
    )

    told = "interpose: standard output: it is closed; -o FILE writes to a file\n"
    assert (done.returncode, done.stderr) == (1, told)


def test_a_file_is_written_where_standard_output_is_closed(experiment):
    command = ["sh", "-c", 'exec "$@" >&-', "sh", sys.executable, "-m", "interpose", "events", "-o", "out"]
    done = subprocess.run(command, cwd=experiment, stderr=subprocess.PIPE, text=True)

    assert (done.returncode, done.stderr) == (0, "")
    assert (experiment / "out").read_text().count("os.stat") == 2_000


@pytest.mark.parametrize("encoding", ["ascii", "iso-8859-1"])
def test_an_encoding_without_a_letter_gets_one_that_looks_alike(experiment, encoding):
    environment = {**os.environ, "PYTHONIOENCODING": encoding}
    done = run(experiment, "report", stdout=subprocess.PIPE, encoding=encoding, env=environment)

    separator = "|" if encoding == "ascii" else "·"
    assert f"{separator} interpose list" in done.stdout
    assert "\\" not in done.stdout


def test_a_file_called_dash_is_standard_output(experiment):
    done = run(experiment, "list", "-o", "-", stdout=subprocess.PIPE)

    assert "test.1.er" in done.stdout
    assert not (experiment / "-").exists()


def small_files() -> None:
    """As if the disk were full from there on."""
    resource.setrlimit(resource.RLIMIT_FSIZE, (8192, 8192))


@pytest.mark.parametrize("command", ["report --format html", "events", "export"])
@pytest.mark.parametrize("before", [None, "what was there\n"])
def test_of_a_file_that_could_not_be_written_no_part_is_left(experiment, command, before):
    if before is not None:
        (experiment / "out").write_text(before)
    files = {*os.listdir(experiment), "state"}

    done = run(experiment, *command.split(), "-o", "out", preexec_fn=small_files)

    assert (done.returncode, done.stderr) == (1, "interpose: out: File too large\n")
    assert {*os.listdir(experiment)} == files
    assert before is None or (experiment / "out").read_text() == before


def test_a_file_that_is_replaced_keeps_its_mode_and_a_link_stays_one(experiment):
    (experiment / "out").write_text("before")
    (experiment / "out").chmod(0o640)
    (experiment / "linked").write_text("before")
    (experiment / "link").symlink_to("linked")

    assert main(["export", "-o", "out"]) == main(["export", "-o", "link"]) == 0

    assert stat.S_IMODE((experiment / "out").stat().st_mode) == 0o640
    assert (experiment / "link").is_symlink()
    assert (experiment / "linked").read_text() == (experiment / "out").read_text() != "before"


def test_what_is_no_plain_file_is_written_in_place(experiment):
    os.mkfifo(experiment / "pipe")
    with subprocess.Popen(["cat", "pipe"], cwd=experiment, stdout=subprocess.PIPE, text=True) as reader:
        assert main(["list", "-o", "pipe"]) == 0
        assert reader.stdout is not None and "test.1.er" in reader.stdout.read()

    assert stat.S_ISFIFO((experiment / "pipe").stat().st_mode)
