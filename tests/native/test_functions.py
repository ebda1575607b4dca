"""The C functions that lead to a native call, compared with what `backtrace` says in the program."""

import json
import platform
import shutil
import subprocess
from collections import Counter

import pytest
from machine import reads_memory
from tracing import events_of, same_library

from interpose.experiments.model.experiment import Experiment

pytestmark = [
    same_library,
    pytest.mark.skipif(platform.machine() not in ("x86_64", "aarch64"), reason="no stacks of native calls here"),
    pytest.mark.skipif(not reads_memory(), reason="no functions without copies of memory (an emulator?)"),
]
FUNCTIONS = {"INTERPOSE": "calls,native", "INTERPOSE_NATIVE_STACK": "functions"}

SHAPES = r"""
#define _GNU_SOURCE
#include <alloca.h>
#include <dlfcn.h>
#include <errno.h>
#include <execinfo.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#define APART __attribute__((noipa))
static int zero;
static FILE *out;

/* Writes the functions that led to it, then reads a byte. */
APART int note(void)
{
    void *places[200];
    char line[8000] = "", byte;
    int count = backtrace(places, 200);
    for (int each = 0; each < count; each++) {
        Dl_info info;
        int is_known = dladdr((char *)places[each] - 1, &info) && info.dli_sname;
        if (is_known && strcmp(info.dli_fname, program_invocation_name) == 0)
            strcat(strcat(line, info.dli_sname), " ");
    }
    fprintf(out, "%s\n", line);
    return (int)read(zero, &byte, 1) + 1;
}
APART int plain(int number) { return note() + number; }
APART int large(int number) { volatile char room[30000]; room[number] = 1; return plain(number) + room[number]; }
APART int aligned(int number)
{
    volatile _Alignas(64) char room[256];
    room[number] = 1;
    return plain(number) + room[number];
}
APART int variable(int number)
{
    volatile char *room = alloca((size_t)number * 16 + 16);
    volatile _Alignas(32) char other[64];
    room[number] = other[number] = 1;
    return plain(number) + room[number] + other[number];
}
APART int recursive(int number) { return number ? recursive(number - 1) + 1 : variable(3); }
APART int floating(double number) { volatile double kept = number * 3; return plain(2) + (int)kept; }
APART int many(int a, int b, int c, int d, int e, int f, int g, int h, int i)
{
    return plain(a) + b + c + d + e + f + g + h + i;
}
int compare(const void *one, const void *other) { return large(1) > 0 ? *(const int *)one - *(const int *)other : 0; }
void *thread(void *nothing) { aligned(5); recursive(3); return nothing; }
int main(void)
{
    int numbers[] = {3, 1, 2};
    pthread_t other;
    zero = open("/dev/zero", O_RDONLY);
    out = fopen("backtraces", "w");
    setvbuf(out, NULL, _IOFBF, 1 << 20);
    for (int each = 0; each < 20; each++)
        plain(each), large(each), aligned(each), variable(each), floating(each), many(1, 2, 3, 4, 5, 6, 7, 8, 9);
    recursive(30);
    qsort(numbers, 3, sizeof *numbers, compare);
    pthread_create(&other, NULL, thread, NULL);
    pthread_join(other, NULL);
    return fclose(out);
}
"""


def functions_of(process, event, *files):
    """The functions in these files that led to the call, innermost first."""
    return tuple(site.function for site in process.frames(event.stack) if site.file.rpartition("/")[2] in files)


def reads_of(process):
    return [event for event in events_of(process) if process.intrinsic(event.intrinsic).name == "libc.read"]


@pytest.fixture
def recorded(tmp_path, compiler, interpose):
    """Build a C program and record it with its functions; returns its process."""

    def run(source, *options, code=0):
        work = tmp_path / "work"
        (work / "program.c").write_text(source)
        words = [compiler, "-w", "-pthread", "-rdynamic", *options, "-o", work / "program", work / "program.c", "-ldl"]
        subprocess.run(words, check=True)
        done = interpose("run", "--native-stack", "functions", "./program")
        assert done.returncode == code, done.stderr
        return Experiment(str(work / "test.1.er")).founder

    return run


