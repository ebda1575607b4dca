"""Data collectors in C: by the header that is installed, compiled as a user would."""

import os
import shutil
import subprocess
import sysconfig
from pathlib import Path

import pytest
from collecting import failures, named

import interpose
from interpose.analysis.analysis import Analysis
from interpose.analysis.transactions.response_times import transactions

HEADERS = Path(interpose.__file__).parent / "include"
COMPILER = os.environ.get("CC", "cc")
PROGRAM = """
import os, threading, _thread, time
def probe(path):
    try:
        os.stat(path)
    except OSError as error:
        return error.errno
"""
HEAD = """
#define _POSIX_C_SOURCE 200809L
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include "interpose_collector.h"
"""

pytestmark = pytest.mark.skipif(shutil.which(COMPILER) is None, reason="there is no C compiler")


@pytest.fixture
def compiled(traced, tmp_path):
    """Run a program with a collector in C, which lies where collectors are found."""

    def run(source, program, name="interpose_program.so", **variables):
        directory = tmp_path / "interpose.d"
        directory.mkdir(exist_ok=True)
        (tmp_path / "collector.c").write_text(HEAD + source)
        flags = ["-std=c11", "-Wall", "-Wextra", "-Wpedantic", "-Werror", "-shared", "-fPIC", f"-I{HEADERS}"]
        words = [COMPILER, *flags, "collector.c", "-o", str(directory / name)]
        subprocess.run(words, cwd=tmp_path, check=True)
        return traced(PROGRAM + program, **variables)

    return run


NAMES = """
static void collect(struct interpose_area *area)
{
    if (!area->function || strcmp(area->function, "probe"))
        return;
    area->work = (char *)area->work + 1;
    snprintf(area->scratch, sizeof area->scratch, "MODULE%d", (int)(size_t)area->work);
    area->module = area->scratch;
    area->section = "SAVE";
    area->statement = (uint64_t)(size_t)area->work;
    area->transaction = (size_t)area->work > 2 ? NULL : "PAY";
    strcpy(area->identifier, "Orders in C");
    errno = 99;
}
const struct interpose_collector interpose_collector = INTERPOSE_COLLECTOR(.name = "orders", .collect = collect);
"""


def test_it_names_module_section_statement_and_transaction(compiled):
    done = compiled(
        NAMES,
        """
for number in range(3):
    print(probe(f"/probe/{number}"))
""",
    )

    assert (done.returncode, done.stdout, done.stderr) == (0, "2\n2\n2\n", "")
    assert named(done) == [(f"/probe/{n}", f"MODULE{n + 1}", "SAVE", n + 1) for n in range(3)]
    counts = {row.name: row.sums.calls for row in transactions(Analysis(done.experiment)).rows}
    assert counts["PAY"] == 1
    (found,) = done.experiment.founder.collectors
    assert (found.name, found.per, found.programs) == ("collector:group:program", "event", "*")
    assert found.identifiers == ("Orders in C",)


TOLD = """
static void collect(struct interpose_area *area)
{
    if (!area->function || strcmp(area->function, "probe"))
        return;
    printf("%u %d %d %s %d %d %d %s %s %d\\n", area->version, area->area_bytes == sizeof *area, area->code != NULL,
           area->function, (int)area->line, (int)area->address, (int)area->base, area->module,
           area->section ? area->section : "none", area->identifier[0]);
    fflush(stdout);
    area->line = area->address = area->thread = 0;
    area->code = area->file = area->function = "changed";
}
const struct interpose_collector interpose_collector = INTERPOSE_COLLECTOR(.name = "told", .collect = collect);
"""


def test_it_is_told_what_one_in_python_is_and_changes_of_that_have_no_effect(compiled):
    done = compiled(TOLD, 'probe("/probe/1")\nprobe("/probe/2")\n')

    line = next(number for number, text in enumerate(PROGRAM.splitlines(), 1) if "os.stat" in text)
    assert done.stdout == f"1 1 1 probe {line} {line} {line - 2} __main__ none 0\n" * 2
    assert named(done) == []


