"""Text of code that lies in no file: kept where the program keeps it, never guessed, damaged ones read in part."""

import os
import struct

import pytest

from interpose.experiments.format.dynamic import LARGEST_TEXT_BYTES
from interpose.experiments.model.experiment import Experiment
from interpose.experiments.model.sources import Sources
from interpose.experiments.model.stacks import Site
from tests.build import Build

GENERATED = """
import linecache, os
def make(name, body, mtime=None):
    text = f"import os\\ndef f():\\n    {body}\\n"
    linecache.cache[name] = (len(text), mtime, text.splitlines(True), name)
    names = {}
    exec(compile(text, name, "exec"), names)
    return names["f"]
"""


def text_of(done, name, process=None):
    experiment = done.experiment
    return Sources(experiment).source_of(process or experiment.founder, Site(name, 3, "f", True))


@pytest.mark.parametrize("name", ["<cell 1>", "/nowhere/ipykernel_7/123.py"])
def test_text_that_linecache_has_of_no_file_is_kept(traced, name):
    done = traced(f"{GENERATED}make({name!r}, 'os.stat(\"é\" if 0 else \"/\")')()")

    assert done.returncode == 0
    found = text_of(done, name)
    assert found is not None
    assert found.text == 'import os\ndef f():\n    os.stat("é" if 0 else "/")\n'


@pytest.mark.parametrize("name", ["<string>", "<stdin>"])
def test_names_that_many_texts_have_are_not_kept(traced, name):
    done = traced(f"{GENERATED}make({name!r}, 'os.stat(\".\")')()")

    assert text_of(done, name) is None
    assert not os.path.exists(f"{done.path}/dyntext")


def test_what_linecache_read_from_a_file_is_not_kept(traced):
    done = traced(f"{GENERATED}make('<file>', 'os.stat(\".\")', 1.5)()")

    assert text_of(done, "<file>") is None


def test_text_of_a_command_is_not_kept(interpose, tmp_path):
    done = interpose("run", "python", "-c", "import os; os.stat('.')  # secret-canary")

    assert done.returncode == 0
    found = [path for path in (tmp_path / "work" / "test.1.er").rglob("*") if path.is_file()]
    assert not [path for path in found if b"secret-canary" in path.read_bytes()]


@pytest.mark.parametrize(
    "entry",
    ["7", "(1, None, 'x')", "(1, None, 'x', '')", "(1, None, ['x', 7], '')", "(lambda: '',)", "(1, None, [S()], '')"],
)
def test_a_cache_of_other_things_is_left_alone(traced, entry):
    done = traced(
        f"""{GENERATED}
class S(str):
    def __str__(self): print("run")
    __iter__ = __str__
f = make("<odd>", "os.stat('.')")
linecache.cache["<odd>"] = {entry}
f()
"""
    )

    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")
    assert text_of(done, "<odd>") is None


def test_a_forked_child_s_text_is_its_own_and_its_parent_s(traced):
    done = traced(
        f"""{GENERATED}
before = make("<before>", "os.stat('.')")
before()
if not os.fork():
    before()
    make("<after>", "os.stat('.')")()
    os._exit(0)
os.wait()
"""
    )

    child = next(each for each in done.experiment.processes if each.lineage == "_f1")
    child.parent = done.experiment.founder
    assert text_of(done, "<before>", child) is not None
    assert text_of(done, "<after>", child) is not None
    assert text_of(done, "<after>") is None


@pytest.mark.parametrize(
    ("data", "texts", "damages"),
    [
        (struct.pack("<II", 1, 3) + b"abc\0" + struct.pack("<II", 2, 9) + b"cut", {"<a>": "abc", "<b>": None}, 1),
        (struct.pack("<II", 1, LARGEST_TEXT_BYTES + 1) + b"x" * (LARGEST_TEXT_BYTES + 1), {"<a>": None}, 1),
        (struct.pack("<II", 1, 2**32 - 1), {"<a>": None}, 1),
        (struct.pack("<II", 77, 1) + b"x\0\0\0" + struct.pack("<II", 2, 1) + b"y", {"<b>": "y"}, 1),
        (b"\1\0\0", {"<a>": None}, 0),
    ],
    ids=["cut", "long", "absurd", "unknown-name", "cut-in-head"],
)
def test_damaged_texts_are_read_as_far_as_they_are_whole(tmp_path, data, texts, damages):
    build = Build(tmp_path / "test.1.er")
    build.string("<a>")
    build.string("<b>")
    path = build.write()
    (path / "dyntext").write_bytes(data)

    experiment = Experiment(str(path))

    assert {name: experiment.founder.dynamic_text(name) for name in texts} == texts
    assert experiment.damages.count == damages
