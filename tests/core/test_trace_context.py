"""What is taken for a `traceparent`, compared with W3C's grammar as a regular expression, under a sanitizer."""

import os
import re
import shutil
import subprocess
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

TOP = Path(__file__).parents[2]
SANITIZED = ["-fsanitize=address,undefined", "-fno-sanitize-recover=all"]
FLAGS = ["-O1", "-std=gnu11", "-Wall", "-Wextra", "-Werror", *SANITIZED]
VALID = b"00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"
HEXADECIMAL = re.compile(
    rb"(?:(00)|(?!00|ff)[0-9a-f]{2})-(?!0{32})([0-9a-f]{32})-(?!0{16})([0-9a-f]{16})-([0-9a-f]{2})(?:-.*)?", re.DOTALL
)


def expected(text):
    """The context as version 00 has it; of later versions only the flag that says whether it is sampled."""
    found = HEXADECIMAL.fullmatch(text)
    if not found or (found[1] and len(text) != len(VALID)):
        return b""
    flags = found[4] if found[1] else b"%02x" % (int(found[4], 16) & 1)
    return b"-".join([b"00", found[2], found[3], flags])


def compiled(name, directory, main):
    """The program of `main` and of one source of cext/core."""
    compiler = shutil.which(os.environ.get("CC", "cc").split()[-1])
    if compiler is None:
        pytest.skip("there is no C compiler")
    program = directory / name
    sources = [str(TOP / f"cext/core/{name}.c"), str(main)]
    subprocess.run([compiler, *FLAGS, f"-I{TOP / 'cext'}", *sources, "-o", str(program)], check=True)
    return program


@pytest.fixture(scope="module")
def reader(tmp_path_factory):
    return compiled("trace_context", tmp_path_factory.mktemp("reader"), Path(__file__).with_name("trace_context.c"))


def changed(at, byte):
    return VALID[:at] + bytes([byte]) + VALID[at + 1 :]


one_byte_off = st.builds(changed, st.integers(0, 54), st.integers(0, 255))
versions = st.integers(0, 255).map(lambda version: b"%02x" % version)
later = st.builds(lambda version, rest: version + VALID[2:] + rest, versions, st.binary(max_size=9))
digits = st.from_regex(rb"[0-9a-f]{2}-[0-9a-f]{32}-[0-9a-f]{16}-[0-9a-f]{2}(-.{0,9})?", fullmatch=True)
texts = st.lists(one_byte_off | later | digits | st.binary(max_size=80), min_size=50, max_size=400)


@pytest.mark.long
@settings(max_examples=20, deadline=None, suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large])
@given(texts)
def test_only_what_the_grammar_has_is_read(reader, given_texts):
    told = b"".join(bytes([len(text)]) + text for text in [VALID, *given_texts])

    done = subprocess.run([reader], input=told, capture_output=True, check=True)

    assert done.stdout.splitlines() == [expected(text) for text in [VALID, *given_texts]]
    assert expected(VALID) == VALID