WRONG = """
static void collect(struct interpose_area *area)
{
    static int number;
    if (!area->function || strcmp(area->function, "probe"))
        return;
    area->module = "WRONG";
    area->base = number == 0 ? area->line + 1 : 0;
    area->size = number == 0 ? 5 : INTERPOSE_FORCED_SIZE;
    if (number == 2)
        area->module = "COBLIB";
    if (number == 3) {
        area->module = "ILBOMRG";
        area->base = area->line;
        area->size = 1;
    }
    number++;
}
static const struct interpose_section sections[] = {{"COBLIB", "ILB"}, {"COBLIB", "IGZ"}, {0}};
const struct interpose_collector interpose_collector =
    INTERPOSE_COLLECTOR(.name = "wrong", .collect = collect, .sections = sections);
"""


def test_what_it_claims_is_verified(compiled):
    done = compiled(WRONG, "for number in range(4):\n    probe(f'/probe/{number}')\n")

    assert named(done) == [("/probe/2", ".SYSTEM", ".COBLIB", 0), ("/probe/3", ".SYSTEM", ".COBLIB", 0)]
    assert failures(done) == [
        "named a module that does not contain the place of the call",
        "forced a name that is in none of its sections",
    ]


LIES = """
static void collect(struct interpose_area *area)
{
    if (!area->function || strcmp(area->function, "probe"))
        return;
    area->module = "TRUE";
    area->line = 777;
    area->function = "lied";
    if (area->wall_ns % 2) /* either way */
        return;
    area->address = 777;
}
const struct interpose_collector interpose_collector = INTERPOSE_COLLECTOR(.name = "lies", .collect = collect);
"""
FAR = """
static void collect(struct interpose_area *area)
{
    area->module = "FAR";
    area->address = area->base = 100000;
    area->size = 1;
}
const struct interpose_collector interpose_collector = INTERPOSE_COLLECTOR(.name = "far", .collect = collect);
"""


def test_what_it_says_of_what_it_was_told_is_not_recorded(compiled):
    done = compiled(LIES, "for number in range(4):\n    probe(f'/probe/{number}')\n")

    line = next(number for number, text in enumerate(PROGRAM.splitlines(), 1) if "os.stat" in text)
    assert named(done) == [(f"/probe/{number}", "TRUE", "probe", line) for number in range(4)]


def test_the_place_of_a_call_is_not_what_it_says(compiled):
    done = compiled(FAR, 'probe("/probe/1")\n')

    assert named(done) == []
    assert failures(done) == ["named a module that does not contain the place of the call"]


SCRATCH = """
static void collect(struct interpose_area *area)
{
    if (!area->function || strcmp(area->function, "probe"))
        return;
    if (area->line == 777)
        return;
    if (area->module && strcmp(area->module, "__main__") == 0) {
        snprintf(area->scratch, sizeof area->scratch, "ORDERS");
        area->module = area->scratch;
        snprintf(area->scratch + 20, 20, "SAVE");
        area->section = area->scratch + 20;
        snprintf(area->scratch + 40, 20, "PAY");
        area->transaction = area->scratch + 40;
        area->line = 777;
        return;
    }
    snprintf(area->scratch, sizeof area->scratch, "%s", "its own room, in which it makes what it likes for itself");
    area->statement = 5;
}
const struct interpose_collector interpose_collector = INTERPOSE_COLLECTOR(.name = "makes", .collect = collect);
"""


def test_each_of_several_has_the_scratch_area_and_what_is_told_to_itself(compiled, tmp_path):
    compiled(SCRATCH, "", name="interpose_first.so")
    done = compiled(SCRATCH, 'probe("/probe/1")\n', name="interpose_second.so", INTERPOSE_COLLECTORS="first,second")

    assert named(done) == [("/probe/1", "ORDERS", "SAVE", 5)]
    assert not failures(done)
    assert "PAY" in [transaction.name for transaction in transactions(Analysis(done.experiment)).rows]


