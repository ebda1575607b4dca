"""Native code below lines of Python is named, and has the CPU time that the program measured."""

import json
import random
import re
import subprocess
from pathlib import Path

import pytest

from interpose.experiments.model.sampled import Sampled
from tests.sampler.chance import chance, samples_that_count
from tests.sampler.test_sampler import cpu_by, shares_of

TOP = Path(__file__).parents[2]
SPIN = """
static __attribute__((noinline)) double turn(double x, long times)
{
    for (long i = 0; i < times; i++)
        x = x * 1.0000001 + 1;
    return x;
}
double spin(double x, long times) { return turn(x, times) + 1; }
"""

PROGRAM = """
import ctypes, json, time
library = ctypes.CDLL("./libspin.so")
MEANWHILE
library.spin.argtypes, library.spin.restype = (ctypes.c_double, ctypes.c_long), ctypes.c_double
began = time.thread_time()
library.spin(1.0, 1_000_000)
times = int(1_000_000 * TURN_S / (time.thread_time() - began))

def spin():
    library.spin(1.0, times)

def add():
    # No clock here: where processors are busy, a thread often loses its own where it asks for its CPU time.
    s = 0
    for i in range(passes): s += i * i % 7

passes, began = 100_000, time.thread_time()
add()
passes = int(passes * TURN_S / 2 / (time.thread_time() - began))
spent = {"turn": 0, "add": 0}
while sum(spent.values()) < ALL_S:
    for name, function in (("turn", spin), ("add", add)):
        began = time.thread_time()
        function()
        spent[name] += time.thread_time() - began
print(json.dumps(spent))
"""


@pytest.fixture
def library(record, work, compiler):
    """Make the shared object that the program calls."""

    def make(*options):
        (work / "spin.c").write_text(SPIN)
        words = [compiler, "-O2", "-shared", "-fPIC", *options, str(work / "spin.c"), "-o", str(work / "libspin.so")]
        subprocess.run(words, check=True)
        return work / "libspin.so"

    return make


@pytest.fixture
def turns(record):
    """Run the program, with turns and a whole CPU time of so many seconds; skip if the kernel tells no instructions."""

    def run(turn_s, all_s, meanwhile=""):
        program = PROGRAM.replace("MEANWHILE", meanwhile)
        spent, experiment = record(f"TURN_S, ALL_S = {turn_s}, {all_s}\n{program}", "--profile", "250")
        if samples_that_count(experiment.founder) < 50:
            pytest.skip("the machine is too busy: the program was seen to run too rarely")
        if not natives_in(experiment):
            pytest.skip("the kernel tells nobody where threads execute (perf events)")
        return spent, experiment

    return run


def natives_in(experiment):
    """The functions of shared objects that samples name, with their objects."""
    sampled = Sampled(experiment.founder)
    stacks = {each.stack for each in sampled.samples()}
    tops = [next(iter(sampled.frames(stack)), None) for stack in stacks]
    return {(site.function, Path(site.file).name) for site in tops if site and site.is_native}


def named(frames):
    return frames[0].function if frames else ""


@pytest.mark.long
@pytest.mark.alone
@pytest.mark.parametrize("turn_s", [0.1, 0.005])
def test_native_functions_have_the_cpu_time_that_the_program_measured(library, turns, turn_s):
    library()
    spent, experiment = turns(turn_s, 4)

    found = cpu_by(experiment.founder, named)

    told = found["turn"] / (found["turn"] + found["spin"])  # of the others nobody knows it
    found["turn"] += found["spin"]
    truth = shares_of(spent)
    shares = shares_of({name: found[name] for name in spent})
    samples = samples_that_count(experiment.founder)
    assert {name: pytest.approx(truth[name], abs=chance(truth[name], samples)) for name in truth} == shares
    assert ("turn", "libspin.so") in natives_in(experiment)
    assert told > 0.6


@pytest.mark.long
def test_a_stripped_object_is_named_without_the_function(library, turns):
    library("-s")
    _, experiment = turns(0.02, 1.5)

    assert ("libspin.so", "libspin.so") in natives_in(experiment)
    assert "turn" not in {function for function, _ in natives_in(experiment)}