COMPILED = [["-O0"], ["-O2"], ["-O2", "-fno-omit-frame-pointer"], ["-O3", "-march=native"], ["-Os"], ["-O2", "-no-pie"]]


@pytest.mark.parametrize("options", COMPILED, ids=" ".join)
def test_functions_are_those_of_backtrace(recorded, options, tmp_path):
    process = recorded(SHAPES, *options)

    expected = Counter(tuple(line.split()) for line in (tmp_path / "work" / "backtraces").read_text().splitlines())
    reads = reads_of(process)
    assert Counter(functions_of(process, event, "program") for event in reads) == expected
    assert len(expected) == 10
    assert not any(process.is_cut(event.stack) for event in reads)
    sites = {site for event in reads for site in process.frames(event.stack)}
    assert {site.own for site in sites if site.file.endswith("/program")} == {True}


DEEP = r"""
#include <fcntl.h>
#include <unistd.h>
__attribute__((noipa)) int deep(int zero, int times)
{
    char byte;
    return times ? deep(zero, times - 1) + 1 : (int)read(zero, &byte, 1);
}
int main(void) { return deep(open("/dev/zero", O_RDONLY), 200) != 201; }
"""


IN_CXX = r"""
#include <fcntl.h>
#include <unistd.h>
namespace orders {
template <typename Item> struct Reader {
    __attribute__((noipa)) int read_all(Item file, int times) { char byte; return (int)::read(file, &byte, 1) + times; }
};
struct Shop {
    Reader<int> reader;
    __attribute__((noipa)) int operator()(int file) { return reader.read_all(file, 1) + 1; }
};
}
int main() { return orders::Shop{}(open("/dev/zero", O_RDONLY)) != 3; }
"""


@pytest.mark.skipif(shutil.which("g++") is None, reason="no compiler for C++")
def test_functions_of_cxx_have_the_names_of_the_source(recorded):
    process = recorded(IN_CXX, "-O1", "-xc++")

    (event,) = reads_of(process)
    assert functions_of(process, event, "program")[:3] == (
        "orders::Reader<int>::read_all(int, int)",
        "orders::Shop::operator()(int)",
        "main",
    )


def test_of_a_deep_stack_the_innermost_functions_are_kept(recorded):
    process = recorded(DEEP, "-O1")

    (event,) = reads_of(process)
    assert functions_of(process, event, "program") == ("deep",) * 64
    assert process.is_cut(event.stack)


WITHOUT_RULES = r"""
#define _GNU_SOURCE
#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>
extern int in_the_dark(int (*called)(int), int number);
extern int misled(int (*called)(int), int number);
extern int lost(int (*called)(int), int number);
#define CALLS "movq %rdi, %rax\nmovl %esi, %edi\ncall *%rax\n"
__asm__(".text\n.type in_the_dark, @function\nin_the_dark:\n"
        "subq $24, %rsp\n" CALLS "addq $24, %rsp\nret\n.size in_the_dark, . - in_the_dark\n"
        /* Its rule puts the caller where no memory is mapped. */
        ".type misled, @function\nmisled:\n.cfi_startproc\n.cfi_def_cfa_offset 0x40000000\n"
        "subq $24, %rsp\n" CALLS "addq $24, %rsp\nret\n.cfi_endproc\n.size misled, . - misled\n"
        /* It uses the frame pointer for something else, but its rule relies on it. */
        ".type lost, @function\nlost:\n.cfi_startproc\n.cfi_def_cfa %rbp, 16\npushq %rbp\nmovq $8, %rbp\n" CALLS
        "popq %rbp\nret\n.cfi_endproc\n.size lost, . - lost\n");
__attribute__((noipa)) int reads(int zero)
{
    char byte;
    return (int)read(zero, &byte, 1) + 1;
}
int main(void)
{
    int zero = open("/dev/zero", O_RDONLY);
    return in_the_dark(reads, zero) + misled(reads, zero) + lost(reads, zero) - 6;
}
"""


