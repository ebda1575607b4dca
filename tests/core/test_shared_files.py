"""The files that a process has mapped and writes to, by which a child finds out whether its parent is recorded."""

import ctypes
import mmap
import os
import subprocess
import sys

import pytest
from recorder_library import RecorderLibrary

from interpose.capture import descent
from interpose.timing import shims

pytestmark = pytest.mark.skipif(shims.shared_files(os.getpid()) is None, reason="Linux before 6.11 does not say")

MAPPED = """
import mmap, sys
with open(sys.argv[1], "r+b") as written, open(sys.argv[2], "rb") as read:
    kept = mmap.mmap(written.fileno(), 0), mmap.mmap(read.fileno(), 0, prot=mmap.PROT_READ)
print("mapped", flush=True)
sys.stdin.read()
"""


def test_only_those_it_writes_to_are_named(tmp_path):
    paths = [tmp_path / "written\nhere", tmp_path / "read"]
    for path in paths:
        path.write_bytes(b"x" * mmap.PAGESIZE)
    words = [sys.executable, "-c", MAPPED, *map(str, paths)]
    with subprocess.Popen(words, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as child:
        child.stdout.readline()
        found = shims.shared_files(child.pid)
        child.stdin.close()

    assert os.fsencode(paths[0]) in found
    assert os.fsencode(paths[1]) not in found


def test_a_process_that_does_not_exist_has_none():
    assert shims.shared_files(2**22 + 1) == []

def test_whether_an_address_can_be_written_to_is_known():
    ask = RecorderLibrary().mapping_is_writable
    written, begin, end = ctypes.create_string_buffer(8), ctypes.c_size_t(), ctypes.c_size_t()
    data, code = ctypes.addressof(written), ctypes.cast(ask, ctypes.c_void_p).value

    answers = [ask(ctypes.c_void_p(each), ctypes.byref(begin), ctypes.byref(end)) for each in (8, code, data)]

    assert answers == [0, 0, 1]
    assert begin.value <= data < end.value


def test_the_list_of_an_older_kernel_names_the_same_experiments(tmp_path, monkeypatch):
    threads = tmp_path / "of a parent.er" / "threads"
    threads.parent.mkdir()
    threads.write_bytes(b"x" * mmap.PAGESIZE)
    words = [sys.executable, "-c", MAPPED, str(threads), str(threads)]
    with subprocess.Popen(words, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as child:
        child.stdout.readline()
        found = [*descent.mapped_experiments(child.pid)]
        monkeypatch.setattr(shims, "shared_files", lambda pid: None)
        listed = [*descent.mapped_experiments(child.pid)]
        child.stdin.close()

    assert found == listed == [str(threads.parent)]


def test_no_parent_is_asked_for_beyond_the_last_that_is_looked_at(monkeypatch):
    asked, looked_at = [], []
    monkeypatch.setattr(descent, "_parent_of", lambda pid: asked.append(pid) or pid + 1)
    monkeypatch.setattr(descent, "recorded_in", looked_at.append)

    assert descent.find_ancestor() == ""
    assert looked_at == [os.getppid() + step for step in range(descent.ANCESTORS)]
    assert asked == looked_at[:-1]
