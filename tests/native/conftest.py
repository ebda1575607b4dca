"""A library in C, built as the tests want it, and programs that call it."""

import shutil
import subprocess
from pathlib import Path

import pytest

SOURCE = Path(__file__).with_name("calls.c")
NATIVE = {"INTERPOSE": "calls,native"}


@pytest.fixture(scope="session")
def compiler():
    found = shutil.which("gcc") or shutil.which("cc")
    if found is None:
        pytest.skip("no C compiler")
    return found


@pytest.fixture
def built(compiler, tmp_path):
    """Build a library in the directory of the program: its path."""

    def build(*options, source=SOURCE, name="calls.so", libraries=()):
        path = tmp_path / name
        words = [compiler, "-O1", "-g0", "-shared", "-fPIC", "-pthread", *options, "-o", path, source, *libraries]
        subprocess.run(words, check=True, capture_output=True)
        return path

    return build


@pytest.fixture
def client(tmp_path, compiler, interpose):
    """Build a program in C beside the experiments: the command for it."""

    def build(source, *libraries):
        path = tmp_path / "work" / "client"
        path.with_suffix(".c").write_text(source)
        words = [compiler, "-o", path, path.with_suffix(".c"), *libraries]
        done = subprocess.run(words, capture_output=True, text=True)
        if done.returncode:
            pytest.skip(f"no such library: {done.stderr.splitlines()[-1]}")
        return "./client"

    return build


@pytest.fixture
def work(tmp_path, interpose):
    return tmp_path / "work"


PRELUDE = """
import ctypes, json, os, sys, threading, time
calls = ctypes.CDLL(os.path.abspath("calls.so"), use_errno=True)
calls.reads.restype = calls.reads_by_table.restype = ctypes.c_long
calls.address_of_read.restype = ctypes.c_void_p
zero = os.open("/dev/zero", os.O_RDONLY)
"""


@pytest.fixture
def native(traced, built):
    """Run a program that has the library loaded as `calls`."""

    def run(source, *options, **variables):
        built(*options)
        done = traced(PRELUDE + source, **{**NATIVE, **variables})
        assert done.returncode == 0, done.stderr
        return done

    return run