NATIVE = """
static void collect(struct interpose_area *area)
{
    if (area->code)
        return;
    area->module = area->address ? "NATIVE" : "NOWHERE";
    area->base = area->address - 16;
    area->size = 32;
}
const struct interpose_collector interpose_collector = INTERPOSE_COLLECTOR(.name = "native", .collect = collect);
"""


def test_where_no_python_code_called_the_address_is_that_of_the_native_function(compiled):
    done = compiled(
        NATIVE,
        """
_thread.start_new_thread(os.mkdir, ("made",))
while not os.path.exists("made") or _thread._count():
    time.sleep(0.01)
""",
    )

    (made,) = done.events("os.mkdir")
    (site,) = done.experiment.founder.frames(made.stack)
    assert (site.file, site.function, site.collector) == ("NATIVE", "", "collector:group:program")
    assert not failures(done)


PROGRAMS = """
static void collect(struct interpose_area *area) { area->module = "CALLED"; }
static const char *const programs[] = {"shop*", "never", NULL};
const struct interpose_collector interpose_collector =
    INTERPOSE_COLLECTOR(.name = "shop", .collect = collect, .programs = programs, .per = INTERPOSE_PER_SITE);
"""


def test_it_is_called_only_for_its_programs_unless_it_is_named(compiled):
    found = compiled(PROGRAMS, "probe('/probe/1')")
    asked = compiled(PROGRAMS, "probe('/probe/1')", INTERPOSE_COLLECTORS="program")

    assert named(found) == []
    assert [module for _, module, *_ in named(asked)] == ["CALLED"]
    assert [each.per for each in asked.experiment.founder.collectors] == ["site"]


SLOW = """
#include <time.h>
static void collect(struct interpose_area *area)
{
    struct timespec now, end;
    (void)area;
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &end);
    end.tv_nsec += 100000;
    do
        clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
    while (now.tv_sec * 1000000000ll + now.tv_nsec < end.tv_sec * 1000000000ll + end.tv_nsec);
}
const struct interpose_collector interpose_collector = INTERPOSE_COLLECTOR(.name = "slow", .collect = collect);
"""


@pytest.mark.long
def test_one_that_is_slow_is_switched_off(compiled):
    done = compiled(SLOW, "for number in range(20_000):\n    probe('/probe')\n")

    assert failures(done) == ["switched off: 256 calls took more than 50 us of CPU time each"]


BAD = {
    "int nothing;": "it has no interpose_collector",
    'const char interpose_collector[200] = "something else";': (
        "its interpose_collector is none: the eye-catcher is not there"
    ),
    "const struct interpose_collector interpose_collector = {.eye_catcher = INTERPOSE_COLLECTOR_EYE_CATCHER};": (
        "its interpose_collector is none: the eye-catcher is not there"
    ),
    "static void collect(struct interpose_area *area) { (void)area; }\n"
    "const struct interpose_collector interpose_collector = {.eye_catcher = INTERPOSE_COLLECTOR_EYE_CATCHER,"
    " .version = 9, .collect = collect};": "it is of version 9; this interpose knows up to 1",
    "static void collect(struct interpose_area *area) { (void)area; }\n"
    "const struct interpose_collector interpose_collector = INTERPOSE_COLLECTOR("
    '.name = "x", .collect = collect, .per = 7);': "ValueError: per is '7', not one of event, transaction, site",
    "static void collect(struct interpose_area *area) { (void)area; }\n"
    "const struct interpose_collector interpose_collector = {.eye_catcher = INTERPOSE_COLLECTOR_EYE_CATCHER,"
    " .collect = collect};": "it is of version 0; this interpose knows up to 1",
    "static void collect(struct interpose_area *area) { (void)area; }\n"
    'static const struct interpose_section sections[] = {{"COBLIB", NULL}, {0}};\n'
    "const struct interpose_collector interpose_collector = INTERPOSE_COLLECTOR("
    '.name = "x", .collect = collect, .sections = sections);': (
        "ValueError: pseudo-section 'COBLIB' of '': a name has up to 31 letters, a prefix up to 63"
    ),
}


