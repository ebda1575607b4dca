"""The import table of a loaded object: what is exchanged there that object alone calls, and all is put back."""

import ctypes
import os
import re
import shutil
import subprocess

import pytest
from recorder_library import RecorderLibrary

SOURCE = """
#include <unistd.h>
int parent(void) { return getppid(); }
int (*address_of_parent(void))(void) { return (int (*)(void))getppid; }
"""
LAZY, NOW, NO_TABLE = ("-Wl,-z,lazy",), ("-Wl,-z,relro,-z,now",), ("-fno-plt", "-Wl,-z,now")


class Slot(ctypes.Structure):
    _fields_ = (("address", ctypes.c_void_p), ("before", ctypes.c_void_p), ("read_only", ctypes.c_bool))


class Import(ctypes.Structure):
    _fields_ = (
        ("name", ctypes.c_char_p),
        ("slots", Slot * 4),
        ("count", ctypes.c_uint),
        ("to", ctypes.c_void_p),
        ("real", ctypes.c_void_p),
    )


Number = ctypes.CFUNCTYPE(ctypes.c_int)
seven = Number(lambda: 7)
eight = Number(lambda: 8)


def address(function):
    return ctypes.cast(function, ctypes.c_void_p)


@pytest.fixture(scope="module")
def ours():
    library = RecorderLibrary()
    library.imports_find.restype = ctypes.c_char_p
    library.imports_find.argtypes = (ctypes.POINTER(ctypes.POINTER(Import)), ctypes.c_void_p)
    library.import_put.argtypes = (ctypes.c_void_p, ctypes.c_void_p)
    library.import_put.restype = library.import_restore.restype = ctypes.c_bool
    library.import_restore.argtypes = (ctypes.c_void_p,)
    return library


@pytest.fixture(params=[LAZY, NOW, NO_TABLE], ids=["lazy", "now", "no plt"])
def loaded(request, tmp_path):
    """A library that is linked in one of the usual ways."""
    compiler = shutil.which("gcc") or shutil.which("cc")
    if compiler is None:
        pytest.skip("no C compiler")
    (tmp_path / "it.c").write_text(SOURCE)
    built = [compiler, "-O1", "-shared", "-fPIC", *request.param, "-o", tmp_path / "it.so", tmp_path / "it.c"]
    subprocess.run(built, check=True, capture_output=True)
    return ctypes.CDLL(str(tmp_path / "it.so"))


def found_in(ours, loaded):
    found, wrong = find(ours, address(loaded.parent), b"getppid")
    return found[0], wrong


def find(ours, within, *names):
    found = [Import(name) for name in names]
    ended = (ctypes.POINTER(Import) * (len(names) + 1))(*map(ctypes.pointer, found))
    return found, ours.imports_find(ended, within)


def protections(loaded):
    """How the parts of the library are protected, by where they begin."""
    with open("/proc/self/maps") as maps:
        return re.findall(rf"^(\w+)-(\w+) (\S+) .*{re.escape(loaded._name)}$", maps.read(), re.MULTILINE)


def values(found):
    return [ctypes.c_uint64.from_address(slot.address).value for slot in found.slots[: found.count]]


def test_what_is_exchanged_is_called_by_that_object_alone(ours, loaded):
    found, wrong = found_in(ours, loaded)
    assert wrong is None

    assert ours.import_put(ctypes.byref(found), address(seven))

    assert loaded.parent() == 7
    assert os.getppid() == ctypes.CDLL(None).getppid() != 7


def test_all_is_as_before_when_it_is_put_back(ours, loaded):
    found, _ = found_in(ours, loaded)
    before, protected = values(found), protections(loaded)

    ours.import_put(ctypes.byref(found), address(seven))
    assert protections(loaded) == protected
    assert ours.import_restore(ctypes.byref(found))

    assert (values(found), protections(loaded)) == (before, protected)
    assert loaded.parent() == os.getppid()


def test_the_real_function_is_known_as_soon_as_the_loader_knows_it(ours, loaded):
    loaded.parent()
    found, _ = found_in(ours, loaded)

    assert found.real == address(ctypes.CDLL(None).getppid).value


def test_somebody_elses_own_is_left(ours, loaded):
    found, _ = found_in(ours, loaded)
    ours.import_put(ctypes.byref(found), address(seven))
    others, _ = found_in(ours, loaded)
    assert ours.import_put(ctypes.byref(others), address(eight))

    assert not ours.import_restore(ctypes.byref(found))

    assert loaded.parent() == 8
    assert ours.import_restore(ctypes.byref(others))
    assert ours.import_restore(ctypes.byref(found))


def test_what_is_not_there_has_no_slots_whatever_else_is_looked_for(ours, loaded):
    (absent, present), wrong = find(ours, address(loaded.parent), b"getuid", b"getppid")

    assert wrong is None
    assert absent.count == 0
    assert values(present) == values(found_in(ours, loaded)[0]) != []


def test_an_object_that_is_not_loaded_is_told(ours):
    assert find(ours, ctypes.c_void_p(8), b"getppid")[1] == b"the loaded object has no import table"
