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

    def build(*options, source=SOURCE, name="calls.so"):
        path = tmp_path / name
        words = [compiler, "-O1", "-g0", "-shared", "-fPIC", "-pthread", *options, "-o", path, source]
        subprocess.run(words, check=True, capture_output=True)
        return path

    return build


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