@pytest.mark.parametrize("source", BAD)
def test_one_that_is_none_is_told_in_one_line_and_the_program_runs(compiled, source):
    done = compiled(source, "print('goes on')")

    (library,) = done.experiment.founder.libraries
    assert (done.returncode, done.stdout) == (0, "goes on\n")
    assert library.why_not == BAD[source]


CALLED = """
static int calls;
static void collect(struct interpose_area *area)
{{
    if (!area->function || strcmp(area->function, "probe") || ++calls < {calls})
        return;
    {act}
}}
const struct interpose_collector interpose_collector = INTERPOSE_COLLECTOR(.name = "bad", .collect = collect);
"""
HIGH = "(char *)(size_t)0x7ffffffff123"


@pytest.mark.parametrize("field", ["module", "section", "transaction"])
@pytest.mark.parametrize("calls", [1, 2000])
def test_one_that_gives_a_pointer_to_nowhere_is_switched_off_and_the_program_runs(compiled, field, calls):
    claim = "" if field == "module" else 'area->module = "GOOD"; '
    act = f"{claim}area->{field} = {HIGH};"

    done = compiled(CALLED.format(calls=calls, act=act), "for number in range(3000): probe('/probe')\nprint('goes on')")

    assert (done.returncode, done.stdout) == (0, "goes on\n")
    assert failures(done) == ["switched off: it gave a text that cannot be read"]
    assert done.details("os.stat").count("/probe") == 3000


def test_a_text_without_an_end_before_what_cannot_be_read_is_none(compiled):
    source = CALLED.format(calls=1, act="area->module = text_at_the_end();")
    pages = """
#include <sys/mman.h>
#ifndef MAP_ANONYMOUS
#define MAP_ANONYMOUS 0x20 /* Linux; no name that POSIX knows */
#endif
static char *text_at_the_end(void)
{
    char *pages = mmap(0, 8192, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    memset(pages, 'x', 4096);
    mprotect(pages + 4096, 4096, PROT_NONE);
    return pages + 4090;
}
"""

    done = compiled(pages + source, "probe('/probe')\nprint('goes on')")

    assert (done.returncode, done.stdout) == (0, "goes on\n")
    assert failures(done) == ["switched off: it gave a text that cannot be read"]


@pytest.mark.parametrize(
    "act",
    [
        "*(volatile int *)1 = 1;",
        "if (!area->function) strcpy(area->scratch, area->file);",
        "__builtin_trap();",
        f"area->section = {HIGH};",
    ],
)
def test_one_that_crashes_when_it_is_tried_is_not_used(compiled, act):
    source = f"""
static void collect(struct interpose_area *area)
{{
    area->work = 0;
    printf("tried ");
    fflush(stdout);
    {act}
}}
const struct interpose_collector interpose_collector = INTERPOSE_COLLECTOR(.name = "bad", .collect = collect);
"""

    done = compiled(source, """
import os, signal
try: print(os.waitpid(-1, os.WNOHANG))
except ChildProcessError: print("no child")
""")  # fmt: skip

    (library,) = done.experiment.founder.libraries
    assert (done.returncode, done.stdout, done.stderr) == (0, "no child\n", "")
    assert library.why_not.startswith("it was tried in a child, which was ended by signal ")


@pytest.mark.parametrize(
    ("act", "why"),
    [("_exit(0);", "which it ended"), ("exit(3);", "which it ended"), ("for (;;);", "where it did not return")],
)
def test_one_that_does_not_return_when_it_is_tried_is_not_used(compiled, act, why):
    source = f"""
#include <stdlib.h>
#include <unistd.h>
static void collect(struct interpose_area *area)
{{
    area->work = 0;
    {act}
}}
const struct interpose_collector interpose_collector = INTERPOSE_COLLECTOR(.name = "bad", .collect = collect);
"""

    done = compiled(source, "print('goes on')")

    (library,) = done.experiment.founder.libraries
    assert (done.returncode, done.stdout, done.stderr) == (0, "goes on\n", "")
    assert library.why_not == f"it was tried in a child, {why}"


