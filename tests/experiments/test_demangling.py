"""Names of C++ and Rust, by what `c++filt` says and what their compilers' documents say."""

import ctypes.util
import os
import random
import shutil
import subprocess
import time

import pytest

from interpose.experiments.model import demangling
from interpose.experiments.model.demangling import LONGEST, demangled


@pytest.fixture(autouse=True)
def translator(monkeypatch):
    """One of the test's own, and nothing known yet."""
    own = demangling._Translator()
    monkeypatch.setattr(demangling, "_translator", own)
    demangled.cache_clear()
    yield own
    own.end()
    demangled.cache_clear()


@pytest.fixture
def symbols():
    """Functions of the C++ library, some thousand."""
    tools = shutil.which("nm"), shutil.which("c++filt"), shutil.which("gcc")
    if not all(tools):
        pytest.skip("no nm, no c++filt or no gcc")
    path = subprocess.run(["gcc", "-print-file-name=libstdc++.so.6"], capture_output=True, text=True).stdout.strip()
    if "/" not in path:
        pytest.skip("no libstdc++.so.6")
    words = ["nm", "-D", "--defined-only", "--without-symbol-versions", path]
    lines = subprocess.run(words, capture_output=True, text=True, check=True).stdout.splitlines()
    names = sorted({line.split()[-1] for line in lines if " T _Z" in line or " W _Z" in line})
    return random.Random(1).sample(names, min(2000, len(names)))


def test_names_are_those_of_cxxfilt(symbols):
    words = ["c++filt", "--no-verbose"]
    done = subprocess.run(words, input="\n".join(symbols), capture_output=True, text=True, check=True)

    assert [demangled(name) for name in symbols] == done.stdout.splitlines()
    assert len(symbols) > 1000


@pytest.fixture
def library():
    if not ctypes.util.find_library("stdc++"):
        pytest.skip("no C++ library")


OF_RUST = {
    "_ZN4core3fmt9Formatter9write_fmt17h0123456789abcdefE": "core::fmt::Formatter::write_fmt",
    "_ZN60_$LT$alloc..string..String$u20$as$u20$core..fmt..Display$GT$3fmt17hde30a6ecc2cb8a7bE": (
        "<alloc::string::String as core::fmt::Display>::fmt"
    ),
    "_ZN71_$LT$Test$u20$$u2b$$u20$$u27$static$u20$as$u20$foo..Bar$LT$Test$GT$$GT$3bar17h930b740aa94f1d3aE": (
        "<Test + 'static as foo::Bar<Test>>::bar"
    ),
    "_ZN1a5$u1b$7$ud800$17h0123456789abcdefE": "a::$u1b$::$ud800$",  # no signs that are printed
    "_ZN4main4main28_$u7b$$u7b$closure$u7d$$u7d$17h0123456789abcdefE": "main::main::{{closure}}",
}


@pytest.mark.parametrize("name", OF_RUST)
def test_names_of_rust_are_those_of_the_source(library, name):
    assert demangled(name) == OF_RUST[name]


NO_NAMES = ["", "main", "_start", "_Z", "_Zfoo", "_ZN3fooE\n_Z1fv", "_Z1f" + "i" * LONGEST, "_ZN1a€E"]


@pytest.mark.parametrize("name", NO_NAMES)
def test_what_is_no_such_name_stays_as_it_is(name):
    assert demangled(name) == name


def number_of(substitution: int) -> str:
    digits = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZ"
    return "S_" if not substitution else f"S{digits[substitution - 1]}_"


def growing(times: int) -> str:
    """A function whose parameters are types of types, each twice as long as the one before."""
    pairs = (f"S_I{number_of(1 + each) * 2}E" for each in range(times))
    return "_Z1f1AIiiE" + "".join(pairs)


@pytest.mark.long
def test_a_short_name_that_means_a_long_one_costs_little(library, translator):
    assert demangled(growing(3)).startswith("f(A<int, int>, A<A<int, int>, A<int, int> >, ")
    began = time.monotonic()

    assert demangled(growing(33)) == growing(33)

    assert time.monotonic() - began < 30  # it would take some hours, and 100 GiB
    assert demangled("_ZN3foo3barEi") == "foo::bar(int)"


@pytest.mark.filterwarnings("ignore:This process .* is multi-threaded:DeprecationWarning")
def test_a_forked_process_has_a_translator_of_its_own(library, translator):
    assert demangled("_ZN3foo3barEi") == "foo::bar(int)"
    child = os.fork()
    if not child:
        process = translator._process
        os._exit(process is not None or demangled("_ZN3foo5otherEi") != "foo::other(int)")

    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
    assert demangled("_ZN3foo4lastEi") == "foo::last(int)"


def test_where_there_is_no_translator_the_names_stay(translator, monkeypatch):
    started = []
    monkeypatch.setattr(demangling, "_TRANSLATE", "")
    begin = demangling._begin
    monkeypatch.setattr(demangling, "_begin", lambda: started.append(1) or begin())

    names = [f"_Z{each}{'f' * each}v" for each in range(1, 10)]
    assert [demangled(name) for name in names] == names
    assert len(started) == demangling._FAILURES_AT_MOST
