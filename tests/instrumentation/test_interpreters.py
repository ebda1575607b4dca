"""Which interpreter a command starts, and whether it would record."""

import glob
import os
import re
import shutil
import sys
from importlib.metadata import requires
from pathlib import Path

import pytest

from interpose.instrumentation import interpreters
from interpose.instrumentation.interpreters import Answer, Interpreter, NotPython


def write_script(path: Path, text: str) -> str:
    path.write_text(text)
    path.chmod(0o755)
    return str(path)


@pytest.fixture
def python(tmp_path, monkeypatch) -> str:
    """An interpreter in PATH called python3.77."""
    path = tmp_path / "bin" / "python3.77"
    path.parent.mkdir()
    path.symlink_to(sys.executable)
    monkeypatch.setenv("PATH", str(path.parent), prepend=os.pathsep)
    return str(path)


@pytest.mark.parametrize(
    ("words", "options", "rest"),
    [
        ([], (), ()),
        (["app.py", "-S"], (), ("app.py", "-S")),
        (["-S", "app.py"], ("-S",), ("app.py",)),
        (["-IE", "-X", "dev", "-Wignore", "app.py"], ("-I", "-E", "-Xdev", "-Wignore"), ("app.py",)),
        (["-BX", "dev", "-m", "pip", "-S"], ("-B", "-Xdev"), ("-m", "pip", "-S")),
        (["-Sc", "pass"], ("-S",), ("-Sc", "pass")),
        (["-", "x"], (), ("-", "x")),
        (["-X"], ("-X",), ()),
    ],
)
def test_an_interpreter_in_the_path_with_its_options(python, words, options, rest):
    found = interpreters.interpreter_of(["python3.77", *words])

    assert found == Interpreter(python, options, rest)


def test_a_script_and_a_module_have_our_own_interpreter():
    assert interpreters.interpreter_of(["app.py", "-S"]) == Interpreter(sys.executable, (), ("app.py", "-S"))
    assert interpreters.interpreter_of(["-m", "pip"]) == Interpreter(sys.executable, (), ("-m", "pip"))


@pytest.mark.parametrize("line", ["{python} -S", "/usr/bin/env -S {python} -S", "/usr/bin/env {name} -S"])
def test_the_first_line_of_a_script_says_its_interpreter(tmp_path, python, line):
    line = line.format(python=python, name="python3.77")
    script = write_script(tmp_path / "tool", f"#!{line}\nprint()\n")

    assert interpreters.interpreter_of([script, "x"]) == Interpreter(python, ("-S",), (script, "x"))


def test_the_way_in_which_installers_write_a_long_path_is_known(tmp_path, python):
    script = write_script(tmp_path / "tool", f"#!/bin/sh\n'''exec' \"{python}\" \"$0\" \"$@\"\n' '''\n")

    assert interpreters.interpreter_of([script]) == Interpreter(python, (), (script,))


def test_what_is_not_python_is_named(tmp_path):
    with pytest.raises(NotPython, match="/ls is not Python"):
        interpreters.interpreter_of(["ls", "-l"])

    script = write_script(tmp_path / "tool", "#!/bin/sh\n")
    with pytest.raises(NotPython, match="is run by /bin/sh"):
        interpreters.interpreter_of([script])


def test_a_command_that_is_not_there_is_named(tmp_path):
    with pytest.raises(FileNotFoundError, match="nosuch"):
        interpreters.interpreter_of(["nosuch"])


@pytest.mark.parametrize(
    "name", ["python", "python3", "python3.13t", "python3.11d", "pypy3.10", "python3-dbg"]
)
def test_interpreters_are_known_by_their_names(name):
    assert interpreters.is_python_name(f"/opt/{name}")


@pytest.mark.parametrize("name", ["pythonista", "ipython", "python3-config", "python.py", "pytest"])
def test_other_names_are_none_of_an_interpreter(name):
    assert not interpreters.is_python_name(name)


def test_our_own_interpreter_says_what_it_is():
    answer = interpreters.ask(Interpreter(sys.executable))

    assert answer is not None
    assert answer.implementation == sys.implementation.name
    assert answer.python == sys.version_info[:3]
    assert answer.site


def test_python_2_says_which_version_it_is():
    """It has no `sys.implementation`, and no annotations."""
    python = next(iter(glob.glob(os.path.expanduser("~/.pyenv/versions/2.7*/bin/python"))), shutil.which("python2.7"))
    if not python:
        pytest.skip("no Python 2.7")

    answer = interpreters.ask(Interpreter(python))

    assert answer is not None
    assert answer.python[:2] == (2, 7)
    assert interpreters.obstacles(answer)[0].endswith("; interpose records 3.11 and later")


def test_asking_runs_nothing_of_the_working_directory(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    for name in ("json", "os", "site", "interpose"):
        (tmp_path / f"{name}.py").write_text("import sys; sys.exit(1)\n")

    assert interpreters.ask(Interpreter(sys.executable)) is not None


def test_what_says_nothing_of_sense_is_no_interpreter(tmp_path):
    assert interpreters.ask(Interpreter("/bin/true")) is None
    assert interpreters.ask(Interpreter("/bin/false")) is None
    assert interpreters.ask(Interpreter(str(tmp_path / "nosuch"))) is None


@pytest.mark.parametrize(
    ("answer", "said"),
    [
        (Answer("/p", "pypy", (3, 11, 0), "0.1.0", True, ["x"]), "is pypy"),
        (
            Answer("/p", "cpython", (3, 9, 2), "0.1.0", True, ["x"]),
            "is Python 3.9.2; interpose records 3.11 and later",
        ),
        (
            Answer("/p", "cpython", (3, 11, 0), None, True),
            "has no interpose; install it there: /p -m pip install",
        ),
        (Answer("/p", "cpython", (3, 11, 0), "0.1.0", False), "-S"),
        (Answer("/p", "cpython", (3, 11, 0), "0.1.0", True), "no interpose.pth"),
        (
            Answer("/p", "cpython", (3, 11, 0), "0.1.0", True, ["x"], missing=["zstandard"]),
            "has no package zstandard: nothing is compressed or sampled; install it: /p -m pip install zstandard",
        ),
    ],
)
def test_what_is_in_the_way_is_said(answer, said):
    (obstacle,) = interpreters.obstacles(answer)

    assert obstacle.startswith("/p ")
    assert said in obstacle


def test_a_package_that_interpose_needs_and_that_cannot_be_imported_is_missing(tmp_path, monkeypatch):
    (tmp_path / "zstandard.py").write_text("raise ImportError\n")
    monkeypatch.setenv("PYTHONPATH", str(tmp_path))

    assert interpreters.ask(Interpreter(sys.executable)).missing == ["zstandard"]


def test_every_package_that_interpose_needs_is_looked_for():
    needed = [re.match(r"[\w.-]+", each)[0] for each in requires("interpose") if "extra ==" not in each]

    assert sorted(interpreters.REQUIRED) == sorted(needed)


def test_nothing_is_in_the_way_of_a_whole_install():
    assert (
        interpreters.obstacles(Answer("/p", "cpython", (3, 12, 1), "0.1.0", True, ["/s/interpose.pth"])) == []
    )