def test_names_without_an_end_are_cut(compiled):
    source = """
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>
static char page[2][65536] __attribute__((aligned(65536)));
static const char *programs[2] = {page[0], NULL};
static void collect(struct interpose_area *area)
{
    area->module = page[0];
}
__attribute__((constructor)) static void fill(void)
{
    memset(page[0], 'p', sizeof page[0]);
    page[0][1] = '*';
    mprotect(page[1], sizeof page[1], PROT_NONE);
}
const struct interpose_collector interpose_collector =
    INTERPOSE_COLLECTOR(.name = page[0], .collect = collect, .programs = programs);
"""

    done = compiled(source, "probe('/probe/1'); print('goes on')")

    assert (done.returncode, done.stdout, done.stderr) == (0, "goes on\n", "")


def test_one_whose_declaration_leads_nowhere_is_not_used(compiled):
    source = f"""
static void collect(struct interpose_area *area) {{ (void)area; }}
const struct interpose_collector interpose_collector =
    INTERPOSE_COLLECTOR(.name = "bad", .collect = collect, .programs = (void *){HIGH});
"""

    done = compiled(source, "print('goes on')")

    (library,) = done.experiment.founder.libraries
    assert (done.returncode, done.stdout) == (0, "goes on\n")
    assert library.why_not.startswith("it was tried in a child, which was ended by signal ")


def test_a_file_that_is_no_shared_library_is_told(traced, tmp_path):
    (tmp_path / "interpose.d").mkdir()
    (tmp_path / "interpose.d" / "interpose_program.so").write_text("no library")

    done = traced("print('goes on')")

    (library,) = done.experiment.founder.libraries
    assert done.stdout == "goes on\n"
    assert "file too short" in library.why_not or "invalid ELF header" in library.why_not


def test_the_header_is_for_c_plus_plus_too(tmp_path):
    compiler = sysconfig.get_config_var("CXX") or "c++"
    if shutil.which(compiler.split()[0]) is None:
        pytest.skip("there is no C++ compiler")
    (tmp_path / "collector.cpp").write_text(
        '#include "interpose_collector.h"\nextern "C" void collect(interpose_area *area) { area->module = "X"; }\n'
    )

    done = subprocess.run(
        [compiler.split()[0], "-std=c++17", "-Wall", "-Werror", "-c", f"-I{HEADERS}", "collector.cpp"],
        cwd=tmp_path,
        capture_output=True,
        text=True,
    )

    assert (done.returncode, done.stderr) == (0, "")


EACH = """
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>
static const char *const names[] = {%(names)s};
enum { NAMES = sizeof names / sizeof *names, AT_END = %(at_end)d };
static const char *put(int which, size_t name)
{
    static char *pages[3]; /* behind the first of each two nothing can be read */
    const char *text = names[name %% NAMES];
    size_t page = (size_t)sysconf(_SC_PAGESIZE);
    if (!pages[which]) {
        void *room = NULL;
        if (posix_memalign(&room, page, 2 * page) || mprotect((char *)room + page, page, PROT_NONE))
            abort();
        pages[which] = room;
    }
    return text ? strcpy(pages[which] + (AT_END ? page - strlen(text) - 1 : 0), text) : NULL;
}
static void collect(struct interpose_area *area)
{
    size_t turn = (size_t)area->work;
    if (!area->function || strcmp(area->function, "probe"))
        return;
    area->work = (char *)area->work + 1;
    area->module = put(0, turn);
    area->section = put(1, turn + 1);
    area->transaction = put(2, turn + 2);
    area->statement = 7;
}
const struct interpose_collector interpose_collector = INTERPOSE_COLLECTOR(.name = "each", .collect = collect);
"""
LONG = "ORDERS12ORDERS12O"
ALIKE = [
    *(LONG[:letters] for letters in (1, 2, 3, 4, 5, 6, 7, 8, 9, 15, 16, 17)),
    *(LONG[:letters] + "P" for letters in (0, 1, 2, 3, 6, 7, 8, 9, 15, 16)),
    *("orders", "ORDERs", "ORDERS12oRDERS12O"),
    *("O" * letters for letters in (50, 51, 52, 53, 126, 127, 200)),
    *("O" * letters + "P" for letters in (50, 51, 125, 126)),
    *("P" + "O" * letters for letters in (50, 126, 200)),
]
READ = 127