@pytest.mark.long
def test_a_file_that_was_replaced_names_no_functions(library, turns):
    library()
    replace = "import os, shutil; shutil.copy('libspin.so', 'new'); os.replace('new', 'libspin.so')"
    _, experiment = turns(0.02, 1.5, replace)

    assert ("libspin.so", "libspin.so") in natives_in(experiment)
    assert "turn" not in {function for function, _ in natives_in(experiment)}


@pytest.mark.long
@pytest.mark.alone  # what computes is told where it takes most of the elapsed time
def test_reports_name_the_object_and_the_function(library, turns, interpose):
    library()
    turns(0.02, 1.5)

    rows = json.loads(interpose("report", "--by", "function", "--format", "json").stdout)
    first = interpose("report").stdout

    found = [row for row in rows if row["function"] == "turn"]
    assert [(Path(row["file"]).name, row["line"]) for row in found] == [("libspin.so", None)]
    assert re.search(r"app\.py:\d+ spin computes, \d+ % of it in libspin\.so turn", " ".join(first.split()))


@pytest.mark.long
def test_the_first_screen_has_the_rows_that_the_page_shows(library, turns, interpose):
    library()
    turns(0.02, 1.5)
    page = (TOP / "docs" / "profile.md").read_text().partition("## Native code")[2]

    told = interpose("report").stdout

    assert set(rows_of_functions(page)) == {("turn", "libspin.so"), ("add", "app.py:17")}
    assert set(rows_of_functions(told)) >= set(rows_of_functions(page))
    assert re.search(r"app\.py:\d+ spin computes", page)[0] in " ".join(told.split())


def rows_of_functions(screen):
    """The functions below `code` in a first screen, with their places."""
    return re.findall(r"^ +(\w+) +[\d.]+ m?s +(\S+)$", screen, re.M)


# --- symbols


@pytest.fixture(scope="module")
def symbols(tmp_path_factory, compiler):
    """What the reader of symbols prints of a part of a file, and how it ends; built with sanitizers."""
    directory = tmp_path_factory.mktemp("symbols")
    sources = [Path(__file__).with_name("symbols.c"), TOP / "cext" / "core" / "symbols.c"]
    flags = ["-O1", "-g", "-fsanitize=address,undefined", "-fno-sanitize-recover=all", f"-I{TOP / 'cext'}"]
    subprocess.run([compiler, *flags, *map(str, sources), "-o", str(directory / "symbols")], check=True)

    def run(file, begin, end):
        words = [directory / "symbols", file, str(begin), str(end)]
        done = subprocess.run(words, capture_output=True, timeout=60, errors="replace")
        return done.returncode, done.stdout.split("\n"), done.stderr

    return run


def executed(file):
    """The part of an ELF file that is executed, as readelf tells it."""
    told = subprocess.run(["readelf", "-lW", file], capture_output=True, text=True, check=True).stdout
    found = re.search(r"LOAD +(0x\w+) 0x\w+ 0x\w+ (0x\w+) 0x\w+ R E", told)
    return int(found[1], 16), int(found[1], 16) + int(found[2], 16)


def functions_of(file):
    """The functions of an ELF file, as readelf tells them, without what compilers add."""
    told = subprocess.run(["readelf", "-sW", file], capture_output=True, text=True, check=True).stdout
    rows = [row for row in map(str.split, told.splitlines()) if len(row) > 7]
    defined = [row[7] for row in rows if row[3] == "FUNC" and row[2] != "0" and row[6] != "UND"]
    return {re.split("[.@]", name)[0] for name in defined}


def test_symbols_are_those_that_readelf_finds(library, symbols):
    file = library()

    code, names, _ = symbols(file, *executed(file))

    assert code == 0
    assert set(names) - {""} == functions_of(file) >= {"turn", "spin"}


@pytest.mark.long
def test_damaged_files_are_read_without_harm(library, symbols, work):
    whole, chosen = library().read_bytes(), random.Random(7)
    part = executed(work / "libspin.so")
    for number in range(150):
        damaged = bytearray(whole[: chosen.randrange(len(whole))] if number % 5 == 0 else whole)
        for _ in range(chosen.randrange(1, 30)):
            at = chosen.randrange(min(len(damaged), chosen.choice((64, 1024, len(damaged)))) or 1)
            damaged[at : at + 1] = bytes([chosen.choice((0, 255, chosen.randrange(256)))])
        (work / "damaged.so").write_bytes(damaged)

        code, _, errors = symbols(work / "damaged.so", part[0], part[0] + 64)

        assert code in (0, 3), errors