@pytest.mark.skipif(platform.machine() != "x86_64", reason="its functions are written for another machine")
def test_functions_are_not_guessed_where_nothing_or_nonsense_is_known_of_one(recorded):
    process = recorded(WITHOUT_RULES, "-O1")

    dark, misled, lost = reads_of(process)
    assert [functions_of(process, event, "program") for event in (dark, misled, lost)] == [
        ("reads", "in_the_dark"),
        ("reads", "misled"),
        ("reads", "lost"),
    ]
    assert all(process.is_cut(event.stack) for event in (dark, misled, lost))


HANDLER = r"""
#include <fcntl.h>
#include <signal.h>
#include <unistd.h>
static int zero;
__attribute__((noipa)) void handler(int number)
{
    char byte;
    if (read(zero, &byte, 1) != 1)
        _exit(9);
}
__attribute__((noipa)) int interrupted(void) { return raise(SIGUSR1) + 1; }
int main(void)
{
    zero = open("/dev/zero", O_RDONLY);
    signal(SIGUSR1, handler);
    for (int each = 0; each < 100; each++)
        interrupted();
    return 0;
}
"""


def test_the_functions_of_a_signal_handler_end_with_it(recorded):
    process = recorded(HANDLER, "-O1")

    reads = reads_of(process)
    assert {functions_of(process, event, "program")[0] for event in reads} == {"handler"}
    assert len(reads) == 100


LIBRARY = r"""
#include <unistd.h>
int inner_%(name)s(int zero) { char byte; return (int)read(zero, &byte, 1) + 1; }
int outer(int zero) { return inner_%(name)s(zero) + 1; }
"""
LOADS = r"""
#include <dlfcn.h>
#include <fcntl.h>
static int call(const char *path, int zero)
{
    void *library = dlopen(path, RTLD_NOW);
    int got = ((int (*)(int))dlsym(library, "outer"))(zero);
    dlclose(library);
    return got - 3;
}
int main(void)
{
    int zero = open("/dev/zero", O_RDONLY), wrong = 0;
    for (int each = 0; each < 20; each++)
        wrong |= call(each % 2 ? "./two.so" : "./one.so", zero);
    return wrong;
}
"""


def test_a_library_where_another_was_has_its_own_functions(recorded, compiler, tmp_path):
    for name in ("one", "two"):
        (tmp_path / "work" / f"{name}.c").write_text(LIBRARY % {"name": name})
        words = [compiler, "-O1", "-fno-inline", "-shared", "-fPIC", "-o", f"{name}.so", f"{name}.c"]
        subprocess.run(words, cwd=tmp_path / "work", check=True)

    process = recorded(LOADS)

    found = [functions_of(process, event, "one.so", "two.so") for event in reads_of(process)]
    assert found == [("inner_one", "outer"), ("inner_two", "outer")] * 10


REPLACES = r"""
#include <dlfcn.h>
#include <fcntl.h>
#include <stdio.h>
int main(void)
{
    int zero = open("/dev/zero", O_RDONLY);
    void *library = dlopen("./one.so", RTLD_NOW);
    int (*outer)(int) = (int (*)(int))dlsym(library, "outer");
    return rename("two.so", "one.so") || outer(zero) != 3;
}
"""


def test_a_file_that_has_replaced_the_loaded_one_names_nothing(recorded, compiler, tmp_path):
    for name in ("one", "two"):
        (tmp_path / "work" / f"{name}.c").write_text(LIBRARY % {"name": name})
        words = [compiler, "-O1", "-fno-inline", "-shared", "-fPIC", "-o", f"{name}.so", f"{name}.c"]
        subprocess.run(words, cwd=tmp_path / "work", check=True)

    process = recorded(REPLACES)

    (event,) = reads_of(process)
    assert functions_of(process, event, "one.so") == ("one.so", "one.so")