@pytest.mark.parametrize("at_end", [False, True])
def test_texts_that_are_alike_are_told_apart_even_at_the_end_of_what_can_be_read(compiled, at_end):
    names = ", ".join(f'"{name}"' for name in ALIKE)
    rounds = [*range(len(ALIKE)), *range(len(ALIKE))]
    source = EACH % {"names": names, "at_end": at_end}
    done = compiled(source, f"for number in range({len(rounds)}):\n    probe(f'/probe/{{number}}')\n")

    assert (done.returncode, done.stderr) == (0, "")
    claimed = [(file, function, line) for _, file, function, line in named(done)]
    wanted = [(ALIKE[n % len(ALIKE)][:READ], ALIKE[(n + 1) % len(ALIKE)][:READ], 7) for n in rounds]
    assert claimed == wanted
    founder = done.experiment.founder
    given = [founder.string(event.detail) for event in done.events("interpose.named")]
    cut = [ALIKE[(n + 2) % len(ALIKE)][:READ] for n in rounds]
    assert given == [name for name, before in zip(cut, [None, *cut], strict=False) if name != before]


def test_an_empty_text_is_not_none(compiled):
    source = EACH % {"names": '"A", "", NULL, "", "A", NULL', "at_end": False}
    done = compiled(source, "for number in range(12):\n    probe(f'/probe/{number}')\n")

    names = ["A", "", None, "", "A", None]
    wanted = []
    for number in range(12):
        module, section = names[number % 6], names[(number + 1) % 6]
        if module:
            wanted.append((f"/probe/{number}", module, "probe" if section is None else section, 7))
    assert named(done) == wanted
    founder = done.experiment.founder
    given = [founder.string(event.detail) if event.detail else "" for event in done.events("interpose.named")]
    assert given == ["A", ""] * 4


TURNS = """
static void collect(struct interpose_area *area)
{
    area->work = (char *)area->work + 1;
    if (!area->function || strcmp(area->function, "probe") || (size_t)area->work %% 2 != %d)
        return;
    area->module = "ORDERS";
    area->section = "SAVE";
}
const struct interpose_collector interpose_collector = INTERPOSE_COLLECTOR(.name = "turns", .collect = collect);
"""


def test_the_same_claim_of_two_collectors_is_each_ones_own(compiled):
    compiled(TURNS % 0, "", name="interpose_first.so")
    done = compiled(
        TURNS % 1,
        "for number in range(6):\n    probe('/probe/1')\n",
        name="interpose_second.so",
        INTERPOSE_COLLECTORS="first,second",
    )

    founder = done.experiment.founder
    frames = [next(iter(founder.frames(event.stack)), None) for event in done.events("os.stat")]
    owners = [frame.collector for frame in frames[-6:]]
    assert len(set(owners)) == 2
    assert owners == owners[:2] * 3


STATEMENTS = """
static void collect(struct interpose_area *area)
{
    static int calls;
    if (!area->function || strcmp(area->function, "probes"))
        return;
    area->module = "M";
    area->section = "S";
    area->statement = (uint64_t)(calls++ / 32 + 1);
}
const struct interpose_collector interpose_collector = INTERPOSE_COLLECTOR(.name = "statements", .collect = collect);
"""
LINES = "".join(f"    os.access('/probe/{row}', 0)\n" for row in range(32))


def test_a_statement_keeps_the_line_that_called_whatever_the_numbers_of_both(compiled):
    done = compiled(STATEMENTS, f"def probes():\n{LINES}\nfor _ in range(32): probes()\n")

    founder = done.experiment.founder
    stacks = [
        (founder.string(event.detail), *(site.line for site in founder.frames(event.stack) if site.own))
        for event in done.events("os.access")
        if founder.string(event.detail).startswith("/probe")
    ]
    first = min(line for _, _, line in stacks)
    assert stacks == [(f"/probe/{row}", number, first + row) for number in range(1, 33) for row in range(32)]
