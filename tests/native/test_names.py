"""Functions of one name: each library goes on calling the one that it would have called."""

import os

import pytest

NATIVE = {"INTERPOSE": "calls,native"}

OWN = """
#include <sys/types.h>
ssize_t read(int number, void *memory, size_t bytes) { return 42; }
"""
USER = """
#include <unistd.h>
long user(int number) { char byte; return read(number, &byte, 1); }
"""
ASKS = """
#define _GNU_SOURCE
#include <dlfcn.h>
#include <stdlib.h>
#include <unistd.h>
typedef ssize_t transfer(int, void *, size_t);
static long by(void *object, int number)
{
    char byte;
    transfer *found = (transfer *)dlsym(object, "read");
    return found ? found(number, &byte, 1) : -1;
}
long by_next(int number) { return by(RTLD_NEXT, number); }
long by_default(int number) { return by(RTLD_DEFAULT, number); }
long by_name(int number) { return by(dlopen("libc.so.6", RTLD_LAZY), number); }
int is_next_the_same(void) { return dlsym(RTLD_NEXT, "own_name") != NULL; }
int own_name(void) { return 1; }
"""
PRELOADED = """
#define _GNU_SOURCE
#include <dlfcn.h>
#include <unistd.h>
long preloaded_reads;
ssize_t read(int number, void *memory, size_t bytes)
{
    static ssize_t (*next)(int, void *, size_t);
    if (!next)
        next = (ssize_t (*)(int, void *, size_t))dlsym(RTLD_NEXT, "read");
    preloaded_reads++;
    return next(number, memory, bytes);
}
"""
CHOSEN = """
#include <unistd.h>
static long plain(int number) { char byte; return read(number, &byte, 1); }
static long (*choose(void))(int) { return plain; }
long chosen(int number) __attribute__((ifunc("choose")));
long user(int number) { return chosen(number); }
"""
# `ctypes` has all be found at once; a program in C may not.
LOADER = """
#include <dlfcn.h>
void *load(const char *path, int mode) { return dlopen(path, mode); }
"""
LOAD = """
import ctypes, os
loader = ctypes.CDLL("./loader.so")
loader.load.restype = ctypes.c_void_p
def load(name, mode):
    handle = loader.load(name.encode(), mode)
    ctypes.CDLL(None)  # what was loaded is looked at
    return ctypes.CDLL(name, handle=handle)
file = os.open("/dev/zero", os.O_RDONLY)
"""
MODES = {"lazy": "os.RTLD_LAZY", "now": "os.RTLD_NOW"}


@pytest.fixture
def library(built, tmp_path):
    """Build a library of a source; there is one that loads others, too."""
    (tmp_path / "loader.c").write_text(LOADER)
    built(source=tmp_path / "loader.c", name="loader.so")

    def build(name, source, *options):
        (tmp_path / f"{name}.c").write_text(source)
        return built(*options, source=tmp_path / f"{name}.c", name=f"{name}.so")

    return build


def reads(done):
    founder = done.experiment.founder
    return [event for event in done.events("libc.read") if founder.intrinsic(event.intrinsic).kind == "file"]


@pytest.mark.parametrize("mode", MODES.values(), ids=MODES)
@pytest.mark.parametrize(("scope", "given"), [("os.RTLD_DEEPBIND", "42\n"), ("os.RTLD_LOCAL", "1\n")])
def test_a_dependency_with_a_function_of_that_name_is_called_where_it_would_be(
    traced, library, tmp_path, mode, scope, given
):
    own = library("own", OWN)
    library("user", USER, "-Wl,-z,lazy", "-Wl,--no-as-needed", own, f"-Wl,-rpath,{tmp_path}")
    program = LOAD + f'print(load("./user.so", {mode} | {scope}).user(file))\n'

    assert [traced(program, INTERPOSE=words).stdout for words in ("calls", "calls,native")] == [given, given]


def test_what_is_found_by_name_in_a_library_is_seen(traced):
    done = traced(
        "import ctypes, os\nlibc, memory = ctypes.CDLL(None), ctypes.create_string_buffer(8)\n"
        'file = os.open("/dev/zero", os.O_RDONLY)\nprint(libc.read(file, memory, 3), libc.read(file, memory, 5))\n',
        **NATIVE,
    )

    assert done.stdout == "3 5\n"
    assert [event.bytes for event in reads(done)] == [3, 5]


@pytest.mark.parametrize("mode", MODES.values(), ids=MODES)
def test_who_asks_for_the_next_one_gets_it(traced, library, mode):
    library("asks", ASKS, "-Wl,-z,lazy")
    program = LOAD + (
        f'asks = load("./asks.so", {mode})\n'
        "print(asks.by_next(file), asks.by_default(file), asks.by_name(file), asks.is_next_the_same())\n"
    )

    without, done = traced(program), traced(program, **NATIVE)

    assert done.stdout == without.stdout == "1 1 1 0\n"
    assert len(reads(done)) == 1  # by name, in a library that it named


@pytest.mark.parametrize(("mode", "seen"), [("os.RTLD_LAZY", 0), ("os.RTLD_NOW", 100)])
def test_a_preloaded_function_is_called_as_often_as_before(traced, library, mode, seen):
    library("user", USER, "-Wl,-z,lazy")
    preloaded = library("preloaded", PRELOADED)
    program = LOAD + (
        f'user = load("./user.so", {mode})\nmine = ctypes.c_long.in_dll(ctypes.CDLL(None), "preloaded_reads")\n'
        "before = mine.value\nprint(sum(user.user(file) for _ in range(100)), mine.value - before)\n"
    )

    done = traced(program, LD_PRELOAD=os.fspath(preloaded), **NATIVE)

    assert (done.stdout, done.stderr) == ("100 100\n", "")
    assert len(reads(done)) == seen


@pytest.mark.parametrize("mode", MODES.values(), ids=MODES)
def test_a_slot_that_was_not_used_yet_is_exchanged_and_put_back(traced, library, mode):
    library("user", USER, "-Wl,-z,lazy")
    program = LOAD + (
        f'user = load("./user.so", {mode})\nprint(sum(user.user(file) for _ in range(100)))\n'
        "from interpose.timing import shims\nprint(shims.end(), user.user(file))\n"
    )

    done = traced(program, **NATIVE)

    assert done.stdout == "100\n0 1\n"
    assert len(reads(done)) == 100


@pytest.mark.parametrize("mode", MODES.values(), ids=MODES)
def test_a_library_may_choose_its_functions_when_it_is_loaded(traced, library, mode):
    library("chosen", CHOSEN, "-Wl,-z,lazy")

    done = traced(LOAD + f'print(load("./chosen.so", {mode}).user(file))\n', **NATIVE)

    assert done.stdout == "1\n"
    assert len(reads(done)) == 1
