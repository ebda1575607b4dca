"""tools/wheels: which interpreters it builds for, and what it says where it cannot."""

import re
import shutil
import subprocess
import sys
from importlib.machinery import SourceFileLoader
from importlib.util import module_from_spec, spec_from_loader
from pathlib import Path

import pytest

import interpose

SCRIPT = Path(__file__).parents[2] / "tools" / "wheels"


def wheels(*words, **variables):
    return subprocess.run([sys.executable, SCRIPT, *words], env=variables, capture_output=True, text=True)


def test_an_interpreter_that_is_not_there_is_told_in_a_line(tmp_path):
    done = wheels("-o", str(tmp_path), "/nonexistent/python", PATH=str(tmp_path))

    assert done.returncode == 1
    assert done.stderr == "tools/wheels: /nonexistent/python: No such file or directory\n"


def test_without_interpreters_it_says_so(tmp_path):
    script = SCRIPT.read_text().replace("/opt/python", str(tmp_path))
    (tmp_path / "wheels").write_text(script)

    done = subprocess.run(
        [sys.executable, tmp_path / "wheels"], env={"PATH": str(tmp_path)}, capture_output=True, text=True
    )

    assert done.stderr == "tools/wheels: no interpreter from python3.11 on is there\n"


def test_free_threaded_interpreters_are_found_beside_the_others_from_the_first_that_is_supported(tmp_path, monkeypatch):
    answers = {"python3.13": (13, ""), "python3.13t": (13, "t"), "python3.14": (14, ""), "python3.14t": (14, "t")}
    for name, (minor, flags) in answers.items():
        (tmp_path / name).write_text(f"#!/bin/sh\necho '[{minor}, \"{flags}\"]'\n")
        (tmp_path / name).chmod(0o755)
    monkeypatch.setattr(sys, "dont_write_bytecode", True)
    monkeypatch.setenv("PATH", f"{tmp_path}:/usr/bin:/bin")
    loader = SourceFileLoader("wheels", str(SCRIPT))
    script = module_from_spec(spec_from_loader("wheels", loader))
    loader.exec_module(script)
    monkeypatch.setattr(script.glob, "glob", lambda pattern: [])

    found = script.found()

    assert {f"{tmp_path}/{name}" for name in answers if name != "python3.13t"} <= set(found)
    assert f"{tmp_path}/python3.13t" not in found


# Functions of older C libraries as well: there, they were inline and called others, or had a version of their own.
FUNCTIONS_BEFORE = {"stat", "fstat", "lstat", "stat64", "fstat64", "lstat64"}


def versions_of(file):
    """The versions that a file has of each function of the C library, or wants; what is weak is not wanted."""
    told = subprocess.run(["objdump", "-T", file], capture_output=True, text=True, check=True).stdout
    found = re.findall(r"^\S+ +(\w?) .*\(?GLIBC_(\d+)\.(\d+)[.\d]*\)? +(\w+)$", told, re.M)
    return [(name, (int(major), int(minor))) for kind, major, minor, name in found if kind != "w"]


@pytest.mark.skipif(not shutil.which("objdump"), reason="needs objdump")
def test_the_libraries_call_only_what_the_c_library_of_manylinux_2_28_has():
    package = Path(interpose.__file__).parent
    wanted = {each for library in package.rglob("*.so") for each in versions_of(library)}
    newer = {name for name, version in wanted if version > (2, 28)} - FUNCTIONS_BEFORE
    loaded = re.findall(r"\S+/lib[cm]\.so\.\S+", Path("/proc/self/maps").read_text())
    older = {name for file in set(loaded) for name, version in versions_of(file) if version <= (2, 28)}

    assert wanted
    assert newer <= older
