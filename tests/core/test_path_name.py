"""A file that has several names is recorded by one, which is a name of the same file."""

import ctypes
import json
import os
import subprocess
import sys

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tracing import events_of

from interpose.analysis.coverage.coverage import Asked, coverage
from interpose.experiments.metadata import names
from interpose.experiments.model.experiment import Experiment
from interpose.experiments.model.sampled import Sampled
from tests.recorder_library import RecorderLibrary

PARTS = st.lists(st.sampled_from(["in", "link", "..", ".", "", "gone", "..."]), max_size=8)
SPAWNING = """
import multiprocessing, os, time

def burn():
    os.stat(".")
    end = time.thread_time() + 0.3
    while time.thread_time() < end:
        pass

if __name__ == "__main__":
    burn()
    child = multiprocessing.get_context("spawn").Process(target=burn)
    child.start()
    child.join()
"""


@pytest.fixture(scope="module")
def tree(tmp_path_factory):
    """Directories with a file each; `link` leads elsewhere."""
    root = tmp_path_factory.mktemp("tree").resolve()
    for directory in ("", "in", "in/in", "far", "far/in", "far/in/in"):
        (root / directory).mkdir(exist_ok=True)
        (root / directory / "a.py").touch()
    (root / "link").symlink_to("far/in")
    (root / "in/link").symlink_to(root / "far/in/in")
    return root


def named(path, root=b""):
    room = ctypes.create_string_buffer(os.fsencode(path))
    RecorderLibrary().path_name(room, root)
    return os.fsdecode(room.value)


@given(PARTS)
def test_a_name_without_dots_is_one_of_the_same_file(tree, parts):
    path = "/".join([str(tree), *parts, "a.py"])

    found = named(path)

    assert os.path.exists(found) == os.path.exists(path)
    assert not os.path.exists(path) or os.path.samefile(found, path)
    assert "/./" not in found and "//" not in found
    assert "link" in parts or ".." not in found or not os.path.exists(path)
    assert named(found) == found


def test_names_of_one_file_without_links_are_one(tree):
    given_names = [f"{tree}/{each}/a.py" for each in ("in", "./in", "in/in/..", "in/../in", "/in/./in/../../in")]

    assert {named(each) for each in given_names} == {f"{tree}/in/a.py"}


@pytest.mark.parametrize("text", ["", "<string>", "a/../b.py", "<a/../b>", "/"])
def test_what_is_no_path_from_the_root_on_stays(text):
    assert named(text) == text


def test_nothing_is_above_the_root():
    assert (named("/../a.py"), named("/.."), named("//")) == ("/a.py", "/", "/")


def test_another_root_is_looked_at_from_there(tree):
    assert named("/in/../a.py", os.fsencode(tree)) == "/a.py"
    assert named("/link/../a.py", os.fsencode(tree)) == "/link/../a.py"


@pytest.mark.long
@pytest.mark.interpreter_lock
def test_a_script_has_one_name_in_all_its_processes(tmp_path, own_environment):
    for directory in ("program", "elsewhere"):
        (tmp_path / directory).mkdir()
    script = tmp_path.resolve() / "program/spawning.py"
    script.write_text(SPAWNING)
    words = ["-m", "interpose", "run", "--record", "calls,lines,coverage,profile", "../program/spawning.py"]

    subprocess.run([sys.executable, *words], cwd=tmp_path / "elsewhere", env=own_environment, check=True)

    experiment = Experiment(names.newest(str(tmp_path / "elsewhere")))
    stacks = {site.file for each in experiment.processes for site in _sites(each) if site.function == "burn"}
    sampled = {
        site.file
        for process in experiment.processes
        for each in Sampled(process).samples()
        for site in Sampled(process).frames(each.stack)
        if site.function == "burn"
    }
    assert stacks == sampled == {str(script)}
    assert [module.path for module in coverage(experiment, Asked()).modules] == [str(script)]
    lines = [sys.executable, "-m", "interpose", "lines", "--format", "json", experiment.founder_directory]
    told = json.loads(subprocess.run(lines, env=own_environment, check=True, capture_output=True).stdout)
    assert {row["file"] for row in told if row["function"] == "burn"} == {str(script)}


def _sites(process):
    return [site for event in events_of(process, "os.stat") for site in process.frames(event.stack)]