BEGINS = r"""
int reads(int zero);
int outer(int zero) { return reads(zero) + 1; }
__attribute__((constructor)) static void begin(void) { outer(3); }
"""
READS = r"""
#include <unistd.h>
int reads(int zero) { char byte; return (int)read(zero, &byte, 1) + 1; }
"""
LOADS_LATE = r"""
#include <dlfcn.h>
#include <fcntl.h>
#include <unistd.h>
int main(void)
{
    dup2(open("/dev/zero", O_RDONLY), 3);
    void *library = dlopen("./begins.so", RTLD_NOW); /* which calls while it is loaded */
    return ((int (*)(int))dlsym(library, "outer"))(3) - 3;
}
"""


def test_functions_that_were_met_while_their_library_was_loaded_are_named_afterwards(recorded, compiler, tmp_path):
    work = tmp_path / "work"
    (work / "begins.c").write_text(BEGINS)
    (work / "reads.c").write_text(READS)
    shared = [compiler, "-O1", "-shared", "-fPIC", "-Wl,-rpath,$ORIGIN"]
    subprocess.run([*shared, "-o", "libreads.so", "reads.c"], cwd=work, check=True)
    subprocess.run([*shared, "-o", "begins.so", "begins.c", "-L.", "-lreads"], cwd=work, check=True)

    process = recorded(LOADS_LATE, f"-L{work}", "-Wl,-rpath,$ORIGIN", "-Wl,--no-as-needed", "-lreads")

    first, *_, last = reads_of(process)
    assert functions_of(process, first, "libreads.so", "begins.so") == ("reads",)
    assert process.is_cut(first.stack)
    assert functions_of(process, last, "libreads.so", "begins.so") == ("reads", "outer")


CALLS_BACK = """
inner = ctypes.CFUNCTYPE(ctypes.c_int)(lambda: calls.error_of_read(zero))
def reads():
    calls.reads(zero, 3)
reads()
inner()
threading.Thread(target=reads).start()
"""


def test_functions_of_c_come_before_the_line_of_python(native):
    done = native(CALLS_BACK, INTERPOSE_NATIVE_STACK="functions")

    process = done.experiment.founder
    stacks = Counter(
        tuple(site.function for site in process.frames(event.stack) if site.file.endswith(("calls.so", "program.py")))
        for event in reads_of(process)
    )
    assert stacks == {("reads", "reads"): 6, ("error_of_read", "<lambda>"): 1}


def test_without_the_setting_the_library_alone_is_kept(native):
    done = native("calls.reads(zero, 3)")

    process = done.experiment.founder
    assert {functions_of(process, event, "calls.so") for event in reads_of(process)} == {("calls.so",)}


SQLITE = """
import sqlite3
connection = sqlite3.connect("orders.db")
connection.execute("create table orders (number)")
connection.execute("insert into orders values (1)")
connection.commit()
"""


def test_what_the_driver_does_is_told_by_its_functions(traced):
    done = traced(SQLITE, **FUNCTIONS)

    process = done.experiment.founder
    names = {event: process.intrinsic(event.intrinsic).name for event in events_of(process)}
    writes = [event for event, name in names.items() if name.startswith("libc.pwrite")]
    assert writes
    for event in writes:
        files = [site.file.rpartition("/")[2] for site in process.frames(event.stack)]
        assert files[0].startswith("libsqlite3") and files[-1] == "program.py"
        assert len(files) > 3


def test_reports_name_the_function_of_the_program(recorded, interpose):
    recorded(SHAPES, "-O2")

    rows = json.loads(interpose("report", "--by", "function", "--format", "json").stdout)

    calls = {row["function"]: row["calls"] for row in rows if row.get("intrinsic") == "libc.read"}
    assert calls == {"note": 126}
